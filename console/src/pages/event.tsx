// One event: what was sent, why it was decided so, and what can be done about it.

import { useLayoutEffect, useState } from 'preact/hooks';
import { ask, askBytes } from '../api/http.ts';
import { can } from '../api/role.ts';
import type { EventItem, Finding, Score, WafEvent } from '../api/types.ts';
import { network } from '../attacks.ts';
import { findingHref } from '../fields.ts';
import { both, bytes, dateTime, micros, number, quoted, readable } from '../format.ts';
import { curl, highlight, spanOf } from '../highlight.ts';
import { t } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { href } from '../route.ts';
import { Icon } from '../ui/icon.tsx';
import { Button, Card, CopyButton, Dialog, Empty, Failure, Fill, PageHead, Skeleton, Verdict } from '../ui/kit.tsx';
import { visible } from '../visible.ts';
import { ListDialog } from './access.tsx';
import { BanDialog } from './ban.tsx';
import { rulesOf, why } from './event-rows.tsx';
import { ExcludeDialog } from './exclude.tsx';

export function EventPage({ id }: { id: string }) {
  const loaded = useLoad((signal) => ask<EventItem>(`/events/${encodeURIComponent(id)}`, { signal }), id);
  const [dialog, setDialog] = useState<'exclude' | 'ban' | 'list' | 'json' | null>(null);
  const lift = useAction();
  const [lifted, setLifted] = useState(false);
  // Of a client that was turned away, nothing that it sent decided.
  const mayExclude = can('analyst') && loaded.value !== null && loaded.value.outcome !== 'control';
  useLayoutEffect(() => {
    if (!mayExclude) return undefined;
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).closest('input, select, textarea, dialog')) return;
      if (event.key !== 'n') return;
      event.preventDefault();
      setDialog('exclude');
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, [mayExclude]);
  const back = <a class="button ghost" href={href(['events'])}><Icon name="back" /><span>{t('event.back')}</span></a>;
  if (loaded.error !== null) return <><PageHead title={t('event.title')}>{back}</PageHead><Failure error={loaded.error} retry={loaded.again} /></>;
  if (!loaded.value) return <><PageHead title={t('event.title')}>{back}</PageHead><Card><Skeleton lines={12} /></Card></>;
  const { event, outcome, has_request: hasRequest } = loaded.value;
  const banned = event.verdict.control?.by === 'ban';
  return (
    <>
      <PageHead title={t('event.title')}>
        {back}
        {mayExclude && <Button tone="primary" icon="exclusions" onClick={() => setDialog('exclude')}>{t('event.notAttack')}</Button>}
        {can('analyst') && !banned && <Button icon="ban" onClick={() => setDialog('ban')}>{t('event.ban')}</Button>}
        {can('analyst') && banned && (
          <Button icon="check" disabled={lift.busy || lifted} onClick={() => void lift.run(async () => {
            await ask(`/bans/${encodeURIComponent(event.client.addr)}`, { method: 'DELETE' });
            setLifted(true);
          })}>{t(lifted ? 'event.lifted' : 'event.lift')}</Button>
        )}
        {can('analyst') && <Button icon="access" onClick={() => setDialog('list')}>{t('event.list')}</Button>}
        {can('analyst') && hasRequest && <a class="button" href={href(['try'], { id: event.request_id })}><Icon name="try" /><span>{t('event.try')}</span></a>}
        <Button tone="ghost" onClick={() => setDialog('json')}>{t('event.raw')}</Button>
      </PageHead>
      <div class="two">
        <div class="stack">
          <Card title={t('event.why')} aside={<Verdict action={event.verdict.action} outcome={outcome} />}>
            <p class="reason">{why(event)}</p>
            {outcome === 'noted' && <p class="dim">{t('event.noted')}</p>}
            {lift.error !== null && <Failure error={lift.error} />}
            {banned && <p><a href={href(['events'], { filter: before(event), kind: 'all' })}>{t('event.before')}</a></p>}
            <Scores event={event} />
          </Card>
          <RequestCard event={event} hasRequest={hasRequest} />
          {(event.findings ?? []).length > 0 && <Findings event={event} />}
          {rulesOf(event).length > 0 && <Matches event={event} />}
        </div>
        <div class="stack"><Facts event={event} /><Similar event={event} /></div>
      </div>
      {dialog === 'exclude' && <ExcludeDialog event={event} onClose={() => setDialog(null)} />}
      {dialog === 'ban' && <BanDialog client={event.client.addr} site={event.site} reason={event.request_id} onClose={() => setDialog(null)} onDone={() => setDialog(null)} />}
      {dialog === 'list' && <ListDialog list="deny" client={event.client.addr} site={event.site} remove={false} onClose={() => setDialog(null)} onDone={() => setDialog(null)} />}
      {dialog === 'json' && (
        <Dialog title={t('event.raw')} onClose={() => setDialog(null)} wide>
          <CopyButton text={JSON.stringify(event, null, 2)} />
          <pre class="request" tabIndex={0}>{visible(JSON.stringify(event, null, 2), true)}</pre>
        </Dialog>
      )}
    </>
  );
}

