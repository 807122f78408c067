// The audit trail: changes and logins, looked through and exported.

import { useState } from 'preact/hooks';
import { ask, url, type Query } from '../api/http.ts';
import type { AuditPage as Entries } from '../api/types.ts';
import { dateTime } from '../format.ts';
import { t } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { Button, Card, Empty, Failure, Input, PageHead, Skeleton } from '../ui/kit.tsx';
import { visible } from '../visible.ts';

interface Sought { actor: string; action: string; object: string; from: string; to: string }
const NOTHING: Sought = { actor: '', action: '', object: '', from: '', to: '' };

/** The seconds since 1970 of a moment in the browser's zone; null if there is none. */
function seconds(moment: string): number | null {
  const time = new Date(moment).getTime();
  return Number.isNaN(time) ? null : Math.floor(time / 1000);
}

export function AuditPage() {
  const [limit, setLimit] = useState(100);
  const [typed, setTyped] = useState(NOTHING);
  const [sought, setSought] = useState(NOTHING);
  const { actor, action, object } = sought;
  const filter: Query = { actor, action, object, from: seconds(sought.from), to: seconds(sought.to) };
  const list = useLoad((signal) => ask<Entries>('/audit', { query: { ...filter, limit }, signal }), JSON.stringify([sought, limit]));
  const set = (part: keyof Sought) => (value: string) => setTyped({ ...typed, [part]: value });
  return (
    <>
      <PageHead title={t('audit.title')}>
        {(['csv', 'jsonl'] as const).map((format) => (
          <a class="button" download={`audit.${format}`} href={url('/audit/export', { ...filter, format })}>{t(format === 'csv' ? 'audit.csv' : 'audit.jsonl')}</a>
        ))}
      </PageHead>
      <form class="inline" onSubmit={(event) => { event.preventDefault(); setLimit(100); setSought(typed); }}>
        <Input label={t('audit.actor')} value={typed.actor} onInput={set('actor')} />
        <Input label={t('audit.action')} value={typed.action} onInput={set('action')} placeholder="user." />
        <Input label={t('audit.object')} value={typed.object} onInput={set('object')} />
        <Input label={t('audit.after')} type="datetime-local" value={typed.from} onInput={set('from')} />
        <Input label={t('audit.before')} type="datetime-local" value={typed.to} onInput={set('to')} />
        <Button type="submit">{t('audit.search')}</Button>
      </form>
      {list.error !== null && <Failure error={list.error} retry={list.again} />}
      <Card>
        {!list.value && list.error === null && <Skeleton lines={8} />}
        {list.value?.items.length === 0 && <Empty>{t('app.none')}</Empty>}
        {(list.value?.items.length ?? 0) > 0 && (
          <div class="scroll" tabIndex={0} role="group"><table>
            <thead><tr>{[t('app.time'), t('audit.actor'), t('audit.action'), t('audit.object'), t('audit.detail'), t('audit.address')].map((name) => <th scope="col">{name}</th>)}</tr></thead>
            <tbody>{list.value?.items.map((entry) => (
              <tr key={entry.number}>
                <td>{dateTime(entry.time)}</td><td>{visible(entry.actor)}</td><td><code>{entry.action}</code></td><td class="wrap">{visible(entry.object)}</td>
                <td class="wrap">{visible(entry.detail)}{entry.change !== null && (
                  <details><summary>{t('audit.change')}</summary><pre tabIndex={0}>{visible(entry.change, true)}</pre></details>
                )}</td>
                <td class="mono">{entry.address ?? '–'}</td>
              </tr>
            ))}</tbody>
          </table></div>
        )}
        {list.value?.complete === false && <p class="notice warn" role="status">{t('audit.incomplete')}</p>}
        {list.value && list.value.next !== null && limit < 1000 && <Button onClick={() => setLimit(Math.min(1000, limit + 300))}>{t('app.more')}</Button>}
      </Card>
    </>
  );
}
