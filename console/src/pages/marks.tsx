// What people changed in a period: marks on its chart, and a list of them.

import { can } from '../api/role.ts';
import { dateTime } from '../format.ts';
import { t } from '../i18n/index.ts';
import type { Mark } from '../periods.ts';
import { href } from '../route.ts';
import { visible } from '../visible.ts';

/** One line about a mark. */
function words({ what, number, by }: Mark): string {
  if (what === 'reload') return t('marks.reload', { who: by ?? '' });
  return by ? t('marks.revision', { number, who: by }) : t('marks.outside', { number });
}

/** As charts take them. */
export function placed(marks: Mark[]): { time: number; label: string }[] {
  return marks.map((mark) => ({ time: mark.time, label: words(mark) }));
}

export function Marks({ marks }: { marks: Mark[] }) {
  if (marks.length === 0) return null;
  return (
    <ul class="marks" aria-label={t('marks.title')}>
      {marks.map((mark) => (
        <li key={`${mark.what} ${mark.number}`}>
          <span class="dim">{dateTime(mark.time)}</span>{' '}
          {mark.what === 'revision' && can('admin') ? <a href={href(['revisions'], { number: mark.number })}>{words(mark)}</a> : words(mark)}
          {mark.reason && <span class="wrap"> · {visible(mark.reason)}</span>}
        </li>
      ))}
    </ul>
  );
}
