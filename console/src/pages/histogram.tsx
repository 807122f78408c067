// The events of the list over time, by what came of them: the same query, so that both show the same events.

import { ask } from '../api/http.ts';
import type { HistogramPage } from '../api/types.ts';
import { zone } from '../format.ts';
import { t, type Key } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { steps } from '../statistics.ts';
import { Stack } from '../ui/chart.tsx';
import { Failure, Skeleton } from '../ui/kit.tsx';

const STEPS_MAX = 96;
const REFRESH_MS = 10_000;
type Count = 'noted' | 'others' | 'control' | 'refused' | 'would_block' | 'blocked';
/** From the bottom up. */
const SERIES: [Count, Key, string][] = [
  ['others', 'outcome.others', '--pass'], ['noted', 'outcome.noted', '--note'], ['control', 'outcome.control', '--access'],
  ['refused', 'outcome.refused', '--refuse'], ['would_block', 'outcome.would_block', '--detect'], ['blocked', 'outcome.blocked', '--deny'],
];

export function Histogram({ filter, live, onZoom }: { filter: string; live: boolean; onZoom: (from: number, to: number) => void }) {
  const found = useLoad((signal) => ask<HistogramPage>('/events/histogram', { query: { filter, steps: STEPS_MAX }, signal }), filter, live ? REFRESH_MS : 0);
  if (found.error !== null && !found.value) return <Failure error={found.error} retry={found.again} />;
  if (!found.value) return <Skeleton lines={5} />;
  const page = found.value;
  if (page.total === 0) return null;
  const times = steps(page.from, page.to, page.step);
  const at = new Map(page.items.map((item) => [item.start, item]));
  const series = SERIES.map(([count, key, colour]) => ({ label: t(key), colour, values: times.map((time) => at.get(time)?.[count] ?? 0) }));
  return (
    <div class="over-time">
      {!page.complete && <p class="notice warn" role="status">{t('app.incomplete')}</p>}
      <Stack label={t('events.overTime', { zone: zone() })} times={times} step={page.step} height={130} onZoom={onZoom}
        series={series.filter(({ values }) => values.some((value) => value > 0))} />
    </div>
  );
}
