// The exclusions of the document, with their reasons.

import { useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import type { Exclusion } from '../api/types.ts';
import { can } from '../app.tsx';
import { t } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { Button, Card, Empty, Failure, PageHead, Skeleton } from '../ui/kit.tsx';
import { ChangeDialog } from './change.tsx';

function what(each: Exclusion): string {
  return each.directive ?? [each.class, each.kind].filter(Boolean).join(' ');
}

/** A day belongs to it until its end in UTC. */
function isOver(until: string): boolean {
  return Date.now() >= new Date(until).getTime() + (until.length === 10 ? 86_400_000 : 0);
}

export function ExclusionsPage() {
  const list = useLoad((signal) => ask<{ items: Exclusion[] }>('/exclusions', { signal }), 'exclusions');
  const [removing, setRemoving] = useState<Exclusion | null>(null);
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
                <thead><tr><th scope="col">{t('app.site')}</th><th scope="col">{t('exclusions.what')}</th><th scope="col">{t('exclusions.where')}</th><th scope="col">{t('app.reason')}</th><th scope="col"><span class="visually-hidden">{t('app.actions')}</span></th></tr></thead>
                <tbody>{list.value?.items.map((each) => (
                  <tr key={each.id}>
                    <td>{each.site}{each.route ? ` ${each.route}` : ''}</td>
                    <td class="wrap"><code>{what(each)}</code></td>
                    <td class="wrap"><code>{[each.location, each.path].filter(Boolean).join(' ') || (each.directive ? '' : t('exclusions.everywhere'))}</code></td>
                    <td class="wrap">{each.reason ?? <span class="dim">–</span>}{each.until && <div class="dim">{t(isOver(each.until) ? 'exclusions.over' : 'exclusions.until', { until: each.until })}</div>}</td>
                    <td class="right">{can('analyst') && <Button tone="ghost" onClick={() => setRemoving(each)} aria-label={`${t('app.remove')} ${what(each)}`}>{t('app.remove')}</Button>}</td>
                  </tr>
                ))}</tbody>
              </table>
            </div>
          )}
        </Card>
      )}
      {removing && (
        <ChangeDialog title={t('exclusions.removeTitle')} danger onClose={() => setRemoving(null)} onDone={() => { setRemoving(null); list.again(); }}
          changes={[{ method: 'DELETE', path: `/exclusions/${removing.id}` }]}>
          <p><code>{what(removing)} {removing.location} {removing.path}</code></p>
        </ChangeDialog>
      )}
    </>
  );
}
