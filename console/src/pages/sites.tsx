// Sites: how each is protected, how far its roll-out is, and the servers behind.

import { useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import { can } from '../api/role.ts';
import type { Agent, Certificate, Inspection, Live, Site, SiteStatistics, Statistics, Upstream } from '../api/types.ts';
import { ago, expiryTone, number } from '../format.ts';
import { t } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { windowOf } from '../range.ts';
import { offers } from '../offers.ts';
import { readiness } from '../readiness.ts';
import { href } from '../route.ts';
import { Badge, Button, Card, Empty, Failure, PageHead, Select, Skeleton } from '../ui/kit.tsx';
import { ChangeDialog, type Change } from './change.tsx';
import { Offer } from './offer.tsx';

export function SitesPage() {
  const sites = useLoad((signal) => ask<Live<Site>>('/sites', { query: { limit: 1000 }, signal }), 'sites', 15_000);
  const upstreams = useLoad((signal) => ask<Live<Upstream>>('/upstreams', { query: { limit: 1000 }, signal }), 'upstreams', 5_000);
  const certificates = useLoad((signal) => ask<Live<Certificate>>('/certificates', { signal }), 'certificates');
  const agents = useLoad((signal) => ask<Live<Agent>>('/agents', { signal }), 'agents', 5_000);
  const week = useLoad((signal) => {
    const { from, to } = windowOf('7d');
    return ask<Statistics>('/statistics', { query: { from, to, top: 8 }, signal });
  }, 'week');
  const [changing, setChanging] = useState<Site | null>(null);
  if (sites.error !== null && !sites.value) return <><PageHead title={t('sites.title')} /><Failure error={sites.error} retry={sites.again} /></>;
  return (
    <>
      <PageHead title={t('sites.title')}>{can('admin') && <a class="button" href={href(['config'], { new: 'site', from: 'sites' })}>{t('config.newSite')}</a>}{sites.value && <span class="dim">{t('sites.generation', { number: sites.value.generation })}</span>}</PageHead>
      <div class="stack">
        {!sites.value && <Card><Skeleton /></Card>}
        {(sites.value?.items ?? []).map((site) => (
          <SiteCard key={site.name} site={site} week={week.value?.items.find((each) => each.site === site.name)} change={() => setChanging(site)} again={sites.again} />
        ))}
        <div class="grid">
          {(upstreams.value?.items ?? []).map((group) => <UpstreamCard key={group.name} group={group} />)}
          <Card title={t('sites.certificates')}>
            {certificates.value?.items.length === 0 && <Empty>{t('sites.noCertificates')}</Empty>}
            {(certificates.value?.items ?? []).map((each) => (
              <p key={each.listener + each.file} class="wrap">
                <b>{each.names.join(', ') || each.file}</b><br />
                <span class="dim">{each.listener} · {each.issuer ?? each.source}</span>{' '}
                {each.not_after !== null && <Expiry notAfter={each.not_after} />}
              </p>
            ))}
          </Card>
          {(agents.value?.items ?? []).length > 0 && (
            <Card title={t('sites.agents')}>
              {agents.value?.items.map((each) => <p key={each.name}><b>{each.name}</b> <Badge tone={each.breaker === 'closed' ? 'good' : 'bad'}>{each.breaker}</Badge> <span class="dim">{each.address}</span></p>)}
            </Card>
          )}
        </div>
      </div>
      {changing && <SettingsDialog site={changing} week={week.value?.items.find((each) => each.site === changing.name)} onClose={() => setChanging(null)} onDone={() => { setChanging(null); sites.again(); }} />}
    </>
  );
}

/** When a certificate ends: how soon decides how it is shown. */
function Expiry({ notAfter }: { notAfter: number }) {
  const tone = expiryTone(notAfter - Date.now() / 1000);
  const text = t(tone === 'bad' ? 'sites.expired' : 'sites.expires', { when: ago(new Date(notAfter * 1000).toISOString()) });
  return tone === '' ? <span class="dim">{text}</span> : <Badge tone={tone}>{text}</Badge>;
}

function SiteCard({ site, week, change, again }: { site: Site; week: SiteStatistics | undefined; change: () => void; again: () => void }) {
  return (
    <Card title={site.name} aside={can('admin') && <Button onClick={change} aria-label={`${t('sites.change')} ${site.name}`}>{t('sites.change')}</Button>}>
      <p class="dim wrap">{t('sites.hosts')}: {site.hosts.join(', ')} · {site.listeners.join(', ')}</p>
      <Rollout site={site} week={week} />
      {offers(site).map((offer) => <Offer key={offer.profile} site={site.name} offer={offer} onChange={again} />)}
      <div class="scroll" tabIndex={0} role="group">
        <table>
          <thead><tr>{[t('app.route'), t('sites.target'), t('sites.mode'), t('sites.engine'), t('sites.level'), t('sites.paranoia'), t('nav.rules'), t('sites.exclusions')].map((name) => <th scope="col">{name}</th>)}</tr></thead>
          <tbody>{site.routes.map((route) => (
            <tr key={route.name}>
              <td>{route.name}</td>
              <td>{route.target.upstream ?? `${route.target.kind} ${route.target.status ?? ''}`}</td>
              {route.inspection ? <InspectionCells site={site.name} route={route.name} of={route.inspection} /> : <td colSpan={6}><Badge tone="warn">{t('sites.notInspected')}</Badge></td>}
            </tr>
          ))}</tbody>
        </table>
      </div>
    </Card>
  );
}

function InspectionCells({ site, route, of }: { site: string; route: string; of: Inspection }) {
  return (
    <>
      <td>{of.mode}</td>
      <td><Badge tone={of.engine === 'blocking' ? 'good' : 'warn'}>{of.engine}</Badge></td>
      <td>{of.level ?? '–'}</td>
      <td>{of.paranoia ?? '–'}</td>
      <td><a href={href(['rules'], { site, route })}>{number(of.rules)}</a></td>
      <td>{number(of.exclusions)}</td>
    </>
  );
}

/** Observe, look at what would be blocked, enforce: where the site stands, from its own traffic. */
function Rollout({ site, week }: { site: Site; week: SiteStatistics | undefined }) {
  const stands = readiness(site, week);
  const look = stands.look && <a href={href(['events'], { filter: stands.look })}>{t('sites.look')}</a>;
  if (stands.state === 'off') return null;
  return <p class={`notice ${TONES[stands.state]}`}>{stands.text} {look}</p>;
}
const TONES = { quiet: '', enforced: 'good', ready: 'good', notReady: 'warn' };

function UpstreamCard({ group }: { group: Upstream }) {
  return (
    <Card title={`${t('sites.upstreams')}: ${group.name}`}>
      {group.endpoints.map((endpoint) => (
        <p key={endpoint.address}>
          <span class="mono">{endpoint.address}</span>{' '}
          <Badge tone={endpoint.state === 'healthy' ? 'good' : endpoint.state === 'probing' ? 'warn' : 'bad'}>{endpoint.state}</Badge><br />
          <span class="dim">{t('sites.inFlight', { count: endpoint.in_flight })}{endpoint.last_error ? ` · ${endpoint.last_error.message}` : ''}</span>
        </p>
      ))}
    </Card>
  );
}

function SettingsDialog({ site, week, onClose, onDone }: { site: Site; week: SiteStatistics | undefined; onClose: () => void; onDone: () => void }) {
  const now = site.routes.find((route) => route.inspection)?.inspection;
  const [mode, setMode] = useState('');
  const [engine, setEngine] = useState('');
  const [level, setLevel] = useState('');
  const [paranoia, setParanoia] = useState('');
  const body: Record<string, unknown> = {
    ...(mode ? { mode } : {}), ...(engine ? { engine } : {}), ...(level ? { level } : {}), ...(paranoia ? { paranoia: Number(paranoia) } : {}),
  };
  const same = (value: string | number | null | undefined): [string, string] => ['', t('sites.unchanged', { value: value ?? t('sites.asDefault') })];
  const change: Change | null = Object.keys(body).length > 0 ? { method: 'PATCH', path: `/sites/${encodeURIComponent(site.name)}`, body } : null;
  return (
    <ChangeDialog title={t('sites.changeTitle', { site: site.name })} change={change} onClose={onClose} onDone={onDone}>
      <Select label={t('sites.mode')} value={mode} onChange={setMode} options={[same(now?.mode), ['semantic', 'semantic'], ['crs', 'crs'], ['both', 'both'], ['off', 'off']]} />
      <Select label={t('sites.engine')} value={engine} onChange={setEngine}
        options={[same(now?.engine), ['detection_only', `detection_only (${t('sites.observe')})`], ['blocking', `blocking (${t('sites.enforce')})`]]} />
      {engine === 'blocking' && <Rollout site={site} week={week} />}
      <Select label={t('sites.level')} value={level} onChange={setLevel} options={[same(now?.level), ['balanced', 'balanced'], ['strict', 'strict']]} />
      <Select label={t('sites.paranoia')} value={paranoia} onChange={setParanoia} options={[same(now?.paranoia), ['1', '1'], ['2', '2'], ['3', '3'], ['4', '4']]} />
    </ChangeDialog>
  );
}