/** The requests of a client before it was banned. */
function before(event: WafEvent): string {
  return both(`client in ${network(event.client.addr)} and not outcome = control`, `time < ${event.time}`);
}

/** Points against thresholds, the worst first. */
export function Scores({ event }: { event: Pick<WafEvent, 'scores' | 'mode'> }) {
  const scores = event.scores?.semantic ?? [];
  const anomaly = event.scores?.inbound_blocking;
  return (
    <>
      {scores.slice(0, 4).map((score) => <ScoreBar key={`${score.class} ${score.place} ${score.name}`} score={score} />)}
      {anomaly !== undefined && anomaly > 0 && <p>{t('event.anomaly')}: <b>{number(anomaly)}</b></p>}
    </>
  );
}

export function ScoreBar({ score }: { score: Score }) {
  const widest = Math.max(score.points, score.threshold, 1) * 1.1;
  return (
    <div class="score">
      <p class="inline"><b>{score.class}</b> <code class="wrap">{visible(score.place)}{score.name ? `:${visible(score.name)}` : ''}</code>
        <span class="dim">{t('event.score', { points: score.points.toFixed(2), threshold: score.threshold.toFixed(2) })}</span></p>
      <div class="meter"><Fill share={score.points / widest} mark={score.threshold / widest} tone={score.points >= score.threshold ? 'bad' : ''} /></div>
    </div>
  );
}

function RequestCard({ event, hasRequest }: { event: WafEvent; hasRequest: boolean }) {
  const allowed = hasRequest && can('analyst');
  const kept = useLoad(async () => (allowed ? askBytes(`/events/${encodeURIComponent(event.request_id)}/request`) : null), event.request_id);
  const evidence = [...(event.findings ?? []).map((finding) => finding.evidence ?? ''), ...(event.matches ?? []).map((match) => spanOf(match.value, match.span))]
    .filter((text) => text.trim().length > 1);
  const text = kept.value ? new TextDecoder().decode(kept.value.bytes) : null;
  return (
    <Card title={t('event.request')} aside={text !== null && <CopyButton label={t('event.curl')} text={() => curl(text, event.server?.tls ? 'https' : 'http')} />}>
      {kept.error !== null && <Failure error={kept.error} retry={kept.again} />}
      {text === null
        ? (
          <>
            <pre class="request" tabIndex={0}><Marked text={`${event.request.method} ${event.request.target} ${event.request.protocol ?? ''}`} evidence={evidence} /></pre>
            {!kept.busy && <Empty>{t(hasRequest ? 'event.noRight' : 'event.notKept')}</Empty>}
          </>
        )
        : (
          <>
            <pre class="request" tabIndex={0}><Marked text={text.trimEnd()} evidence={evidence} /></pre>
            <p class="dim">{t('event.requestNote')} {kept.value && kept.value.omitted > 0 && t('event.omitted', { bytes: bytes(kept.value.omitted) })}</p>
          </>
        )}
    </Card>
  );
}

export function Marked({ text, evidence }: { text: string; evidence: string[] }) {
  return <>{highlight(text, evidence).map((piece) => (piece.marked ? <mark>{visible(piece.text, true)}</mark> : visible(piece.text, true)))}</>;
}

function Findings({ event }: { event: WafEvent }) {
  return (
    <Card title={t('event.findings')}>
      {(event.findings ?? []).map((finding) => <FindingItem finding={finding} field={findingHref(finding, event.site, event.request.method, event.request.target)} />)}
      {event.findings_omitted !== undefined && event.findings_omitted > 0 && <Empty>{t('event.others', { count: event.findings_omitted })}</Empty>}
      {event.findings_below !== undefined && event.findings_below > 0 && <Empty>{t('event.below', { count: event.findings_below })}</Empty>}
      {event.findings_suppressed !== undefined && event.findings_suppressed > 0 && <Empty>{t('event.suppressed', { count: event.findings_suppressed })}</Empty>}
    </Card>
  );
}

