// Two periods side by side: figures, requests over time, and what grew or shrank the most.

import { useState } from 'preact/hooks';
import { ask, Problem } from '../api/http.ts';
import type { Live, Site, SiteStatistics } from '../api/types.ts';
import { can } from '../api/role.ts';
import { both, compact, micros, moment, number, percent, quoted } from '../format.ts';
import { t, type Key } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { COMPARED, earlier, facets, filterOf, growth, marks, statistics, type Growth, type Span } from '../periods.ts';
import { windowFrom } from '../range.ts';
import { href, refine, type Place } from '../route.ts';
import { BLOCKED, countOf, outcomes, quantile, timeline, total } from '../statistics.ts';
import { Stack } from '../ui/chart.tsx';
import { Button, Card, Empty, Failure, PageHead, Select, Skeleton } from '../ui/kit.tsx';
import { PeriodDialog, PeriodTabs, span } from '../ui/period.tsx';
import { useZoomKey, zoomIn } from '../ui/zoom.ts';
import { visible } from '../visible.ts';
import { Marks, placed } from './marks.tsx';

const SHOWN = 8;
/** What a period is compared with: days before it; 0: right before it. */
const WITH: [string, Key, number][] = [['', 'compare.before', 0], ['day', 'compare.day', 1], ['week', 'compare.week', 7]];

export default function ComparePage({ place }: { place: Place }) {
  const now = windowFrom(place.query);
  const site = place.query.get('site') ?? '';
  const sites = useLoad((signal) => ask<Live<Site>>('/sites', { signal }), 'sites');
  const other = windowFrom(new URLSearchParams([['from', place.query.get('from2') ?? ''], ['to', place.query.get('to2') ?? '']]));
  const [, , days] = WITH.find(([name]) => name === (place.query.get('with') ?? '')) ?? WITH[0]!;
  const before = other.fixed ? other : earlier(now, days);
  const widen = () => refine({ from: null, to: null });
  useZoomKey(now.fixed, widen);
  // Up to now, the window moves on: what is asked for is the minute.
  const of = `${now.from} ${now.to} ${before.from} ${before.to} ${site}`;
  const sums = useLoad((signal) => Promise.all([now, before].map((each) => statistics(each, site, signal))), of);
  const steps = useLoad((signal) => Promise.all([now, before].map((each) => statistics(each, site, signal, now.step))), of);
  const events = useLoad((signal) => Promise.all([now, before].map((each) => facets(filterOf(each, site), COMPARED.map(([, field]) => field), signal))), of);
  const changes = useLoad((signal) => marks(now, { revisions: can('analyst'), audit: can('admin') }, signal), of);
  const width = now.step === 'minute' ? 60 : 3_600;
  const [here, there] = (steps.value ?? []).map(({ items }, at) => {
    const { from, to } = [now, before][at]!;
    return timeline(items, from, to, width);
  });
  return (
    <>
      <PageHead title={t('compare.title')}>
        <Select hidden label={t('app.site')} value={site} onChange={(next) => refine({ site: next })}
          options={[['', t('overview.allSites')], ...(sites.value?.items ?? []).map((each): [string, string] => [each.name, each.name])]} />
        <PeriodTabs place={place} />
        <With place={place} before={before} custom={other.fixed} />
      </PageHead>
      <p class="dim">{t('compare.periods', { now: span(now.from, now.to), before: span(before.from, before.to) })}</p>
      {sums.error !== null && !sums.value && <Failure error={sums.error} retry={sums.again} />}
      {!sums.value && sums.error === null && <Skeleton lines={4} />}
      {sums.value && <Figures now={sums.value[0]!.items} before={sums.value[1]!.items} />}
      <div class="stack">
        <Card title={t('overview.traffic')}>
          {steps.error !== null && !steps.value && <Failure error={steps.error} retry={steps.again} />}
          {!steps.value && steps.error === null && <Skeleton lines={6} />}
          {here && there && (
            <Stack label={t('overview.traffic')} times={here.times} step={width} marks={placed(changes.value ?? [])}
              onZoom={(from, to) => zoomIn({ from, to })}
              line={{ label: t('compare.requestsBefore'), values: there.passed.map((count, at) => count + there.detected[at]! + there.blocked[at]!) }} series={[
                { label: t('overview.passed'), values: here.passed, colour: '--pass' },
                { label: t('overview.detected'), values: here.detected, colour: '--detect' },
                { label: t('overview.blocked'), values: here.blocked, colour: '--deny' },
              ]} />
          )}
          {changes.error instanceof Problem && <p class="notice warn" role="status">{t('compare.noMarks')}</p>}
          <Marks marks={changes.value ?? []} />
        </Card>
        {events.error !== null && !events.value && <Failure error={events.error} retry={events.again} />}
        {events.value?.some(({ complete }) => !complete) && <p class="notice warn" role="status">{t('app.incomplete')}</p>}
        <div class="grid wide">
          {COMPARED.map(([title, field]) => (
            <Card key={field} title={t(title)} id={`grown-${field}`}>
              {!events.value ? events.error === null && <Skeleton lines={3} />
                : <Grown field={field} rows={growth(events.value[0]!.fields[field], events.value[1]!.fields[field])} filters={[now, before].map((each) => filterOf(each, site))} />}
            </Card>
          ))}
        </div>
      </div>
    </>
  );
}

