// The box in which events are looked for: what is typed or pasted is recognised, fields and their values complete
// themselves, and what holds already stands beside it as chips.

import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ask, Problem } from '../api/http.ts';
import type { FacetPage } from '../api/types.ts';
import { both, quoted } from '../format.ts';
import { t, type Key } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { added, FIELDS, gap, isCounted, isNegated, joined, negate, operatorsOf, terms } from '../query.ts';
import { recognise, type Reading } from '../recognise.ts';
import { go } from '../route.ts';
import { visible } from '../visible.ts';
import { Icon } from './icon.tsx';
import { Button } from './kit.tsx';

/** Fields whose values are recognised when they stand alone. */
const NAMED = ['class', 'site', 'country', 'method', 'control', 'verdict'];
/** Values to complete a comparison with are those of so long ago at most. */
const VALUES_OF = 'time >= -7d';
const SHOWN_MAX = 10;

type Option = { label: string; note: string } & ({ reading: Reading } | { text: string });

/** `filter` stays in force for values that are proposed; `mistake`: the place in it that is not understood. */
export function SearchBox({ filter, mistake = null, onFilter }: {
  filter: string; mistake?: number | null; onFilter: (filter: string, reading: Reading | null) => void;
}) {
  const [text, setText] = useState('');
  const [open, setOpen] = useState(false);
  // The option that is active, as long as the text is the same.
  const [chosen, setChosen] = useState({ text: '', at: -1 });
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const id = useId();
  const parts = terms(filter);
  const missing = gap(text);
  const of = missing?.wants === 'value' && isCounted(missing.of) ? missing.of : null;
  const values = useLoad(async (signal) => {
    if (of === null) return null;
    const facets = await ask<FacetPage>('/events/facets', { query: { filter: both(valid(filter, mistake), VALUES_OF), fields: of, top: 50 }, signal });
    return (facets.fields[of]?.values ?? []).map(({ value }) => value);
  }, `${of} ${filter}`);
  const named = useLoad(async (signal) => {
    if (!asked) return null;
    const facets = await ask<FacetPage>('/events/facets', { query: { filter: VALUES_OF, fields: NAMED.join(','), top: 100 }, signal });
    return NAMED.flatMap((each) => (facets.fields[each]?.values ?? []).map(({ value }) => ({ field: each, value })));
  }, `named ${asked}`);
  const options = [...completions(text, of === null ? [] : values.value ?? []), ...recognise(text, named.value ?? []).map(shown)].slice(0, SHOWN_MAX);
  const isOpen = open && options.length > 0;
  const at = chosen.text === text ? chosen.at : -1;
  const active = isOpen ? options[at] : undefined;
  useLayoutEffect(() => {
    document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: 'nearest' });
  }, [at, id]);
  const search = async (reading: Reading) => {
    setOpen(false);
    // A request id leads to its event.
    if (reading.kind === 'id') {
      setBusy(true);
      const found = await ask(`/events/${encodeURIComponent(reading.value)}`).then(() => true, (error: unknown) => !(error instanceof Problem));
      setBusy(false);
      if (found) return go(['event', reading.value]);
    }
    setText('');
    onFilter(added(filter, reading.term), reading);
    return undefined;
  };
  const choose = (option: Option) => {
    if ('reading' in option) return void search(option.reading);
    setText(option.text);
    setOpen(true);
    field.current?.focus();
    return undefined;
  };
  const submit = () => {
    if (active) return choose(active);
    const [likely] = recognise(text, named.value ?? []);
    return likely && search(likely);
  };
  const edit = (part: string) => {
    onFilter(joined(parts.map((each) => each.text).filter((each) => each !== part)), null);
    setText(part);
    field.current?.focus();
  };
  const press = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setOpen(true);
      setChosen((last) => {
        const old = last.text === text ? last.at : -1;
        return { text, at: isOpen ? (old + 1 + step + options.length + 1) % (options.length + 1) - 1 : step > 0 ? 0 : options.length - 1 };
      });
    } else if (event.key === 'Escape') {
      if (isOpen) setOpen(false);
      else if (text !== '') setText('');
      else field.current?.blur();
    } else if (event.key === 'Tab' && active && 'text' in active) {
      event.preventDefault();
      choose(active);
    } else if (event.key === 'Backspace' && text === '' && parts.length > 0) {
      event.preventDefault();
      edit(parts.at(-1)!.text);
    }
  };
  return (
    <div class="search">
      <form role="search" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        <div class="combo">
          <input ref={field} data-filter role="combobox" aria-label={t('search.label')} aria-expanded={isOpen} aria-controls={`${id}-list`}
            aria-autocomplete="list" aria-activedescendant={active ? `${id}-${at}` : undefined}
            aria-invalid={mistake !== null} aria-describedby={mistake !== null ? 'filter-mistake' : undefined}
            placeholder={t('search.hint')} value={text} spellcheck={false} autocapitalize="none" autocomplete="off" readOnly={busy}
            onInput={(event) => { setText(event.currentTarget.value); setOpen(true); }}
            onFocus={() => { setAsked(true); setOpen(true); }} onBlur={() => setOpen(false)} onKeyDown={press} />
          <ul id={`${id}-list`} role="listbox" aria-label={t('search.proposals')} hidden={!isOpen}>
            {isOpen && options.map((option, index) => (
              <li key={`${option.note} ${option.label}`} id={`${id}-${index}`} role="option" aria-selected={index === at}
                onMouseDown={(event) => { event.preventDefault(); choose(option); }}>
                <span class="what">{visible(option.label)}</span><span class="dim">{option.note}</span>
              </li>
            ))}
          </ul>
        </div>
        <Button type="submit" icon="search" disabled={busy}>{t('app.search')}</Button>
      </form>
      {parts.length > 0 && (
        <ul class="chips" aria-label={t('search.active')}>
          {parts.map((part) => <Chip key={part.text} text={part.text} wrong={mistake !== null && mistake >= part.from && mistake <= part.to}
            edit={() => edit(part.text)}
            turn={() => onFilter(joined(parts.map((each) => (each === part ? negate(each.text) : each.text))), null)}
            remove={() => onFilter(joined(parts.filter((each) => each !== part).map((each) => each.text)), null)} />)}
          {parts.length > 1 && <li><Button tone="ghost" onClick={() => onFilter('', null)}>{t('search.clear')}</Button></li>}
        </ul>
      )}
    </div>
  );
}

