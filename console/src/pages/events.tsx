// The events: filter, facets, live, saved views, export.

import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask, Problem, url } from '../api/http.ts';
import type { EventItem, EventPage, FacetPage, RowEvent } from '../api/types.ts';
import { attacks } from '../attacks.ts';
import { both, moment, number, quoted, readable, time } from '../format.ts';
import { t, type Key } from '../i18n/index.ts';
import { useLoad, useReturn } from '../load.ts';
import { added, period, within } from '../query.ts';
import { RANGES } from '../range.ts';
import { href, refine, type Place } from '../route.ts';
import { Icon } from '../ui/icon.tsx';
import { Button, Card, Empty, Failure, PageHead, Select, Skeleton, Tabs, Verdict } from '../ui/kit.tsx';
import { PeriodDialog } from '../ui/period.tsx';
import { SearchBox } from '../ui/search.tsx';
import { visible } from '../visible.ts';
import { useZoomKey, zoomIn, zoomOut } from '../ui/zoom.ts';
import { ColumnsButton, columnsOf } from './columns.tsx';
import { EventRows, rulesOf, why } from './event-rows.tsx';
import { Histogram } from './histogram.tsx';
import { Views } from './views.tsx';

type Kind = 'detections' | 'noted' | 'access' | 'all';
/** Lists, limits, bans and overload decide about clients, not about what they sent. */
const KINDS: Record<Kind, string> = { detections: 'not outcome in (control, noted)', noted: 'outcome = noted', access: 'outcome = control', all: '' };
const KIND_TITLES: [Kind, Key][] = [
  ['detections', 'events.detections'], ['noted', 'events.noted'], ['access', 'events.access'], ['all', 'events.everything'],
];
const FIELDS = ['outcome', 'verdict', 'class', 'rule', 'site', 'client', 'path', 'method', 'status', 'country', 'control'];
/** Rules that a row names. */
const NAMED_RULES = 4;
const PAGE = 200;
const KEPT_MAX = 100_000;
/** New events are shown together, this often at most. */
const SHOW_MS = 200;

type Item = EventItem<RowEvent>;

/** The members of an event that the list needs: with a hundred thousand, the rest would fill the memory. */
function row({ cursor, count, has_request, node, outcome, event }: EventItem): Item {
  const {
    request_id, time, site, route, mode, client, server, request: { method, target }, response, duration_us, verdict, refusal, upstream, upstream_error,
  } = event;
  return {
    cursor, count, has_request, node, outcome,
    event: {
      request_id, time, site, route, mode, client: { addr: client.addr, country: client.country, asn: client.asn }, server: { host: server?.host },
      request: { method, target }, response: { status: response?.status }, duration_us, verdict, refusal, upstream, upstream_error,
      also_matched: outcome === 'noted' ? rulesOf(event).slice(0, NAMED_RULES).map((rule_id) => ({ rule_id })) : [],
    },
  };
}

export function EventsPage({ place }: { place: Place }) {
  const filter = place.query.get('filter') ?? '';
  const kind = (place.query.get('kind') ?? 'detections') as Kind;
  const view = place.query.get('view') ?? 'list';
  const [live, setLive] = useState(true);
  const whole = both(filter, KINDS[kind] ?? '');
  const list = useEvents(whole, live);
  const columns = columnsOf(place.query.get('columns'));
  const isPart = period(filter).to !== '';
  const widen = () => refine({ filter: within(filter, { from: '', to: '' }) });
  useZoomKey(isPart, widen);
  return (
    <>
      <PageHead title={t('events.title')}>
        <Tabs<Kind> label={t('events.kind')} value={kind} onChange={(next) => refine({ kind: next })}
          options={KIND_TITLES.map(([each, title]) => [each, t(title)])} />
        <Tabs label={t('events.view')} value={view} onChange={(next) => refine({ view: next })} options={[['list', t('events.list')], ['attacks', t('events.grouped')]]} />
        <Button icon={live ? 'eye' : 'try'} aria-pressed={live} onClick={() => setLive(!live)}>{t(live ? 'events.live' : 'events.paused')}</Button>
        {view === 'list' && <ColumnsButton columns={columns} />}
        <Export filter={whole} />
      </PageHead>
      <FilterBar filter={filter} error={list.error} />
      {list.note && <p class="notice warn" role="status">{list.note}</p>}
      <div class="with-facets">
        <Facets filter={filter} whole={whole} />
        <div>
          {list.error === null && (
            <Histogram filter={whole} live={live} onZoom={(from, to) => zoomIn({ filter: within(filter, { from: moment(from), to: moment(to) }) })} />
          )}
          {list.error !== null && !(list.error instanceof Problem && list.error.kind === 'filter') && <Failure error={list.error} retry={list.again} />}
          {list.items === null ? list.error === null && <Card><Skeleton lines={10} /></Card>
            : view === 'attacks' ? <Attacks items={list.items} more={list.hasMore ? list.more : undefined} empty={<Nothing filter={filter} kind={kind} />} />
              : <EventRows items={list.items} columns={columns} onEnd={list.more} empty={<Nothing filter={filter} kind={kind} />} />}
        </div>
      </div>
    </>
  );
}