/** What the period is compared with. */
function With({ place, before, custom }: { place: Place; before: Span; custom: boolean }) {
  const [choosing, setChoosing] = useState(false);
  const choose = (next: string) => {
    if (next === 'custom') setChoosing(true);
    else refine({ with: next, from2: null, to2: null });
  };
  const seconds = (text: string) => Date.parse(text) / 1000;
  return (
    <>
      <Select hidden label={t('compare.with')} value={custom ? 'custom' : place.query.get('with') ?? ''} onChange={choose}
        options={[...WITH.map(([name, key]): [string, string] => [name, t(key)]), ['custom', t('compare.custom')]]} />
      {custom && <Button tone="ghost" onClick={() => setChoosing(true)}>{t('range.change')}</Button>}
      {choosing && (
        <PeriodDialog from={moment(before.from)} to={moment(before.to)} bounded onClose={() => setChoosing(false)}
          onChoose={(from, to) => refine({ from2: seconds(from), to2: seconds(to), with: null })} />
      )}
    </>
  );
}

type Read = (items: SiteStatistics[]) => number | null;
/** Figures of a period: what it is, and how it is written. */
const FIGURES: [Key, Read, (value: number) => string][] = [
  ['overview.requests', (items) => total(items, (item) => item.requests), compact],
  ['overview.blocked', (items) => total(items, (item) => countOf(item, 'verdict', BLOCKED)), compact],
  ['compare.blockedRate', (items) => {
    const all = total(items, (item) => item.requests);
    return all > 0 ? total(items, (item) => countOf(item, 'verdict', BLOCKED)) / all : null;
  }, (share) => percent(share, 1)],
  ['overview.detected', (items) => outcomes(items, ['would_block']).count, compact],
  ['compare.whole50', (items) => quantile(items, 'p50'), micros],
  ['compare.whole99', (items) => quantile(items, 'p99'), micros],
  ['compare.own50', (items) => quantile(items, 'p50', 'inspection_us'), micros],
  ['compare.own99', (items) => quantile(items, 'p99', 'inspection_us'), micros],
];

function Figures({ now, before }: { now: SiteStatistics[]; before: SiteStatistics[] }) {
  return (
    <div class="figures">
      {FIGURES.map(([title, read, format]) => {
        const [here, there] = [read(now), read(before)];
        return (
          <div class="figure" key={title}>
            <h2>{t(title)}</h2>
            <div class="value">{here === null ? '–' : format(here)}</div>
            <p>{t('compare.was', { before: there === null ? '–' : format(there) })}{change(here, there)}</p>
          </div>
        );
      })}
    </div>
  );
}

/** By how much of what it was something grew or shrank; nothing where it was nothing. */
function change(now: number | null, before: number | null): string {
  if (now === null || before === null || before === 0) return '';
  const by = now / before - 1;
  return ` · ${by > 0 ? '+' : by < 0 ? '−' : '±'}${percent(Math.abs(by), 1)}`;
}

function Grown({ field, rows, filters }: { field: string; rows: Growth[]; filters: string[] }) {
  const moved = rows.filter(({ by }) => by !== 0).slice(0, SHOWN);
  if (rows.length === 0) return <Empty>{t('compare.noEvents')}</Empty>;
  if (moved.length === 0) return <Empty>{t('compare.same')}</Empty>;
  const link = (value: string, count: number | null, at: number) => (count === null ? t('compare.few') : count === 0 ? number(0)
    : <a href={href(['events'], { filter: both(`${field} = ${quoted(value)}`, filters[at]!), kind: 'all' })} data-count={count}>{number(count)}</a>);
  return (
    <table class="grown">
      <thead><tr><th scope="col">{t('compare.value')}</th><th scope="col" class="right">{t('compare.now')}</th><th scope="col" class="right">{t('compare.then')}</th><th scope="col" class="right">{t('compare.difference')}</th></tr></thead>
      <tbody>{moved.map(({ value, now, before, by }) => (
        <tr key={value}>
          <td class="wrap">{visible(value)}</td>
          <td class="right">{link(value, now, 0)}</td>
          <td class="right">{link(value, before, 1)}</td>
          <td class={`right ${by > 0 ? 'more' : 'less'}`}>{by > 0 ? '+' : '−'}{number(Math.abs(by))}</td>
        </tr>
      ))}</tbody>
    </table>
  );
}

