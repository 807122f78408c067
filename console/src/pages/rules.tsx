// The rules of a route as a catalogue.

import { useEffect, useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import { can } from '../api/role.ts';
import type { EventPage, Live, Rule, RulePage, Site } from '../api/types.ts';
import { ago, number } from '../format.ts';
import { t, type Key } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { href, refine, type Place } from '../route.ts';
import { Badge, Button, Card, Dialog, Empty, Failure, PageHead, Select, Skeleton } from '../ui/kit.tsx';
import { ChangeDialog } from './change.tsx';

const STATES = ['active', 'overridden', 'dead', 'excluded'] as const;
const TONES = { active: 'good', overridden: 'info', dead: 'warn', excluded: 'bad' } as const;
const state = (name: (typeof STATES)[number]) => t(`rules.${name}` as Key);

export function RulesPage({ place }: { place: Place }) {
  const query = (name: string) => place.query.get(name) ?? '';
  const [search, setSearch] = useState(query('search'));
  useEffect(() => {
    const timer = setTimeout(() => { if (search !== query('search')) refine({ search }); }, 250);
    return () => clearTimeout(timer);
  }, [search]);
  const [limit, setLimit] = useState(200);
  const sites = useLoad((signal) => ask<Live<Site>>('/sites', { query: { limit: 1000 }, signal }), 'sites');
  const asked = { site: query('site'), route: query('route'), state: query('state'), paranoia: query('paranoia'), search: query('search'), matched: query('matched'), limit };
  const rules = useLoad((signal) => ask<RulePage>('/rules', { query: asked, signal }), JSON.stringify(asked));
  const places = (sites.value?.items ?? []).flatMap((site) => site.routes.filter((route) => route.inspection).map((route): [string, string] =>
    [JSON.stringify([site.name, route.name]), route.name === '/' ? site.name : `${site.name} ${route.name}`]));
  const shown = rules.value ? JSON.stringify([rules.value.site, rules.value.route]) : '';
  const id = query('id');
  return (
    <>
      <PageHead title={t('rules.title')}>
        {can('admin') && rules.value && <a class="button" href={href(['config'], { rules: rules.value.site, from: 'rules' })}>{t('config.editRules')}</a>}
        <Select hidden label={t('app.site')} value={shown} options={places}
          onChange={(next) => { const [site, route] = JSON.parse(next) as [string, string]; refine({ site, route }); }} />
      </PageHead>
      <Card>
        <div class="filter-bar">
          <div class="line">
            <form role="search" onSubmit={(event) => event.preventDefault()}>
              <input data-filter aria-label={t('rules.search')} placeholder={t('rules.search')} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
            </form>
            <Select hidden label={t('rules.state')} value={query('state')} onChange={(next) => refine({ state: next })}
              options={[['', `${t('rules.state')}: ${t('app.all')}`], ...STATES.map((each): [string, string] => [each, state(each)])]} />
            <Select hidden label={t('sites.paranoia')} value={query('paranoia')} onChange={(next) => refine({ paranoia: next })}
              options={[['', `${t('sites.paranoia')}: ${t('app.all')}`], ['1', '≤ 1'], ['2', '≤ 2'], ['3', '≤ 3'], ['4', '≤ 4']]} />
            <label class="inline"><input type="checkbox" checked={query('matched') === 'true'} onChange={(event) => refine({ matched: event.currentTarget.checked ? 'true' : '' })} />{t('rules.matched')}</label>
          </div>
        </div>
        {rules.error !== null && <Failure error={rules.error} retry={rules.again} />}
        {!rules.value && rules.error === null && <Skeleton lines={10} />}
        {rules.value && (
          <>
            <p class="dim" role="status">{t('rules.total', { count: number(rules.value.total) })}</p>
            {rules.value.items.length === 0 && <Empty>{t('rules.none')}</Empty>}
            {rules.value.items.length > 0 && (
              <div class="scroll" tabIndex={0} role="group">
                <table>
                  <thead><tr><th scope="col">Id</th><th scope="col">{t('rules.message')}</th><th scope="col">{t('rules.severity')}</th><th scope="col">PL</th><th scope="col">{t('rules.state')}</th><th scope="col" class="right">{t('rules.matches')}</th></tr></thead>
                  <tbody>{rules.value.items.map((rule) => (
                    <tr key={rule.rule_id}>
                      <td><a href={href(['rules'], { ...asked, limit: null, site: rules.value?.site, route: rules.value?.route, id: rule.rule_id })}>{rule.rule_id}</a></td>
                      <td class="wrap">{rule.message || <span class="dim">{(rule.file.split('/').pop() ?? '')}:{rule.line}</span>}</td>
                      <td>{rule.severity ?? '–'}</td><td>{rule.paranoia ?? '–'}</td>
                      <td><Badge tone={TONES[rule.state]}>{state(rule.state)}</Badge></td>
                      <td class="right">{number(rule.matches)}</td>
                    </tr>
                  ))}</tbody>
                </table>
              </div>
            )}
            {rules.value.next !== null && <Button onClick={() => setLimit(Math.min(1000, limit + 400))}>{t('app.more')}</Button>}
          </>
        )}
      </Card>
      {id && <RuleDialog id={id} site={query('site')} route={query('route')} onClose={() => refine({ id: null })} />}
    </>
  );
}

function RuleDialog({ id, site, route, onClose }: { id: string; site: string; route: string; onClose: () => void }) {
  const rule = useLoad((signal) => ask<Rule>(`/rules/${encodeURIComponent(id)}`, { query: { site, route }, signal }), `${id} ${site} ${route}`);
  const last = useLoad((signal) => ask<EventPage>('/events', { query: { filter: `rule = ${id}`, limit: 1 }, signal }), id);
  const [removing, setRemoving] = useState(false);
  const hit = last.value?.items[0];
  if (removing) {
    return (
      <ChangeDialog title={t('rules.switchOff', { site })} danger focusReason onClose={() => setRemoving(false)} onDone={onClose}
        change={{ method: 'POST', path: '/exclusions', body: { site, rule_id: Number(id) } }}>
        <p>{id} {rule.value?.message}</p>
      </ChangeDialog>
    );
  }
  return (
    <Dialog title={`${id} ${rule.value?.message ?? ''}`} onClose={onClose} wide>
      {rule.error !== null && <Failure error={rule.error} retry={rule.again} />}
      {!rule.value && rule.error === null && <Skeleton />}
      {rule.value && (
        <>
          <dl>
            <dt>{t('rules.state')}</dt><dd><Badge tone={TONES[rule.value.state]}>{state(rule.value.state)}</Badge> {t('rules.phase', { phase: rule.value.phase })}</dd>
            <dt>{t('rules.matches')}</dt><dd>{number(rule.value.matches)}</dd>
            <dt>{t('rules.lastHit')}</dt><dd>{hit ? <a href={href(['event', hit.event.request_id])}>{ago(hit.event.time)}</a> : t('app.never')}</dd>
            <dt>{t('rules.place')}</dt><dd class="mono">{rule.value.file}:{rule.value.line}</dd>
            {rule.value.tags.length > 0 && <><dt>{t('rules.tags')}</dt><dd>{rule.value.tags.join(', ')}</dd></>}
          </dl>
          {rule.value.notes.length > 0 && <ul>{rule.value.notes.map((note) => <li class="wrap">{note}</li>)}</ul>}
          <h3>{t('rules.text')}</h3>
          {rule.value.text ? <pre class="request" tabIndex={0}>{rule.value.text}</pre> : <Empty>{t('rules.noText')}</Empty>}
          <p><a href="https://coreruleset.org/docs/" target="_blank" rel="noreferrer noopener">{t('rules.documentation')}</a></p>
          <footer>{can('analyst') && site && rule.value.state !== 'excluded' && <Button tone="danger" onClick={() => setRemoving(true)}>{t('rules.switchOff', { site })}</Button>}</footer>
        </>
      )}
    </Dialog>
  );
}
