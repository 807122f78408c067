// Figures, requests over time, and the most frequent clients, classes, rules and paths.

import type { ComponentChildren } from 'preact';
import { ask } from '../api/http.ts';
import type { EventPage, Live, Site, Statistics, Upstream } from '../api/types.ts';
import { both, bytes, compact, micros, number, percent, quoted } from '../format.ts';
import { t, type Key } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { RANGES, rangeOf, seconds, windowOf } from '../range.ts';
import { href, refine, type Place } from '../route.ts';
import { BLOCKED, countOf, labels, quantile, timeline, total } from '../statistics.ts';
import { Stack } from '../ui/chart.tsx';
import { Icon } from '../ui/icon.tsx';
import { Badge, Bars, Card, Empty, Failure, PageHead, Select, Skeleton, Tabs } from '../ui/kit.tsx';
import { EventRows } from './event-rows.tsx';

const REFRESH_MS = 5_000;

export function OverviewPage({ place, wall = false }: { place: Place; wall?: boolean }) {
  const range = rangeOf(place.query.get('range'));
  const site = place.query.get('site') ?? '';
  const sites = useLoad((signal) => ask<Live<Site>>('/sites', { signal }), 'sites');
  const whole = useLoad((signal) => {
    const { from, to } = windowOf(range);
    return ask<Statistics>('/statistics', { query: { from, to, site, top: 8 }, signal });
  }, `${range} ${site}`, REFRESH_MS);
  const steps = useLoad((signal) => {
    const { from, to, step } = windowOf(range);
    return ask<Statistics>('/statistics', { query: { from, to, step, site, top: 8 }, signal });
  }, `${range} ${site}`, REFRESH_MS);
  const upstreams = useLoad((signal) => ask<Live<Upstream>>('/upstreams', { signal }), 'upstreams', REFRESH_MS);
  const recent = useLoad((signal) => ask<EventPage>('/events', {
    query: { filter: both('verdict in (deny, detect, refuse, drop)', site ? `site = ${quoted(site)}` : ''), limit: 8 }, signal,
  }), `recent ${site}`, REFRESH_MS);

  const tools = (
    <>
      <Select hidden label={t('app.site')} value={site} onChange={(next) => refine({ site: next })}
        options={[['', t('overview.allSites')], ...(sites.value?.items ?? []).map((each): [string, string] => [each.name, each.name])]} />
      <Tabs label={t('range.label')} value={range} onChange={(next) => refine({ range: next })}
        options={RANGES.map(([name, key]) => [name, t(key)])} />
      <a class="button ghost wide-only" href={href([wall ? 'overview' : 'wall'], { range, site })}>
        <Icon name={wall ? 'close' : 'wall'} /><span>{t(wall ? 'overview.wallEnd' : 'overview.wall')}</span>
      </a>
    </>
  );
  const head = <PageHead title={t('overview.title')}>{tools}</PageHead>;
  const inner = (content: ComponentChildren) => (wall ? <main class="wall">{head}{content}</main> : <>{head}{content}</>);
  if (whole.error !== null && !whole.value) return inner(<Failure error={whole.error} retry={whole.again} />);
  if (!whole.value) return inner(<Skeleton lines={8} />);

  const items = whole.value.items;
  const requests = total(items, (item) => item.requests);
  const blocked = total(items, (item) => countOf(item, 'verdict', BLOCKED));
  const detected = total(items, (item) => countOf(item, 'verdict', ['detect']));
  const inspected = total(items, (item) => item.bytes_inspected);
  const unseen = total(items, (item) => item.bytes_not_inspected);
  const since = `time >= -${Math.round(seconds(range) / 60)}m`;
  const events = (filter: string) => href(['events'], { filter: both(filter, site ? `site = ${quoted(site)}` : '') });
  const top = (title: Key, property: string, field: ((label: string) => string) | null) => (
    <Card title={t(title)}>
      <Bars format={number} items={labels(items, property, 8).map((label) => ({
        label: label.label, count: label.count, approximate: label.error > 0,
        href: field ? events(`${field(label.label)} and ${since}`) : undefined,
      }))} />
    </Card>
  );
  const span = windowOf(range);
  const line = timeline(steps.value?.items ?? [], span.from, span.to, span.step === 'minute' ? 60 : 3_600);
  const equal = (field: string) => (label: string) => `${field} = ${quoted(label)}`;
  return inner(
    <>
      <div class="figures">
        <Figure title={t('overview.requests')} value={compact(requests)} note={compact(requests) === number(requests) ? '' : number(requests)} />
        <Figure title={t('overview.blocked')} value={compact(blocked)} note={percent(blocked, requests)} tone={blocked > 0 ? 'bad' : ''} />
        <Figure title={t('overview.detected')} value={compact(detected)} note={percent(detected, requests)} tone={detected > 0 ? 'warn' : ''} />
        <Figure title={t('overview.latency')} value={micros(quantile(items, 'p50'))} note={`p99 ${micros(quantile(items, 'p99'))}${items.length > 1 ? ` · ${t('overview.highest')}` : ''}`} />
        <Figure title={t('overview.uninspected')} value={percent(unseen, inspected + unseen)}
          note={t('overview.uninspectedHint', { bytes: bytes(unseen), total: bytes(inspected + unseen) })} />
      </div>
      {requests === 0 ? <Card><Empty>{t('overview.empty')}</Empty></Card> : (
        <div class="stack">
          <Card title={t('overview.traffic')}>
            <Stack label={t('overview.traffic')} times={line.times} height={wall ? 320 : 220} series={[
              { label: t('overview.passed'), values: line.passed, colour: '--pass' },
              { label: t('overview.detected'), values: line.detected, colour: '--detect' },
              { label: t('overview.blocked'), values: line.blocked, colour: '--deny' },
            ]} />
          </Card>
          <div class="grid">
            {top('overview.classes', 'class', equal('class'))}
            {top('overview.clients', 'client', equal('client'))}
            {top('overview.paths', 'path', (label) => (label.includes('*') ? `path ^= ${quoted(label.split('*')[0] ?? '/')}` : `path = ${quoted(label)}`))}
            {top('overview.rules', 'rule', equal('rule'))}
            {top('overview.statuses', 'status', equal('status'))}
            {top('overview.countries', 'country', equal('country'))}
            {top('overview.controls', 'control', equal('control'))}
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

function Figure({ title, value, note, tone = '' }: { title: string; value: string; note: string; tone?: string }) {
  return <div class={`figure ${tone}`}><h2>{title}</h2><div class="value">{value}</div><p>{note}</p></div>;
}
