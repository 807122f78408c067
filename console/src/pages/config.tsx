// The configuration file as forms, one for each part. The code is loaded on demand.

import { useState } from 'preact/hooks';
import { ask, askTagged } from '../api/http.ts';
import type { Diagnostic, Replayed, SinkTest } from '../api/types.ts';
import { newLimit, newSite, ownRules, placed, sinkName, siteName, tlsListeners, type NewLimit, type NewSite, type ValueChange } from '../document.ts';
import { number } from '../format.ts';
import { t, type Key } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { go, href, refine, type Place } from '../route.ts';
import { labelOf, parts, pointer, shapeAt, shapeOf, trimmed, valueAt, type Json, type Schema, type Table } from '../schema.ts';
import { Editor } from '../ui/editor.tsx';
import { Control, FormScope, isTable, TableForm, titleOf } from '../ui/form.tsx';
import { Badge, Button, Card, Dialog, Empty, Failure, Input, PageHead, Select, Skeleton } from '../ui/kit.tsx';
import { ruleProblems } from '../seclang.ts';
import { visible } from '../visible.ts';
import { ChangeDialog } from './change.tsx';

interface Document { path: string; format: string; values: Table | null; is_live: boolean; is_read_only: boolean; etag: string }
interface Read { schema: Schema; document: Document; values: Table }

/** The keys of the document by what they are for; all others stand under the last title. */
const GROUPS: [Key, string[]][] = [
  ['config.traffic', ['listeners', 'sites', 'upstreams', 'agents', 'acme', 'block_page']],
  ['config.clients', ['access', 'ban', 'limit_store', 'geo', 'client_address']],
  ['config.records', ['events', 'audit_log', 'access_log', 'error_log', 'redact', 'tracing']],
];
/** The lists within a table that have a line of their own. */
const LISTS: Record<string, string[]> = { events: ['sinks'] };
/** The keys that stand first in a form: those that most installations set. */
const FIRST: Record<string, string[]> = {
  site: ['name', 'hosts', 'upstream', 'mode', 'engine', 'level', 'profiles', 'rate_limits', 'routes'],
  upstream: ['endpoints', 'health', 'balance', 'tls'],
  listener: ['address', 'tls'],
  access: ['deny', 'allow', 'others'],
  block_page: ['file'],
  events: ['file', 'keep', 'keep_request'],
  sink: ['kind', 'name', 'url', 'address', 'filter'],
};

export default function ConfigPage({ place }: { place: Place }) {
  const schema = useLoad((signal) => ask<Schema>('/config/schema', { signal }), 'schema');
  const document = useLoad(async (signal) => {
    const { value, etag } = await askTagged<Document>('/config', { signal });
    return { ...value, etag: etag ?? '*' };
  }, 'config');
  const at = place.query.get('at');
  const short = place.query.get('new');
  const rules = place.query.get('rules');
  const close = () => (place.query.get('from') ? go([place.query.get('from') ?? 'config']) : refine({ at: null, new: null, rules: null }));
  const done = () => { document.again(); close(); };
  const error = document.error ?? schema.error;
  const ready = schema.value && document.value?.values ? { schema: schema.value, document: document.value, values: document.value.values } : null;
  return (
    <>
      <PageHead title={t('config.title')}>
        {ready && !ready.document.is_read_only && <Button icon="plus" onClick={() => refine({ new: 'site' })}>{t('config.newSite')}</Button>}
        {ready && !ready.document.is_read_only && <Button icon="plus" onClick={() => refine({ new: 'limit' })}>{t('config.newLimit')}</Button>}
      </PageHead>
      <p class="dim">{t('config.intro')}</p>
      {document.value?.is_read_only && <p class="notice">{t('revisions.readOnly')}</p>}
      {document.value && !document.value.is_live && <p class="notice warn">{t('revisions.notLive')}</p>}
      {document.value && document.value.format !== 'toml' && <p class="notice warn">{t('config.yaml')}</p>}
      {error !== null && <Failure error={error} retry={document.error === null ? schema.again : document.again} />}
      {!ready && error === null && <Card><Skeleton /></Card>}
      {document.value && document.value.values === null && <Empty>{t('config.unreadable')}</Empty>}
      {ready && <Sections read={ready} />}
      {ready && at !== null && <ValueDialog key={at} read={ready} place={at} onClose={close} onDone={done} />}
      {ready && short === 'site' && <SiteDialog read={ready} onClose={close} onDone={done} />}
      {ready && rules !== null && <OwnRules key={rules} read={ready} site={rules} onClose={close} onDone={done} />}
      {ready && short === 'limit' && <LimitDialog read={ready} site={place.query.get('site') ?? ''} onClose={close} onDone={done} />}
    </>
  );
}

