// Profiles of recognised applications: which were dismissed, and what taking one would let through.

import type { Application, EventItem, Replayed, Site } from './api/types.ts';

/** Offers that were dismissed in this browser. */
const DISMISSED = 'portcullis.profiles';

const key = (site: string, profile: string) => `${site} ${profile}`;

function dismissed(): string[] {
  try {
    const stored: unknown = JSON.parse(globalThis.localStorage?.getItem(DISMISSED) ?? '[]');
    return Array.isArray(stored) ? stored.filter((each) => typeof each === 'string') : [];
  } catch {
    return [];
  }
}

export function dismiss(site: string, profile: string): void {
  localStorage.setItem(DISMISSED, JSON.stringify([...new Set([...dismissed(), key(site, profile)])]));
}

/** What is offered to a site. */
export function offers(site: Site): Application[] {
  const not = dismissed();
  return site.looks_like.filter((each) => !not.includes(key(site.name, each.profile)));
}

/** Of the stopped requests that would pass those that look like attacks: their clients sent others that stay stopped. */
export function suspicious(changes: Replayed['changes'], stopped: EventItem[]): Set<string> {
  const lost = new Set(changes.filter((each) => each.change === 'lost').map((each) => each.id));
  const clientOf = ({ event }: EventItem) => event.client.addr;
  const attackers = new Set(stopped.filter(({ event }) => !lost.has(event.request_id)).map(clientOf));
  return new Set(stopped.filter((each) => lost.has(each.event.request_id) && attackers.has(clientOf(each))).map(({ event }) => event.request_id));
}
