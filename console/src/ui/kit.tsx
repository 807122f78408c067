// The small parts of every page.

import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Problem } from '../api/http.ts';
import type { Outcome } from '../api/types.ts';
import { t, type Key } from '../i18n/index.ts';
import { visible } from '../visible.ts';
import { Icon } from './icon.tsx';

type Tone = 'plain' | 'primary' | 'danger' | 'ghost';

export function Button({ tone = 'plain', icon, children, ...rest }: {
  tone?: Tone; icon?: string; children?: ComponentChildren;
} & Omit<JSX.ButtonHTMLAttributes<HTMLButtonElement>, 'icon'>) {
  return (
    <button type="button" {...rest} class={`button ${tone} ${rest.class ?? ''}`}>
      {icon && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </button>
  );
}

export function Field({ label, hint, error, children }: {
  label: string; hint?: string; error?: string; children: (id: string) => ComponentChildren;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      {hint && <p class="hint">{hint}</p>}
      {error && <p class="error" role="alert">{error}</p>}
    </div>
  );
}

export function Input({ label, hint, error, value, onInput, ...rest }: {
  label: string; hint?: string; error?: string; value: string; onInput: (value: string) => void;
} & Omit<JSX.InputHTMLAttributes<HTMLInputElement>, 'label' | 'value' | 'onInput'>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(id) => <input id={id} {...rest} value={value} onInput={(event) => onInput(event.currentTarget.value)} />}
    </Field>
  );
}

export function Select<T extends string>({ label, value, options, onChange, hidden }: {
  label: string; value: T; options: [T, string][]; onChange: (value: T) => void; hidden?: boolean;
}) {
  const id = useId();
  return (
    <div class={hidden ? 'field inline' : 'field'}>
      <label for={id} class={hidden ? 'visually-hidden' : ''}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {options.map(([each, text]) => <option key={each} value={each}>{text}</option>)}
      </select>
    </div>
  );
}

export function Tabs<T extends string>({ label, value, options, onChange }: {
  label: string; value: T; options: [T, string][]; onChange: (value: T) => void;
}) {
  return (
    <div class="tabs" role="group" aria-label={label}>
      {options.map(([each, text]) => (
        <button type="button" key={each} aria-pressed={each === value} onClick={() => onChange(each)}>{text}</button>
      ))}
    </div>
  );
}

const SHAPES: Record<string, string> = {
  deny: 'stop', drop: 'stop', refuse: 'stop', detect: 'eye', noted: 'minus', pass: 'check', redirect: 'arrow', proxy: 'arrow',
};

/** A verdict: colour, shape and word. What was only noted is no detection. */
export function Verdict({ action: done, outcome }: { action: string; outcome?: Outcome | null }) {
  const action = done === 'detect' && outcome === 'noted' ? 'noted' : done;
  const key = `verdict.${action}` as Key;
  const tone = ['deny', 'drop', 'refuse'].includes(action) ? 'bad' : action === 'detect' ? 'warn' : action === 'pass' ? 'good' : 'info';
  return <span class={`badge ${tone}`}><Icon name={SHAPES[action] ?? 'eye'} />{key in LABELS ? t(key) : action}</span>;
}
const LABELS: Record<string, true> = {
  'verdict.pass': true, 'verdict.detect': true, 'verdict.deny': true, 'verdict.redirect': true, 'verdict.drop': true,
  'verdict.proxy': true, 'verdict.refuse': true, 'verdict.noted': true,
};

