// Events as rows, in the list of events and elsewhere.

import type { ComponentChildren } from 'preact';
import type { EventItem, RowEvent, WafEvent } from '../api/types.ts';
import { readable, time, zone } from '../format.ts';
import { t } from '../i18n/index.ts';
import { go, href } from '../route.ts';
import { visible } from '../visible.ts';
import { Empty, Verdict } from '../ui/kit.tsx';
import { Rows } from '../ui/rows.tsx';

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

export function EventRows({ items, onEnd, empty, short }: {
  items: EventItem<RowEvent>[]; onEnd?: () => void; empty?: ComponentChildren; short?: boolean;
}) {
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
      <Rows label={t('events.title')} items={items} keyOf={(item) => item.cursor} rowHeight={48} open={open} onEnd={onEnd} empty={empty}
        columns={[
          { title: `${t('app.time')} (${zone()})`, class: 'wide-only dim', cell: ({ event }) => <span title={event.time}>{time(event.time)}</span> },
          { title: t('events.verdict'), cell: ({ event, outcome }) => <Verdict action={event.verdict.action} outcome={outcome} /> },
          {
            title: t('events.request'), class: 'two-lines',
            cell: ({ event, count }) => (
              <>
                <a class="wrap" href={href(['event', event.request_id])} title={readable(event.request.target)}>{target(event)}</a>
                <small><span class="narrow-only">{time(event.time)} · </span>{visible(event.server?.host ?? '')} · {event.site}{count > 1 ? ` · ${t('events.count', { count })}` : ''}</small>
              </>
            ),
          },
          { title: t('events.why'), class: 'wide-only', cell: ({ event }) => <span title={why(event)}>{why(event)}</span> },
          { title: t('events.client'), class: 'wide-only', cell: ({ event }) => <>{visible(event.client.addr)}{event.client.country ? ` ${event.client.country}` : ''}</> },
          { title: t('events.status'), class: 'wide-only', cell: ({ event }) => event.response?.status ?? event.verdict.status ?? '–' },
        ]} />
    </div>
  );
}