/** Nothing of this kind; what passes the filter may be of another. */
function Nothing({ filter, kind }: { filter: string; kind: Kind }) {
  const others = useLoad(async (signal) => {
    if (kind === 'all') return null;
    return ask<FacetPage>('/events/facets', { query: { filter, fields: 'outcome', top: 10 }, signal });
  }, `${filter} ${kind}`);
  const count = others.value?.total ?? 0;
  return (
    <Card>
      <Empty>{t(filter ? 'events.empty' : 'events.emptyAll')}</Empty>
      {count > 0 && (
        <p class="elsewhere">{t('events.elsewhere', { count: number(count) })}{' '}
          {KIND_TITLES.filter(([each]) => each !== kind && isIn(each, others.value)).map(([each, title]) => (
            <Button key={each} onClick={() => refine({ kind: each })}>{t(title)}</Button>
          ))}
        </p>
      )}
    </Card>
  );
}

/** True if events of a kind are among those that were counted. */
function isIn(kind: Kind, page: FacetPage | null): boolean {
  const found = (page?.fields['outcome']?.values ?? []).map(({ value }) => value);
  switch (kind) {
    case 'noted': return found.includes('noted');
    case 'access': return found.includes('control');
    case 'detections': return (page?.fields['outcome']?.without ?? 0) > 0 || found.some((each) => each !== 'noted' && each !== 'control');
    case 'all': return true;
  }
}

