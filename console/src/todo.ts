// Tasks for the operator, derived from the API's answers; each with its evidence, the worst first.

import type { Certificate, FacetPage, FieldProposal, Group, Site, SiteStatistics, Upstream } from './api/types.ts';
import { ago, bytes, expiryTone, number, percent, quoted } from './format.ts';
import { t, type Key } from './i18n/index.ts';
import { offers } from './offers.ts';
import { readiness } from './readiness.ts';
import { href } from './route.ts';
import { total, uninspected } from './statistics.ts';

export type Tone = 'bad' | 'warn' | 'info';
export interface Task {
  /** Says the same task again, and another one where something has changed. */
  key: string;
  tone: Tone; title: string; evidence: string;
  links: { label: Key; href: string }[];
  /** An address that may be banned. */
  client?: string;
}

/** Clients without any other event from which on a group is likely a false positive. */
const CLIENTS_MIN = 3;
/** Blocked requests of a client within the time of attackers that make it one. */
const ATTACKS_MIN = 10;
export const ATTACKERS_OF = 'outcome = blocked and time >= -15m';
/** Share of bytes without inspection from which on the reason is worth a look. */
const UNSEEN_SHARE = 0.01;
/** Reasons that a setting changes; the others are how the web is. */
const CHANGEABLE = ['over_limit', 'body_access_off', 'content_coding', 'work_limit', 'engine_off', 'engine_error', 'bypassed', 'file_rest'];

const RANK: Record<Tone, number> = { bad: 0, warn: 1, info: 2 };

export function sorted(tasks: Task[]): Task[] {
  return [...tasks].sort((one, other) => RANK[one.tone] - RANK[other.tone]);
}

export function upstreamTasks(groups: Upstream[]): Task[] {
  return groups.flatMap((group) => {
    const broken = group.endpoints.filter((each) => !['healthy', 'probing'].includes(each.state));
    if (broken.length === 0) return [];
    const all = broken.length === group.endpoints.length;
    return [{
      key: `upstream ${group.name} ${broken.map((each) => each.address).join()}`, tone: all ? 'bad' : 'warn',
      title: t(all ? 'todo.upstreamDown' : 'todo.upstreamPart', { name: group.name, broken: broken.length, all: group.endpoints.length }),
      evidence: broken.map((each) => `${each.address}: ${each.last_error ? each.last_error.message : each.state}`).join('; '),
      links: [{ label: 'nav.sites', href: href(['sites']) }],
    } satisfies Task];
  });
}

export function certificateTasks(certificates: Certificate[], now: number): Task[] {
  return certificates.flatMap((each) => {
    const tone = each.not_after === null ? '' : expiryTone(each.not_after - now);
    if (each.not_after === null || tone === '') return [];
    const name = each.names.join(', ') || each.file;
    const when = ago(new Date(each.not_after * 1000).toISOString(), now * 1000);
    return [{
      key: `certificate ${name} ${each.not_after}`, tone,
      title: t(tone === 'bad' ? 'todo.certificateOver' : 'todo.certificate', { name, when }),
      evidence: `${each.listener}, ${each.issuer ?? each.source}${each.file ? `, ${each.file}` : ''}`,
      links: [{ label: 'nav.sites', href: href(['sites']) }],
    } satisfies Task];
  });
}

/** `banned`: clients that are turned away already. */
export function attackerTasks(facets: FacetPage, banned: string[]): Task[] {
  return (facets.fields['client']?.values ?? []).filter(({ value, count }) => count >= ATTACKS_MIN && !banned.includes(value)).slice(0, 3).map(({ value, count }) => ({
    key: `attacker ${value}`, tone: 'bad', client: value,
    title: t('todo.attacker', { client: value }), evidence: t('todo.attackerEvidence', { count: number(count) }),
    links: [{ label: 'todo.events', href: href(['events'], { filter: `client = ${quoted(value)} and ${ATTACKERS_OF}`, kind: 'all' }) }],
  }));
}

