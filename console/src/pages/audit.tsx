// The audit trail: changes and logins.

import { useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import type { AuditEntry, Page } from '../api/types.ts';
import { dateTime } from '../format.ts';
import { t } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { Button, Card, Empty, Failure, PageHead, Skeleton } from '../ui/kit.tsx';
import { visible } from '../visible.ts';

export function AuditPage() {
  const [limit, setLimit] = useState(100);
  const list = useLoad((signal) => ask<Page<AuditEntry>>('/audit', { query: { limit }, signal }), String(limit));
  return (
    <>
      <PageHead title={t('audit.title')} />
      {list.error !== null && <Failure error={list.error} retry={list.again} />}
      <Card>
        {!list.value && list.error === null && <Skeleton lines={8} />}
        {list.value?.items.length === 0 && <Empty>{t('app.none')}</Empty>}
        {(list.value?.items.length ?? 0) > 0 && (
          <div class="scroll" tabIndex={0} role="group"><table>
            <thead><tr>{[t('app.time'), t('audit.actor'), t('audit.action'), t('audit.object'), t('audit.detail'), t('audit.address')].map((name) => <th scope="col">{name}</th>)}</tr></thead>
            <tbody>{list.value?.items.map((entry) => (
              <tr key={entry.number}><td>{dateTime(entry.time)}</td><td>{entry.actor}</td><td><code>{entry.action}</code></td><td class="wrap">{visible(entry.object)}</td><td class="wrap">{visible(entry.detail)}</td><td class="mono">{entry.address ?? '–'}</td></tr>
            ))}</tbody>
          </table></div>
        )}
        {list.value && list.value.next !== null && limit < 1000 && <Button onClick={() => setLimit(Math.min(1000, limit + 300))}>{t('app.more')}</Button>}
      </Card>
    </>
  );
}