export function Badge({ tone = 'info', children }: { tone?: 'good' | 'warn' | 'bad' | 'info'; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function Card({ title, aside, children, id }: {
  title?: string; aside?: ComponentChildren; children: ComponentChildren; id?: string;
}) {
  return (
    <section class="card" id={id}>
      {(title || aside) && <header>{title && <h2>{title}</h2>}{aside}</header>}
      {children}
    </section>
  );
}

export function PageHead({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="page-head">
      <h1 tabIndex={-1}>{title}</h1>
      <div class="tools">{children}</div>
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** An error, with what the server says and a way to try again. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  // Why a single change is not allowed is said by the server.
  if (error instanceof Problem && error.status === 403 && !error.body?.detail) return <Empty>{t('app.notAllowed')}</Empty>;
  return (
    <div class="failure" role="alert">
      <strong>{error instanceof Problem && error.body ? error.body.title : t('app.failed')}</strong>
      <Diagnostics error={error} />
      {retry && <Button onClick={retry}>{t('app.retry')}</Button>}
    </div>
  );
}

export function Diagnostics({ error }: { error: unknown }) {
  if (!(error instanceof Problem)) return <p>{error instanceof Error ? error.message : String(error)}</p>;
  const list = error.body?.diagnostics ?? [];
  if (list.length === 0) return error.body?.detail ? <pre>{error.body.detail}</pre> : null;
  return (
    <ul>
      {list.map((each) => (
        <li>{each.line !== null && <b>{t('revisions.line', { line: each.line })}: </b>}{each.message}{each.hint && <em> {each.hint}</em>}</li>
      ))}
    </ul>
  );
}

export function Skeleton({ lines = 4 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="visually-hidden">{t('app.loading')}</span>
      {Array.from({ length: lines }, (_, at) => <i key={at} />)}
    </div>
  );
}

/** A dialog of the platform: keeps the focus, closes at Escape. With `onSubmit` it is a form: Enter submits it. */
export function Dialog({ title, onClose, children, wide, onSubmit }: {
  title: string; onClose: () => void; children: ComponentChildren; wide?: boolean; onSubmit?: (event: Event) => void;
}) {
  const own = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const closed = useRef(onClose);
  closed.current = onClose;
  useEffect(() => {
    const dialog = own.current;
    const before = document.activeElement;
    dialog?.showModal();
    let isTold = false;
    const tell = () => {
      if (!isTold) closed.current();
      isTold = true;
    };
    dialog?.addEventListener('close', tell);
    return () => {
      // Closed by a key a moment ago, and replaced before the browser could say so.
      if (dialog && !dialog.open) tell();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={own} class={wide ? 'wide' : ''} aria-labelledby={heading}
      onClick={(event) => event.target === own.current && onClose()}>
      <div class="dialog">
        <header>
          <h2 id={heading}>{title}</h2>
          <Button tone="ghost" icon="close" aria-label={t('app.close')} onClick={onClose} />
        </header>
        {onSubmit ? <form onSubmit={onSubmit}>{children}</form> : children}
      </div>
    </dialog>
  );
}

export function CopyButton({ text, label = t('app.copy') }: { text: string | (() => string); label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return <Button icon={done ? 'check' : 'copy'} onClick={copy}>{done ? t('app.copied') : label}</Button>;
}

export interface Bar { label: string; count: number; href?: string; approximate?: boolean }

/** The most frequent of something, with their shares as bars. */
export function Bars({ items, format, empty = t('app.none') }: {
  items: Bar[]; format: (count: number) => string; empty?: string;
}) {
  const most = Math.max(1, ...items.map((item) => item.count));
  if (items.length === 0) return <Empty>{empty}</Empty>;
  return (
    <ol class="bars">
      {items.map((item) => (
        <li key={item.label}>
          <Fill share={item.count / most} />
          {item.href ? <a href={item.href} title={visible(item.label)} data-count={item.count}>{visible(item.label)}</a> : <span title={visible(item.label)}>{visible(item.label)}</span>}
          <b>{item.approximate ? '≤ ' : ''}{format(item.count)}</b>
        </li>
      ))}
    </ol>
  );
}

/** A bar that is so full. Its width is set by script: the policy allows no style in markup. */
export function Fill({ share, mark, tone = '' }: { share: number; mark?: number; tone?: string }) {
  const own = useRef<HTMLDivElement>(null);
  useEffect(() => {
    own.current?.style.setProperty('--share', `${Math.min(1, Math.max(0, share)) * 100}%`);
    own.current?.style.setProperty('--mark', `${Math.min(1, Math.max(0, mark ?? 0)) * 100}%`);
  }, [share, mark]);
  return <div ref={own} class={`fill ${tone} ${mark === undefined ? '' : 'marked'}`} aria-hidden="true" />;
}

export function DiffView({ text }: { text: string }) {
  if (!text.trim()) return <Empty>{t('app.previewEmpty')}</Empty>;
  return (
    <pre class="diff" tabIndex={0}>
      {text.split('\n').filter((line) => !/^(---|\+\+\+)/.test(line)).map((line) => (
        <span class={line.startsWith('+') ? 'in' : line.startsWith('-') ? 'out' : line.startsWith('@@') ? 'at' : ''}>{visible(line, true)}{'\n'}</span>
      ))}
    </pre>
  );
}