function Sections({ read }: { read: Read }) {
  const root = shapeOf(read.schema, read.schema);
  if (root.kind !== 'table') return null;
  const named = GROUPS.flatMap(([, keys]) => keys);
  const groups: [Key, string[]][] = [...GROUPS, ['config.others', root.members.map((each) => each.key).filter((key) => !named.includes(key))]];
  return (
    <div class="stack">
      {groups.map(([title, keys]) => (
        <Card key={title} title={t(title)}>
          <div class="scroll" tabIndex={0} role="group" aria-label={t(title)}>
            <table>
              <thead><tr><th scope="col">{t('config.part')}</th><th scope="col">{t('config.holds')}</th><th scope="col"><span class="visually-hidden">{t('app.actions')}</span></th></tr></thead>
              <tbody>{keys.flatMap((key) => [[key], ...(LISTS[key] ?? []).map((below) => [key, below])]).map((path) => <Part key={path.join('/')} read={read} path={path} />)}</tbody>
            </table>
          </div>
        </Card>
      ))}
    </div>
  );
}

/** One line: a key of the document, with what it has. */
function Part({ read, path }: { read: Read; path: string[] }) {
  const place = path.reduce((above, part) => pointer(above, part), '');
  const shape = shapeAt(read.schema, place);
  const value = valueAt(read.values, place);
  const label = labelOf(path[path.length - 1] ?? '');
  const above = shapeAt(read.schema, path.slice(0, -1).reduce((all, part) => pointer(all, part), ''));
  const about = above?.kind === 'table' ? above.members.find((each) => each.key === path[path.length - 1])?.description ?? '' : '';
  const isList = shape !== null && (shape.kind === 'list' || shape.kind === 'map') && shape.of.kind === 'table';
  const entries = Array.isArray(value) ? value.map((each, at): [string, string] => [String(at), titleOf(each) || String(at + 1)])
    : isTable(value) && isList ? Object.keys(value).map((key): [string, string] => [key, key]) : [];
  const canEdit = !read.document.is_read_only && read.document.format === 'toml';
  return (
    <tr>
      <td><b>{label}</b><br /><small class="dim">{about.replaceAll('`', '')}</small></td>
      <td class="wrap">
        {isList ? (entries.length === 0 ? <span class="dim">{t('app.none')}</span>
          : <span class="inline">{entries.map(([key, title]) => <a key={key} class="badge info" href={href(['config'], { at: pointer(place, key) })}>{visible(title)}</a>)}</span>)
          : value === undefined ? <span class="dim">{t('form.default')}</span>
            : isTable(value) ? <span class="dim">{Object.keys(value).map(labelOf).join(', ')}</span> : <code>{visible(String(value))}</code>}
      </td>
      <td class="right">
        {canEdit && <Button tone="ghost" icon={isList ? 'plus' : undefined} aria-label={`${t(isList ? 'app.add' : 'sites.change')}: ${label}`}
          onClick={() => refine({ at: isList ? pointer(place, '-') : place })}>{t(isList ? 'app.add' : 'sites.change')}</Button>}
      </td>
    </tr>
  );
}

