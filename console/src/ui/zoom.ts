// A part of a chart that becomes what a page is about, and the way back from it.

import { useEffect } from 'preact/hooks';
import { href, parse, type Values } from '../route.ts';

interface Zoomed { zoomed?: boolean }

/** Changes parts of the query as an entry of the history of its own: one step back leaves the part. */
export function zoomIn(values: Values): void {
  const place = parse(location.hash);
  const all: Values = Object.fromEntries(place.query);
  history.pushState({ zoomed: true } satisfies Zoomed, '', href(place.path, { ...all, ...values }));
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

/** Back to what was shown before the part; `whole` widens one that a link led to. */
export function zoomOut(whole: () => void): void {
  if ((history.state as Zoomed | null)?.zoomed) history.back();
  else whole();
}

/** `z` leaves the part that is shown. */
export function useZoomKey(isPart: boolean, whole: () => void): void {
  useEffect(() => {
    if (!isPart) return undefined;
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key !== 'z' || event.ctrlKey || event.metaKey || event.altKey || target.closest('input, select, textarea, dialog')) return;
      event.preventDefault();
      zoomOut(whole);
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  });
}
