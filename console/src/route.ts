// The place in the console is the fragment of its URL, filters included: every view can be shared.

import { useEffect, useState } from 'preact/hooks';

export interface Place { path: string[]; query: URLSearchParams }

export function parse(fragment: string): Place {
  const text = fragment.replace(/^#\/?/, '');
  const at = text.indexOf('?');
  const path = at < 0 ? text : text.slice(0, at);
  const parts = path.split('/').filter((part) => part !== '');
  return { path: parts.map(decoded), query: new URLSearchParams(at < 0 ? '' : text.slice(at + 1)) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export type Values = Record<string, string | number | null | undefined>;

export function href(path: string[], values: Values = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

export function go(path: string[], values: Values = {}): void {
  location.hash = href(path, values);
}

/** Goes to a place that is written as a fragment. */
export function visit(fragment: string): void {
  const to = parse(fragment);
  go(to.path, Object.fromEntries(to.query));
}

/** Changes parts of the query and stays on the page; no new entry in the history. */
export function refine(values: Values): void {
  const place = parse(location.hash);
  const all: Values = Object.fromEntries(place.query);
  history.replaceState(history.state, '', href(place.path, { ...all, ...values }));
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => parse(location.hash));
  useEffect(() => {
    const listen = () => setPlace(parse(location.hash));
    window.addEventListener('hashchange', listen);
    return () => window.removeEventListener('hashchange', listen);
  }, []);
  return place;
}
