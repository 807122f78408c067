// Numbers, times and texts for people, in their language.

import { language } from './i18n/index.ts';
import { isAlternative } from './query.ts';
import { visible } from './visible.ts';

/** A formatter of the language, made once: to make one takes longer than a row of a table may take. */
function once<T>(make: (name: string) => T): () => T {
  let known: { name: string; value: T } | null = null;
  return () => {
    const name = language();
    if (known?.name !== name) known = { name, value: make(name) };
    return known.value;
  };
}

const CLOCK: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false };
const numbers = once((name) => new Intl.NumberFormat(name));
const compacts = once((name) => new Intl.NumberFormat(name, { notation: 'compact', maximumFractionDigits: 1 }));
const days = once((name) => new Intl.DateTimeFormat(name, { ...CLOCK, month: 'short', day: 'numeric' }));
const dateTimes = once((name) => new Intl.DateTimeFormat(name, { ...CLOCK, year: 'numeric', month: 'short', day: 'numeric', timeZoneName: 'short' }));
const zones = once((name) => new Intl.DateTimeFormat(name, { timeZoneName: 'short' }));

const whole = once((name) => new Intl.NumberFormat(name, { maximumFractionDigits: 0, useGrouping: false }));
const tenths = once((name) => new Intl.NumberFormat(name, { minimumFractionDigits: 1, maximumFractionDigits: 1, useGrouping: false }));
const shares = once((name) => new Intl.NumberFormat(name, { style: 'percent', maximumFractionDigits: 1 }));
const smallShares = once((name) => new Intl.NumberFormat(name, { style: 'percent', maximumFractionDigits: 2 }));

export function number(value: number): string {
  return numbers().format(value);
}

export function compact(value: number): string {
  return compacts().format(value);
}

export function percent(part: number, whole: number): string {
  const share = whole > 0 ? part / whole : 0;
  return (share > 0 && share < 0.01 ? smallShares : shares)().format(share);
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function bytes(value: number): string {
  let unit = 0;
  let left = value;
  while (left >= 1024 && unit < UNITS.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${(unit === 0 || left >= 100 ? whole : tenths)().format(left)} ${UNITS[unit]}`;
}

export function micros(value: number | null): string {
  if (value === null) return '–';
  if (value < 1000) return `${value} µs`;
  if (value < 1_000_000) return `${(value < 10_000 ? tenths : whole)().format(value / 1000)} ms`;
  return `${tenths().format(value / 1_000_000)} s`;
}

/** Day and time of day, for lists: their head says the zone. */
export function time(text: string): string {
  return days().format(new Date(text));
}

/** The zone in which times are shown. */
export function zone(): string {
  return zones().formatToParts(new Date()).find((part) => part.type === 'timeZoneName')?.value ?? '';
}

export function dateTime(value: string | number): string {
  const date = typeof value === 'number' ? new Date(value * 1000) : new Date(value);
  return dateTimes().format(date);
}

export function ago(text: string, now: number = Date.now()): string {
  const seconds = Math.round((new Date(text).getTime() - now) / 1000);
  const format = new Intl.RelativeTimeFormat(language(), { numeric: 'auto' });
  for (const [unit, length] of [['day', 86_400], ['hour', 3_600], ['minute', 60]] as const) {
    if (Math.abs(seconds) >= length) return format.format(Math.trunc(seconds / length), unit);
  }
  return format.format(seconds, 'second');
}

/** A certificate that ends sooner is a warning. */
const CERTIFICATE_DAYS = 21;

/** The severity of a certificate that expires in so many seconds. */
export function expiryTone(left: number): '' | 'warn' | 'bad' {
  if (left < 0) return 'bad';
  return left < CERTIFICATE_DAYS * 86_400 ? 'warn' : '';
}

/** A target for reading: percent-encoding undone where it makes text. */
export function readable(target: string): string {
  try {
    return visible(decodeURIComponent(target.replaceAll('+', ' ')));
  } catch {
    return visible(target);
  }
}

/** Events from a time on, in whole seconds since 1970. */
export function since(seconds: number): string {
  return `time >= ${moment(seconds)}`;
}

/** A moment of the filter language. */
export function moment(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000', '');
}

/** A moment of the filter language as a field for local times takes it; empty for none, and for one before now. */
export function localTime(text: string): string {
  const date = new Date(text.length === 10 ? `${text}T00:00:00Z` : text);
  if (text === '' || Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** A text of the filter language: quoted where it has to be. */
export function quoted(value: string): string {
  return /^[A-Za-z0-9_.:/-]+$/.test(value) ? value : `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** Two filters, both of which have to pass. */
export function both(first: string, second: string): string {
  const wrap = (text: string) => (isAlternative(text) ? `(${text})` : text);
  if (!first.trim()) return second;
  return second.trim() ? `${wrap(first)} and ${wrap(second)}` : first;
}
