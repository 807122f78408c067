// The learned fields of sites: endpoints, the values of their fields, and the operator's decisions about them.

import { useEffect, useState } from 'preact/hooks';
import { ask, url } from '../api/http.ts';
import { can } from '../api/role.ts';
import type { DeviationKind, EventPage, FieldProposal, Interface, InterfaceDeviation, InterfacePage, LearnedField, LearningSite, Page } from '../api/types.ts';
import { ago, bytes, number } from '../format.ts';
import { evidence, fieldHref, missing, shape, typeTitle, unusualFilter, type FieldAt } from '../fields.ts';
import { t, type Key } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { href, refine, type Place } from '../route.ts';
import { Badge, Button, Card, Dialog, Empty, Failure, Input, PageHead, Select, Skeleton } from '../ui/kit.tsx';
import { visible } from '../visible.ts';
import { EventRows } from './event-rows.tsx';
import { Teaching } from './teaching.tsx';

const STATES = ['closed', 'open', 'reopened', 'kept_open'] as const;
const TONES = { closed: 'good', open: 'info', reopened: 'warn', kept_open: 'warn' } as const;
const stateTitle = (state: LearnedField['state']) => t(`fields.state.${state}` as Key);
/** Fields that are asked for at first, and at most. */
const FIRST = 200;
const MOST = 1000;
/** Unusual values that the dialog of a field shows. */
const RECENT = 5;

const KEY = '[[sites]]\nname = "shop"\nfields = { unusual = "detect" }';

export function InterfacesPage({ place }: { place: Place }) {
  const query = (name: string) => place.query.get(name) ?? '';
  const sites = useLoad((signal) => ask<{ items: LearningSite[] }>('/fields/sites', { signal }), 'learning');
  const discovered = useLoad((signal) => ask<InterfacePage>('/interfaces', { query: { limit: 1 }, signal }), 'discovered');
  const all = sites.value?.items ?? [];
  const discovering = (discovered.value?.sites ?? []).map((each) => each.site);
  // A link from an event names a site that may not learn any more.
  const name = query('site') || (all[0]?.site ?? discovering[0] ?? '');
  const site = all.find((each) => each.site === name);
  const names = [...new Set([...all.map((each) => each.site), ...discovering, ...(name ? [name] : [])])].sort();
  return (
    <>
      <PageHead title={t('fields.title')}>
        {discovering.includes(name) && <a class="button" download={`${name}.openapi.json`} href={url('/interfaces/openapi', { site: name })}>{t('endpoints.openapi')}</a>}
        {names.length > 0 && (
          <Select hidden label={t('app.site')} value={name} onChange={(next) => refine({ site: next })}
            options={names.map((each): [string, string] => [each, each])} />
        )}
      </PageHead>
      <p class="dim">{t('fields.intro')}</p>
      {discovered.error !== null && <Failure error={discovered.error} retry={discovered.again} />}
      {sites.error !== null && <Failure error={sites.error} retry={sites.again} />}
      {!sites.value && sites.error === null && <Card><Skeleton lines={8} /></Card>}
      {sites.value && (all.length === 0 || !site) && (
        <Card>
          <Empty>{all.length === 0 ? t('fields.off') : t('fields.offHere', { site: name })}</Empty>
          <pre class="request" tabIndex={0}>{KEY}</pre>
          <p class="dim">{t('fields.offHint')}</p>
        </Card>
      )}
      {discovering.includes(name) && (
        <Deviations key={name} site={name} counts={discovered.value?.sites.find((each) => each.site === name)?.deviations ?? null} place={place} />
      )}
      {sites.value && !site && discovering.includes(name) && <Discovered site={name} place={place} />}
      {site && <SiteFields key={site.site} site={site} discovers={discovering.includes(name)} place={place} onChange={sites.again} />}
    </>
  );
}

const DEVIATIONS = ['shadow', 'drifted', 'zombie', 'unseen'] as const;
const DEVIATION_TONES = { shadow: 'bad', drifted: 'warn', zombie: 'warn', unseen: 'info' } as const;
const deviationTitle = (kind: DeviationKind) => t(`deviations.${kind}` as Key);

