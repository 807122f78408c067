// A period on paper: what happened, what was blocked, who attacked, what may be false positives, what people changed.

import type { ComponentChildren } from 'preact';
import { ask } from '../api/http.ts';
import type { AuditEntry, Facet, FacetPage, GroupPage, Live, Site, SiteStatistics } from '../api/types.ts';
import { can } from '../api/role.ts';
import { both, dateTime, micros, number, percent, quoted, zone } from '../format.ts';
import { t, type Key } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { countryName } from '../places.ts';
import { earlier, facets, filterOf, marks, since, statistics } from '../periods.ts';
import { windowFrom } from '../range.ts';
import { href, refine, type Place } from '../route.ts';
import { BLOCKED, countOf, outcomes, quantile, timeline, total } from '../statistics.ts';
import { Stack } from '../ui/chart.tsx';
import { Button, Card, Empty, Failure, PageHead, Select, Skeleton } from '../ui/kit.tsx';
import { PeriodTabs, span } from '../ui/period.tsx';
import { useZoomKey } from '../ui/zoom.ts';
import { visible } from '../visible.ts';
import { Marks, placed } from './marks.tsx';

const TOP = 10;
/** Attackers of whom the report says what they tried. */
const ATTACKERS = 5;
const ATTACKS = 'outcome in (blocked, would_block)';
/** Clients without any other event from which on a group is likely a false positive. */
const LIKELY_MIN = 2;

interface Attacker { client: string; count: number; classes: string; paths: string }

