// Events as rows, in the list of events and elsewhere.

import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import type { EventItem, RowEvent, WafEvent } from '../api/types.ts';
import { micros, readable, time, zone } from '../format.ts';
import { language, t } from '../i18n/index.ts';
import { go, href } from '../route.ts';
import { visible } from '../visible.ts';
import { Empty, Verdict } from '../ui/kit.tsx';
import { Rows, type Column } from '../ui/rows.tsx';
import { DEFAULT_COLUMNS, type ColumnName } from './columns.tsx';

/** The rules that an event tells of, each once. */
export function rulesOf(event: Pick<WafEvent, 'also_matched' | 'matches'>): number[] {
  return [...new Set([...(event.matches ?? []), ...(event.also_matched ?? [])].map((match) => match.rule_id))];
}

/** Why, in a sentence, whatever decided. */
export function why(event: RowEvent & Pick<WafEvent, 'matches'>): string {
  const { verdict } = event;
  const control = verdict.control && `${verdict.control.by}: ${verdict.control.name}`;
  const rules = rulesOf(event);
  const noted = verdict.action === 'detect' && rules.length > 0 ? t('events.notedRules', { count: rules.length, rules: rules.join(', ') }) : '';
  return visible(verdict.reason || control || event.refusal || event.upstream_error || noted);
}

/** Method and target, as they can be read. */
function target({ request }: RowEvent): string {
  return `${visible(request.method)} ${readable(request.target)}`;
}

/** A column of one value, shortened where it is too long. */
function plain(title: string, width: string, read: (event: RowEvent) => string | number | undefined): RowColumn {
  return {
    title, width,
    cell: ({ event }) => {
      const text = visible(String(read(event) ?? ''));
      return text === '' ? '–' : <span title={text}>{text}</span>;
    },
  };
}

type RowColumn = Column<EventItem<RowEvent>>;

/** The columns that can be chosen. Made anew for each language. */
const COLUMNS: Record<ColumnName, () => RowColumn> = {
  time: () => ({ title: `${t('app.time')} (${zone()})`, width: '132px', class: 'dim', cell: ({ event }) => <span title={event.time}>{time(event.time)}</span> }),
  verdict: () => ({ title: t('events.verdict'), width: '108px', narrow: '92px', cell: ({ event, outcome }) => <Verdict action={event.verdict.action} outcome={outcome} /> }),
  request: () => ({
    title: t('events.request'), width: 'minmax(160px, 1.6fr)', narrow: 'minmax(0, 1fr)', class: 'two-lines',
    cell: ({ event, count }) => (
      <>
        <a class="wrap" href={href(['event', event.request_id])} title={readable(event.request.target)}>{target(event)}</a>
        <small><span class="narrow-only">{time(event.time)} · </span>{visible(event.server?.host ?? '')} · {event.site}{count > 1 ? ` · ${t('events.count', { count })}` : ''}</small>
      </>
    ),
  }),
  why: () => ({ title: t('events.why'), width: 'minmax(120px, 1.5fr)', cell: ({ event }) => <span title={why(event)}>{why(event)}</span> }),
  client: () => ({
    title: t('events.client'), width: 'minmax(0, 136px)',
    cell: ({ event }) => <>{visible(event.client.addr)}{event.client.country ? ` ${event.client.country}` : ''}</>,
  }),
  status: () => plain(t('events.status'), '52px', (event) => event.response?.status ?? event.verdict.status),
  site: () => plain(t('app.site'), 'minmax(0, 96px)', (event) => event.site),
  route: () => plain(t('app.route'), 'minmax(0, 96px)', (event) => event.route),
  host: () => plain(t('event.host'), 'minmax(0, 128px)', (event) => event.server?.host),
  method: () => plain(t('column.method'), '64px', (event) => event.request.method),
  class: () => plain(t('column.class'), 'minmax(0, 88px)', (event) => event.verdict.class),
  rule: () => plain(t('column.rule'), '72px', (event) => event.verdict.rule_id),
  control: () => plain(t('column.control'), 'minmax(0, 112px)', ({ verdict }) => verdict.control && `${verdict.control.by}:${verdict.control.name}`),
  country: () => plain(t('column.country'), '56px', (event) => event.client.country),
  asn: () => plain(t('column.asn'), '72px', (event) => event.client.asn),
  mode: () => plain(t('event.mode'), '80px', (event) => event.mode),
  upstream: () => plain(t('event.upstream'), 'minmax(0, 144px)', (event) => event.upstream),
  duration: () => plain(t('event.duration'), '72px', (event) => (event.duration_us === undefined ? undefined : micros(event.duration_us))),
  id: () => plain(t('event.id'), 'minmax(0, 136px)', (event) => event.request_id),
};

export function EventRows({ items, columns = DEFAULT_COLUMNS, onEnd, empty, short }: {
  items: EventItem<RowEvent>[]; columns?: ColumnName[]; onEnd?: () => void; empty?: ComponentChildren; short?: boolean;
}) {
  const shown = useMemo(() => columns.map((name) => COLUMNS[name]()), [columns.join(), language()]);
  const open = (item: EventItem<RowEvent>) => go(['event', item.event.request_id]);
  if (short) {
    if (items.length === 0) return <Empty>{t('events.emptyAll')}</Empty>;
    return (
      <div class="scroll" tabIndex={0} role="group">
        <table>
          <tbody>
            {items.map((item) => (
              <tr key={item.cursor}>
                <td class="dim">{time(item.event.time)}</td>
                <td><Verdict action={item.event.verdict.action} outcome={item.outcome} /></td>
                <td class="wrap"><a href={href(['event', item.event.request_id])}>{target(item.event)}</a></td>
                <td class="dim wrap">{why(item.event)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    );
  }
  return (
    <div class="events-table">
      <Rows label={t('events.title')} items={items} keyOf={(item) => item.cursor} rowHeight={48} open={open} onEnd={onEnd} empty={empty} columns={shown} />
    </div>
  );
}