/** What the site answers and its declared API does not say, and the other way round; `counts` is null where none is declared. */
function Deviations({ site, counts, place }: { site: string; counts: Record<DeviationKind, number> | null; place: Place }) {
  const asked = place.query.get('deviation') ?? '';
  const kind = DEVIATIONS.find((each) => each === asked) ?? '';
  const total = counts === null ? 0 : DEVIATIONS.reduce((sum, each) => sum + counts[each], 0);
  return (
    <Card title={t('deviations.title')} id="deviations">
      {counts === null && <p class="dim">{t('deviations.undeclared')}</p>}
      {counts !== null && total === 0 && <Empty>{t('deviations.none')}</Empty>}
      {counts !== null && total > 0 && (
        <>
          <p class="dim">{t('deviations.intro')}</p>
          <Select hidden label={t('deviations.kind')} value={kind} onChange={(next) => refine({ deviation: next })}
            options={[['', `${t('app.all')} (${number(total)})`], ...DEVIATIONS.map((each): [string, string] => [each, `${deviationTitle(each)} (${number(counts[each])})`])]} />
          <DeviationRows key={kind} site={site} kind={kind} />
        </>
      )}
    </Card>
  );
}

function DeviationRows({ site, kind }: { site: string; kind: DeviationKind | '' }) {
  const [limit, setLimit] = useState(FIRST);
  const asked = { site, kind, limit };
  const list = useLoad((signal) => ask<Page<InterfaceDeviation>>('/interfaces/deviations', { query: asked, signal }), JSON.stringify(asked));
  if (list.error !== null) return <Failure error={list.error} retry={list.again} />;
  if (!list.value) return <Skeleton lines={4} />;
  if (list.value.items.length === 0) return <Empty>{t('deviations.noneOfKind')}</Empty>;
  return (
    <>
      <div class="scroll" tabIndex={0} role="group" aria-label={t('deviations.title')}>
        <table class="stacked">
          <thead><tr><th scope="col">{t('deviations.kind')}</th><th scope="col">{t('fields.endpoint')}</th><th scope="col">{t('deviations.differences')}</th></tr></thead>
          <tbody>{list.value.items.map((each) => (
            <tr key={`${each.kind} ${each.method} ${each.path}`}>
              <td><Badge tone={DEVIATION_TONES[each.kind]}>{deviationTitle(each.kind)}</Badge></td>
              <td class="wrap"><a href={href(['interfaces'], { site, search: each.path })}><code>{visible(`${each.method} ${each.path}`)}</code></a></td>
              <td class="wrap">{each.differences.length === 0 ? t(`deviations.about.${each.kind}` as Key) : each.differences.map((one) => (
                <div key={`${one.what} ${one.declared} ${one.seen}`}><code>{visible(one.what)}</code> {t('deviations.difference', { declared: visible(one.declared ?? t('deviations.nothing')), seen: visible(one.seen ?? t('deviations.nothing')) })}</div>
              ))}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
      {list.value.next !== null && limit < MOST && <Button onClick={() => setLimit(MOST)}>{t('app.more')}</Button>}
    </>
  );
}

/** The endpoints of a site; none where nothing is discovered. */
function useEndpoints(site: string, search: string, discovers: boolean) {
  return useLoad(async (signal) => (discovers ? (await ask<InterfacePage>('/interfaces', { query: { site, q: search, limit: MOST }, signal })).items : []), JSON.stringify([site, search, discovers]));
}

/** The endpoints of a site that does not learn what their fields carry. */
function Discovered({ site, place }: { site: string; place: Place }) {
  const endpoints = useEndpoints(site, '', true);
  return (
    <Card title={t('endpoints.title')}>
      {endpoints.error !== null && <Failure error={endpoints.error} retry={endpoints.again} />}
      {!endpoints.value && endpoints.error === null && <Skeleton />}
      {endpoints.value?.length === 0 && <Empty>{t('endpoints.none')}</Empty>}
      {endpoints.value && endpoints.value.length > 0 && <Endpoints fields={[]} endpoints={endpoints.value} place={place} />}
    </Card>
  );
}

function SiteFields({ site, discovers, place, onChange }: { site: LearningSite; discovers: boolean; place: Place; onChange: () => void }) {
  const query = (name: string) => place.query.get(name) ?? '';
  const [search, setSearch] = useState(query('search'));
  useEffect(() => {
    const timer = setTimeout(() => { if (search !== query('search')) refine({ search }); }, 250);
    return () => clearTimeout(timer);
  }, [search]);
  const [limit, setLimit] = useState(FIRST);
  const asked = { site: site.site, state: query('state'), search: query('search'), limit };
  const fields = useLoad((signal) => ask<Page<LearnedField> & { total: number }>('/fields', { query: asked, signal }), JSON.stringify(asked));
  // A state is one of fields: endpoints without any have none.
  const endpoints = useEndpoints(site.site, query('search'), discovers && query('state') === '');
  const named = query('name');
  const at: FieldAt = { site: site.site, method: query('method'), path: query('path'), place: query('place'), name: named };
  const figures: [Key, string, string][] = [
    ['fields.state.closed', number(site.closed), t('fields.ofKnown', { count: number(site.fields) })],
    ['fields.unusual', t(`fields.unusual.${site.unusual}` as Key), t('fields.closesAfter', {
      values: number(site.closes_after.values), networks: number(site.closes_after.networks), days: number(site.closes_after.days),
    })],
  ];
  return (
    <>
      <div class="figures">
        {figures.map(([title, value, hint]) => (
          <section class="figure" key={title}><h2>{t(title)}</h2><div class="value">{value}</div><p>{hint}</p></section>
        ))}
      </div>
      {site.reopened > 0 && query('state') !== 'reopened' && (
        <p class="notice warn">{t('fields.drift', { count: number(site.reopened) })} <a href={href(['interfaces'], { site: site.site, state: 'reopened' })}>{t('fields.driftLook')}</a></p>
      )}
      {site.beyond_limit > 0 && <p class="notice">{t('fields.beyond', { count: number(site.beyond_limit), max: number(site.fields_max) })}</p>}
      {can('analyst') && <Teaching site={site.site} onChange={() => { fields.again(); onChange(); }} />}
      <Proposals site={site.site} />
      <Card>
        <div class="filter-bar">
          <div class="line">
            <form role="search" onSubmit={(event) => event.preventDefault()}>
              <input data-filter aria-label={t('fields.search')} placeholder={t('fields.search')} maxLength={200} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
            </form>
            <Select hidden label={t('rules.state')} value={query('state')} onChange={(next) => refine({ state: next })}
              options={[['', `${t('rules.state')}: ${t('app.all')}`], ...STATES.map((each): [string, string] => [each, stateTitle(each)])]} />
            <a class="button" href={href(['events'], { filter: unusualFilter({ site: site.site }), kind: 'all' })}>{t('fields.unusualEvents')}</a>
          </div>
        </div>
        {fields.error !== null && <Failure error={fields.error} retry={fields.again} />}
        {!fields.value && fields.error === null && <Skeleton lines={10} />}
        {fields.value && (
          <>
            <p class="dim" role="status">{t('fields.total', { count: number(fields.value.total) })}</p>
            {endpoints.error !== null && <Failure error={endpoints.error} retry={endpoints.again} />}
            {fields.value.items.length === 0 && <Empty>{t(site.fields === 0 ? 'fields.none' : 'fields.noMatch')}</Empty>}
            {fields.value.items.length + (endpoints.value?.length ?? 0) > 0 && <Endpoints fields={fields.value.items} endpoints={endpoints.value ?? []} place={place} />}
            {fields.value.next !== null && limit < MOST && <Button onClick={() => setLimit(MOST)}>{t('app.more')}</Button>}
            {fields.value.next !== null && limit >= MOST && <p class="dim">{t('fields.narrow', { count: number(MOST) })}</p>}
          </>
        )}
      </Card>
      {named && <FieldDialog at={at} onClose={() => refine({ method: null, path: null, place: null, name: null })} onChange={() => { fields.again(); onChange(); }} />}
    </>
  );
}

type Deciding = 'accept' | 'trial' | 'dismiss';
const PROPOSAL_TONES = { seen: 'info', proposed: 'warn', trial: 'info', live: 'good', dismissed: 'info' } as const;
/** The decisions that a proposal allows. */
const DECISIONS: Record<FieldProposal['state'], Deciding[]> = {
  seen: [], proposed: ['accept', 'trial', 'dismiss'], trial: ['accept', 'dismiss'], live: ['trial', 'dismiss'], dismissed: ['accept', 'trial'],
};

/** Kinds of findings that fields carry for many, so that they may count for nothing there. */
function Proposals({ site }: { site: string }) {
  const list = useLoad((signal) => ask<Page<FieldProposal> & { total: number }>('/fields/proposals', { query: { site }, signal }), site);
  const [change, setChange] = useState<{ proposal: FieldProposal; decision: Deciding } | null>(null);
  const items = list.value?.items ?? [];
  if (list.error !== null) return <Failure error={list.error} retry={list.again} />;
  if (items.length === 0) return null;
  return (
    <Card title={t('proposals.title')} id="proposals">
      <p class="dim">{t('proposals.intro')}</p>
      <div class="scroll" tabIndex={0} role="group" aria-label={t('proposals.title')}>
        <table class="stacked">
          <thead><tr><th scope="col">{t('fields.field')}</th><th scope="col">{t('proposals.kind')}</th><th scope="col">{t('proposals.evidence')}</th><th scope="col">{t('rules.state')}</th><th scope="col"><span class="visually-hidden">{t('app.actions')}</span></th></tr></thead>
          <tbody>{items.map((each) => (
            <tr key={each.id}>
              <td class="wrap"><a href={fieldHref(each)}>{visible(each.name)}</a><div class="dim">{visible(`${each.method} ${each.path}`)}</div></td>
              <td class="wrap"><code>{visible(each.kind)}</code></td>
              <td class="wrap">{shown(each)}{each.state === 'trial' && <div class="dim">{t('proposals.tried', { passes: number(each.passes), lost: number(each.lost), stopped: number(each.stopped) })}</div>}</td>
              <td><Badge tone={each.state === 'trial' && each.lost > 0 ? 'bad' : PROPOSAL_TONES[each.state]}>{t(`proposals.state.${each.state}` as Key)}</Badge></td>
              <td class="right">{can('analyst') && DECISIONS[each.state].map((decision) => (
                <Button key={decision} tone={decision === 'accept' ? 'plain' : 'ghost'} aria-label={`${t(`proposals.${decision}` as Key)} ${each.kind} ${visible(each.name)}`}
                  onClick={() => setChange({ proposal: each, decision })}>{t(`proposals.${decision}` as Key)}</Button>
              ))}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
      {change && <ProposalDialog {...change} onClose={() => setChange(null)} onDone={() => { setChange(null); list.again(); }} />}
    </Card>
  );
}

/** The evidence for it. */
function shown(each: FieldProposal): string {
  return t('proposals.shown', { requests: number(each.requests), networks: number(each.networks), sessions: number(each.sessions), days: number(each.days) });
}

function ProposalDialog({ proposal, decision, onClose, onDone }: {
  proposal: FieldProposal; decision: Deciding; onClose: () => void; onDone: () => void;
}) {
  const [reason, setReason] = useState('');
  const send = useAction();
  const { site, id, kind, method, path, place, name } = proposal;
  const submit = (event: Event) => {
    event.preventDefault();
    void send.run(async () => {
      await ask(`/fields/proposals/${decision}`, { method: 'POST', body: { site, id, ...(reason ? { reason } : {}) } });
      onDone();
    });
  };
  return (
    <Dialog title={t(`proposals.${decision}` as Key)} onClose={onClose} onSubmit={submit}>
      <p><code class="wrap">{visible(`${kind}: ${method} ${path} ${place}:${name}`)}</code></p>
      <p>{shown(proposal)}</p>
      <p class="notice">{t(`proposals.about.${decision}` as Key)}</p>
      <Input label={t('app.reason')} hint={t('fields.reasonHint')} value={reason} onInput={setReason} maxLength={1000} autofocus />
      {send.error !== null && <Failure error={send.error} />}
      <footer>
        <Button onClick={onClose}>{t('app.cancel')}</Button>
        <Button tone="primary" type="submit" disabled={send.busy}>{t(`proposals.${decision}` as Key)}</Button>
      </footer>
    </Dialog>
  );
}

interface Group { path: string; method: string; fields: LearnedField[]; facts?: Interface }

/** Fields below their endpoints, as far as these are known; by path. */
function grouped(fields: LearnedField[], endpoints: Interface[]): Group[] {
  const groups = new Map<string, Group>();
  const group = ({ path, method }: { path: string; method: string }) => {
    const key = `${path} ${method}`;
    const known = groups.get(key) ?? { path, method, fields: [] };
    groups.set(key, known);
    return known;
  };
  for (const field of fields) group(field).fields.push(field);
  for (const facts of endpoints) group(facts).facts = facts;
  return [...groups].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, each]) => each);
}

/** The discovered properties of an endpoint. */
function Facts({ of }: { of: Interface }) {
  const words = (kinds: string[], of_: string) => kinds.map((kind) => t(`${of_}.${kind}` as Key)).join(', ');
  return (
    <div class="facts">
      <span>{t('endpoints.asked', { requests: number(of.requests), networks: number(of.networks), days: number(of.days), last: ago(of.last_seen) })}</span>
      {of.is_new && <Badge tone="warn">{t('endpoints.new')}</Badge>}
      {of.is_idle && <Badge>{t('endpoints.idle')}</Badge>}
      {of.authentication.length > 0 && <span>{t('endpoints.authentication', { kinds: words(of.authentication, 'credentials') })}</span>}
      {of.sensitive.length > 0 && <Badge tone="warn">{t('endpoints.sensitive', { kinds: words(of.sensitive, 'sensitive') })}</Badge>}
    </div>
  );
}

function Endpoints({ fields, endpoints, place }: { fields: LearnedField[]; endpoints: Interface[]; place: Place }) {
  const groups = grouped(fields, endpoints);
  const kept = { state: place.query.get('state'), search: place.query.get('search') };
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={t('fields.title')}>
      <table class="stacked">
        <thead><tr><th scope="col">{t('fields.field')}</th><th scope="col">{t('fields.carries')}</th><th scope="col">{t('rules.state')}</th></tr></thead>
        {groups.map((group) => {
          return (
            <tbody key={`${group.method} ${group.path}`}>
              <tr class="endpoint"><th colSpan={3} scope="rowgroup"><code>{visible(`${group.method} ${group.path}`)}</code>{group.facts && <Facts of={group.facts} />}</th></tr>
              {group.fields.map((field) => (
                <tr key={`${field.place} ${field.name}`}>
                  <td class="wrap"><a href={fieldHref(field, kept)}>{visible(field.name)}</a><div class="dim">{field.place}</div></td>
                  <td class="wrap">{evidence(field)}{missing(field) !== '' && <div class="dim">{missing(field)}</div>}</td>
                  <td><Badge tone={TONES[field.state]}>{stateTitle(field.state)}</Badge></td>
                </tr>
              ))}
            </tbody>
          );
        })}
      </table>
    </div>
  );
}

type Order = 'keep-open' | 'learn' | 'close' | 'forget';

function FieldDialog({ at, onClose, onChange }: { at: FieldAt; onClose: () => void; onChange: () => void }) {
  const found = useLoad((signal) => ask<LearnedField>('/fields/find', { query: { ...at }, signal }), JSON.stringify(at));
  const [order, setOrder] = useState<Order | null>(null);
  const [told, setTold] = useState<string | null>(null);
  const field = found.value;
  const orders: Order[] = !field ? [] : [
    ...(can('analyst') ? [field.state === 'kept_open' ? 'learn' as const : 'keep-open' as const] : []),
    ...(can('admin') && field.state !== 'closed' && field.closes_as !== null ? ['close' as const] : []),
    ...(can('admin') ? ['forget' as const] : []),
  ];
  const done = (next: LearnedField | null, message: string | null) => {
    setOrder(null);
    setTold(message);
    onChange();
    if (next) found.again();
    else onClose();
  };
  return (
    <Dialog title={visible(at.name)} onClose={onClose} wide>
      {found.error !== null && <Failure error={found.error} retry={found.again} />}
      {!field && found.error === null && <Skeleton lines={8} />}
      {told && <p class="notice warn" role="status">{t('fields.notKept', { why: told })}</p>}
      {field && (
        <>
          <p class="reason">{evidence(field)}</p>
          <dl>
            <dt>{t('fields.endpoint')}</dt><dd><code>{visible(`${field.method} ${field.path}`)}</code></dd>
            <dt>{t('fields.place')}</dt><dd><code class="wrap">{field.place}:{visible(field.name)}</code></dd>
            <dt>{t('rules.state')}</dt><dd><Badge tone={TONES[field.state]}>{stateTitle(field.state)}</Badge></dd>
            {missing(field) !== '' && <><dt>{t('fields.missing')}</dt><dd>{missing(field)}</dd></>}
            {field.closed_before && <><dt>{t('fields.before')}</dt><dd>{t('fields.reopened', { what: shape(field.closed_before.closed_as, field.options), day: field.closed_before.until })}</dd></>}
            <dt>{t('fields.lengths')}</dt><dd>{t('fields.lengthsOf', { min: bytes(field.bytes_min), max: bytes(field.bytes_max) })}</dd>
            {field.sessions > 0 && <><dt>{t('fields.sessions')}</dt><dd>{number(field.sessions)}</dd></>}
            <dt>{t('fields.last')}</dt><dd>{field.last_day} (UTC)</dd>
          </dl>
          <h3>{t('fields.types')}</h3>
          <div class="scroll" tabIndex={0} role="group" aria-label={t('fields.types')}>
            <table>
              <thead><tr><th scope="col">{t('fields.type')}</th><th scope="col" class="right">{t('fields.values')}</th><th scope="col" class="right">{t('fields.networks')}</th><th scope="col" class="right">{t('fields.days')}</th></tr></thead>
              <tbody>{field.types.map((each) => (
                <tr key={each.type}><td>{typeTitle(each.type)}</td><td class="right">{number(each.values)}</td><td class="right">{number(each.networks)}</td><td class="right">{number(each.days)}</td></tr>
              ))}</tbody>
            </table>
          </div>
          <h3>{t('fields.recent')}</h3>
          <Recent field={field} />
          {order ? <Decision field={field} order={order} onCancel={() => setOrder(null)} onDone={done} /> : (
            orders.length > 0 && <footer>{orders.map((each) => <Button key={each} tone={each === 'forget' ? 'danger' : 'plain'} onClick={() => setOrder(each)}>{t(`fields.order.${each}` as Key)}</Button>)}</footer>
          )}
        </>
      )}
    </Dialog>
  );
}

/** The newest values that were unlike the field. */
function Recent({ field }: { field: LearnedField }) {
  const filter = unusualFilter(field);
  const events = useLoad((signal) => ask<EventPage>('/events', { query: { filter, limit: RECENT }, signal }), filter);
  if (events.error !== null) return <Failure error={events.error} retry={events.again} />;
  if (!events.value) return <Skeleton lines={2} />;
  if (events.value.items.length === 0) return <Empty>{t('fields.noRecent')}</Empty>;
  return (
    <>
      <EventRows short items={events.value.items} />
      <p><a href={href(['events'], { filter, kind: 'all' })}>{t('fields.allRecent')}</a></p>
    </>
  );
}

function Decision({ field, order, onCancel, onDone }: {
  field: LearnedField; order: Order; onCancel: () => void; onDone: (field: LearnedField | null, message: string | null) => void;
}) {
  const [reason, setReason] = useState('');
  const send = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    const { site, method, path, place, name } = field;
    void send.run(async () => {
      const done = await ask<{ field: LearnedField | null; message: string | null }>(`/fields/${order}`, {
        method: 'POST', body: { site, method, path, place, name, ...(reason ? { reason } : {}) },
      });
      onDone(done.field, done.message);
    });
  };
  return (
    <form onSubmit={submit}>
      <p class="notice" role="status">{t(`fields.about.${order}` as Key, { what: shape(field.closes_as, field.options) })}</p>
      <Input label={t('app.reason')} hint={t('fields.reasonHint')} value={reason} onInput={setReason} maxLength={1000} autofocus />
      {send.error !== null && <Failure error={send.error} />}
      <footer>
        <Button onClick={onCancel}>{t('app.cancel')}</Button>
        <Button tone={order === 'forget' ? 'danger' : 'primary'} type="submit" disabled={send.busy}>{t(`fields.order.${order}` as Key)}</Button>
      </footer>
    </form>
  );
}
