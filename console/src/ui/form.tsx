// Forms for values of the document, made of its schema: a control for each key, with its description, and what is wrong
// with it at its place.

import type { ComponentChildren } from 'preact';
import { createContext } from 'preact';
import { useContext, useId, useState } from 'preact/hooks';
import type { Diagnostic } from '../api/types.ts';
import { t } from '../i18n/index.ts';
import { labelOf, linesOf, mapOf, numberOrText, pointer, type Json, type Member, type Shape, type Table } from '../schema.ts';
import { Button, Field } from './kit.tsx';

/** Shared by all controls of a form: mistakes, and the names that values may have. */
export interface FormContext { found: Diagnostic[]; names: Record<string, string[]> }
const Context = createContext<FormContext>({ found: [], names: {} });
export const FormScope = Context.Provider;

interface ControlProps { shape: Shape; label: string; description: string; place: string; value: Json | undefined; set: (value: Json) => void; required?: boolean }

/** A description, its code as such. */
function Described({ text }: { text: string }) {
  return <>{text.split('`').map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}</>;
}

/** The mistakes at a place, or below it where no control shows them. */
function useProblems(place: string, isDeep: boolean): string | undefined {
  const { found } = useContext(Context);
  const mine = found.filter((each) => each.pointer === place || (isDeep && each.pointer?.startsWith(`${place}/`)));
  return mine.length === 0 ? undefined : mine.map((each) => (each.hint ? `${each.message} (${each.hint})` : each.message)).join('; ');
}

/** A plain control: a label, an input, a description, an error. */
function Labelled({ label, description, place, children }: {
  label: string; description: string; place: string; children: (id: string, described: Record<string, unknown>) => ComponentChildren;
}) {
  const error = useProblems(place, true);
  const hint = useId();
  return (
    <Field label={label} error={error}>
      {(id) => (
        <>
          {children(id, { 'aria-describedby': hint, 'aria-invalid': error ? 'true' : undefined, 'data-place': place })}
          <p class="hint" id={hint}><Described text={description} /></p>
        </>
      )}
    </Field>
  );
}

