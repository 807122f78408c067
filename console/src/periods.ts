// What a period was like, and what grew from one to another.

import { ask } from './api/http.ts';
import type { AuditEntry, Facet, FacetPage, Page, Revision, Statistics } from './api/types.ts';
import { both, moment, quoted } from './format.ts';
import type { Key } from './i18n/index.ts';
import { within } from './query.ts';
import type { Window } from './range.ts';

export interface Span { from: number; to: number }

/** What events are compared by. */
export const COMPARED: [Key, string][] = [
  ['overview.rules', 'rule'], ['overview.classes', 'class'], ['overview.clients', 'client'], ['overview.paths', 'path'],
  ['overview.statuses', 'status'], ['overview.countries', 'country'], ['overview.controls', 'control'],
];
/** Values of each field that are known exactly. */
const KNOWN_MAX = 1000;

/** The events of a period, of a site or all. */
export function filterOf({ from, to }: Span, site: string): string {
  return both(within('', { from: moment(from), to: moment(to) }), site ? `site = ${quoted(site)}` : '');
}

export function statistics({ from, to }: Span, site: string, signal: AbortSignal, step?: Window['step']): Promise<Statistics> {
  return ask<Statistics>('/statistics', { query: { from, to, site, step, top: 16 }, signal });
}

export function facets(filter: string, fields: string[], signal: AbortSignal, top: number = KNOWN_MAX): Promise<FacetPage> {
  return ask<FacetPage>('/events/facets', { query: { filter, fields: fields.join(','), top }, signal });
}

/** The period that another one is compared with: as long, and right before it, or days before it. */
export function earlier({ from, to }: Span, days: number): Span {
  const back = days > 0 ? days * 86_400 : to - from;
  return { from: from - back, to: to - back };
}

/** A value in two periods; `null`: at most as many as the least frequent that is known. */
export interface Growth { value: string; now: number | null; before: number | null; by: number }

/** Values of a field by how much they grew or shrank. What is unknown in one period counts as nothing there. */
export function growth(now: Facet | undefined, before: Facet | undefined): Growth[] {
  const counts = (facet: Facet | undefined) => new Map((facet?.values ?? []).map(({ value, count }) => [value, count]));
  const [new_, old] = [counts(now), counts(before)];
  const known = (of: Map<string, number>, value: string, facet: Facet | undefined) => of.get(value) ?? ((facet?.others ?? 0) > 0 ? null : 0);
  return [...new Set([...new_.keys(), ...old.keys()])].map((value) => {
    const [here, there] = [known(new_, value, now), known(old, value, before)];
    return { value, now: here, before: there, by: (here ?? 0) - (there ?? 0) };
  }).sort((one, other) => Math.abs(other.by) - Math.abs(one.by) || Math.max(other.now ?? 0, other.before ?? 0) - Math.max(one.now ?? 0, one.before ?? 0)
    || (one.value < other.value ? -1 : 1));
}

/** Something that was changed at a moment, in seconds. */
export interface Mark { time: number; what: 'revision' | 'reload'; number: number; by: string | null; reason: string }
const PAGE = 1000;
/** Pages that are looked through for those of a period. */
const PAGES_MAX = 5;

/** Revisions and reloads of a period, oldest first; as far as a role may see them. */
export async function marks({ from, to }: Span, may: { revisions: boolean; audit: boolean }, signal: AbortSignal): Promise<Mark[]> {
  const seconds = (text: string) => Date.parse(text) / 1000;
  const revisions = may.revisions ? await since<Revision>('/revisions', from, signal) : [];
  const entries = may.audit ? await since<AuditEntry>('/audit', from, signal) : [];
  return [
    ...revisions.map((each): Mark => ({ time: seconds(each.time), what: 'revision', number: each.number, by: each.author, reason: each.reason })),
    ...entries.filter((each) => each.action === 'reload').map((each): Mark => ({ time: seconds(each.time), what: 'reload', number: each.number, by: each.actor, reason: each.detail })),
  ].filter((mark) => mark.time >= from && mark.time < to).sort((one, other) => one.time - other.time);
}

/** The items of a list, newest first, that are not before a moment. */
export async function since<T extends { time: string }>(path: string, from: number, signal: AbortSignal): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { items, next }: Page<T> = await ask<Page<T>>(path, { query: { limit: PAGE, cursor }, signal });
    const fresh = items.filter((item) => Date.parse(item.time) / 1000 >= from);
    found.push(...fresh);
    if (next === null || fresh.length < items.length) break;
    cursor = next;
  }
  return found;
}
