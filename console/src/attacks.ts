// Events as attacks: of one client network, close in time, of one kind.

import type { EventItem, RowEvent } from './api/types.ts';

/** An attack goes on as long as no more time than this is between two of its events. */
const GAP_MS = 10 * 60_000;

export interface Attack {
  network: string; kind: string; count: number; first: string; last: string; targets: Set<string>; items: EventItem<RowEvent>[]; worst: string;
}

/** The /24 of an IPv4 address, the /64 of an IPv6 one. */
export function network(address: string): string {
  if (!address.includes(':')) return `${address.split('.').slice(0, 3).join('.')}.0/24`;
  const [head = '', tail] = address.split('::');
  const left = head.split(':').filter((part) => part !== '');
  const right = tail === undefined ? [] : tail.split(':').filter((part) => part !== '');
  const middle = tail === undefined ? [] : new Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0');
  return `${[...left, ...middle, ...right].slice(0, 4).map((part) => part.replace(/^0+(?=.)/, '')).join(':')}::/64`;
}

export function kindOf(item: EventItem<RowEvent>): string {
  const { verdict, refusal } = item.event;
  return verdict.class ?? (verdict.rule_id ? `rule ${verdict.rule_id}` : verdict.control ? `${verdict.control.by} ${verdict.control.name}` : refusal ?? verdict.action);
}

const RANK = ['deny', 'drop', 'refuse', 'redirect', 'proxy', 'detect', 'pass'];

/** Groups of events that are newest first, with exact counts. */
export function attacks(items: EventItem<RowEvent>[]): Attack[] {
  const open = new Map<string, Attack>();
  const all: Attack[] = [];
  for (const item of items) {
    const kind = kindOf(item);
    const of = network(item.event.client.addr);
    const key = `${of} ${kind}`;
    let attack = open.get(key);
    if (!attack || new Date(attack.first).getTime() - new Date(item.event.time).getTime() > GAP_MS) {
      attack = { network: of, kind, count: 0, first: item.event.time, last: item.event.time, targets: new Set(), items: [], worst: item.event.verdict.action };
      open.set(key, attack);
      all.push(attack);
    }
    attack.count += item.count;
    attack.first = item.event.time;
    attack.targets.add(item.event.request.target.split('?')[0] ?? '');
    attack.items.push(item);
    if (RANK.indexOf(item.event.verdict.action) < RANK.indexOf(attack.worst)) attack.worst = item.event.verdict.action;
  }
  return all;
}