/** The control for a value; null stands for a key that is not there. */
export function Control({ shape, label, description, place, value, set, required }: ControlProps) {
  const { names } = useContext(Context);
  const list = useId();
  const known = names[place.split('/').pop() ?? ''] ?? [];
  if (shape.kind === 'table' || (shape.kind === 'either' && value !== null && typeof value === 'object')) {
    const table = shape.kind === 'either' ? shape.table : shape;
    return <Group shape={table} label={label} description={description} place={place} value={value} set={set} required={required} />;
  }
  if (shape.kind === 'either') {
    const more = () => set(typeof value === 'string' && shape.member ? { [shape.member]: value } : {});
    return (
      <div class="either">
        <Control shape={shape.plain} label={label} description={description} place={place} value={value} set={set} required={required} />
        <Button tone="ghost" onClick={more} aria-label={`${t('form.details')}: ${label}`}>{t('form.details')}</Button>
      </div>
    );
  }
  if ((shape.kind === 'list' || shape.kind === 'map') && ['table', 'either'].includes(shape.of.kind)) {
    return <Entries shape={shape} label={label} description={description} place={place} value={value} set={set} />;
  }
  return (
    <Labelled label={required ? `${label} *` : label} description={description} place={place}>
      {(id, more) => {
        switch (shape.kind) {
          case 'switch':
          case 'choice': {
            const options = shape.kind === 'switch' ? [['true', t('app.yes')], ['false', t('app.no')]]
              : shape.options.map((each) => [each.value, each.description ? `${each.value}: ${each.description.replaceAll('`', '')}` : each.value]);
            const chosen = value === null || value === undefined ? '' : String(value);
            return (
              <select id={id} {...more} value={chosen} onChange={(event) => {
                const next = event.currentTarget.value;
                set(next === '' ? null : shape.kind === 'switch' ? next === 'true' : next);
              }}>
                <option value="">{t('form.default')}</option>
                {options.map(([each, text]) => <option key={each} value={each}>{text}</option>)}
              </select>
            );
          }
          case 'number':
            return <input id={id} {...more} type="number" min={shape.min} max={shape.max} placeholder={t('form.default')} value={value === null || value === undefined ? '' : String(value)}
              onInput={(event) => set(event.currentTarget.value === '' ? null : Number(event.currentTarget.value))} />;
          case 'list':
            return <Lines id={id} more={more} text={Array.isArray(value) ? value.map(String).join('\n') : ''} set={(text) => {
              const lines = text.split('\n').map((line) => line.trim()).filter((line) => line !== '');
              set(lines.length === 0 ? null : shape.of.kind === 'number' ? lines.map(numberOrText) : lines);
            }} />;
          case 'map':
            return <Lines id={id} more={more} text={value !== null && typeof value === 'object' && !Array.isArray(value) ? linesOf(value) : ''}
              set={(text) => set(text.trim() === '' ? null : mapOf(text, shape.of))} />;
          default: {
            const text = value === null || value === undefined ? '' : String(value);
            const change = (next: string) => set(next === '' ? null : shape.kind === 'size' ? numberOrText(next) : next);
            if (text.includes('\n')) return <textarea id={id} {...more} rows={8} value={text} onInput={(event) => change(event.currentTarget.value)} />;
            return (
              <>
                <input id={id} {...more} value={text} list={known.length > 0 ? list : undefined} placeholder={required ? '' : t('form.default')} autocomplete="off" spellcheck={false}
                  onInput={(event) => change(event.currentTarget.value)} />
                {known.length > 0 && <datalist id={list}>{known.map((each) => <option key={each} value={each} />)}</datalist>}
              </>
            );
          }
        }
      }}
    </Labelled>
  );
}

/** Lines of text. What is typed stays, also where it says nothing yet: a line that begins. */
function Lines({ id, more, text, set }: { id: string; more: Record<string, unknown>; text: string; set: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  return <textarea id={id} {...more} rows={Math.min(8, Math.max(2, typed.split('\n').length))} value={typed} spellcheck={false}
    onInput={(event) => { setTyped(event.currentTarget.value); set(event.currentTarget.value); }} />;
}

/** A table within a form: added, filled in, removed. */
function Group({ shape, label, description, place, value, set, required }: ControlProps & { shape: Shape }) {
  const [isOpen, setOpen] = useState(true);
  const error = useProblems(place, !isOpen);
  if (shape.kind !== 'table') return null;
  if (value === null || value === undefined) {
    return (
      <div class="field">
        <p><Button icon="plus" data-place={place} onClick={() => { setOpen(true); set({}); }}>{label}</Button></p>
        <p class="hint"><Described text={description} /></p>
        {error && <p class="error" role="alert">{error}</p>}
      </div>
    );
  }
  return (
    <details class="group" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{label}</summary>
      {description && <p class="hint"><Described text={description} /></p>}
      {error && <p class="error" role="alert">{error}</p>}
      {isOpen && <TableForm members={shape.members} place={place} value={isTable(value) ? value : {}} set={set} />}
      {!required && <Button tone="ghost" aria-label={`${t('app.remove')}: ${label}`} onClick={() => set(null)}>{t('app.remove')}</Button>}
    </details>
  );
}

/** The entries of a list or map of tables. */
function Entries({ shape, label, description, place, value, set }: ControlProps & { shape: Extract<Shape, { of: Shape }> }) {
  const [name, setName] = useState('');
  const error = useProblems(place, false);
  const entries: [string, Json][] = Array.isArray(value) ? value.map((each, at) => [String(at), each])
    : isTable(value) ? Object.entries(value) : [];
  const of = shape.of;
  const empty: Json = of.kind === 'either' ? '' : {};
  const put = (at: string, next: Json) => {
    if (shape.kind === 'map') set({ ...(isTable(value) ? value : {}), [at]: next });
    else {
      const list = entries.map(([each, old]) => (each === at ? next : old)).filter((each) => each !== null);
      set(list.length === 0 ? null : list);
    }
  };
  const add = () => {
    if (shape.kind === 'list') set([...entries.map(([, each]) => each), empty]);
    else if (name.trim()) {
      put(name.trim(), empty);
      setName('');
    }
  };
  return (
    <div class="field entries" role="group" aria-label={label}>
      <p class="label">{label}</p>
      <p class="hint"><Described text={description} /></p>
      {error && <p class="error" role="alert">{error}</p>}
      {entries.map(([at, each]) => (
        <div class="entry" key={at}>
          <Control shape={of} label={`${singular(label)} ${titleOf(each) || (shape.kind === 'map' ? at : Number(at) + 1)}`} description="" place={pointer(place, at)} value={each} set={(next) => put(at, next)} required={of.kind === 'table' ? undefined : true} />
          {of.kind === 'either' && !isTable(each) && <Button tone="ghost" aria-label={`${t('app.remove')}: ${singular(label)} ${String(each)}`} onClick={() => put(at, null)}>{t('app.remove')}</Button>}
        </div>
      ))}
      <p class="inline">
        {shape.kind === 'map' && <input aria-label={t('form.nameOf', { of: label })} value={name} onInput={(event) => setName(event.currentTarget.value)} />}
        <Button icon="plus" data-place={pointer(place, '-')} disabled={shape.kind === 'map' && !name.trim()} onClick={add}>{t('form.addTo', { list: label })}</Button>
      </p>
    </div>
  );
}

function singular(label: string): string {
  return label.replace(/s$/, '');
}

/** The title of a table in a list of tables. */
export function titleOf(value: Json): string {
  if (!isTable(value)) return '';
  const named = ['name', 'path', 'path_exact', 'path_pattern', 'url', 'address', 'kind'].map((key) => value[key]).find((each) => typeof each === 'string');
  return typeof named === 'string' ? named : '';
}

export function isTable(value: Json | undefined): value is Table {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** All keys of a table: those that are set, needed or asked for first, then the others. */
export function TableForm({ members, place, value, set, first = [] }: {
  members: Member[]; place: string; value: Table; set: (value: Table) => void; first?: string[];
}) {
  // Keys that were set or required when the form opened keep their position while it is filled in.
  const [shown] = useState(() => new Set([...first, ...members.filter((each) => each.required || value[each.key] !== undefined).map((each) => each.key)]));
  const [more, setMore] = useState(false);
  const { found } = useContext(Context);
  const rank = (member: Member) => { const at = first.indexOf(member.key); return at < 0 ? first.length : at; };
  const isShown = (member: Member) => shown.has(member.key) || found.some((each) => each.pointer?.startsWith(pointer(place, member.key)));
  const above = members.filter(isShown).sort((one, other) => Number(other.required) - Number(one.required) || rank(one) - rank(other));
  const below = members.filter((each) => !above.includes(each));
  const control = (member: Member) => (
    <Control key={member.key} shape={member.shape()} label={labelOf(member.key)} description={member.description} place={pointer(place, member.key)} required={member.required}
      value={value[member.key]} set={(next) => {
        const { [member.key]: _, ...others } = value;
        set(next === null ? others : { ...value, [member.key]: next });
      }} />
  );
  return (
    <>
      {above.map(control)}
      {below.length > 0 && (
        <details class="group" open={more} onToggle={(event) => setMore(event.currentTarget.open)}>
          <summary>{t('form.more', { count: below.length })}</summary>
          {more && below.map(control)}
        </details>
      )}
    </>
  );
}
