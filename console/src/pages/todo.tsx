// The overview begins with what needs the operator: each task with what speaks for it and what to do.

import { useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import { can } from '../api/role.ts';
import type { Ban, Certificate, Explained, FacetPage, FieldProposal, GroupPage, Live, Page, Site, Statistics, Upstream } from '../api/types.ts';
import { t } from '../i18n/index.ts';
import { useLoad, type Loaded } from '../load.ts';
import { windowOf } from '../range.ts';
import { attackerTasks, ATTACKERS_OF, certificateTasks, falsePositiveTasks, offerTasks, proposalTasks, siteTasks, sorted, uninspectedTasks, upstreamTasks, type Task } from '../todo.ts';
import { Badge, Button, Card, Empty, Skeleton } from '../ui/kit.tsx';
import { visible } from '../visible.ts';
import { BanDialog } from './ban.tsx';

const REFRESH_MS = 30_000;
/** Tasks that were put off in this browser, until when. */
const HIDDEN = 'portcullis.tasks';
const HIDDEN_MS = 7 * 86_400_000;
const SHOWN_MAX = 12;

export function Tasks() {
  const day = useLoad((signal) => ask<Statistics>('/statistics', { query: { ...span('24h'), top: 16 }, signal }), 'day', REFRESH_MS);
  const week = useLoad((signal) => ask<Statistics>('/statistics', { query: { ...span('7d'), top: 8 }, signal }), 'week', REFRESH_MS);
  const sites = useLoad((signal) => ask<Live<Site>>('/sites', { query: { limit: 1000 }, signal }), 'sites', REFRESH_MS);
  const upstreams = useLoad((signal) => ask<Live<Upstream>>('/upstreams', { query: { limit: 1000 }, signal }), 'upstreams', REFRESH_MS);
  const certificates = useLoad((signal) => ask<Live<Certificate>>('/certificates', { query: { limit: 1000 }, signal }), 'certificates', REFRESH_MS);
  const proposals = useLoad((signal) => ask<Page<FieldProposal>>('/fields/proposals', { query: { limit: 1000 }, signal }), 'proposals', REFRESH_MS);
  const attackers = useLoad((signal) => ask<FacetPage>('/events/facets', { query: { filter: ATTACKERS_OF, fields: 'client', top: 10 }, signal }), 'attackers', REFRESH_MS);
  const bans = useLoad((signal) => ask<Page<Ban>>('/bans', { query: { limit: 1000 }, signal }), 'bans', REFRESH_MS);
  const groups = useLoad(likely, 'groups', REFRESH_MS);
  const [hidden, setHidden] = useState(putOff);
  const [showAll, setShowAll] = useState(false);
  const [banning, setBanning] = useState<string | null>(null);
  const all: [Loaded<unknown>, () => Task[]][] = [
    [upstreams, () => upstreamTasks(upstreams.value!.items)],
    [certificates, () => certificateTasks(certificates.value!.items, Date.now() / 1000)],
    [attackers, () => attackerTasks(attackers.value!, (bans.value?.items ?? []).map((ban) => ban.client))],
    [groups, () => falsePositiveTasks(groups.value!.items, groups.value!.passing)],
    [both(sites, week), () => siteTasks(sites.value!.items, week.value!.items)],
    [sites, () => offerTasks(sites.value!.items)],
    [proposals, () => proposalTasks(proposals.value!.items)],
    [day, () => uninspectedTasks(day.value!.items)],
  ];
  const tasks = sorted(all.flatMap(([source, find]) => (source.value === null ? [] : find())));
  const isHidden = (task: Task) => (hidden[task.key] ?? 0) > Date.now();
  const shown = showAll ? tasks : tasks.filter((task) => !isHidden(task)).slice(0, SHOWN_MAX);
  const left = tasks.length - shown.length;
  const waits = all.some(([source]) => source.value === null && source.error === null);
  const failed = all.filter(([source]) => source.error !== null && source.value === null).length;
  const put = (task: Task) => {
    const next = { ...Object.fromEntries(Object.entries(hidden).filter(([, until]) => until > Date.now())), [task.key]: Date.now() + HIDDEN_MS };
    localStorage.setItem(HIDDEN, JSON.stringify(next));
    setHidden(next);
  };
  return (
    <Card id="tasks" title={t('todo.title')} aside={left > 0 || showAll
      ? <Button tone="ghost" onClick={() => setShowAll(!showAll)}>{t(showAll ? 'todo.fewer' : 'todo.others', { count: left })}</Button> : undefined}>
      {failed > 0 && <p class="notice warn" role="status">{t('todo.failed', { count: failed })}</p>}
      {shown.length === 0 && waits && <Skeleton lines={2} />}
      {tasks.length === 0 && !waits && failed === 0 && <Empty>{t('todo.nothing')}</Empty>}
      {shown.length > 0 && (
        <ul class="tasks">
          {shown.map((task) => (
            <li key={task.key}>
              <Badge tone={task.tone}>{t(`todo.${task.tone}`)}</Badge>
              <div class="wrap"><b>{visible(task.title)}</b><p class="dim">{visible(task.evidence)}</p></div>
              <div class="inline">
                {task.client !== undefined && can('analyst') && <Button icon="ban" aria-label={`${t('ban.do')} ${task.client}`} onClick={() => setBanning(task.client!)}>{t('ban.do')}</Button>}
                {task.links.map((link) => <a class="button" key={link.href} href={link.href} aria-label={`${t(link.label)}: ${visible(task.title)}`}>{t(link.label)}</a>)}
                {!isHidden(task) && <Button tone="ghost" icon="close" title={t('todo.hide')} aria-label={`${t('todo.hide')}: ${visible(task.title)}`} onClick={() => put(task)} />}
              </div>
            </li>
          ))}
        </ul>
      )}
      {banning !== null && <BanDialog client={banning} reason={t('todo.attacker', { client: banning })} onClose={() => setBanning(null)} onDone={() => { setBanning(null); bans.again(); attackers.again(); }} />}
    </Card>
  );
}

function span(range: '24h' | '7d'): { from: number; to: number } {
  const { from, to } = windowOf(range);
  return { from, to };
}

/** Two that are needed together. */
function both(one: Loaded<unknown>, other: Loaded<unknown>): Loaded<unknown> {
  return one.value === null ? one : other;
}

/** Verdicts of requests by the settings that serve: to ask again takes the engine again. */
let passes: { generation: number; of: Map<string, boolean> } = { generation: 0, of: new Map() };

/** Groups that look like false positives, and which of their newest requests pass by now: these are dealt with. */
async function likely(signal: AbortSignal): Promise<{ items: GroupPage['items']; passing: Set<string> }> {
  const { items } = await ask<GroupPage>('/advise/groups', { query: { filter: 'outcome in (blocked, would_block) and time >= -7d', limit: 10 }, signal });
  const { generation } = await ask<Live<Site>>('/sites', { query: { limit: 1 }, signal });
  if (passes.generation !== generation) passes = { generation, of: new Map() };
  for (const { newest, clients_with_nothing_else: only } of items) {
    if (newest === null || only < 3 || !can('analyst') || passes.of.has(newest)) continue;
    const told = await ask<Explained>('/explain', { method: 'POST', body: { request_id: newest }, signal }).catch(() => null);
    if (told) passes.of.set(newest, told.explanation.verdict.action === 'pass');
  }
  return { items, passing: new Set([...passes.of].filter(([, pass]) => pass).map(([id]) => id)) };
}

function putOff(): Record<string, number> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(HIDDEN) ?? '{}');
    return typeof stored === 'object' && stored !== null ? (stored as Record<string, number>) : {};
  } catch {
    return {};
  }
}
