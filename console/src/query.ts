// The filter language, as far as a page takes filters apart and puts them together; the server has the last word.

export type FieldKind = 'time' | 'number' | 'word' | 'choice' | 'address' | 'text';
/** The fields of filters and what they are compared with. */
export const FIELDS: Record<string, FieldKind> = {
  time: 'time', id: 'word', site: 'word', route: 'word', verdict: 'choice', outcome: 'choice', status: 'number', class: 'choice',
  rule: 'number', client: 'address', country: 'word', asn: 'number', method: 'word', host: 'word', path: 'word', location: 'word',
  user_agent: 'word', upstream: 'word', control: 'word', refusal: 'word', mode: 'choice', engine: 'choice', trial: 'word',
  duration_us: 'number', count: 'number', text: 'text',
};
const OPERATORS: Record<FieldKind, string[]> = {
  time: ['>=', '<'], number: ['=', '!=', '<', '>=', 'in'], word: ['=', '!=', '^=', '~', 'in'], choice: ['=', '!=', 'in'], address: ['=', 'in'], text: ['~'],
};
/** Fields whose values cannot be counted. */
const UNCOUNTED = ['time', 'id', 'duration_us', 'count', 'text'];

type TokenKind = 'word' | 'quoted' | 'open' | 'close' | 'comma' | 'operator';
interface Token { kind: TokenKind; text: string; from: number; to: number; closed: boolean }

/** True for the name of a field. */
export function isField(name: string): boolean {
  return Object.hasOwn(FIELDS, name);
}