/** `field`: where the field that it is about is shown. */
export function FindingItem({ finding, field }: { finding: Finding; field?: string }) {
  return (
    <div class="finding">
      <div class="what"><span>{visible(finding.reason)}{finding.count ? ` × ${finding.count}` : ''}</span><b>{finding.points.toFixed(2)}</b></div>
      {finding.evidence?.trim() && <code class="evidence">{visible(finding.evidence)}</code>}
      {finding.suppressed_by && (
        <p class="inline"><b>{t(finding.mentioned ? 'event.loweredBy' : 'event.suppressedBy')}</b> <code>{finding.suppressed_by.exception}</code> <span>{finding.suppressed_by.reason}</span></p>
      )}
      <p class="dim inline">
        <code>{finding.kind}</code><code class="wrap">{finding.place}{finding.name ? `:${visible(finding.name)}` : ''}</code>
        {finding.decoded && finding.decoded.length > 0 && <span>{t('event.decoded', { layers: finding.decoded.join(' › ') })}</span>}
        {field && <a href={field}>{t('event.field')}</a>}
        {finding.reference && <a href={finding.reference} target="_blank" rel="noreferrer noopener">{t('event.reference')}</a>}
      </p>
    </div>
  );
}

function Matches({ event }: { event: WafEvent }) {
  return (
    <Card title={t('event.matches')}>
      {(event.matches ?? []).map((match) => (
        <div class="finding">
          <div class="what">
            <span><a href={href(['rules'], { id: match.rule_id, site: event.site, route: event.route })}>{match.rule_id}</a> {visible(match.message ?? '')}</span>
            <b>{match.points ? `+${match.points}` : ''}</b>
          </div>
          {match.value?.trim() && <code class="evidence"><Marked text={match.value} evidence={[spanOf(match.value, match.span)].filter(Boolean)} /></code>}
          <p class="dim inline"><code class="wrap">{visible(match.target ?? '')}</code>{match.severity && <span>{match.severity}</span>}<span>{(match.file ?? '').split('/').pop()}:{match.line}</span></p>
        </div>
      ))}
      {(event.also_matched ?? []).map((match) => (
        <div class="what">
          <span><a href={href(['rules'], { id: match.rule_id, site: event.site, route: event.route })}>{match.rule_id}</a> <code class="wrap">{visible(match.target ?? '')}</code>{match.count ? ` × ${match.count}` : ''}</span>
          <b>{match.points ? `+${match.points}` : ''}</b>
        </div>
      ))}
      {event.matches_omitted !== undefined && event.matches_omitted > 0 && <Empty>{t('event.otherMatches', { count: event.matches_omitted })}</Empty>}
    </Card>
  );
}

function Facts({ event }: { event: WafEvent }) {
  const rows: [string, preact.ComponentChildren][] = [
    [t('app.time'), dateTime(event.time)],
    [t('event.client'), `${event.client.addr}${event.client.country ? ` (${event.client.country})` : ''}`],
    [t('event.host'), event.server?.host ?? '–'],
    [t('app.site'), `${event.site} ${event.route}`],
    [t('event.mode'), `${event.mode}, ${event.engine}`],
    [t('event.answer'), `${event.response?.status ?? event.verdict.status ?? '–'}${event.response?.body_bytes ? `, ${bytes(event.response.body_bytes)}` : ''}`],
    [t('event.duration'), micros(event.duration_us ?? null)],
    [t('event.upstream'), event.upstream_error ? `${event.upstream ?? ''} ${event.upstream_error} ${event.upstream_reason ?? ''}` : event.upstream ?? '–'],
    ...(event.integration ? [
      [t('event.integration'), event.integration.kind] as [string, string],
      [t('event.blindSpots'), event.integration.blind_spots?.join(', ') ?? t('event.noBlindSpots')] as [string, string],
    ] : []),
    [t('event.id'), <span class="mono">{visible(event.request_id)}</span>],
  ];
  return (
    <Card title={t('event.facts')}>
      <dl>{rows.map(([name, value]) => <><dt>{name}</dt><dd>{typeof value === 'string' ? visible(value) : value}</dd></>)}</dl>
      <p class="dim">
        {event.coverage?.bytes_inspected !== undefined && t('event.coverage', { bytes: bytes(event.coverage.bytes_inspected) })}
        {Object.entries(event.coverage?.bytes_not_inspected ?? {}).map(([reason, count]) => <> · {t('event.uninspected', { bytes: bytes(count), reason })}</>)}
      </p>
    </Card>
  );
}

function Similar({ event }: { event: WafEvent }) {
  const path = event.request.target.split('?')[0] ?? '/';
  const links: [string, string][] = [
    [t('event.sameClient'), `client in ${network(event.client.addr)}`],
    [t('event.samePath'), `path = ${quoted(path)}`],
    ...(event.verdict.class ? [[t('event.sameClass'), `class = ${event.verdict.class}`] as [string, string]] : []),
    ...rulesOf(event).slice(0, 3)
      .map((rule): [string, string] => [t('event.sameRule', { rule }), `rule = ${rule}`]),
  ];
  return (
    <Card title={t('event.similar')}>
      {links.map(([label, filter]) => <p><a href={href(['events'], { filter, kind: 'all' })}>{label}</a> <span class="dim wrap">{readable(filter)}</span></p>)}
    </Card>
  );
}
