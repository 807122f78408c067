// From an event that was no attack to an exclusion, the narrowest choice first.

import { useState } from 'preact/hooks';
import { ask, Problem } from '../api/http.ts';
import type { Advised, Candidate, Explained, FacetPage, WafEvent } from '../api/types.ts';
import { number, quoted } from '../format.ts';
import { t } from '../i18n/index.ts';
import { useLoad } from '../load.ts';
import { isDoubtful, template } from '../path.ts';
import { Badge, Button, Dialog, Failure, Input, Skeleton, Verdict } from '../ui/kit.tsx';
import { visible } from '../visible.ts';
import { sentence } from '../wording.ts';
import { ChangeDialog, type Change } from './change.tsx';

export interface Choice { label: string; orders: Record<string, unknown>[]; hasPath: boolean }

/** The exclusions that would have prevented the event. */
export function choices(event: WafEvent): { path: string | null; choices: Choice[] } {
  const raw = (event.request.target.split(/[?#]/)[0] ?? '').replace(/^https?:\/\/[^/]*/, '');
  const path = isDoubtful(raw) ? null : template(raw);
  const found: Choice[] = [];
  const over = (event.scores?.semantic ?? []).filter((score) => ['blocked', 'detected'].includes(score.outcome));
  const fields = [...new Map(over.map((score) => [`${score.class} ${location(score)}`, score])).values()];
  if (fields.length > 0) {
    const kinds = fields.flatMap((score) => [...new Set((event.findings ?? [])
      .filter((finding) => finding.class === score.class && location(finding) === location(score)).map((finding) => finding.kind))]
      .map((kind) => ({ kind, location: location(score) })));
    const classes = [...new Set(fields.map((score) => score.class))].join(', ');
    // Of an event with more findings, kinds may be missing.
    if (kinds.length > 0 && path && !event.findings_omitted) found.push({ label: t('exclude.kinds'), orders: kinds, hasPath: true });
    const whole = fields.map((score) => ({ class: score.class, location: location(score) }));
    if (path) found.push({ label: t('exclude.class', { class: classes }), orders: whole, hasPath: true });
    found.push({ label: t('exclude.field', { class: classes }), orders: whole, hasPath: false });
  }
  const seen = new Set<string>();
  for (const match of [...(event.matches ?? []), ...(event.also_matched ?? [])]) {
    const counts = (match.points ?? 0) > 0 || match.rule_id === event.verdict.rule_id;
    const target = match.target ?? '';
    const key = `${match.rule_id} ${target}`;
    if (!counts || !target || target.startsWith('TX') || seen.has(key)) continue;
    seen.add(key);
    const label = t('exclude.rule', { rule: match.rule_id, target });
    found.push({ label, orders: [{ rule_id: match.rule_id, target }], hasPath: path !== null });
  }
  return { path, choices: found };
}

function location(value: { place: string; name?: string }): string {
  return value.name ? `${value.place}:${value.name}` : value.place;
}

/** One change for all of them: one revision, which is undone at once. */
function adds(orders: Record<string, unknown>[]): Change | null {
  return orders.length > 0 ? { method: 'POST', path: '/exclusions/batch', body: { add: orders } } : null;
}

/** The number of similar events: a false positive comes from many clients, an attack from few. */
function Alike({ event }: { event: WafEvent }) {
  const path = event.request.target.split(/[?#]/)[0] ?? '/';
  // Paths that differ in an id are those of the same page.
  const [before = '', id] = isDoubtful(path) ? [path] : template(path).split('{');
  const { class: name, rule_id: rule } = event.verdict;
  const kind = name ? `class = ${name}` : rule ? `rule = ${rule}` : '';
  const filter = [`site = ${quoted(event.site)}`, `path ${id === undefined ? '=' : '^='} ${quoted(before)}`, 'time >= -7d', kind].filter(Boolean).join(' and ');
  const alike = useLoad((signal) => ask<FacetPage>('/events/facets', { query: { filter, fields: 'client', top: 100 }, signal }), filter);
  const clients = alike.value?.fields['client'];
  // Of what it counts as others, it does not say how many clients they are.
  if (!alike.value || !clients) return null;
  return <p class="notice">{t('exclude.alike', { events: number(alike.value.total), clients: `${clients.others > 0 ? '> ' : ''}${number(clients.values.length)}` })}</p>;
}

/** The outcome of the same request with the exclusion: rules and detectors may both have blocked it. */
function Now({ event }: { event: WafEvent }) {
  const told = useLoad((signal) => ask<Explained>('/explain', { method: 'POST', body: { request_id: event.request_id }, signal }), event.request_id);
  return (
    <>
      <p class="notice good">{t('exclude.done')}</p>
      {told.busy && <Skeleton lines={1} />}
      {told.error !== null && <Failure error={told.error} />}
      {told.value && <p class="now">{t('exclude.now')} <Verdict action={told.value.explanation.verdict.action} /> {visible(told.value.explanation.verdict.reason ?? '')}</p>}
    </>
  );
}

/** The effect of a candidate in a sentence: the false positives it ends, and what else it lets pass. */
function Gain({ candidate: { stored, probed, clears, still } }: { candidate: Candidate }) {
  if (!clears) return <p class="gain dim">{t('exclude.still', { reason: still })}</p>;
  const lost = probed.own.lost + probed.others.lost;
  const tried = probed.own.stopped + probed.others.stopped;
  return (
    <p class="gain">
      {t('exclude.gain', { through: number(stored.let_through), requests: number(stored.stopped), clients: number(stored.clients) })}{' '}
      <span class={probed.others.lost > 0 ? 'bad' : 'dim'}>{lost === 0 ? t('exclude.noLoss', { tried: number(tried) }) : t('exclude.loss', { lost: number(lost), tried: number(tried), others: number(probed.others.lost) })}</span>
    </p>
  );
}

/** The cost of a candidate. */
function Cost({ candidate }: { candidate: Candidate }) {
  const { stored, probed } = candidate;
  return (
    <>
      <ul class="cost dim">
        <li>{t('exclude.stored', { through: number(stored.let_through), requests: number(stored.requests), clients: number(stored.clients) })}</li>
        <li>{t('exclude.own', { lost: number(probed.own.lost), stopped: number(probed.own.stopped) })}</li>
        <li class={probed.others.lost > 0 ? 'bad' : ''}>{t('exclude.others', { lost: number(probed.others.lost), stopped: number(probed.others.stopped) })}</li>
      </ul>
      {probed.lost.length > 0 && (
        <details>
          <summary>{t('exclude.lost')}</summary>
          <ul>{probed.lost.map((lost, at) => <li key={at}><small>{lost.kind}</small> <code class="wrap">{visible(lost.text)}</code></li>)}</ul>
        </details>
      )}
    </>
  );
}

/** The exclusions that were tried on the request, and what each of them costs. */
function Measured({ event, advised, onClose, onDone }: { event: WafEvent; advised: Advised; onClose: () => void; onDone: () => void }) {
  const { candidates, probes, fields } = advised.advice;
  const [chosen, setChosen] = useState(Math.max(0, candidates.findIndex((one) => one.recommended)));
  const [until, setUntil] = useState('');
  const [trial, setTrial] = useState(false);
  const choice = candidates[chosen];
  const end = /^\d{4}-\d{2}-\d{2}$/.test(until) ? { until } : {};
  const change = adds((choice?.exclusions ?? []).map((order) => ({ site: event.site, ...order, ...end, ...(trial ? { trial } : {}) })));
  return (
    <ChangeDialog title={t('exclude.title')} change={change} onClose={onClose} onDone={onDone}>
      <p class="dim">{t('exclude.tried', { probes: number(probes), fields: fields.join(', ') || '-' })}</p>
      <Alike event={event} />
      {candidates.map((one, at) => (
        <div class="choice" key={at}>
          <input id={`choice-${at}`} type="radio" name="choice" checked={at === chosen} autofocus={at === chosen} onChange={() => setChosen(at)} />
          <div class="wrap">
            <label for={`choice-${at}`}>
              {one.recommended && <><Badge tone="good">{t('exclude.recommended')}</Badge> </>}
              <b>{visible(sentence(one.exclusions))}</b>
            </label>
            <Gain candidate={one} />
            <details>
              <summary>{t('exclude.details')}</summary>
              {one.exclusions.map((each) => each.rule_id
                ? `${t('exclude.rule', { rule: each.rule_id, target: each.target ?? '' })}${each.path ? ` · ${each.path}` : ''}`
                : `${each.kind ?? t('exclude.all', { class: each.class ?? '' })} · ${each.location ?? ''}${each.path ? ` · ${each.path}` : ''}`).map((line) => <code class="wrap" key={line}>{visible(line)}</code>)}
              <Cost candidate={one} />
            </details>
          </div>
        </div>
      ))}
      {probes === 0 && <p class="notice warn">{t('exclude.noProbes')}</p>}
      {choice && (
        <label class="choice">
          <input type="checkbox" checked={trial} onChange={(change) => setTrial(change.currentTarget.checked)} />
          <span>{t('exclude.trial')}<br /><small class="dim">{t('exclude.trialHint')}</small></span>
        </label>
      )}
      {choice && <Input label={t('exclude.until')} hint={t('exclude.untilHint')} value={until} onInput={setUntil} type="date" />}
    </ChangeDialog>
  );
}

/** Why there is nothing to choose from. */
function Nothing({ reason, onClose }: { reason: string; onClose: () => void }) {
  return (
    <Dialog title={t('exclude.title')} onClose={onClose}>
      <p class="nothing">{t('exclude.nothing', { reason })}</p>
      <footer><Button tone="primary" onClick={onClose}>{t('app.close')}</Button></footer>
    </Dialog>
  );
}

export function ExcludeDialog({ event, onClose }: { event: WafEvent; onClose: () => void }) {
  const [done, setDone] = useState(false);
  const [turn, setTurn] = useState(0);
  const advised = useLoad((signal) => ask<Advised>('/advise', { method: 'POST', body: { request_id: event.request_id }, signal }), `${event.request_id} ${turn}`);
  if (done) {
    return (
      <Dialog title={t('exclude.title')} onClose={onClose}>
        <Now event={event} />
        <footer>
          <Button onClick={() => { setDone(false); setTurn(turn + 1); }}>{t('exclude.another')}</Button>
          <Button tone="primary" autofocus onClick={onClose}>{t('app.close')}</Button>
        </footer>
      </Dialog>
    );
  }
  if (advised.busy) {
    return <Dialog title={t('exclude.title')} onClose={onClose} wide><p class="dim" role="status">{t('exclude.busy')}</p><Skeleton lines={6} /></Dialog>;
  }
  if (advised.value) return <Measured event={event} advised={advised.value} onClose={onClose} onDone={() => setDone(true)} />;
  // Without a kept request nothing can be tried; what the event says can be excluded all the same.
  if (advised.error instanceof Problem && advised.error.status === 404) return <Unmeasured event={event} onClose={onClose} onDone={() => setDone(true)} />;
  if (advised.error instanceof Problem && advised.error.status === 409) return <Nothing reason={advised.error.message} onClose={onClose} />;
  return (
    <Dialog title={t('exclude.title')} onClose={onClose}>
      <Failure error={advised.error} retry={advised.again} />
      <footer><Button tone="primary" onClick={onClose}>{t('app.close')}</Button></footer>
    </Dialog>
  );
}

/** By what the event says alone. */
function Unmeasured({ event, onClose, onDone }: { event: WafEvent; onClose: () => void; onDone: () => void }) {
  const { path: suggested, choices: all } = choices(event);
  const [chosen, setChosen] = useState(0);
  const [path, setPath] = useState(suggested ?? '');
  const choice = all[chosen];
  if (!choice) return <Nothing reason={event.verdict.reason ?? event.refusal ?? ''} onClose={onClose} />;
  const change = adds(choice.orders.map((order) => ({ site: event.site, ...order, ...(choice.hasPath && path ? { path } : {}) })));
  return (
    <ChangeDialog title={t('exclude.title')} change={change} onClose={onClose} onDone={onDone}>
      <p class="notice warn">{t('exclude.unmeasured')}</p>
      <p class="dim">{t('exclude.intro')}</p>
      <Alike event={event} />
      {all.map((each, at) => (
        <label class="choice" key={each.label}>
          <input type="radio" name="choice" checked={at === chosen} autofocus={at === chosen} onChange={() => setChosen(at)} />
          <span class="wrap">{each.label}<br /><small class="dim">{visible(each.orders.map((one) => Object.values(one).join(' ')).join(', '))}</small></span>
        </label>
      ))}
      {choice.hasPath && <Input label={t('exclude.path')} hint={t('exclude.pathHint')} value={path} onInput={setPath} />}
    </ChangeDialog>
  );
}
