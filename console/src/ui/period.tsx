// The time that a page is about: up to now, or from one moment to another.

import { useState } from 'preact/hooks';
import { localTime, moment, time, zone } from '../format.ts';
import { t } from '../i18n/index.ts';
import { RANGES, rangeOf, windowFrom, type Range } from '../range.ts';
import { refine, type Place } from '../route.ts';
import { Button, Dialog, Input, Tabs } from './kit.tsx';
import { zoomOut } from './zoom.ts';

/** `from`, `to`: as a filter has them. What is chosen is in RFC 3339, or empty. */
export function PeriodDialog({ from: first, to: last, bounded, onChoose, onClose }: {
  from: string; to: string; bounded?: boolean; onChoose: (from: string, to: string) => void; onClose: () => void;
}) {
  const [from, setFrom] = useState(localTime(first));
  const [to, setTo] = useState(localTime(last));
  const submit = (event: Event) => {
    event.preventDefault();
    const chosen = (text: string) => (text ? new Date(text).toISOString().replace('.000', '') : '');
    onChoose(chosen(from), chosen(to));
    onClose();
  };
  return (
    <Dialog title={t('range.custom')} onClose={onClose} onSubmit={submit}>
      <Input type="datetime-local" label={t('range.from')} value={from} onInput={setFrom} max={to || undefined} required={bounded} />
      <Input type="datetime-local" label={t('range.to')} hint={t(bounded ? 'range.zoneOnly' : 'range.zone', { zone: zone() })} value={to} onInput={setTo}
        min={from || undefined} required={bounded} />
      <footer><Button onClick={onClose}>{t('app.cancel')}</Button><Button tone="primary" type="submit">{t('app.apply')}</Button></footer>
    </Dialog>
  );
}

/** From one moment to another, in seconds. */
export function span(from: number, to: number): string {
  return `${time(moment(from))} – ${time(moment(to))}`;
}

/** The ranges up to now, and one of the calendar, of a page whose URL has `range`, or `from` and `to`. */
export function PeriodTabs({ place }: { place: Place }) {
  const [choosing, setChoosing] = useState(false);
  const { from, to, fixed } = windowFrom(place.query);
  const widen = () => refine({ from: null, to: null });
  const seconds = (text: string) => Date.parse(text) / 1000;
  return (
    <>
      {fixed && <Button tone="ghost" icon="close" title={t('chart.back')} onClick={() => zoomOut(widen)}>{span(from, to)}</Button>}
      <Tabs label={t('range.label')} value={fixed ? '' as Range : rangeOf(place.query.get('range'))}
        onChange={(next) => refine({ range: next, from: null, to: null })} options={RANGES.map(([name, key]) => [name, t(key)])} />
      <Button tone="ghost" onClick={() => setChoosing(true)}>{t('range.custom')}</Button>
      {choosing && (
        <PeriodDialog from={moment(from)} to={moment(to)} bounded onClose={() => setChoosing(false)}
          onChoose={(first, last) => refine({ from: seconds(first), to: seconds(last) })} />
      )}
    </>
  );
}
