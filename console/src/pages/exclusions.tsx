// The exclusions of the document, with their reasons.

import { useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import type { Exclusion } from '../api/types.ts';
import { can } from '../app.tsx';
import { ago, dateTime, number } from '../format.ts';
import { t } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { href } from '../route.ts';
import { Badge, Button, Card, Empty, Failure, PageHead, Skeleton } from '../ui/kit.tsx';
import { ChangeDialog } from './change.tsx';

function what(each: Exclusion): string {
  const rules = each.rules.length > 0 ? t('exclusions.rules', { rules: each.rules.join(', ') }) : null;
  return each.directive ?? [each.class, each.kind, rules].filter(Boolean).join(' ');
}

function where(each: Exclusion): string {
  const found = [each.location, each.target, each.path].filter(Boolean).join(' ');
  return found || (each.directive ? '' : t('exclusions.everywhere'));
}

/** How often it was needed, and since when it was not. */
function Use({ each }: { each: Exclusion }) {
  if (each.trial) {
    const { seen, passes, lost, stopped, unknown } = each.trial;
    const counts = { seen: number(seen), passes: number(passes), lost: number(lost), stopped: number(stopped), unknown: number(unknown) };
    return (
      <>
        <Badge tone={lost > 0 ? 'bad' : 'info'}>{t('exclusions.onTrial')}</Badge>
        <div>{t('exclusions.trial', counts)}</div>
        <a href={href(['events'], { filter: `"${each.id}"` })}>{t('exclusions.trialEvents')}</a>
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

export function ExclusionsPage() {
  const list = useLoad((signal) => ask<{ items: Exclusion[] }>('/exclusions', { signal }), 'exclusions');
  const [removing, setRemoving] = useState<Exclusion | null>(null);
  const [enforcing, setEnforcing] = useState<Exclusion | null>(null);
  return (
    <>
      <PageHead title={t('exclusions.title')} />
      <p class="dim">{t('exclusions.intro')}</p>
      {list.error !== null && <Failure error={list.error} retry={list.again} />}
      {list.error === null && (
        <Card>
          {!list.value && <Skeleton />}
          {list.value?.items.length === 0 && <Empty>{t('exclusions.empty')}</Empty>}
          {(list.value?.items.length ?? 0) > 0 && (
            <div class="scroll" tabIndex={0} role="group">
              <table>
                <thead><tr><th scope="col">{t('app.site')}</th><th scope="col">{t('exclusions.what')}</th><th scope="col">{t('exclusions.where')}</th><th scope="col">{t('exclusions.use')}</th><th scope="col">{t('app.reason')}</th><th scope="col"><span class="visually-hidden">{t('app.actions')}</span></th></tr></thead>
                <tbody>{list.value?.items.map((each) => (
                  <tr key={each.id}>
                    <td>{each.site}{each.route ? ` ${each.route}` : ''}</td>
                    <td class="wrap"><code>{what(each)}</code></td>
                    <td class="wrap"><code>{where(each)}</code></td>
                    <td class="wrap"><Use each={each} /></td>
                    <td class="wrap">{each.reason ?? <span class="dim">–</span>}{each.profile && <div class="dim">{t('exclusions.ofProfile', { profile: each.profile, opens: each.opens ?? '' })}</div>}{each.author && <div class="dim">{t('exclusions.by', { author: each.author })}</div>}{each.until && <div class="dim">{t(isOver(each.until) ? 'exclusions.over' : 'exclusions.until', { until: each.until })}</div>}</td>
                    <td class="right">{can('analyst') && each.trial && <Button onClick={() => setEnforcing(each)} aria-label={`${t('exclusions.enforce')} ${what(each)}`}>{t('exclusions.enforce')}</Button>}{can('analyst') && each.origin === 'document' && <Button tone="ghost" onClick={() => setRemoving(each)} aria-label={`${t('app.remove')} ${what(each)}`}>{t('app.remove')}</Button>}</td>
                  </tr>
                ))}</tbody>
              </table>
            </div>
          )}
        </Card>
      )}
      {enforcing && (
        <ChangeDialog title={t('exclusions.enforceTitle')} onClose={() => setEnforcing(null)} onDone={() => { setEnforcing(null); list.again(); }}
          changes={[{ method: 'POST', path: `/exclusions/${enforcing.id}/enforce`, body: {} }]}>
          <p><code>{what(enforcing)} {where(enforcing)}</code></p>
        </ChangeDialog>
      )}
      {removing && (
        <ChangeDialog title={t('exclusions.removeTitle')} danger onClose={() => setRemoving(null)} onDone={() => { setRemoving(null); list.again(); }}
          changes={[{ method: 'DELETE', path: `/exclusions/${removing.id}` }]}>
          <p><code>{what(removing)} {where(removing)}</code></p>
        </ChangeDialog>
      )}
    </>
  );
}
