// A text as it is pasted or typed, and the parts of a filter that it may stand for, the most likely first.

import { quoted } from './format.ts';
import { isField, terms, tokens } from './query.ts';

export type Recognised = 'id' | 'client' | 'path' | 'rule' | 'status' | 'host' | 'url' | 'value' | 'filter' | 'text';
export interface Reading { kind: Recognised; term: string; value: string; field?: string }
export interface Known { field: string; value: string }

/** The shortest word that the server takes for a request id. */
const ID_MIN = 16;
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|(?=\/|$))){4}(?:\/(?:3[0-2]|[12]?\d))?$/;
const IPV6 = /^(?=[^/]*:[^/]*:)[0-9a-f:]{2,39}(?:\/(?:12[0-8]|1[01]\d|\d?\d))?$/i;
const HOST = /^(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]+$/i;

/** The meaning of a single word on its own; the server reads it alike. */
function alone(word: string): Recognised | null {
  if (IPV4.test(word) || IPV6.test(word)) return 'client';
  if (/^\/\S*$/.test(word)) return 'path';
  if (/^\d{1,15}$/.test(word)) return Number(word) >= 100 && Number(word) <= 599 ? 'status' : 'rule';
  if (word.length >= ID_MIN && /^[A-Za-z0-9_.@-]+$/.test(word) && /\d/.test(word)) return 'id';
  return null;
}

/** True if each part of a text is a comparison, a quoted text or a value alone. */
function isFilter(text: string): boolean {
  const parts = terms(text);
  return parts.length > 0 && parts.every((part) => {
    const all = tokens(part.text).filter(({ kind, text: word }) => kind !== 'open' && !(kind === 'word' && word.toLowerCase() === 'not'));
    const [first, second] = all;
    if (!first || all.some(({ closed }) => !closed)) return false;
    if (first.kind === 'quoted') return all.length === 1;
    if (first.kind !== 'word') return false;
    const compares = second?.kind === 'operator' || (second?.kind === 'word' && second.text.toLowerCase() === 'in');
    if (compares) return isField(first.text) || (/^[a-z_]+$/.test(first.text) && all.length === 3);
    return alone(first.text) !== null && all.length === 1;
  });
}

export function recognise(typed: string, known: Known[] = []): Reading[] {
  const text = typed.trim();
  if (text === '') return [];
  const found: Reading[] = [];
  const add = (kind: Recognised, term: string, value = text, field?: string) => found.push({ kind, term, value, field });
  const url = /^https?:\/\/([^/?#\s:]+)(?::\d+)?([^?#\s]*)\S*$/i.exec(text);
  const kind = alone(text);
  const host = text.replace(/:\d+$/, '');
  if (url) add('url', `host = ${quoted(url[1]!.toLowerCase())} and path = ${quoted(url[2] || '/')}`);
  if (HOST.test(host)) add('host', `host = ${quoted(host.toLowerCase())}`, host.toLowerCase());
  if (kind === 'path' && /[(),]/.test(text)) add('path', `path = ${quoted(text.split('?')[0]!)}`, text.split('?')[0]);
  else if (kind !== null) add(kind, text);
  else if (isFilter(text)) add('filter', text);
  const lower = text.toLowerCase();
  const values = known.filter(({ value }) => value.toLowerCase().includes(lower));
  const same = values.filter(({ value }) => value.toLowerCase() === lower);
  const term = ({ field, value }: Known) => add('value', `${field} = ${quoted(value)}`, value, field);
  same.forEach(term);
  add('text', `"${text.replaceAll(/[\\"]/g, '\\$&')}"`);
  values.filter((each) => !same.includes(each)).slice(0, 6).forEach(term);
  return found.filter((each, at) => found.findIndex((other) => other.term === each.term) === at);
}
