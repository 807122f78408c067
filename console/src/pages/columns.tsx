// The columns of the list of events: which, and in what order, as the URL has them.

import { useState } from 'preact/hooks';
import { t, type Key } from '../i18n/index.ts';
import { refine } from '../route.ts';
import { Button, Dialog } from '../ui/kit.tsx';

const TITLES = {
  time: 'app.time', verdict: 'events.verdict', request: 'events.request', why: 'events.why', client: 'events.client', status: 'events.status',
  site: 'app.site', route: 'app.route', host: 'event.host', method: 'column.method', class: 'column.class', rule: 'column.rule',
  control: 'column.control', country: 'column.country', asn: 'column.asn', mode: 'event.mode', upstream: 'event.upstream',
  duration: 'event.duration', id: 'event.id',
} satisfies Record<string, Key>;
export type ColumnName = keyof typeof TITLES;
export const DEFAULT_COLUMNS: ColumnName[] = ['time', 'verdict', 'request', 'why', 'client', 'status'];
const ALL = Object.keys(TITLES) as ColumnName[];
/** It leads to the event, and is what a phone shows: it stays. */
const FIXED: ColumnName = 'request';

/** The columns that a URL names, each once; without a name that is known, those of a new console. */
export function columnsOf(text: string | null): ColumnName[] {
  const named = [...new Set((text ?? '').split(','))].filter((name): name is ColumnName => Object.hasOwn(TITLES, name));
  if (named.length === 0) return DEFAULT_COLUMNS;
  return named.includes(FIXED) ? named : [...named, FIXED];
}

function choose(columns: ColumnName[]): void {
  refine({ columns: columns.join() === DEFAULT_COLUMNS.join() ? null : columns.join() });
}

export function ColumnsButton({ columns }: { columns: ColumnName[] }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button class="wide-only" icon="config" onClick={() => setOpen(true)}>{t('column.choose')}</Button>
      {open && <Columns columns={columns} onClose={() => setOpen(false)} />}
    </>
  );
}

function Columns({ columns, onClose }: { columns: ColumnName[]; onClose: () => void }) {
  const move = (at: number, by: number) => {
    const next = [...columns];
    [next[at], next[at + by]] = [next[at + by]!, next[at]!];
    choose(next);
  };
  return (
    <Dialog title={t('column.choose')} onClose={onClose}>
      <ul class="named columns">
        {columns.map((name, at) => (
          <li key={name} class="inline">
            <label class="inline">
              <input type="checkbox" checked disabled={name === FIXED} onChange={() => choose(columns.filter((each) => each !== name))} />
              {t(TITLES[name])}
            </label>
            <span class="inline end">
              <Button tone="ghost" icon="up" aria-label={t('column.earlier', { name: t(TITLES[name]) })} disabled={at === 0} onClick={() => move(at, -1)} />
              <Button tone="ghost" icon="down" aria-label={t('column.later', { name: t(TITLES[name]) })} disabled={at === columns.length - 1} onClick={() => move(at, 1)} />
            </span>
          </li>
        ))}
        {ALL.filter((name) => !columns.includes(name)).map((name) => (
          <li key={name}>
            <label class="inline"><input type="checkbox" checked={false} onChange={() => choose([...columns, name])} />{t(TITLES[name])}</label>
          </li>
        ))}
      </ul>
      <footer><Button disabled={columns.join() === DEFAULT_COLUMNS.join()} onClick={() => choose(DEFAULT_COLUMNS)}>{t('column.reset')}</Button></footer>
    </Dialog>
  );
}