/** The outcome of stored requests under the new text, before it takes effect. */
function TryOnRequests({ text }: { text: string }) {
  const [replayed, setReplayed] = useState<{ of: string; value: Replayed } | null>(null);
  const look = useAction();
  const current = replayed?.of === text ? replayed.value : null;
  return (
    <div class="replay">
      <p><Button disabled={look.busy} onClick={() => void look.run(async () => {
        setReplayed({ of: text, value: await ask<Replayed>('/replay', { method: 'POST', body: { text, filter: '' } }) });
      })}>{t(look.busy ? 'config.trying' : 'config.tryOn')}</Button></p>
      {look.error !== null && <Failure error={look.error} />}
      {current && (
        <div role="status">
          <p>{current.requests === 0 ? t('config.noRequests') : t('config.tried', { requests: number(current.requests), fresh: number(current.new), lost: number(current.lost) })}</p>
          {current.changes.length > 0 && (
            <ul class="wrap">{current.changes.slice(0, 20).map((each) => (
              <li key={each.id}><Badge tone={each.change === 'new' ? 'bad' : 'warn'}>{t(each.change === 'new' ? 'config.wouldStop' : 'config.wouldPass')}</Badge> <code>{visible(each.request)}</code> <small class="dim">{visible(each.reason)}</small></li>
            ))}</ul>
          )}
        </div>
      )}
    </div>
  );
}

/** A test event through a sink of the document, and what became of it. */
function TestSink({ name }: { name: string }) {
  const [tested, setTested] = useState<SinkTest | null>(null);
  const send = useAction();
  const ms = tested ? number(tested.milliseconds) : '';
  return (
    <div class="stack">
      <p class="inline">
        <Button disabled={send.busy} onClick={() => void send.run(async () => {
          setTested(null);
          setTested(await ask<SinkTest>(`/sinks/${encodeURIComponent(name)}/test`, { method: 'POST' }));
        })}>{t(send.busy ? 'config.testingSink' : 'config.testSink')}</Button>
        <small class="dim">{t('config.testSinkHint')}</small>
      </p>
      {send.error !== null && <Failure error={send.error} />}
      {tested && (
        <p role="status" class={tested.outcome === 'failed' ? 'notice warn wrap' : 'notice'}>
          {tested.outcome === 'failed' ? t('config.sinkFailed', { ms, why: visible(tested.error ?? '') })
            : t(tested.outcome === 'sent' ? 'config.sinkSent' : 'config.sinkConfirmed', { ms })}
        </p>
      )}
    </div>
  );
}

function namesOf(values: Table): Record<string, string[]> {
  const upstreams = isTable(values['upstreams']) ? Object.keys(values['upstreams']) : [];
  return { upstream: upstreams };
}

/** A form for any place of the document. */
function ValueDialog({ read, place, onClose, onDone }: { read: Read; place: string; onClose: () => void; onDone: () => void }) {
  const path = parts(place);
  const last = path[path.length - 1] ?? '';
  const above = path.slice(0, -1).reduce((all, part) => pointer(all, part), '');
  const aboveShape = shapeAt(read.schema, above);
  const shape = shapeAt(read.schema, place);
  const there = valueAt(read.values, place);
  const [draft, setDraft] = useState<Json>(there ?? (shape?.kind === 'table' ? {} : null));
  const [name, setName] = useState('');
  const [removing, setRemoving] = useState(false);
  if (shape === null) return <Dialog title={t('config.title')} onClose={onClose}><Empty>{t('config.noPlace')}</Empty></Dialog>;
  const isEntry = aboveShape?.kind === 'list' || aboveShape?.kind === 'map';
  const isNew = last === '-';
  const list = isEntry ? labelOf(path[path.length - 2] ?? '') : '';
  const title = isEntry ? `${list}: ${isNew ? t('app.add') : titleOf(there ?? null) || last}` : labelOf(last);
  const isNamed = !(isNew && aboveShape?.kind === 'map') || name.trim() !== '';
  const target = isNew && aboveShape?.kind === 'map' ? pointer(above, name.trim()) : place;
  const wanted = trimmed(draft);
  const isEmpty = wanted === null || (isTable(wanted) && Object.keys(wanted).length === 0);
  const change: ValueChange = removing ? { path: target } : { path: target, value: wanted };
  // An absent value without a draft changes nothing.
  const says = removing || (isNamed && !(isEmpty && there === undefined));
  const shown = placed(read.values, change);
  const first = FIRST[isEntry ? (path[path.length - 2] ?? '').replace(/s$/, '') : last] ?? [];
  const about = aboveShape?.kind === 'table' ? aboveShape.members.find((each) => each.key === last)?.description ?? '' : '';
  return (
    <ChangeDialog title={title} onClose={onClose} onDone={onDone} etag={read.document.etag} danger={removing}
      applyLabel={removing ? t('app.remove') : undefined} below={(text) => <TryOnRequests text={text} />}
      change={says ? { method: 'PATCH', path: '/config', body: { changes: [change] } } : null}>
      {(found: Diagnostic[]) => (
        <FormScope value={{ found, names: namesOf(read.values) }}>
          {isNew && aboveShape?.kind === 'map' && <Input label={`${t('app.name')} *`} value={name} onInput={setName} autofocus />}
          {there !== undefined && isEntry && (
            <label class="choice"><input type="checkbox" checked={removing} onChange={(event) => setRemoving(event.currentTarget.checked)} /><span>{t('config.remove')}</span></label>
          )}
          {/^\/events\/sinks\/\d+$/.test(place) && there !== undefined && <TestSink name={sinkName(valueAt(read.values, above), Number(last))} />}
          {!removing && (shape.kind === 'table' ? <TableForm members={shape.members} place={shown} value={isTable(draft) ? draft : {}} set={setDraft} first={first} />
            : <Control shape={shape} label={labelOf(last)} description={about} place={shown} value={draft} set={setDraft} />)}
        </FormScope>
      )}
    </ChangeDialog>
  );
}

