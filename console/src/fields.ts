// Descriptions of a field in plain words, and the links to its page.

import type { Finding, LearnedField } from './api/types.ts';
import { number, quoted } from './format.ts';
import { t, type Key } from './i18n/index.ts';
import { href } from './route.ts';

export interface FieldAt { site: string; method: string; path: string; place: string; name: string }

/** Values of a type, in the plural. */
export function typeTitle(type: string): string {
  return t(`type.${type}` as Key);
}

/** The restriction that a field keeps to: `whole numbers only`, `one of 3 values`. */
export function shape(form: string | null, options: number): string {
  if (form === null) return '';
  return form === 'enumeration' ? t('fields.oneOf', { count: number(options) }) : t('fields.only', { type: typeTitle(form) });
}

/** The values that it carries: `whole numbers only: 48,210 values of 1,204 networks in 12 days`. */
export function evidence(field: LearnedField): string {
  const types = [...field.types].sort((one, other) => other.values - one.values).map((each) => typeTitle(each.type));
  const what = field.closed_as === null ? types.join(', ') : shape(field.closed_as, field.options);
  const values = { what, values: number(field.values), networks: number(field.networks), sessions: number(field.sessions), days: number(field.days) };
  return t(field.sessions > 0 ? 'fields.evidenceSessions' : 'fields.evidence', values);
}

/** The evidence that is missing before it is closed; empty if none is. */
export function missing(field: LearnedField): string {
  if (field.state === 'closed' || field.state === 'kept_open') return '';
  if (field.closes_as === null) return t('fields.notPlain');
  const parts = (['values', 'networks', 'sessions', 'days'] as const).filter((part) => field.missing[part] > 0)
    .map((part) => t(`fields.more.${part}` as Key, { count: number(field.missing[part]) }));
  return parts.length === 0 ? '' : t('fields.closesWith', { what: shape(field.closes_as, field.options), missing: parts.join(', ') });
}

/** The events of values that were unlike a field, or any field of a site. */
export function unusualFilter(of: { site: string } | FieldAt): string {
  const parts = [`site = ${quoted(of.site)}`, 'class = field'];
  if ('name' in of) {
    parts.push(`location = ${quoted(`${of.place}:${of.name}`)}`);
    // The part before the first segment that is a value.
    const at = of.path.indexOf('{');
    parts.push(at < 0 ? `path = ${quoted(of.path)}` : `path ^= ${quoted(of.path.slice(0, at))}`);
  }
  return parts.join(' and ');
}

export function fieldHref({ site, method, path, place, name }: FieldAt, more: Record<string, string | null> = {}): string {
  return href(['interfaces'], { ...more, site, method, path, place, name });
}

/** The path of a request target, in origin or absolute form. */
function pathOf(target: string): string {
  const [path = '/'] = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split(/[?#]/);
  return path || '/';
}

/** The link to the field of a finding; nothing for one that is not about a field. */
export function findingHref(finding: Finding, site: string, method: string, target: string): string | undefined {
  if (finding.class !== 'field' || !finding.name) return undefined;
  return fieldHref({ site, method, path: pathOf(target), place: finding.place, name: finding.name });
}
