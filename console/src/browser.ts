// The browser and the system that a `User-Agent` names, for people. It is what a client says of itself: for a list, not
// for a decision.

const BROWSERS: [RegExp, string][] = [
  [/\bEdgA?\//, 'Edge'], [/\bOPR\//, 'Opera'], [/\bSamsungBrowser\//, 'Samsung Internet'], [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/\bChrome\/|\bCriOS\//, 'Chrome'], [/\bSafari\//, 'Safari'],
];
const SYSTEMS: [RegExp, string][] = [
  [/\bAndroid\b/, 'Android'], [/\biPhone\b|\biPad\b/, 'iOS'], [/\bWindows\b/, 'Windows'], [/\bMacintosh\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'], [/\bLinux\b/, 'Linux'],
];

/** `Firefox, Linux`; of another program its own first word; null if there is none. */
export function browser(agent: string): string | null {
  const find = (table: [RegExp, string][]) => table.find(([pattern]) => pattern.test(agent))?.[1];
  const name = find(BROWSERS) ?? /^[\w.-]{1,40}/.exec(agent)?.[0];
  if (!name) return null;
  const system = find(SYSTEMS);
  return system ? `${name}, ${system}` : name;
}