export default function ReportPage({ place }: { place: Place }) {
  const now = windowFrom(place.query);
  const site = place.query.get('site') ?? '';
  const before = earlier(now, 0);
  const of = `${now.from} ${now.to} ${site}`;
  const filter = filterOf(now, site);
  useZoomKey(now.fixed, () => refine({ from: null, to: null }));
  const sites = useLoad((signal) => ask<Live<Site>>('/sites', { signal }), 'sites');
  const sums = useLoad((signal) => Promise.all([now, before].map((each) => statistics(each, site, signal))), of);
  const steps = useLoad((signal) => statistics(now, site, signal, now.step), of);
  const attacks = useLoad((signal) => facets(both(ATTACKS, filter), ['class', 'rule', 'path', 'client', 'country'], signal, TOP), of);
  const attackers = useLoad((signal) => tried(filter, signal), of);
  const turned = useLoad((signal) => facets(both('outcome = control', filter), ['control'], signal, TOP), of);
  const groups = useLoad((signal) => ask<GroupPage>('/advise/groups', { query: { filter }, signal }), of);
  const changes = useLoad((signal) => marks(now, { revisions: can('analyst'), audit: can('admin') }, signal), of);
  const acts = useLoad(async (signal) => (can('admin') ? (await since<AuditEntry>('/audit', now.from, signal)).filter((each) => Date.parse(each.time) / 1000 < now.to) : null), of);
  const items = sums.value?.[0]!.items ?? [];
  const width = now.step === 'minute' ? 60 : 3_600;
  const line = timeline(steps.value?.items ?? [], now.from, now.to, width);
  const ready = [sums, steps, attacks, attackers, turned, groups, changes, acts].every((each) => each.value !== null || each.error !== null || !each.busy);
  return (
    <article class="report" data-ready={ready}>
      <PageHead title={t('report.title')}>
        <Select hidden label={t('app.site')} value={site} onChange={(next) => refine({ site: next })}
          options={[['', t('overview.allSites')], ...(sites.value?.items ?? []).map((each): [string, string] => [each.name, each.name])]} />
        <PeriodTabs place={place} />
        <Button tone="primary" icon="download" disabled={!ready} onClick={() => window.print()}>{t('report.print')}</Button>
      </PageHead>
      <p class="dim">{t('report.about', { site: site || t('overview.allSites'), period: span(now.from, now.to), zone: zone(), made: dateTime(Date.now() / 1000) })}</p>
      {sums.error !== null && !sums.value && <Failure error={sums.error} retry={sums.again} />}
      <Section title={t('report.what')} busy={!sums.value && sums.error === null}>
        {sums.value && <Summary now={items} before={sums.value[1]!.items} />}
        {steps.value && (
          <Stack label={t('overview.traffic')} times={line.times} step={width} height={180} marks={placed(changes.value ?? [])} series={[
            { label: t('overview.passed'), values: line.passed, colour: '--pass' }, { label: t('overview.detected'), values: line.detected, colour: '--detect' },
            { label: t('overview.blocked'), values: line.blocked, colour: '--deny' },
          ]} />
        )}
      </Section>
      <Section title={t('report.blocked')} error={attacks.error} busy={!attacks.value}>
        {attacks.value && <p>{t('report.events', { count: number(attacks.value.total) })}</p>}
        <div class="columns">
          <Ranked title={t('overview.classes')} field="class" facet={attacks.value?.fields['class']} filter={both(ATTACKS, filter)} />
          <Ranked title={t('overview.rules')} field="rule" facet={attacks.value?.fields['rule']} filter={both(ATTACKS, filter)} />
          <Ranked title={t('overview.paths')} field="path" facet={attacks.value?.fields['path']} filter={both(ATTACKS, filter)} />
          <Ranked title={t('overview.controls')} field="control" facet={turned.value?.fields['control']} filter={both('outcome = control', filter)} />
        </div>
      </Section>
      <Section title={t('report.attackers')} error={attackers.error} busy={!attackers.value}>
        {attackers.value?.length === 0 && <Empty>{t('app.none')}</Empty>}
        {(attackers.value?.length ?? 0) > 0 && (
          <table>
            <thead><tr><th scope="col">{t('events.client')}</th><th scope="col" class="right">{t('nav.events')}</th><th scope="col">{t('report.tried')}</th><th scope="col">{t('report.where')}</th></tr></thead>
            <tbody>{attackers.value?.map((each) => (
              <tr key={each.client}>
                <td><a href={href(['events'], { filter: both(`client = ${quoted(each.client)} and ${ATTACKS}`, filter), kind: 'all' })} data-count={each.count}>{visible(each.client)}</a></td>
                <td class="right">{number(each.count)}</td><td class="wrap">{visible(each.classes)}</td><td class="wrap">{visible(each.paths)}</td>
              </tr>
            ))}</tbody>
          </table>
        )}
        {(attacks.value?.fields['country']?.values.length ?? 0) > 0 && (
          <div class="columns"><Ranked title={t('overview.countries')} field="country" facet={attacks.value?.fields['country']} filter={both(ATTACKS, filter)} name={countryName} /></div>
        )}
      </Section>
      <Section title={t('report.falsePositives')} error={groups.error} busy={!groups.value}>
        {groups.value && <Likely page={groups.value} />}
      </Section>
      <Section title={t('report.changes')} error={changes.error} busy={!changes.value}>
        {!can('analyst') && <Empty>{t('report.noRight')}</Empty>}
        {can('analyst') && changes.value?.length === 0 && (acts.value?.length ?? 0) === 0 && <Empty>{t('app.none')}</Empty>}
        <Marks marks={changes.value ?? []} />
        {acts.value && acts.value.length > 0 && <Acts entries={acts.value} />}
      </Section>
    </article>
  );
}

function Section({ title, error = null, busy, children }: { title: string; error?: unknown; busy: boolean; children: ComponentChildren }) {
  return <Card title={title}>{error !== null ? <Failure error={error} /> : busy ? <Skeleton lines={3} /> : children}</Card>;
}

