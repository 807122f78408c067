// A text area for directives, with their parts in colours behind it.

import { useRef } from 'preact/hooks';
import { t } from '../i18n/index.ts';
import { tokens, type RuleProblem, type Token } from '../seclang.ts';
import { Field } from './kit.tsx';

/** The lines of a text in tokens: one may go over several. */
function lines(text: string): Token[][] {
  const all: Token[][] = [[]];
  for (const token of tokens(text)) {
    token.text.split('\n').forEach((part, at) => {
      if (at > 0) all.push([]);
      if (part !== '') all[all.length - 1]?.push({ kind: token.kind, text: part });
    });
  }
  return all;
}

export function Editor({ label, value, onInput, problems }: { label: string; value: string; onInput: (value: string) => void; problems: RuleProblem[] }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const behind = useRef<HTMLPreElement>(null);
  const follow = () => {
    if (area.current && behind.current) behind.current.scrollTo(area.current.scrollLeft, area.current.scrollTop);
  };
  const goTo = ({ line, column }: RuleProblem) => {
    const start = value.split('\n').slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + Math.max(0, (column ?? 1) - 1);
    area.current?.focus();
    area.current?.setSelectionRange(start, start);
  };
  const wrong = new Set(problems.map((each) => each.line));
  return (
    <Field label={label}>
      {(id) => (
        <>
          <div class="editor">
            <pre ref={behind} aria-hidden="true">
              {lines(value).map((line, at) => (
                <div key={at} class={wrong.has(at + 1) ? 'wrong' : undefined}>{line.map((token, index) => <span key={index} class={token.kind}>{token.text}</span>)}{'\n'}</div>
              ))}
            </pre>
            <textarea ref={area} id={id} rows={16} autofocus wrap="off" spellcheck={false} autocapitalize="off" autocomplete="off" value={value} aria-invalid={problems.length > 0 ? 'true' : undefined}
              onScroll={follow} onInput={(event) => { onInput(event.currentTarget.value); follow(); }} />
          </div>
          {problems.length > 0 && (
            <ul class="problems" role="alert">{problems.map((each) => (
              <li key={`${each.line} ${each.message}`}><button type="button" class="button ghost" onClick={() => goTo(each)}>{t('revisions.line', { line: each.line })}</button> {each.message}</li>
            ))}</ul>
          )}
        </>
      )}
    </Field>
  );
}
