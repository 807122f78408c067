// Sessions: where somebody is logged in, and the end of that.

import { ask } from '../api/http.ts';
import type { ListedSession, Page } from '../api/types.ts';
import { browser } from '../browser.ts';
import { ago, dateTime } from '../format.ts';
import { t } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { Badge, Button, Card, Empty, Failure, Skeleton } from '../ui/kit.tsx';
import { visible } from '../visible.ts';

/** One's own sessions, or those of all users. */
export function Sessions({ all = false }: { all?: boolean }) {
  const path = all ? '/sessions' : '/session/sessions';
  const query = all ? { limit: 1000 } : {};
  const list = useLoad((signal) => ask<Page<ListedSession>>(path, { query, signal }), path);
  const end = useAction();
  const remove = (path: string) => end.run(async () => {
    await ask(path, { method: 'DELETE' });
    list.again();
  });
  const items = list.value?.items ?? [];
  const head = [...(all ? [t('sessions.user')] : []), t('sessions.browser'), t('sessions.from'), t('sessions.login'), t('people.lastUsed')];
  return (
    <Card title={t(all ? 'sessions.all' : 'sessions.own')} aside={!all && items.length > 1 && (
      <Button disabled={end.busy} onClick={() => void remove(path)}>{t('sessions.endOthers')}</Button>
    )}>
      {list.error !== null && <Failure error={list.error} retry={list.again} />}
      {end.error !== null && <Failure error={end.error} />}
      {!list.value && list.error === null && <Skeleton />}
      {list.value && items.length === 0 && <Empty>{t('app.none')}</Empty>}
      {items.length > 0 && (
        <div class="scroll" tabIndex={0} role="group"><table>
          <thead><tr>{head.map((name) => <th scope="col">{name}</th>)}<th scope="col"><span class="visually-hidden">{t('app.actions')}</span></th></tr></thead>
          <tbody>{items.map((item) => (
            <tr key={item.number}>
              {all && <td>{item.user}</td>}
              <td title={visible(item.agent)}>{browser(item.agent) ?? t('sessions.unknown')} {item.current && <Badge tone="good">{t('sessions.this')}</Badge>}</td>
              <td class="mono">{item.address ?? '–'}{item.last_address !== item.address && item.last_address !== null && <> → {item.last_address}</>}</td>
              <td>{dateTime(item.created)}</td>
              <td>{ago(item.last_used)}</td>
              <td class="right">{!item.current && (
                <Button tone="ghost" disabled={end.busy} aria-label={`${t('sessions.end')} ${item.user} ${dateTime(item.created)}`}
                  onClick={() => void remove(`${path}/${item.number}`)}>{t('sessions.end')}</Button>
              )}</td>
            </tr>
          ))}</tbody>
        </table></div>
      )}
    </Card>
  );
}
