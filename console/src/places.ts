// Countries by name, in the language of the console.

import { language } from './i18n/index.ts';
import { visible } from './visible.ts';

let known: { language: string; names: Intl.DisplayNames } | null = null;

/** The name of a country, with its code; what is no code stands as it is. */
export function countryName(code: string): string {
  if (!/^[A-Z]{2}$/.test(code)) return visible(code);
  if (known?.language !== language()) known = { language: language(), names: new Intl.DisplayNames(language(), { type: 'region' }) };
  const name = known.names.of(code) ?? code;
  return name === code ? code : `${name} (${code})`;
}
