// An application that a site looks like: what its profile opens, measured on stored requests before it is taken.

import { useEffect, useState } from 'preact/hooks';
import { ask, askTagged } from '../api/http.ts';
import { can } from '../api/role.ts';
import type { Application, EventPage, Replayed } from '../api/types.ts';
import { number, quoted } from '../format.ts';
import { t } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { dismiss, suspicious } from '../offers.ts';
import { Badge, Button, Empty, Failure, Skeleton } from '../ui/kit.tsx';
import { visible } from '../visible.ts';
import { ChangeDialog } from './change.tsx';

/** Stopped requests of the week that are looked at. */
const STOPPED_MAX = 1000;

export function Offer({ site, offer, onChange }: { site: string; offer: Application; onChange: () => void }) {
  const [open, setOpen] = useState(false);
  return (
    <div class="notice">
      <p>{t('offer.looksLike', { application: offer.application })} <span class="dim">{t('offer.signs', { signs: visible(offer.signs.join(', ')) })}</span></p>
      <p class="inline">
        <Button onClick={() => setOpen(true)} aria-label={`${t('offer.look')}: ${offer.application}, ${site}`}>{t('offer.look')}</Button>
        <Button tone="ghost" onClick={() => { dismiss(site, offer.profile); onChange(); }} aria-label={`${t('offer.dismiss')}: ${offer.application}, ${site}`}>{t('offer.dismiss')}</Button>
      </p>
      {open && <OfferDialog site={site} offer={offer} onClose={() => setOpen(false)} onDone={() => { setOpen(false); onChange(); }} />}
    </div>
  );
}

interface Place { index: number; etag: string }
interface Document { format: string; is_read_only: boolean; values: { sites?: { name?: string }[] } | null }

/** Where the site stands in the document; null where it cannot be changed here. */
async function placeOf(site: string, signal: AbortSignal): Promise<Place | null> {
  if (!can('admin')) return null;
  const { value, etag } = await askTagged<Document>('/config', { signal });
  const sites = value.values?.sites;
  const index = Array.isArray(sites) ? sites.findIndex((each) => each.name === site) : -1;
  return index < 0 || value.format !== 'toml' || value.is_read_only ? null : { index, etag: etag ?? '*' };
}

function OfferDialog({ site, offer, onClose, onDone }: { site: string; offer: Application; onClose: () => void; onDone: () => void }) {
  const place = useLoad((signal) => placeOf(site, signal), `${site} ${offer.profile}`);
  const at = place.value;
  const change = at === null ? null : { method: 'PATCH', path: '/config', body: { changes: [{ path: `/sites/${at.index}/profiles/-`, value: offer.profile }] } };
  return (
    <ChangeDialog title={t('offer.title', { application: offer.application, site })} change={change} etag={at?.etag} applyLabel={t('offer.take')}
      reason={t('offer.reason', { application: offer.application })} onClose={onClose} onDone={onDone} below={(text) => <Measured site={site} text={text} />}>
      <p>{t('offer.intro', { count: number(offer.exclusions) })}</p>
      {place.error !== null && <Failure error={place.error} retry={place.again} />}
      {place.error === null && at === null && <p class="notice">{t('offer.byHand')} <code>profiles = [&quot;{offer.profile}&quot;]</code></p>}
      <h3>{t('offer.opens')}</h3>
      <ul class="wrap">{offer.opens.map((each) => (
        <li key={`${each.location} ${each.paths.join()}`}>
          <code>{visible(each.location || t('offer.request'))}</code> <small class="dim">{visible(each.paths.join(', '))}</small><br />
          {visible(each.opens)} {each.lets_pass.map((name) => <Badge key={name} tone="warn">{name}</Badge>)}
        </li>
      ))}</ul>
    </ChangeDialog>
  );
}

interface Measure { of: string; replayed: Replayed; attacks: number }

/** Of the stopped requests of the last days those that would pass, and of these those that look like attacks. */
function Measured({ site, text }: { site: string; text: string }) {
  const [measure, setMeasure] = useState<Measure | null>(null);
  const look = useAction();
  useEffect(() => {
    void look.run(async () => {
      const filter = `site = ${quoted(site)} and outcome in (blocked, would_block) and time >= -7d`;
      const replayed = await ask<Replayed>('/replay', { method: 'POST', body: { text, filter } });
      const stopped = replayed.lost === 0 ? [] : (await ask<EventPage>('/events', { query: { filter, limit: STOPPED_MAX } })).items;
      setMeasure({ of: text, replayed, attacks: suspicious(replayed.changes, stopped).size });
    });
  }, [text]);
  if (look.error !== null) return <Failure error={look.error} />;
  if (measure?.of !== text) return <Skeleton lines={2} />;
  const { replayed, attacks } = measure;
  if (replayed.requests === 0) return <Empty>{t('config.noRequests')}</Empty>;
  return (
    <div role="status">
      <p class={attacks > 0 ? 'notice warn' : 'notice'}>{t('offer.measured', { requests: number(replayed.requests), lost: number(replayed.lost), attacks: number(attacks) })}</p>
      <ul class="wrap">{replayed.changes.filter((each) => each.change === 'lost').slice(0, 20).map((each) => (
        <li key={each.id}><Badge tone="warn">{t('config.wouldPass')}</Badge> <code>{visible(each.request)}</code> <small class="dim">{visible(each.reason)}</small></li>
      ))}</ul>
    </div>
  );
}
