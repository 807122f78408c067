// Limits, lists and bans: decisions about clients, whatever they send.

import { useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import { can } from '../api/role.ts';
import type { AccessList, Ban, Clients, Live, Page, RateLimit, Site } from '../api/types.ts';
import { ago, number } from '../format.ts';
import { t, type Key } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { href } from '../route.ts';
import { Button, Card, Empty, Failure, Input, PageHead, Select, Skeleton } from '../ui/kit.tsx';
import { ChangeDialog, type Change } from './change.tsx';

type ListName = 'deny' | 'allow' | 'bypass';
const LISTS: ListName[] = ['deny', 'allow', 'bypass'];
const listTitle = (name: ListName) => t(`access.${name}` as Key);

export function AccessPage() {
  const limits = useLoad((signal) => ask<Live<RateLimit>>('/limits', { query: { limit: 1000 }, signal }), 'limits', 5_000);
  const lists = useLoad((signal) => ask<Live<AccessList>>('/lists', { query: { limit: 1000 }, signal }), 'lists', 5_000);
  const bans = useLoad((signal) => ask<Page<Ban>>('/bans', { query: { limit: 1000 }, signal }), 'bans', 5_000);
  const [change, setChange] = useState<{ list: ListName; client: string; site: string; remove: boolean } | null>(null);
  const lift = useAction();
  return (
    <>
      <PageHead title={t('access.title')}>
        {can('analyst') && <Button icon="plus" onClick={() => setChange({ list: 'deny', client: '', site: '', remove: false })}>{t('access.addTitle')}</Button>}
      </PageHead>
      <div class="stack">
        <Card title={t('access.bans')}>
          {(bans.error ?? lift.error) !== null && <Failure error={bans.error ?? lift.error} retry={bans.again} />}
          {!bans.value && bans.error === null && <Skeleton lines={2} />}
          {bans.value?.items.length === 0 && <Empty>{t('access.noBans')}</Empty>}
          {(bans.value?.items.length ?? 0) > 0 && (
            <div class="scroll" tabIndex={0} role="group"><table>
              <thead><tr><th scope="col">{t('event.client')}</th><th scope="col">{t('exclusions.where')}</th><th scope="col">{t('access.until')}</th><th scope="col">{t('access.times')}</th><th scope="col"><span class="visually-hidden">{t('app.actions')}</span></th></tr></thead>
              <tbody>{bans.value?.items.map((ban) => (
                <tr key={`${ban.ban} ${ban.client}`}><td class="mono">{ban.client}</td><td>{ban.ban}</td><td>{ago(ban.until)}</td><td>{number(ban.count)}</td>
                  <td class="right">{can('analyst') && <Button tone="ghost" disabled={lift.busy} aria-label={`${t('access.lift')} ${ban.client}`} onClick={() => void lift.run(async () => {
                    await ask(`/bans/${encodeURIComponent(ban.client)}`, { method: 'DELETE', query: { ban: ban.ban } });
                    bans.again();
                  })}>{t('access.lift')}</Button>}</td></tr>
              ))}</tbody>
            </table></div>
          )}
        </Card>
        <Card title={t('access.limits')} aside={can('admin') && <a class="button" href={href(['config'], { new: 'limit', from: 'access' })}>{t('config.newLimit')}</a>}>
          {limits.error !== null && <Failure error={limits.error} retry={limits.again} />}
          {limits.value?.items.length === 0 && <Empty>{t('access.noLimits')}</Empty>}
          {(limits.value?.items.length ?? 0) > 0 && (
            <div class="scroll" tabIndex={0} role="group"><table>
              <thead><tr><th scope="col">{t('app.site')}</th><th scope="col">{t('app.name')}</th><th scope="col">{t('access.key')}</th><th scope="col">{t('access.rate')}</th><th scope="col" class="right">{t('access.limited')}</th></tr></thead>
              <tbody>{limits.value?.items.map((limit) => (
                <tr key={`${limit.site} ${limit.name}`}><td>{limit.site} {limit.route}</td><td>{limit.name}</td><td>{limit.key.join(' + ')}{limit.methods.length > 0 ? ` (${limit.methods.join(', ')})` : ''}</td>
                  <td>{number(limit.rate)} / {number(limit.per_seconds)} s</td><td class="right">{number(limit.limited)}</td></tr>
              ))}</tbody>
            </table></div>
          )}
        </Card>
        {lists.error !== null && <Failure error={lists.error} retry={lists.again} />}
        {lists.value?.items.length === 0 && <Card title={t('access.lists')}><Empty>{t('access.noLists')}</Empty></Card>}
        {lists.value?.items.map((list) => (
          <Card key={`${list.site} ${list.route}`} title={`${t('access.lists')}: ${list.site} ${list.route}`}
            aside={<span class="dim">{t('access.decisions', { denied: number(list.site_decisions.denied), allowed: number(list.site_decisions.allowed), bypassed: number(list.site_decisions.bypassed) })}</span>}>
            <dl>{LISTS.map((name) => (
              <><dt>{listTitle(name)}</dt><dd><ClientsView clients={list[name]} remove={can('analyst') ? (client) => setChange({ list: name, client, site: list.site, remove: true }) : undefined} /></dd></>
            ))}</dl>
          </Card>
        ))}
      </div>
      {change && <ListDialog {...change} onClose={() => setChange(null)} onDone={() => { setChange(null); lists.again(); }} />}
    </>
  );
}

function ClientsView({ clients, remove }: { clients: Clients; remove?: (client: string) => void }) {
  const others = [
    ...clients.countries, ...clients.continents, ...clients.asns.map((asn) => `AS${asn}`),
    ...clients.files.map((file) => `${file.path} (${number(file.ranges)})`),
    ...clients.lists.map((list) => `${list.name} (${number(list.ranges)})`),
  ];
  if (clients.networks_total === 0 && others.length === 0) return <span class="dim">{t('app.none')}</span>;
  return (
    <span class="inline">
      {clients.networks.map((client) => (
        <span class="badge info" key={client}>{client}{remove && <button type="button" class="not" aria-label={`${t('app.remove')} ${client}`} onClick={() => remove(client)}>×</button>}</span>
      ))}
      {clients.networks_total > clients.networks.length && <span class="dim">+{number(clients.networks_total - clients.networks.length)}</span>}
      {others.map((each) => <span class="badge info">{each}</span>)}
    </span>
  );
}

export function ListDialog({ list: first, client: given, site: of, remove, onClose, onDone }: {
  list: ListName; client: string; site: string; remove: boolean; onClose: () => void; onDone: () => void;
}) {
  const [list, setList] = useState(first);
  const [client, setClient] = useState(given);
  const [site, setSite] = useState(of);
  const sites = useLoad((signal) => ask<Live<Site>>('/sites', { query: { limit: 1000 }, signal }), 'sites');
  const scope: Record<string, string> = site ? { site } : {};
  const change: Change | null = !client.trim() ? null : remove
    ? { method: 'DELETE', path: `/lists/${list}/clients`, query: { client, ...scope } }
    : { method: 'POST', path: `/lists/${list}/clients`, body: { client: client.trim(), ...scope } };
  return (
    <ChangeDialog title={remove ? `${t('app.remove')}: ${client}` : t('access.addTitle')} danger={remove} change={change} onClose={onClose} onDone={onDone}>
      {!remove && (
        <>
          <Select<ListName> label={t('access.list')} value={list} onChange={setList}
            options={LISTS.filter((name) => name !== 'bypass' || can('admin')).map((name): [ListName, string] => [name, listTitle(name)])} />
          <Input label={t('access.network')} value={client} onInput={setClient} autofocus placeholder="192.0.2.0/24" />
        </>
      )}
      <Select label={t('app.site')} value={site} onChange={setSite}
        options={[['', t('access.wholeDocument')], ...(sites.value?.items ?? []).map((each): [string, string] => [each.name, each.name])]} />
    </ChangeDialog>
  );
}