/** Groups of events that many clients cause who do nothing else. `passing`: ids of requests that pass by now. */
export function falsePositiveTasks(groups: Group[], passing: Set<string>): Task[] {
  return groups.filter((group) => group.clients_with_nothing_else >= CLIENTS_MIN && !(group.newest !== null && passing.has(group.newest))).slice(0, 5).map((group) => {
    const rule = /^rule (\d+)$/.exec(group.objection)?.[1];
    const at = group.path.indexOf('{');
    const path = group.path === '' ? '' : at < 0 ? `path = ${quoted(group.path)}` : `path ^= ${quoted(group.path.slice(0, at))}`;
    const filter = [`site = ${quoted(group.site)}`, rule ? `rule = ${rule}` : `class = ${group.objection}`, path, 'time >= -7d'].filter(Boolean).join(' and ');
    return {
      key: `group ${group.site} ${group.objection} ${group.location} ${group.path} ${group.newest ?? ''}`, tone: 'warn',
      title: t('todo.falsePositive', { objection: group.objection, location: group.location, path: group.path || group.site }),
      evidence: t('todo.falsePositiveEvidence', { requests: number(group.requests), clients: number(group.clients), only: number(group.clients_with_nothing_else) }),
      links: [...(group.newest ? [{ label: 'todo.review' as Key, href: href(['event', group.newest]) }] : []), { label: 'todo.events', href: href(['events'], { filter, kind: 'all' }) }],
    } satisfies Task;
  });
}

export function siteTasks(sites: Site[], weeks: SiteStatistics[]): Task[] {
  return sites.flatMap((site) => {
    const stands = readiness(site, weeks.find((each) => each.site === site.name));
    if (stands.state !== 'ready' && stands.state !== 'notReady') return [];
    return [{
      key: `site ${site.name} ${stands.state}`, tone: stands.state === 'ready' ? 'info' : 'warn',
      title: t(stands.state === 'ready' ? 'todo.siteReady' : 'todo.siteNotReady', { site: site.name }), evidence: stands.text,
      links: [...(stands.look ? [{ label: 'sites.look' as Key, href: href(['events'], { filter: stands.look }) }] : []), { label: 'nav.sites', href: href(['sites']) }],
    } satisfies Task];
  });
}

export function offerTasks(sites: Site[]): Task[] {
  return sites.flatMap((site) => offers(site).map((offer) => ({
    key: `offer ${site.name} ${offer.profile}`, tone: 'info', title: t('todo.offer', { site: site.name, application: offer.application }),
    evidence: t('offer.signs', { signs: offer.signs.join(', ') }), links: [{ label: 'todo.review', href: href(['sites']) }],
  } satisfies Task)));
}

export function proposalTasks(proposals: FieldProposal[]): Task[] {
  const waiting = proposals.filter((each) => each.state === 'proposed');
  return [...new Set(waiting.map((each) => each.site))].map((site) => {
    const own = waiting.filter((each) => each.site === site);
    const fields = [...new Set(own.map((each) => `${each.kind} (${each.method} ${each.path} ${each.name})`))];
    return {
      key: `proposals ${site} ${own.map((each) => each.id).join()}`, tone: 'info', title: t('todo.proposals', { count: number(own.length), site }),
      evidence: fields.slice(0, 3).join(', ') + (fields.length > 3 ? ', …' : ''),
      links: [{ label: 'todo.review', href: href(['interfaces'], { site }) }],
    };
  });
}

export function uninspectedTasks(items: SiteStatistics[]): Task[] {
  const { passed } = uninspected(items);
  const whole = total(items, (item) => item.bytes_inspected) + passed.reduce((sum, label) => sum + label.count, 0);
  return passed.filter((label) => CHANGEABLE.includes(label.label) && label.count / whole >= UNSEEN_SHARE).map((label) => ({
    key: `uninspected ${label.label}`, tone: label.label === 'engine_error' ? 'bad' : 'info',
    title: t('todo.uninspected', { share: percent(label.count, whole), reason: t(`reason.${label.label}` as Key) }),
    evidence: `${t('todo.uninspectedEvidence', { bytes: bytes(label.count), total: bytes(whole) })} ${t(`todo.advice.${label.label}` as Key)}`,
    links: [{ label: 'nav.sites', href: href(['sites']) }],
  }));
}