function Chip({ text, wrong, edit, turn, remove }: { text: string; wrong: boolean; edit: () => void; turn: () => void; remove: () => void }) {
  const not = isNegated(text);
  const term = visible(text);
  const turning = t(not ? 'search.affirm' : 'events.exclude', { value: text });
  return (
    <li class={`chip ${wrong ? 'bad' : not ? 'not' : ''}`}>
      <button type="button" class="term" title={t('search.edit', { term: text })} onClick={edit}>{term}</button>
      <button type="button" aria-label={turning} title={turning} onClick={turn}><Icon name={not ? 'plus' : 'minus'} /></button>
      <button type="button" aria-label={`${t('app.remove')} ${term}`} title={t('app.remove')} onClick={remove}><Icon name="close" /></button>
    </li>
  );
}

/** The filter that values may be asked with: one with a mistake finds none. */
function valid(filter: string, mistake: number | null): string {
  return mistake === null ? filter : '';
}

function shown(reading: Reading): Option {
  return { label: reading.value, note: reading.field ?? t(`search.${reading.kind}` as Key), reading };
}

/** The completion of the end of the text. */
function completions(text: string, values: string[]): Option[] {
  const missing = gap(text);
  if (missing === null) return [];
  const put = (word: string, note: string): Option => ({ label: word, note, text: `${text.slice(0, missing.from)}${word} ` });
  const part = missing.part.toLowerCase();
  switch (missing.wants) {
    case 'value': return values.filter((value) => value.toLowerCase().includes(part)).map((value) => put(quoted(value), missing.of));
    case 'operator': return operatorsOf(missing.of).map((sign) => put(sign, t(`search.sign.${sign}` as Key)));
    case 'field': {
      if (text.trim() === '') return [];
      return Object.keys(FIELDS).filter((name) => name.startsWith(part) && part !== '').map((name) => put(name, t('search.field')));
    }
  }
}