/** The mistakes in the value of a field of a short form. */
function wrong(found: Diagnostic[], ...places: string[]): string | undefined {
  const mine = found.filter((each) => places.some((place) => each.pointer === place || each.pointer?.startsWith(`${place}/`)));
  return mine.length === 0 ? undefined : mine.map((each) => (each.hint ? `${each.message} (${each.hint})` : each.message)).join('; ');
}

function SiteDialog({ read, onClose, onDone }: { read: Read; onClose: () => void; onDone: () => void }) {
  const listeners = tlsListeners(read.values);
  const [form, setForm] = useState<NewSite>({
    hosts: '', servers: '', health: '', observe: true, tls: 'none', listener: listeners[0]?.place ?? '', cert: '', key: '',
  });
  const put = (part: Partial<NewSite>) => setForm({ ...form, ...part });
  const changes = newSite(read.values, form);
  const name = siteName(read.values, form.hosts);
  const site = placed(read.values, { path: '/sites/-' });
  const upstream = pointer('/upstreams', name);
  const secure = changes?.[2] ? placed(read.values, changes[2]) : '/listeners/-';
  return (
    <ChangeDialog title={t('config.newSite')} onClose={onClose} onDone={onDone} etag={read.document.etag}
      change={changes && { method: 'PATCH', path: '/config', body: { changes } }}>
      {(found: Diagnostic[]) => (
        <>
          <Input label={t('sites.hosts')} hint={t('config.hostsHint')} error={wrong(found, `${site}/hosts`, `${site}/name`)} value={form.hosts} onInput={(hosts) => put({ hosts })} autofocus autocomplete="off" placeholder="shop.example" />
          <Input label={t('config.servers')} hint={t('config.serversHint')} error={wrong(found, `${upstream}/endpoints`)} value={form.servers} onInput={(servers) => put({ servers })} autocomplete="off" placeholder="http://10.0.0.5:8080" />
          <Input label={t('config.health')} hint={t('config.healthHint')} error={wrong(found, `${upstream}/health`)} value={form.health} onInput={(health) => put({ health })} autocomplete="off" placeholder="/healthz" />
          <Select<NewSite['tls']> label="TLS" value={form.tls} onChange={(tls) => put({ tls })}
            options={[['none', t('config.tlsNone')], ['files', t('config.tlsFiles')], ...(read.values['acme'] ? [['acme', t('config.tlsAcme')] as ['acme', string]] : [])]} />
          {form.tls !== 'none' && (
            <Select label={t('config.listener')} value={form.listener} onChange={(listener) => put({ listener })}
              options={[...listeners.map((each): [string, string] => [each.place, each.address]), ['', t('config.newListener')]]} />
          )}
          {form.tls === 'files' && (
            <>
              <Input label={t('config.cert')} hint={t('config.certHint')} error={wrong(found, `${secure}/cert`, `${secure}/tls/certificates/0/cert`)} value={form.cert} onInput={(cert) => put({ cert })} autocomplete="off" placeholder="/etc/portcullis/shop.pem" />
              <Input label={t('config.key')} error={wrong(found, `${secure}/key`, `${secure}/tls/certificates/0/key`)} value={form.key} onInput={(key) => put({ key })} autocomplete="off" placeholder="/etc/portcullis/shop.key" />
            </>
          )}
          <label class="choice"><input type="checkbox" checked={form.observe} onChange={(event) => put({ observe: event.currentTarget.checked })} /><span>{t('config.observe')}<br /><small class="dim">{t('config.observeHint')}</small></span></label>
        </>
      )}
    </ChangeDialog>
  );
}