/** The tokens of a filter; a text without its closing quote is one, too. */
export function tokens(filter: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  const take = (kind: TokenKind, to: number, closed = true) => {
    found.push({ kind, text: filter.slice(at, to), from: at, to, closed });
    at = to;
  };
  while (at < filter.length) {
    const sign = filter[at]!;
    if (/\s/.test(sign)) at += 1;
    else if (sign === '(') take('open', at + 1);
    else if (sign === ')') take('close', at + 1);
    else if (sign === ',') take('comma', at + 1);
    else if (sign === '"' || sign === "'") {
      let to = at + 1;
      while (to < filter.length && filter[to] !== sign) to += filter[to] === '\\' ? 2 : 1;
      take('quoted', Math.min(filter.length, to + 1), to < filter.length);
    } else if (/[=!<>~^]/.test(sign)) take('operator', at + (/^(?:==|!=|<=|>=|\^=)/.test(filter.slice(at)) ? 2 : 1));
    else {
      const ends = sign === '/' ? /[\s(),]/ : /[\s(),"'=!<>~^]/;
      const length = filter.slice(at).search(ends);
      take('word', length < 0 ? filter.length : at + length);
    }
  }
  return found;
}

function isWord(token: Token | undefined, word: string): boolean {
  return token?.kind === 'word' && token.text.toLowerCase() === word;
}

/** The words `and` and `or` outside of parentheses; null if these do not pair. */
function joints(all: Token[]): { word: 'and' | 'or'; token: Token }[] | null {
  const found: { word: 'and' | 'or'; token: Token }[] = [];
  let depth = 0;
  for (const [at, token] of all.entries()) {
    if (token.kind === 'open') depth += 1;
    if (token.kind === 'close') depth -= 1;
    if (depth < 0 || !token.closed) return null;
    // Behind an operator it is a value.
    if (depth > 0 || all[at - 1]?.kind === 'operator') continue;
    if (isWord(token, 'and')) found.push({ word: 'and', token });
    if (isWord(token, 'or')) found.push({ word: 'or', token });
  }
  return depth === 0 ? found : null;
}

/** True for a filter that needs parentheses beside others. */
export function isAlternative(filter: string): boolean {
  return joints(tokens(filter))?.some(({ word }) => word === 'or') ?? /\bor\b/i.test(filter);
}

export interface Term { text: string; from: number; to: number }

/** The parts of a filter that have to hold all together; one that is not understood is one part. */
export function terms(filter: string): Term[] {
  const part = (from: number, to: number): Term => {
    const text = filter.slice(from, to);
    const begin = from + (text.length - text.trimStart().length);
    return { text: text.trim(), from: begin, to };
  };
  if (filter.trim() === '') return [];
  const found = joints(tokens(filter));
  if (found === null || found.some(({ word }) => word === 'or')) return [part(0, filter.length)];
  const edges = [0, ...found.flatMap(({ token }) => [token.from, token.to]), filter.length];
  const parts = found.map((_, at) => part(edges[2 * at]!, edges[2 * at + 1]!)).concat(part(edges.at(-2)!, filter.length));
  return parts.some(({ text }) => text === '') ? [part(0, filter.length)] : parts;
}

/** Parts that have to hold all together, as one filter; each once. */
export function joined(parts: string[]): string {
  const once = [...new Set(parts.map((part) => part.trim()).filter((part) => part !== ''))];
  return once.map((part) => (once.length > 1 && isAlternative(part) ? `(${part})` : part)).join(' and ');
}

export function isNegated(term: string): boolean {
  return isWord(tokens(term)[0], 'not') && terms(term).length === 1 && !isAlternative(term);
}

/** The opposite of a part. */
export function negate(term: string): string {
  if (isNegated(term)) return term.trim().slice(3).trim();
  return isAlternative(term) || terms(term).length > 1 ? `not (${term})` : `not ${term}`;
}

/** A part added to a filter. In place of its opposite it says the last word. */
export function added(filter: string, term: string): string {
  const opposite = negate(term);
  return joined([...terms(filter).map(({ text }) => text).filter((text) => text !== opposite), term]);
}

export interface Period { from: string; to: string }
const TIME = /^time\s*(>=|<)\s*(\S+)$/;

/** The time that a filter is about, as it stands there, and the filter without it. */
export function period(filter: string): Period & { rest: string } {
  const found: Period = { from: '', to: '' };
  const rest = terms(filter).map(({ text }) => text).filter((text) => {
    const [, sign, value = ''] = TIME.exec(text) ?? [];
    if (sign === '>=') found.from = value;
    if (sign === '<') found.to = value;
    return sign === undefined;
  });
  return { ...found, rest: joined(rest) };
}

/** The filter for another time. */
export function within(filter: string, { from, to }: Period): string {
  return joined([period(filter).rest, from && `time >= ${from}`, to && `time < ${to}`]);
}

/** The completion of a text that is being typed: `field`, `operator`, or a value of `of`, in place of `part`. */
export interface Gap { wants: 'field' | 'operator' | 'value'; of: string; part: string; from: number }

export function gap(text: string): Gap | null {
  const all = tokens(text);
  const last = all.at(-1);
  const touches = last !== undefined && last.to === text.length && (last.kind === 'word' || (last.kind === 'quoted' && !last.closed));
  const before = touches ? all.slice(0, -1) : all;
  const part = touches ? last.text.replace(/^["']/, '') : '';
  const from = touches ? last.from : text.length;
  const previous = before.at(-1);
  const expects = (token: Token | undefined) => token === undefined || token.kind === 'open' || ['and', 'or', 'not'].some((word) => isWord(token, word));
  const compared = (tail: Token[]): string | null => {
    const [field, operator] = tail.slice(-2);
    const compares = operator?.kind === 'operator' || isWord(operator, 'in');
    return field?.kind === 'word' && isField(field.text) && compares ? field.text : null;
  };
  // Within the parentheses of `in (a, b`.
  const open = before.map(({ kind }) => kind).lastIndexOf('open');
  const listed = open > 0 && isWord(before[open - 1], 'in') && !before.slice(open).some(({ kind }) => kind === 'close') ? compared(before.slice(0, open)) : null;
  if (listed !== null && (previous?.kind === 'open' || previous?.kind === 'comma')) return { wants: 'value', of: listed, part, from };
  const single = compared(before);
  if (single !== null) return { wants: 'value', of: single, part, from };
  if (expects(previous)) return touches && last.kind === 'quoted' ? null : { wants: 'field', of: '', part, from };
  const [field, owner] = [previous, before.at(-2)];
  if (field?.kind === 'word' && isField(field.text) && expects(owner) && /\s$/.test(text.slice(0, from))) return { wants: 'operator', of: field.text, part, from };
  return null;
}

export function operatorsOf(field: string): string[] {
  return OPERATORS[FIELDS[field] ?? 'word'];
}

/** True if the values of a field can be counted, and so proposed. */
export function isCounted(field: string): boolean {
  return isField(field) && !UNCOUNTED.includes(field);
}
