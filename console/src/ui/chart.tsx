// Series over time.

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { compact } from '../format.ts';
import { language } from '../i18n/index.ts';

export interface Series { label: string; values: number[]; colour: string }

function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Areas that stand on each other; `series` from the bottom up. */
export function Stack({ label, times, series, height = 220 }: {
  label: string; times: number[]; series: Series[]; height?: number;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const text = JSON.stringify([times, series.map((each) => each.values)]);
  const theme = document.documentElement.dataset['theme'] ?? '';
  useEffect(() => {
    const own = frame.current;
    if (!own || times.length === 0) return undefined;
    // The last step has a width, too.
    const step = times.length > 1 ? times[1]! - times[0]! : 60;
    const ends = (values: number[]) => [...values, values.at(-1) ?? 0];
    // Each area reaches down to zero, drawn from the tallest on.
    const sums = series.map((_, at) => times.map((_, i) => series.slice(0, at + 1).reduce((sum, each) => sum + (each.values[i] ?? 0), 0)));
    const order = series.map((_, at) => at).reverse();
    const hours = new Intl.DateTimeFormat(language(), { hour: '2-digit', minute: '2-digit', hour12: false });
    const days = new Intl.DateTimeFormat(language(), { month: 'short', day: 'numeric' });
    const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
    const grid = { stroke: colourOf('--line'), width: 1 };
    const axis = { stroke: colourOf('--dim'), grid, ticks: { show: false }, font: '12px system-ui' };
    const chart = new uPlot({
      width: own.clientWidth, height,
      legend: { show: false },
      cursor: { y: false, points: { show: false } },
      scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.08)] } },
      axes: [
        { ...axis, size: 32, grid: { show: false }, values: (_, splits) => splits.map((at) => (span > 200_000 ? days : hours).format(at * 1000)) },
        { ...axis, size: 48, values: (_, splits) => splits.map((value) => (Number.isInteger(value) ? compact(value) : '')) },
      ],
      series: [{}, ...order.map((at) => ({
        stroke: colourOf(series[at]!.colour), fill: colourOf(`${series[at]!.colour}-fill`), width: 1.5, points: { show: false },
        paths: uPlot.paths.stepped!({ align: 1 }),
      }))],
    }, [[...times, times.at(-1)! + step], ...order.map((at) => ends(sums[at]!))], own);
    const watch = new ResizeObserver(() => chart.setSize({ width: own.clientWidth, height }));
    watch.observe(own);
    return () => {
      watch.disconnect();
      chart.destroy();
    };
  }, [text, height, theme]);
  return (
    <figure class="chart" aria-label={label}>
      <div ref={frame} aria-hidden="true" />
      <figcaption>
        {series.map((each) => <span class={`key ${each.colour.slice(2)}`} key={each.label}>{each.label}</span>)}
      </figcaption>
    </figure>
  );
}
