// One catalogue of texts for each language; a language is complete or it does not compile. English comes with the first
// load, which names the keys; another one is loaded when it is chosen.

import { visible } from '../visible.ts';
import { en } from './en.ts';

export type Key = keyof typeof en;
export type Catalogue = Record<Key, string>;
export type Language = 'en' | 'de' | 'es' | 'fr' | 'ja' | 'zh';
/** By the names that speakers know them by. */
export const LANGUAGES: [Language, string][] = [
  ['en', 'English'], ['de', 'Deutsch'], ['es', 'Español'], ['fr', 'Français'], ['ja', '日本語'], ['zh', '简体中文'],
];
const LATER: Record<Exclude<Language, 'en'>, () => Promise<{ default: Catalogue }>> = {
  de: () => import('./de.ts'), es: () => import('./es.ts'), fr: () => import('./fr.ts'), ja: () => import('./ja.ts'), zh: () => import('./zh.ts'),
};
const STORED = 'portcullis.language';

function isLanguage(name: string | null | undefined): name is Language {
  return LANGUAGES.some(([language]) => language === name);
}

/** What the browser says its user reads, the most liked first. */
function liked(): readonly string[] {
  return globalThis.navigator?.languages ?? [];
}

function preferred(): Language {
  const stored = globalThis.localStorage?.getItem(STORED);
  if (isLanguage(stored)) return stored;
  return liked().map((tag) => tag.slice(0, 2).toLowerCase()).find(isLanguage) ?? 'en';
}

let current: Language = 'en';
let texts: Catalogue = en;
let tag = 'en';
let plurals = new Intl.PluralRules('en');

/** The language as dates and numbers are written in it: the browser's own form of it, if it has one. */
export function language(): string {
  return tag;
}

export function chosen(): Language {
  return current;
}

async function load(next: Language): Promise<void> {
  texts = next === 'en' ? en : (await LATER[next]()).default;
  current = next;
  tag = liked().find((each) => each.slice(0, 2).toLowerCase() === next) ?? (next === 'zh' ? 'zh-CN' : next);
  plurals = new Intl.PluralRules(next);
  if (globalThis.document) document.documentElement.lang = tag;
}

/** Loads the language of this browser; English, if it cannot be had. */
export async function ready(): Promise<void> {
  await load(preferred()).catch(() => load('en'));
}

/** Changes the language and remembers it in this browser. */
export async function choose(next: Language): Promise<void> {
  await load(next);
  localStorage.setItem(STORED, next);
}

/** The text of a key, with `{name}` replaced: values may come from clients. `{name|one|other}` is a word for a count. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  return texts[key].replace(/\{(\w+)(?:\|([^|{}]*)\|([^|{}]*))?\}/g, (whole, name: string, one?: string, other?: string) => {
    if (one === undefined) return visible(String(values[name] ?? whole));
    const count = Number(values[name]);
    // What is written with separators is no number here, and more than one.
    return (plurals.select(Number.isNaN(count) ? 2 : count) === 'one' ? one : other) ?? '';
  });
}
