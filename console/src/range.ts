// Time ranges that end now, and the steps of their charts.

import type { Key } from './i18n/index.ts';

export type Range = '15m' | '1h' | '6h' | '24h' | '7d' | '30d';
export const RANGES: [Range, Key, number][] = [
  ['15m', 'range.15m', 900], ['1h', 'range.1h', 3_600], ['6h', 'range.6h', 21_600], ['24h', 'range.24h', 86_400],
  ['7d', 'range.7d', 604_800], ['30d', 'range.30d', 2_592_000],
];

export function seconds(range: Range): number {
  return RANGES.find(([name]) => name === range)?.[2] ?? 3_600;
}

export function rangeOf(text: string | null): Range {
  return RANGES.find(([name]) => name === text)?.[0] ?? '1h';
}

export interface Window { from: number; to: number; step: 'minute' | 'hour' }

/** The time range of a page: from one moment to another if its URL names them, otherwise up to now. */
export function windowFrom(query: URLSearchParams, now: number = Date.now() / 1000): Window & { fixed: boolean } {
  const [from, to] = [Number(query.get('from')), Number(query.get('to'))];
  const isSound = Number.isInteger(from) && Number.isInteger(to) && from > 0 && to > from && to - from <= 500 * 86_400;
  if (!isSound) return { ...windowOf(rangeOf(query.get('range')), now), fixed: false };
  return { from, to, step: to - from <= 21_600 ? 'minute' : 'hour', fixed: true };
}

/** The window up to now, in whole steps. */
export function windowOf(range: Range, now: number = Date.now() / 1000): Window {
  const step = seconds(range) <= 21_600 ? 'minute' : 'hour';
  const unit = step === 'minute' ? 60 : 3_600;
  const to = Math.ceil(now / unit) * unit;
  return { from: to - seconds(range), to, step };
}
