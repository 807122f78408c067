// The exclusions of the document, with their reasons.

import { useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import { can } from '../api/role.ts';
import type { Exclusion } from '../api/types.ts';
import { ago, dateTime, number } from '../format.ts';
import { t } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { href } from '../route.ts';
import { Badge, Button, Card, Empty, Failure, PageHead, Skeleton } from '../ui/kit.tsx';
import { visible } from '../visible.ts';
import { ChangeDialog } from './change.tsx';

function what(each: Exclusion): string {
  const rules = each.rules.length > 0 ? t('exclusions.rules', { rules: each.rules.join(', ') }) : null;
  return visible(each.directive ?? [each.class, each.kind, rules].filter(Boolean).join(' '));
}

/** Field and path. */
function parts(each: Exclusion): string[] {
  const found = [each.location, each.target, each.path].filter((part) => part !== null && part !== '').map((part) => visible(String(part)));
  return found.length > 0 || each.directive ? found : [t('exclusions.everywhere')];
}

function where(each: Exclusion): string {
  return parts(each).join(' ');
}

/** The number of times it was needed, and the time since the last one. */
function Use({ each }: { each: Exclusion }) {
  if (each.trial) {
    const { seen, passes, lost, stopped, unknown } = each.trial;
    const counts = { seen: number(seen), passes: number(passes), lost: number(lost), stopped: number(stopped), unknown: number(unknown) };
    return (
      <>
        <Badge tone={lost > 0 ? 'bad' : 'info'}>{t('exclusions.onTrial')}</Badge>
        <div>{t('exclusions.trial', counts)}</div>
        <a href={href(['events'], { filter: `trial = ${each.id}`, kind: 'all' })}>{t('exclusions.trialEvents')}</a>
      </>
    );
  }
  if (!each.use) return <span class="dim">{t('exclusions.uncounted')}</span>;
  const { hits, last_hit, counted_since, unused_since } = each.use;
  if (unused_since) return <Badge tone="warn">{t('exclusions.unused', { since: dateTime(unused_since) })}</Badge>;
  if (!last_hit) return <span class="dim">{t('exclusions.noHits', { since: dateTime(counted_since) })}</span>;
  return <span>{t('exclusions.hits', { hits: number(hits), last: ago(last_hit) })}</span>;
}

/** A day belongs to it until its end in UTC. */
function isOver(until: string): boolean {
  return Date.now() >= new Date(until).getTime() + (until.length === 10 ? 86_400_000 : 0);
}

/** The exclusion: two that differ in their end alone have the same id. */
function keyOf(each: Exclusion): string {
  return `${each.id} ${each.until ?? ''}`;
}

interface Change { action: 'enforce' | 'remove'; items: Exclusion[] }
/** Exclusions that a dialog names; of more it says how many. */
const NAMED_MAX = 8;

function Confirm({ change: { action, items }, onClose, onDone }: { change: Change; onClose: () => void; onDone: () => void }) {
  const title = t(action === 'enforce' ? 'exclusions.enforceTitle' : 'exclusions.removeTitle', { count: number(items.length) });
  return (
    <ChangeDialog title={title} danger={action === 'remove'} focusReason onClose={onClose} onDone={onDone}
      change={{ method: 'POST', path: '/exclusions/batch', body: { [action]: items.map((each) => each.id) } }}>
      <ul class="named">{items.slice(0, NAMED_MAX).map((each) => <li key={keyOf(each)}><code class="wrap">{what(each)} {where(each)}</code></li>)}</ul>
      {items.length > NAMED_MAX && <p class="dim">{t('exclusions.more', { count: number(items.length - NAMED_MAX) })}</p>}
    </ChangeDialog>
  );
}

export function ExclusionsPage() {
  const list = useLoad((signal) => ask<{ items: Exclusion[] }>('/exclusions', { signal }), 'exclusions');
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [change, setChange] = useState<Change | null>(null);
  const items = list.value?.items ?? [];
  // Those of profiles are not of the document, which alone can be changed.
  const own = items.filter((each) => each.origin === 'document');
  // One that has gone meanwhile is not chosen any more.
  const selected = own.filter((each) => chosen.has(keyOf(each)));
  const onTrial = selected.filter((each) => each.trial);
  const choose = (some: Exclusion[], on: boolean) => {
    const next = new Set(chosen);
    for (const each of some) if (on) next.add(keyOf(each)); else next.delete(keyOf(each));
    setChosen(next);
  };
  const columns = ['app.site', 'exclusions.what', 'exclusions.where', 'exclusions.use', 'app.reason'] as const;
  const tools = can('analyst') && selected.length > 0 && (
    <div class="tools" role="status">
      <span>{t('exclusions.selected', { count: number(selected.length) })}</span>
      {onTrial.length > 0 && <Button tone="primary" onClick={() => setChange({ action: 'enforce', items: onTrial })}>{t('exclusions.enforceSome', { count: number(onTrial.length) })}</Button>}
      <Button tone="danger" onClick={() => setChange({ action: 'remove', items: selected })}>{t('exclusions.removeSome', { count: number(selected.length) })}</Button>
    </div>
  );
  return (
    <>
      <PageHead title={t('exclusions.title')}>{tools}</PageHead>
      <p class="dim">{t('exclusions.intro')}</p>
      {list.error !== null && <Failure error={list.error} retry={list.again} />}
      {list.error === null && (
        <Card>
          {!list.value && <Skeleton />}
          {list.value && items.length === 0 && <Empty>{t('exclusions.empty')}</Empty>}
          {items.length > 0 && (
            <div class="scroll" tabIndex={0} role="group">
              <table class="stacked">
                <thead>
                  <tr>
                    {can('analyst') && <th scope="col"><input type="checkbox" aria-label={t('exclusions.selectAll')} checked={own.length > 0 && selected.length === own.length} onChange={(event) => choose(own, event.currentTarget.checked)} /></th>}
                    {columns.map((column) => <th scope="col" key={column}>{t(column)}</th>)}
                    <th scope="col"><span class="visually-hidden">{t('app.actions')}</span></th>
                  </tr>
                </thead>
                <tbody>{items.map((each) => (
                  <tr key={keyOf(each)}>
                    {can('analyst') && <td>{each.origin === 'document' && <input type="checkbox" aria-label={t('exclusions.select', { what: what(each) })} checked={chosen.has(keyOf(each))} onChange={(event) => choose([each], event.currentTarget.checked)} />}</td>}
                    <td>{each.site}{each.route ? ` ${each.route}` : ''}</td>
                    <td class="wrap"><code>{what(each)}</code></td>
                    <td class="wrap">{parts(each).map((part) => <code key={part}>{part}</code>)}</td>
                    <td class="wrap"><Use each={each} /></td>
                    <td class="wrap">{each.reason ? visible(each.reason) : <span class="dim">–</span>}{each.profile && <div class="dim">{t('exclusions.ofProfile', { profile: each.profile, opens: each.opens ?? '' })}</div>}{each.author && <div class="dim">{t('exclusions.by', { author: each.author })}</div>}{each.until && <div class="dim">{t(isOver(each.until) ? 'exclusions.over' : 'exclusions.until', { until: each.until })}</div>}</td>
                    <td class="right">
                      {can('analyst') && each.trial && <Button onClick={() => setChange({ action: 'enforce', items: [each] })} aria-label={`${t('exclusions.enforce')} ${what(each)}`}>{t('exclusions.enforce')}</Button>}
                      {can('analyst') && each.origin === 'document' && <Button tone="ghost" onClick={() => setChange({ action: 'remove', items: [each] })} aria-label={`${t('app.remove')} ${what(each)}`}>{t('app.remove')}</Button>}
                    </td>
                  </tr>
                ))}</tbody>
              </table>
            </div>
          )}
        </Card>
      )}
      {change && <Confirm change={change} onClose={() => setChange(null)} onDone={() => { setChange(null); setChosen(new Set()); list.again(); }} />}
    </>
  );
}
