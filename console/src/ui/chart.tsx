// Series over time: values under the pointer and by keyboard, a table of them, and a part that is chosen.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { compact, number } from '../format.ts';
import { language, t } from '../i18n/index.ts';
import { stepAt } from '../statistics.ts';

export interface Series { label: string; values: number[]; colour: string }

const DAY = 86_400;
/** From here on, days are what the axis shows. */
const DAYS_FROM = 200_000;

function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Areas that stand on each other; `series` from the bottom up. `onZoom`: a part was chosen, in seconds. */
/** `line`: of another period, step by step; `marks`: moments at which something was changed. */
export function Stack({ label, times, series, step, height = 220, line, marks = [], onZoom }: {
  label: string; times: number[]; series: Series[]; step: number; height?: number; line?: Omit<Series, 'colour'>;
  marks?: { time: number; label: string }[]; onZoom?: (from: number, to: number) => void;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const zoom = useRef(onZoom);
  zoom.current = onZoom;
  const [at, setAt] = useState<number | null>(null);
  /** The start of a range that is selected by keyboard. */
  const [begin, setBegin] = useState<number | null>(null);
  const [open, setOpen] = useState(false);
  const text = JSON.stringify([times, series.map((each) => [each.label, each.values]), line, marks]);
  const theme = document.documentElement.dataset['theme'] ?? '';
  const isFine = step < 60;
  const moments = useMemo(() => new Intl.DateTimeFormat(language(), {
    month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', ...(isFine ? { second: '2-digit' } : {}), hour12: false,
  }), [language(), isFine]);
  useEffect(() => {
    const own = frame.current;
    if (!own || times.length === 0) return undefined;
    const ends = (values: number[]) => [...values, values.at(-1) ?? 0];
    // Each area reaches down to zero, drawn from the tallest on.
    const sums = series.map((_, at) => times.map((_, i) => series.slice(0, at + 1).reduce((sum, each) => sum + (each.values[i] ?? 0), 0)));
    const order = series.map((_, at) => at).reverse();
    const hours = new Intl.DateTimeFormat(language(), { hour: '2-digit', minute: '2-digit', ...(isFine ? { second: '2-digit' } : {}), hour12: false });
    const days = new Intl.DateTimeFormat(language(), { month: 'short', day: 'numeric' });
    const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > DAYS_FROM;
    const grid = { stroke: colourOf('--line'), width: 1 };
    const axis = { stroke: colourOf('--dim'), grid, ticks: { show: false }, font: '12px system-ui' };
    const chart = new uPlot({
      width: own.clientWidth, height,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: zoom.current !== undefined, y: false, setScale: false } },
      hooks: {
        draw: [(self) => drawMarks(self, marks.map(({ time }) => time))],
        setCursor: [(self) => {
          // Behind the last step stands its end only.
          if (self.cursor.left === undefined || self.cursor.left < 0) setAt(null);
          else setAt(stepAt(self.posToVal(self.cursor.left, 'x'), times, step));
        }],
        setSelect: [(self) => {
          if (self.select.width < 4) return;
          const from = stepAt(self.posToVal(self.select.left, 'x'), times, step);
          const to = stepAt(self.posToVal(self.select.left + self.select.width, 'x'), times, step);
          self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          zoom.current?.(times[from]!, times[to]! + step);
        }],
      },
      scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.08)] } },
      axes: [
        // A day is named once.
        { ...axis, size: 32, grid: { show: false }, ...(isLong ? { incrs: [DAY, 2 * DAY, 7 * DAY] } : {}), values: (_, splits) => splits.map((at) => (isLong ? days : hours).format(at * 1000)) },
        { ...axis, size: 48, values: (_, splits) => splits.map((value) => (Number.isInteger(value) ? compact(value) : '')) },
      ],
      series: [{}, ...order.map((at) => ({
        stroke: colourOf(series[at]!.colour), fill: colourOf(`${series[at]!.colour}-fill`), width: 1.5, points: { show: false },
        paths: uPlot.paths.stepped!({ align: 1 }),
      })), ...(line ? [{ stroke: colourOf('--text'), width: 1.5, dash: [4, 3], points: { show: false }, paths: uPlot.paths.stepped!({ align: 1 }) }] : [])],
    }, [[...times, times.at(-1)! + step], ...order.map((at) => ends(sums[at]!)), ...(line ? [ends(times.map((_, at) => line.values[at] ?? 0))] : [])], own);
    plot.current = chart;
    const watch = new ResizeObserver(() => chart.setSize({ width: own.clientWidth, height }));
    watch.observe(own);
    return () => {
      watch.disconnect();
      plot.current = null;
      chart.destroy();
    };
  }, [text, height, theme]);
  const moment = (index: number) => moments.format(times[index]! * 1000);
  const shown = line ? [...series, line] : series;
  const marksAt = (index: number) => marks.filter(({ time }) => time >= times[index]! && time < times[index]! + step).map((mark) => mark.label);
  const values = (index: number) => [...shown.map((each) => `${each.label} ${number(each.values[index] ?? 0)}`), ...marksAt(index)].join(', ');
  const part = begin !== null && at !== null && begin !== at ? [Math.min(begin, at), Math.max(begin, at)] as const : null;
  const said = at === null || at >= times.length ? '' : part
    ? t('chart.part', { from: moment(part[0]), to: moments.format((times[part[1]]! + step) * 1000) }) : `${moment(at)}: ${values(at)}`;
  const move = (event: KeyboardEvent) => {
    const last = times.length - 1;
    const now = at ?? last;
    const to = { ArrowLeft: now - (at === null ? 0 : 1), ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      const next = Math.min(last, Math.max(0, to));
      setBegin(event.shiftKey ? begin ?? now : null);
      setAt(next);
      plot.current?.setCursor({ left: plot.current.valToPos(times[next]! + step / 2, 'x'), top: 0 }, false);
    } else if (event.key === 'Enter' && part && onZoom) {
      setBegin(null);
      onZoom(times[part[0]]!, times[part[1]]! + step);
    } else if (event.key === 'Escape') {
      setBegin(null);
      setAt(null);
    } else return;
    event.preventDefault();
  };
  return (
    <figure class="chart" aria-label={label}>
      <div class="plot" role="slider" tabIndex={0} aria-label={t(onZoom ? 'chart.keysZoom' : 'chart.keys', { label })} aria-valuemin={0} aria-valuemax={Math.max(0, times.length - 1)}
        aria-valuenow={at ?? Math.max(0, times.length - 1)} aria-valuetext={said || t('chart.none')} onKeyDown={move}>
        <div ref={frame} aria-hidden="true" />
      </div>
      <figcaption>
        {series.map((each) => <span class={`key ${each.colour.slice(2)}`} key={each.label}>{each.label}{at !== null && !part && at < times.length ? ` ${number(each.values[at] ?? 0)}` : ''}</span>)}
        {line && <span class="key line">{line.label}{at !== null && !part && at < times.length ? ` ${number(line.values[at] ?? 0)}` : ''}</span>}
        <span class="moment" aria-hidden="true">{at !== null && at < times.length ? (part ? said : [moment(at), ...marksAt(at)].join(' · ')) : ''}</span>
      </figcaption>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{t('chart.table')}</summary>
        {open && (
          <div class="scroll" tabIndex={0} role="group" aria-label={t('chart.table')}>
            <table>
              <thead><tr><th scope="col">{t('app.time')}</th>{shown.map((each) => <th scope="col" class="right" key={each.label}>{each.label}</th>)}</tr></thead>
              <tbody>{times.map((time, index) => (
                <tr key={time}><td>{moment(index)}</td>{shown.map((each) => <td class="right" key={each.label}>{number(each.values[index] ?? 0)}</td>)}</tr>
              ))}</tbody>
            </table>
          </div>
        )}
      </details>
    </figure>
  );
}

/** A line through the chart for each moment, with a flag at its top. */
function drawMarks(self: uPlot, moments: number[]): void {
  const { ctx, bbox } = self;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.strokeStyle = colourOf('--accent');
  ctx.fillStyle = colourOf('--accent');
  ctx.lineWidth = ratio;
  for (const moment of moments) {
    const x = Math.round(self.valToPos(moment, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x + 7 * ratio, bbox.top + 4 * ratio);
    ctx.lineTo(x, bbox.top + 8 * ratio);
    ctx.fill();
  }
  ctx.restore();
}
