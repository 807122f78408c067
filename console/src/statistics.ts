// Sums over the statistics of sites.

import type { Label, SiteStatistics } from './api/types.ts';

export function total(items: SiteStatistics[], read: (item: SiteStatistics) => number): number {
  return items.reduce((sum, item) => sum + read(item), 0);
}

/** The most frequent labels of all sites together. */
export function labels(items: SiteStatistics[], property: string, most: number): Label[] {
  const sums = new Map<string, Label>();
  for (const item of items) {
    for (const label of item.by[property] ?? []) {
      const sum = sums.get(label.label) ?? { label: label.label, count: 0, error: 0 };
      sum.count += label.count;
      sum.error += label.error;
      sums.set(label.label, sum);
    }
  }
  return [...sums.values()].sort((a, b) => b.count - a.count).slice(0, most);
}

export function countOf(item: SiteStatistics, property: string, names: string[]): number {
  return (item.by[property] ?? []).filter((label) => names.includes(label.label)).reduce((sum, label) => sum + label.count, 0);
}

/** The highest of a quantile over the sites: a bound for all of them. */
export function quantile(items: SiteStatistics[], which: 'p50' | 'p95' | 'p99', of: 'duration_us' | 'inspection_us' = 'duration_us'): number | null {
  const known = items.map((item) => item[of][which]).filter((value) => value !== null);
  return known.length > 0 ? Math.max(...known) : null;
}

/** The number of requests with one of these outcomes; `bound`: at most so many, as earlier versions counted. */
export function outcomes(items: SiteStatistics[], names: string[]): { count: number; bound: boolean } {
  const found = items.flatMap((item) => item.by['outcome'] ?? []).filter((label) => names.includes(label.label));
  return { count: found.reduce((sum, label) => sum + label.count, 0), bound: found.some((label) => label.error > 0) };
}

/** Reasons for which bytes of requests that were refused are not inspected: nobody got these bytes. */
const REFUSED_BYTES = ['after_verdict'];

/** Bytes that went on without inspection, and those of refused requests, by reason. */
export function uninspected(items: SiteStatistics[]): { passed: Label[]; refused: number } {
  const all = labels(items, 'not_inspected', Number.MAX_SAFE_INTEGER);
  return {
    passed: all.filter((label) => !REFUSED_BYTES.includes(label.label)),
    refused: all.filter((label) => REFUSED_BYTES.includes(label.label)).reduce((sum, label) => sum + label.count, 0),
  };
}

export const BLOCKED = ['deny', 'drop', 'refuse', 'redirect', 'proxy'];

export interface Timeline { times: number[]; passed: number[]; detected: number[]; blocked: number[] }

/** Counts by step, sites together, steps without requests as zero. */
export function timeline(items: SiteStatistics[], from: number, to: number, step: number): Timeline {
  const times = steps(from, to, step);
  const slots = times.length;
  const zeros = () => new Array<number>(slots).fill(0);
  const line: Timeline = { times, passed: zeros(), detected: zeros(), blocked: zeros() };
  for (const item of items) {
    const at = Math.floor((item.start - from) / step);
    if (at < 0 || at >= slots) continue;
    const blocked = countOf(item, 'verdict', BLOCKED);
    const detected = countOf(item, 'outcome', ['would_block']);
    line.blocked[at]! += blocked;
    line.detected[at]! += detected;
    line.passed[at]! += Math.max(0, item.requests - blocked - detected);
  }
  return line;
}

/** The beginnings of the steps from one moment to another. */
export function steps(from: number, to: number, step: number): number[] {
  return Array.from({ length: Math.max(1, Math.round((to - from) / step)) }, (_, at) => from + at * step);
}

/** The step that a moment is in. */
export function stepAt(moment: number, times: number[], step: number): number {
  return Math.min(times.length - 1, Math.max(0, Math.floor((moment - (times[0] ?? 0)) / step)));
}
