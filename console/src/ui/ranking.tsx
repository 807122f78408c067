// The most frequent of something as a ranked table: what it is, how often, and its share or its events.

import { number, percent } from '../format.ts';
import { t } from '../i18n/index.ts';
import { visible } from '../visible.ts';
import { Empty, Fill } from './kit.tsx';

/** `events`: those that the link leads to, where `count` counts something else. */
export interface Ranked { value: string; name?: string; count: number; href?: string; events?: number; approximate?: boolean }

/** `total`: what the shares are of. */
export function Ranking({ title, items, total, unit, empty = t('app.none') }: {
  title: string; items: Ranked[]; total: number; unit: string; empty?: string;
}) {
  if (items.length === 0) return <Empty>{empty}</Empty>;
  const hasEvents = items.some(({ events }) => events !== undefined);
  return (
    <table class="ranking" aria-label={title}>
      <thead class={hasEvents ? '' : 'visually-hidden'}><tr>
        <th scope="col"><span class="visually-hidden">{t('ranking.rank')}</span></th><th scope="col"><span class="visually-hidden">{title}</span></th>
        <th scope="col" class="right">{unit}</th><th scope="col" class="right">{t(hasEvents ? 'nav.events' : 'ranking.share')}</th>
      </tr></thead>
      <tbody>{items.map(({ value, name = visible(value), count, href, events, approximate }, at) => {
        const target = events ?? count;
        return (
          <tr key={value}>
            <td class="dim rank">{at + 1}</td>
            <td class="wrap"><Fill share={total > 0 ? count / total : 0} />{href && events === undefined ? <a href={href} data-count={target}>{name}</a> : <span>{name}</span>}</td>
            <td class="right"><b>{approximate ? '≤ ' : ''}{number(count)}</b></td>
            {!hasEvents ? <td class="right dim">{percent(count, total)}</td> : <td class="right">{href && target > 0 ? <a href={href} data-count={target}>{number(target)}</a> : <span class="dim">{number(0)}</span>}</td>}
          </tr>
        );
      })}</tbody>
    </table>
  );
}
