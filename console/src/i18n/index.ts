// One catalogue of texts; a language is complete or it does not compile.

import { visible } from '../visible.ts';
import { en } from './en.ts';
import { zh } from './zh.ts';

export type Key = keyof typeof en;
export type Language = 'en' | 'zh';
const CATALOGUES: Record<Language, Record<Key, string>> = { en, zh };
const STORED = 'portcullis.language';

function initial(): Language {
  const stored = globalThis.localStorage?.getItem(STORED);
  if (stored === 'en' || stored === 'zh') return stored;
  return globalThis.navigator?.language?.startsWith('zh') ? 'zh' : 'en';
}

let current: Language = initial();

export function language(): string {
  return current === 'zh' ? 'zh-CN' : 'en';
}

export function chosen(): Language {
  return current;
}

export function choose(next: Language): void {
  current = next;
  localStorage.setItem(STORED, next);
  document.documentElement.lang = language();
}

/** The text of a key, with `{name}` replaced: values may come from clients. `{name|one|other}` is a word for a count. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  return CATALOGUES[current][key].replace(/\{(\w+)(?:\|([^|{}]*)\|([^|{}]*))?\}/g, (whole, name: string, one?: string, other?: string) => {
    if (one === undefined) return visible(String(values[name] ?? whole));
    return (String(values[name]) === '1' ? one : other) ?? '';
  });
}