/** Events that pass a filter: pages of older ones on demand, new ones as they come. */
function useEvents(filter: string, live: boolean) {
  const [items, setItems] = useState<Item[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [note, setNote] = useState('');
  const [turn, setTurn] = useState(0);
  const older = useRef<string | null>(null);
  const busy = useRef(false);
  const take = (page: EventPage) => {
    older.current = page.next;
    setNote([page.complete ? '' : t('app.incomplete'), page.skipped.length ? t('app.skipped', { parts: page.skipped.join(', ') }) : ''].join(' ').trim());
  };
  useEffect(() => {
    const control = new AbortController();
    setItems(null);
    setError(null);
    busy.current = true;
    ask<EventPage>('/events', { query: { filter, limit: PAGE }, signal: control.signal }).then((page) => {
      take(page);
      setItems(page.items.map(row));
    }, (problem: unknown) => !control.signal.aborted && setError(problem)).finally(() => { busy.current = false; });
    return () => control.abort();
  }, [filter, turn]);
  useEffect(() => {
    if (!live || error !== null) return undefined;
    const source = new EventSource(url('/events/stream', { filter }));
    let waiting: Item[] = [];
    const timer = setInterval(() => {
      if (waiting.length === 0) return;
      const fresh = waiting;
      waiting = [];
      setItems((old) => {
        if (old === null) return old;
        const known = new Set(old.slice(0, PAGE).map((each) => each.cursor));
        return [...fresh.filter((each) => !known.has(each.cursor)), ...old].slice(0, KEPT_MAX);
      });
    }, SHOW_MS);
    // Events that came while there was no stream, if they fit one page; else the list begins anew.
    source.addEventListener('open', () => {
      ask<EventPage>('/events', { query: { filter, limit: PAGE } }).then((page) => {
        setItems((old) => merged(old, page, (next) => { older.current = next; }));
      }, () => undefined);
    });
    source.addEventListener('event', (message) => {
      waiting.unshift(row(JSON.parse((message as MessageEvent<string>).data) as EventItem));
    });
    return () => {
      clearInterval(timer);
      source.close();
    };
  }, [filter, live, error]);
  const more = useCallback(() => {
    if (busy.current || older.current === null) return;
    busy.current = true;
    ask<EventPage>('/events', { query: { filter, limit: PAGE, before: older.current } }).then((page) => {
      take(page);
      setItems((old) => [...(old ?? []), ...page.items.map(row)].slice(0, KEPT_MAX));
    }, setError).finally(() => { busy.current = false; });
  }, [filter]);
  const again = useCallback(() => setTurn((old) => old + 1), []);
  useReturn(error, again);
  return { items, error, note, more, hasMore: older.current !== null, again };
}

/** The newest page put before what is there. Without an event in common there is a gap, and the page stands alone. */
function merged(old: Item[] | null, page: EventPage, beginAt: (next: string | null) => void): Item[] | null {
  if (old === null) return old;
  const known = new Set(old.slice(0, 2 * PAGE).map((item) => item.cursor));
  const fresh = page.items.filter((item) => !known.has(item.cursor)).map(row);
  if (fresh.length < page.items.length || old.length === 0 || page.next === null) {
    if (old.length === 0) beginAt(page.next);
    return [...fresh, ...old].slice(0, KEPT_MAX);
  }
  beginAt(page.next);
  return fresh;
}

function FilterBar({ filter, error }: { filter: string; error: unknown }) {
  const mistake = error instanceof Problem && error.kind === 'filter' ? error.body : null;
  return (
    <div class="filter-bar">
      <div class="line">
        {/* What is looked for by itself may be of any kind. */}
        <SearchBox filter={filter} mistake={mistake ? (mistake.column ?? 1) - 1 : null}
          onFilter={(next, reading) => refine({ filter: next, ...(reading && reading.kind !== 'filter' ? { kind: 'all' } : {}) })} />
        <PeriodSelect filter={filter} />
        <Views name={filter} />
      </div>
      <p class="error" id="filter-mistake" role="alert" hidden={!mistake}>
        {mistake && t('events.mistake', { column: mistake.column ?? 1, message: mistake.detail ?? mistake.title })}
      </p>
    </div>
  );
}

/** The time that the filter is about: any, up to now, or from one moment to another. */
function PeriodSelect({ filter }: { filter: string }) {
  const [choosing, setChoosing] = useState(false);
  const { from, to } = period(filter);
  const last = RANGES.find(([name]) => from === `-${name}` && to === '')?.[0] ?? '';
  const custom = last === '' && (from !== '' || to !== '');
  const choose = (next: string) => {
    if (next === 'custom') setChoosing(true);
    else refine({ filter: within(filter, { from: next && `-${next}`, to: '' }) });
  };
  return (
    <>
      <Select hidden label={t('range.label')} value={custom ? 'custom' : last} onChange={choose}
        options={[['', t('range.any')], ...RANGES.map(([name, key]): [string, string] => [name, t(key)]), ['custom', t('range.custom')]]} />
      {custom && <Button tone="ghost" onClick={() => setChoosing(true)}>{t('range.change')}</Button>}
      {to !== '' && (
        <Button tone="ghost" icon="back" title={t('chart.back')} onClick={() => zoomOut(() => refine({ filter: within(filter, { from: '', to: '' }) }))}>{t('chart.backShort')}</Button>
      )}
      {choosing && <PeriodDialog from={from} to={to} onChoose={(first, last) => refine({ filter: within(filter, { from: first, to: last }) })} onClose={() => setChoosing(false)} />}
    </>
  );
}

function Facets({ filter, whole }: { filter: string; whole: string }) {
  const facets = useLoad((signal) => ask<FacetPage>('/events/facets', { query: { filter: whole, fields: FIELDS.join(','), top: 6 }, signal }), whole, 10_000);
  const add = (term: string) => refine({ filter: added(filter, term) });
  return (
    <aside class="facets" aria-label={t('events.facets')}>
      {facets.value && <p class="dim">{t('events.total', { count: number(facets.value.total) })}</p>}
      {!facets.value && facets.error === null && <Skeleton lines={12} />}
      {FIELDS.map((field) => {
        const facet = facets.value?.fields[field];
        if (!facet || facet.values.length === 0) return null;
        return (
          <section class="facet" key={field}>
            <h2>{field}</h2>
            <ul>
              {facet.values.map(({ value, count }) => (
                <li key={value}>
                  <button type="button" class="pick" title={t('events.only', { value })} onClick={() => add(`${field} = ${quoted(value)}`)}>{visible(value)}</button>
                  <span class="dim">{number(count)}</span>
                  <button type="button" class="not" aria-label={t('events.exclude', { value })} title={t('events.exclude', { value })}
                    onClick={() => add(`not ${field} = ${quoted(value)}`)}><Icon name="minus" /></button>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </aside>
  );
}

/** Of the events that are loaded: their number is told, and older ones can be added. */
function Attacks({ items, more, empty }: { items: Item[]; more?: () => void; empty: ComponentChildren }) {
  const groups = useMemo(() => attacks(items), [items]);
  if (groups.length === 0) return <>{empty}</>;
  return (
    <div class="stack">
      <p class="dim inline">{t('events.groupedOf', { count: number(items.length) })} {more && <Button onClick={more}>{t('app.more')}</Button>}</p>
      {groups.slice(0, 200).map((attack) => {
        const term = attack.kind.startsWith('rule ') ? `rule = ${attack.kind.slice(5)}` : attack.items[0]?.event.verdict.class ? `class = ${attack.kind}` : '';
        const [latest] = attack.items;
        return (
          <Card key={`${attack.network} ${attack.kind} ${attack.last}`}
            title={visible(`${attack.kind} · ${attack.network}`)} aside={<Verdict action={attack.worst} />}>
            <p>{t('events.attack', { count: number(attack.count), span: `${time(attack.first)} – ${time(attack.last)}` })} · {t('events.targets', { count: attack.targets.size })}</p>
            {latest && <p class="dim wrap">{visible(latest.event.request.method)} {readable(latest.event.request.target)}</p>}
            <a href={href(['events'], { filter: both(`client in ${attack.network}`, term), kind: 'all' })}>{t('sites.look')}</a>
          </Card>
        );
      })}
    </div>
  );
}

/** The events that match the filter, up to ten thousand, as a file. */
function Export({ filter }: { filter: string }) {
  const [busy, setBusy] = useState(false);
  const save = async (format: 'jsonl' | 'csv') => {
    setBusy(true);
    try {
      const all: EventItem[] = [];
      let before: string | null = null;
      do {
        const page: EventPage = await ask<EventPage>('/events', { query: { filter, limit: 1000, before } });
        all.push(...page.items);
        before = page.next;
      } while (before !== null && all.length < 10_000);
      const text = format === 'jsonl' ? all.map((item) => JSON.stringify(item.event)).join('\n') : csv(all);
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: format === 'csv' ? 'text/csv' : 'application/x-ndjson' }));
      link.download = `events.${format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Select hidden label={t('events.export')} value="" onChange={(format) => { if (format && !busy) void save(format as 'jsonl' | 'csv'); }}
      options={[['', t('events.export')], ['jsonl', 'JSON lines'], ['csv', 'CSV']]} />
  );
}

const COLUMNS: [Key | 'id', (item: EventItem) => unknown][] = [
  ['app.time', ({ event }) => event.time], ['id', ({ event }) => event.request_id], ['app.site', ({ event }) => event.site],
  ['events.verdict', ({ event }) => event.verdict.action], ['events.status', ({ event }) => event.response?.status],
  ['events.client', ({ event }) => event.client.addr], ['events.request', ({ event }) => `${event.request.method} ${event.request.target}`],
  ['events.why', ({ event }) => why(event)],
];

/** A text of a client must not become a formula in a spreadsheet. */
export function csv(items: EventItem[]): string {
  const cell = (value: unknown) => {
    const text = String(value ?? '');
    return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  };
  const head = COLUMNS.map(([key]) => cell(key === 'id' ? 'id' : t(key)));
  return [head, ...items.map((item) => COLUMNS.map(([, read]) => cell(read(item))))].map((row) => row.join(',')).join('\r\n');
}