function LimitDialog({ read, site: given, onClose, onDone }: { read: Read; site: string; onClose: () => void; onDone: () => void }) {
  const sites = Array.isArray(read.values['sites']) ? read.values['sites'].map(titleOf) : [];
  const [form, setForm] = useState<NewLimit>({ site: given || sites[0] || '', path: '/login', rate: '5', per: '1m', methods: 'POST' });
  const put = (part: Partial<NewLimit>) => setForm({ ...form, ...part });
  const changes = newLimit(read.values, form);
  const at = changes?.[0] ? placed(read.values, changes[0]) : '';
  const limit = changes?.[0]?.path.endsWith('/routes/-') ? `${at}/rate_limits/0` : at;
  return (
    <ChangeDialog title={t('config.newLimit')} onClose={onClose} onDone={onDone} etag={read.document.etag}
      change={changes && { method: 'PATCH', path: '/config', body: { changes } }}>
      {(found: Diagnostic[]) => (
        <>
          <Select label={t('app.site')} value={form.site} onChange={(site) => put({ site })} options={sites.map((each): [string, string] => [each, each])} />
          <Input label={t('config.limitPath')} hint={t('config.limitPathHint')} error={wrong(found, `${at}/path`)} value={form.path} onInput={(path) => put({ path })} autofocus autocomplete="off" />
          <Input label={t('config.limitRate')} hint={t('config.limitRateHint')} error={wrong(found, `${limit}/rate`)} value={form.rate} onInput={(rate) => put({ rate })} inputMode="numeric" />
          <Input label={t('config.limitPer')} hint={t('config.limitPerHint')} error={wrong(found, `${limit}/per`)} value={form.per} onInput={(per) => put({ per })} />
          <Input label={t('config.limitMethods')} hint={t('config.limitMethodsHint')} error={wrong(found, `${limit}/methods`)} value={form.methods} onInput={(methods) => put({ methods })} autocomplete="off" />
        </>
      )}
    </ChangeDialog>
  );
}

/** The directives of a site that stand in the document, with what the compiler says about them at their lines. */
function OwnRules({ read, site, onClose, onDone }: { read: Read; site: string; onClose: () => void; onDone: () => void }) {
  const own = ownRules(read.values, site);
  const [text, setText] = useState(own?.text ?? '');
  if (!own) return <Dialog title={t('config.ownRules', { site })} onClose={onClose}><Empty>{t('config.noPlace')}</Empty></Dialog>;
  const changes = own.changes(text);
  return (
    <ChangeDialog title={t('config.ownRules', { site })} onClose={onClose} onDone={onDone} etag={read.document.etag} below={(next) => <TryOnRequests text={next} />}
      change={text === own.text ? null : { method: 'PATCH', path: '/config', body: { changes } }}>
      {(found: Diagnostic[], detail: string) => (
        <>
          <Editor label={t('config.directives')} value={text} onInput={setText} problems={ruleProblems(detail)} />
          {own.mode === 'semantic' && <p class="notice warn">{t('config.rulesUnused')}</p>}
          {changes.some((each) => each.path.endsWith('/mode')) && <p class="notice">{t('config.rulesBeside')}</p>}
          {wrong(found, own.place) && <p class="error" role="alert">{wrong(found, own.place)}</p>}
        </>
      )}
    </ChangeDialog>
  );
}
