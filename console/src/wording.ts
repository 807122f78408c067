// An exclusion as a person would say it: what is let through, in which field, on which pages.

import type { Candidate } from './api/types.ts';
import { en } from './i18n/en.ts';
import { t, type Key } from './i18n/index.ts';

type Excluded = Candidate['exclusions'][number];

/** `query:text` as `the parameter text`; what has no words stands as it is. */
export function fieldWords(location: string): string {
  const at = location.indexOf(':');
  const [place, name] = at < 0 ? [location, ''] : [location.slice(0, at), location.slice(at + 1)];
  const key = `place.${place.toLowerCase()}${name === '' ? '' : '.named'}` as Key;
  return key in en ? t(key, { name }) : location;
}

/** `/notes/{id}` as `pages like /notes/…`; without a path, all pages of the site. */
export function pathWords(path: string | undefined): string {
  if (!path) return t('exclude.everywhere');
  return path.includes('{') || path.includes('*') ? t('exclude.pagesLike', { path: path.replaceAll(/\{\w+\}|\*/g, '…') }) : t('exclude.page', { path });
}

/** `sqli.union-select` as `union select`. */
export function kindWords(kind: string): string {
  return (kind.split('.')[1] ?? kind).replaceAll('-', ' ');
}

const list = (texts: (string | number)[]) => [...new Set(texts)].join(', ');

/** One sentence for all that a candidate excludes. */
export function sentence(exclusions: Excluded[]): string {
  const field = list(exclusions.map((each) => fieldWords(each.location ?? each.target ?? '')).filter(Boolean)) || t('exclude.anyField');
  const path = list(exclusions.map((each) => pathWords(each.path)));
  const rules = exclusions.flatMap((each) => (each.rule_id === undefined ? [] : [each.rule_id]));
  if (rules.length > 0) return t('exclude.say.rules', { count: new Set(rules).size, rules: list(rules), field, path });
  const kinds = exclusions.flatMap((each) => (each.kind === undefined ? [] : [each.kind]));
  if (kinds.length === exclusions.length) return t('exclude.say.kinds', { what: list(kinds.map(kindWords)), field, path });
  const classes = exclusions.flatMap((each) => (each.class === undefined ? [] : [each.class]));
  return t('exclude.say.class', { what: list(classes), field, path });
}
