// Figures, requests over time, and what is most frequent: in events, whose bars lead to them, or in all requests.

import type { ComponentChildren } from 'preact';
import { ask } from '../api/http.ts';
import type { EventPage, FacetPage, Live, Site, Statistics, Upstream } from '../api/types.ts';
import { both, bytes, compact, micros, number, moment, percent, quoted, since } from '../format.ts';
import { en } from '../i18n/en.ts';
import { t, type Key } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { countryName } from '../places.ts';
import { within } from '../query.ts';
import { rangeOf, windowFrom } from '../range.ts';
import { go, href, refine, type Place } from '../route.ts';
import { BLOCKED, countOf, labels, outcomes, quantile, timeline, total, uninspected } from '../statistics.ts';
import { Stack } from '../ui/chart.tsx';
import { Icon } from '../ui/icon.tsx';
import { Badge, Bars, Card, Empty, Failure, PageHead, Select, Skeleton, Tabs } from '../ui/kit.tsx';
import { SearchBox } from '../ui/search.tsx';
import { PeriodTabs } from '../ui/period.tsx';
import { Ranking, type Ranked } from '../ui/ranking.tsx';
import { useZoomKey, zoomIn } from '../ui/zoom.ts';
import { EventRows } from './event-rows.tsx';
import { Tasks } from './todo.tsx';

const REFRESH_MS = 5_000;
/** Events are looked at, not counted before. */
const FACETS_REFRESH_MS = 10_000;
const TOP = 8;
type Counted = 'events' | 'requests';
/** The counted property of statistics or field of events. */
const TOPS: [Key, string][] = [
  ['overview.classes', 'class'], ['overview.paths', 'path'], ['overview.rules', 'rule'], ['overview.statuses', 'status'], ['overview.controls', 'control'],
];
/** Those of all requests, with and without an event. */
const OF_REQUESTS = ['path', 'status'];
/** What was found in requests, whether or not it stopped them. */
const ATTACKS = 'outcome in (blocked, would_block)';
/** Clients and countries whose events are counted, so that each of the busiest has its number. */
const COUNTED_MAX = 1000;

