// SecLang in colours: the directive, what it looks at, its operator, its actions, comments. What cannot be told apart is
// plain text; nothing is lost or added.

export type TokenKind = 'comment' | 'directive' | 'target' | 'operator' | 'action' | 'text' | 'plain';
export interface Token { kind: TokenKind; text: string }

/** Positions of arguments in the directives that have targets, an operator and actions. */
const PARTS: Record<string, TokenKind[]> = {
  secrule: ['target', 'operator', 'action'],
  secaction: ['action'],
  secdefaultaction: ['action'],
  secruleupdatetargetbyid: ['text', 'target'],
  secruleupdatetargetbytag: ['text', 'target'],
  secruleupdatetargetbymsg: ['text', 'target'],
  secruleupdateactionbyid: ['text', 'action'],
};

/** The tokens of a text: together they are the text. */
export function tokens(text: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  const take = (kind: TokenKind, end: number) => {
    if (end > at) found.push({ kind, text: text.slice(at, end) });
    at = end;
  };
  // A directive goes on in the next line behind a backslash, and within quotation marks.
  let directive = '';
  let argument = 0;
  while (at < text.length) {
    const blank = /[ \t\r]*(?:\\\r?\n[ \t]*)*/y;
    blank.lastIndex = at;
    blank.exec(text);
    if (blank.lastIndex > at) {
      take('plain', blank.lastIndex);
      continue;
    }
    if (text[at] === '\n') {
      directive = '';
      take('plain', at + 1);
      continue;
    }
    if (directive === '') {
      const isComment = text[at] === '#';
      const end = isComment ? lineEnd(text, at) : wordEnd(text, at);
      directive = isComment ? '' : text.slice(at, end).toLowerCase();
      argument = 0;
      take(isComment ? 'comment' : 'directive', end);
      continue;
    }
    const kind = PARTS[directive]?.[argument] ?? 'text';
    argument += 1;
    take(kind, text[at] === '"' || text[at] === "'" ? quoteEnd(text, at) : wordEnd(text, at));
  }
  return found;
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

function wordEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && !/\s/.test(text[at] ?? '')) at += 1;
  return Math.max(at, from + 1);
}

function quoteEnd(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === text[from]) return at + 1;
  }
  return text.length;
}

export interface RuleProblem { line: number; column: number | null; message: string }

/** A diagnostic of the compiler about directives of the document: `<directives>:LINE:COLUMN: error: message`. */
export function ruleProblems(report: string): RuleProblem[] {
  const found = [...report.matchAll(/<directives>:(\d+)(?::(\d+))?:?\s*([^\n]*)/g)];
  const all = found.map(([, line, column, message]) => ({ line: Number(line), column: column ? Number(column) : null, message: message ?? '' }));
  return all.filter((each, at) => all.findIndex((other) => other.line === each.line && other.message === each.message) === at);
}