/** The period in a few sentences. */
function Summary({ now, before }: { now: SiteStatistics[]; before: SiteStatistics[] }) {
  const requests = total(now, (item) => item.requests);
  const stopped = total(now, (item) => countOf(item, 'verdict', BLOCKED));
  const count = (read: number, was: number): string => t('report.was', { count: number(read), before: number(was) });
  const facts: [Key, string][] = [
    ['overview.requests', count(requests, total(before, (item) => item.requests))],
    ['overview.blocked', `${count(stopped, total(before, (item) => countOf(item, 'verdict', BLOCKED)))} · ${percent(stopped, requests)}`],
    ['overview.detected', count(outcomes(now, ['would_block']).count, outcomes(before, ['would_block']).count)],
    ['outcome.control', count(outcomes(now, ['control']).count, outcomes(before, ['control']).count)],
    ['overview.latency', `${micros(quantile(now, 'p50'))} / ${micros(quantile(now, 'p99'))}`],
    ['report.own', `${micros(quantile(now, 'p50', 'inspection_us'))} / ${micros(quantile(now, 'p99', 'inspection_us'))}`],
  ];
  return <dl class="facts-list">{facts.map(([key, text]) => <><dt>{t(key)}</dt><dd>{text}</dd></>)}</dl>;
}

function Ranked({ title, field, facet, filter, name = visible }: { title: string; field: string; facet: Facet | undefined; filter: string; name?: (value: string) => string }) {
  const values = facet?.values ?? [];
  return (
    <section class="ranked">
      <h3>{title}</h3>
      {values.length === 0 ? <Empty>{t('app.none')}</Empty> : (
        <table><tbody>{values.map(({ value, count }) => (
          <tr key={value}>
            <td class="wrap"><a href={href(['events'], { filter: both(`${field} = ${quoted(value)}`, filter), kind: 'all' })} data-count={count}>{name(value)}</a></td>
            <td class="right">{number(count)}</td>
          </tr>
        ))}</tbody></table>
      )}
    </section>
  );
}

function Likely({ page }: { page: GroupPage }) {
  const likely = page.items.filter((group) => group.clients_with_nothing_else >= LIKELY_MIN).slice(0, TOP);
  if (likely.length === 0) return <Empty>{t('app.none')}</Empty>;
  return (
    <ul>{likely.map((group) => (
      <li key={`${group.objection} ${group.location} ${group.path}`}>
        <b class="wrap">{visible(t('report.likely', { objection: group.objection, location: group.location, path: group.path, site: group.site }))}</b>{' '}
        {t('report.likelyEvidence', { requests: group.requests, clients: group.clients, only: group.clients_with_nothing_else })}{' '}
        {group.newest && <a class="screen" href={href(['event', group.newest])}>{t('todo.review')}</a>}
      </li>
    ))}</ul>
  );
}

/** Actions of the audit trail by who did them, counted; logins change nothing. */
function Acts({ entries }: { entries: AuditEntry[] }) {
  const sums = new Map<string, { actor: string; action: string; count: number; last: string }>();
  for (const { actor, action, time } of entries) {
    const key = `${actor}\n${action}`;
    const known = sums.get(key);
    // They come newest first.
    if (/^(?:login|logout)\b/.test(action)) continue;
    if (known) known.count += 1;
    else sums.set(key, { actor, action, count: 1, last: time });
  }
  return (
    <table>
      <thead><tr><th scope="col">{t('audit.actor')}</th><th scope="col">{t('audit.action')}</th><th scope="col" class="right">{t('access.times')}</th><th scope="col">{t('report.last')}</th></tr></thead>
      <tbody>{[...sums.values()].map(({ actor, action, count, last }) => (
        <tr key={`${actor} ${action}`}><td class="wrap">{visible(actor)}</td><td>{visible(action)}</td><td class="right">{number(count)}</td><td>{dateTime(last)}</td></tr>
      ))}</tbody>
    </table>
  );
}

/** The clients that attacked most, with what they tried and where. */
async function tried(filter: string, signal: AbortSignal): Promise<Attacker[]> {
  const ask = (more: string, fields: string[], top: number): Promise<FacetPage> => facets(both(more, filter), fields, signal, top);
  const clients = (await ask(ATTACKS, ['client'], ATTACKERS)).fields['client']?.values ?? [];
  const list = (facet: Facet | undefined) => (facet?.values ?? []).map(({ value }) => value).join(', ');
  const found: Attacker[] = [];
  for (const { value: client, count } of clients) {
    const { fields } = await ask(`${ATTACKS} and client = ${quoted(client)}`, ['class', 'path'], 3);
    found.push({ client, count, classes: list(fields['class']), paths: list(fields['path']) });
  }
  return found;
}