export function OverviewPage({ place, wall = false }: { place: Place; wall?: boolean }) {
  const range = rangeOf(place.query.get('range'));
  const { from: first, to: end, fixed } = windowFrom(place.query);
  // Up to now, the window moves on: what is asked for is the range.
  const of = fixed ? `${first} ${end}` : range;
  const whole = () => refine({ from: null, to: null });
  const period = { ...(fixed ? { from: first, to: end } : { range }), site: place.query.get('site') };
  useZoomKey(fixed, whole);
  const site = place.query.get('site') ?? '';
  const sites = useLoad((signal) => ask<Live<Site>>('/sites', { signal }), 'sites');
  const sums = useLoad((signal) => {
    const { from, to } = windowFrom(place.query);
    return ask<Statistics>('/statistics', { query: { from, to, site, top: 16 }, signal });
  }, `${of} ${site}`, REFRESH_MS);
  const counted: Counted = place.query.get('count') === 'requests' ? 'requests' : 'events';
  const facets = useLoad(async (signal) => {
    const { from, to } = windowFrom(place.query);
    const filter = both(fixed ? within('', { from: moment(from), to: moment(to) }) : since(from), site ? `site = ${quoted(site)}` : '');
    const count = (only: string, fields: string[], top: number) => ask<FacetPage>('/events/facets', { query: { filter: both(only, filter), fields: fields.join(','), top }, signal });
    const [all, clients, attackers] = await Promise.all([
      count('', [...TOPS.map(([, field]) => field), 'outcome'], TOP), count('', ['client', 'country'], COUNTED_MAX), count(ATTACKS, ['client'], TOP),
    ]);
    return { ...all, fields: { ...all.fields, ...clients.fields }, attackers: attackers.fields['client'], attacks: attackers.total, filter };
  }, `${of} ${site}`, FACETS_REFRESH_MS);
  const steps = useLoad((signal) => {
    const { from, to, step } = windowFrom(place.query);
    return ask<Statistics>('/statistics', { query: { from, to, step, site, top: 8 }, signal });
  }, `${of} ${site}`, REFRESH_MS);
  const upstreams = useLoad((signal) => ask<Live<Upstream>>('/upstreams', { signal }), 'upstreams', REFRESH_MS);
  const recent = useLoad((signal) => ask<EventPage>('/events', {
    query: { filter: both('outcome in (blocked, would_block, refused)', site ? `site = ${quoted(site)}` : ''), limit: 8 }, signal,
  }), `recent ${site}`, REFRESH_MS);

  const tools = (
    <>
      <Select hidden label={t('app.site')} value={site} onChange={(next) => refine({ site: next })}
        options={[['', t('overview.allSites')], ...(sites.value?.items ?? []).map((each): [string, string] => [each.name, each.name])]} />
      <PeriodTabs place={place} />
      <a class="button ghost wide-only" href={href([wall ? 'overview' : 'wall'], { range, site })}>
        <Icon name={wall ? 'close' : 'wall'} /><span>{t(wall ? 'overview.wallEnd' : 'overview.wall')}</span>
      </a>
    </>
  );
  const head = (
    <>
      <PageHead title={t('overview.title')}>{tools}</PageHead>
      {!wall && (
        <>
          <div class="filter-bar"><SearchBox filter="" onFilter={(filter) => go(['events'], { filter, kind: 'all' })} /></div>
          <Tasks />
        </>
      )}
    </>
  );
  const inner = (content: ComponentChildren) => (wall ? <main class="wall">{head}{content}</main> : <>{head}{content}</>);
  if (sums.error !== null && !sums.value) return inner(<Failure error={sums.error} retry={sums.again} />);
  if (!sums.value) return inner(<Skeleton lines={8} />);

  const items = sums.value.items;
  const requests = total(items, (item) => item.requests);
  const blocked = total(items, (item) => countOf(item, 'verdict', BLOCKED));
  const turnedAway = outcomes(items, ['control']);
  const detected = outcomes(items, ['would_block']);
  const inspected = total(items, (item) => item.bytes_inspected);
  const unseen = uninspected(items);
  const passed = unseen.passed.reduce((sum, label) => sum + label.count, 0);
  const eventsOf = (term: string) => href(['events'], { filter: both(term, facets.value?.filter ?? ''), kind: 'all' });
  const bars = (field: string) => (counted === 'requests'
    ? labels(items, field, TOP).map((label) => ({ label: label.label, count: label.count, approximate: label.error > 0 }))
    : (facets.value?.fields[field]?.values ?? []).map(({ value, count }) => ({ label: value, count, href: eventsOf(`${field} = ${quoted(value)}`) })));
  /** Of all requests, with the events of each. */
  const ranked = (field: string): Ranked[] => labels(items, field, TOP).map(({ label, count, error }) => ({
    value: label, count, approximate: error > 0, href: eventsOf(`${field} = ${quoted(label)}`),
    events: facets.value?.fields[field]?.values.find(({ value }) => value === label)?.count ?? 0,
  }));
  /** How many events have one of these outcomes; they lead to them. */
  const outcomeLink = (names: string[]) => {
    const count = (facets.value?.fields['outcome']?.values ?? []).filter(({ value }) => names.includes(value)).reduce((sum, each) => sum + each.count, 0);
    return facets.value && { count, href: eventsOf(names.length === 1 ? `outcome = ${names[0]}` : `outcome in (${names.join(', ')})`) };
  };
  const span = windowFrom(place.query);
  const line = timeline(steps.value?.items ?? [], span.from, span.to, span.step === 'minute' ? 60 : 3_600);
  return inner(
    <>
      <div class="figures">
        <Figure title={t('overview.requests')} value={compact(requests)} note={compact(requests) === number(requests) ? '' : number(requests)} />
        <Figure title={t('overview.blocked')} value={compact(blocked)} note={[percent(blocked, requests), turnedAway.count > 0 ? t('overview.turnedAway', { count: number(turnedAway.count) }) : ''].filter(Boolean).join(' · ')} tone={blocked > 0 ? 'bad' : ''} events={outcomeLink(['blocked', 'refused', 'control'])} />
        <Figure title={t('overview.detected')} value={`${detected.bound ? '≤ ' : ''}${compact(detected.count)}`} note={percent(detected.count, requests)} tone={detected.count > 0 ? 'warn' : ''} events={outcomeLink(['would_block'])} />
        <Figure title={t('overview.latency')} value={micros(quantile(items, 'p50'))} note={`p99 ${micros(quantile(items, 'p99'))}${items.length > 1 ? ` · ${t('overview.highest')}` : ''}`} />
        <Figure title={t('overview.uninspected')} value={percent(passed, inspected + passed)}
          note={t('overview.uninspectedHint', { bytes: bytes(passed), total: bytes(inspected + passed) })} />
      </div>
      {requests === 0 ? <Card><Empty>{t('overview.empty')}</Empty></Card> : (
        <div class="stack">
          <Card title={t('overview.traffic')} aside={!wall && (
            <span class="inline">
              <a href={href(['compare'], period)}>{t('compare.do')}</a> <a href={href(['report'], period)}>{t('report.do')}</a>
            </span>
          )}>
            <Stack label={t('overview.traffic')} times={line.times} step={span.step === 'minute' ? 60 : 3_600} height={wall ? 320 : 220} onZoom={wall ? undefined : (from, to) => zoomIn({ from, to })} series={[
              { label: t('overview.passed'), values: line.passed, colour: '--pass' },
              { label: t('overview.detected'), values: line.detected, colour: '--detect' },
              { label: t('overview.blocked'), values: line.blocked, colour: '--deny' },
            ]} />
          </Card>
          <div class="page-head">
            <h2>{t('overview.most')}</h2>
            <Tabs<Counted> label={t('overview.most')} value={counted} onChange={(next) => refine({ count: next === 'requests' ? next : null })}
              options={[['events', t('overview.inEvents')], ['requests', t('overview.inRequests')]]} />
          </div>
          {facets.error !== null && <Failure error={facets.error} retry={facets.again} />}
          {facets.value && !facets.value.complete && <p class="notice warn" role="status">{t('app.incomplete')}</p>}
          <div class="grid">
            {TOPS.filter(([, field]) => counted === 'events' || OF_REQUESTS.includes(field)).map(([title, field]) => (
              <Card key={field} title={t(title)} id={`top-${field}`}>
                {counted === 'events' && !facets.value && facets.error === null ? <Skeleton lines={3} /> : <Bars format={number} items={bars(field)} />}
              </Card>
            ))}
            <Card title={t('overview.attackers')} id="top-client">
              {!facets.value && facets.error === null ? <Skeleton lines={3} /> : (
                <Ranking title={t('overview.attackers')} unit={t('nav.events')} total={facets.value?.attacks ?? 0} items={(facets.value?.attackers?.values ?? []).map(({ value, count }) => ({
                  value, count, href: eventsOf(both(`client = ${quoted(value)}`, ATTACKS)),
                }))} />
              )}
            </Card>
            <Card title={t('overview.busiest')} id="top-busiest">
              <Ranking title={t('overview.busiest')} unit={t('overview.requests')} total={requests} items={ranked('client')} />
            </Card>
            <Card title={t('overview.countries')} id="top-country">
              <Ranking title={t('overview.countries')} unit={t('overview.requests')} total={requests} empty={t('overview.noCountries')}
                items={ranked('country').map((each) => ({ ...each, name: countryName(each.value) }))} />
            </Card>
            <Card title={t('overview.reasons')} id="top-not-inspected">
              <Bars format={bytes} items={unseen.passed.map((label) => ({ label: reason(label.label), count: label.count }))} />
              {unseen.refused > 0 && <p class="dim">{t('overview.refusedBytes', { bytes: bytes(unseen.refused) })}</p>}
            </Card>
            {!site && (
              <Card title={t('overview.sites')}>
                <Bars format={number} items={items.map((item) => ({ label: item.site, count: item.requests, href: href(['overview'], { range, site: item.site }) }))
                  .sort((a, b) => b.count - a.count).slice(0, 8)} />
              </Card>
            )}
            <Card title={t('overview.upstreams')}>
              {(upstreams.value?.items ?? []).map((group) => {
                const sound = group.endpoints.filter((each) => each.state === 'healthy').length;
                return (
                  <p key={group.name}>
                    <a href={href(['sites'])}>{group.name}</a>{' '}
                    <Badge tone={sound === group.endpoints.length ? 'good' : sound === 0 ? 'bad' : 'warn'}>
                      {t('overview.healthy', { healthy: sound, all: group.endpoints.length })}
                    </Badge>
                  </p>
                );
              })}
              {upstreams.value?.items.length === 0 && <Empty>{t('app.none')}</Empty>}
            </Card>
          </div>
          <Card title={t('overview.recent')} aside={<a href={href(['events'])}>{t('nav.events')}</a>}>
            <EventRows items={recent.value?.items ?? []} short />
          </Card>
        </div>
      )}
    </>,
  );
}

/** Why bytes were not inspected, in words; of a reason that is new here, its name. */
function reason(name: string): string {
  const key = `reason.${name}` as Key;
  return key in en ? t(key) : name;
}

/** `events`: how many events the figure has, which the link leads to. */
function Figure({ title, value, note, tone = '', events }: {
  title: string; value: string; note: string; tone?: string; events?: { count: number; href: string } | null;
}) {
  return (
    <div class={`figure ${tone}`}>
      <h2>{title}</h2><div class="value">{value}</div>
      <p>{note}{events && events.count > 0 && <>{note && ' · '}<a href={events.href} data-count={events.count}>{t('events.total', { count: number(events.count) })}</a></>}</p>
    </div>
  );
}
