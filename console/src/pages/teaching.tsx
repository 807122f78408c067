// Teaching a site by hand: what an administrator does in the next minutes is benign, and counts once it is confirmed.

import { useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import { can } from '../api/role.ts';
import type { TaughtField, TeachingSession, TeachingSessions } from '../api/types.ts';
import { typeTitle } from '../fields.ts';
import { number, time } from '../format.ts';
import { t, type Key } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { Badge, Button, Card, Dialog, Failure, Input, Select } from '../ui/kit.tsx';
import { visible } from '../visible.ts';

const MINUTES = ['5', '15', '30', '60'];
const TONES = { new: 'info', known: 'info', closes: 'good', opens: 'warn', widens: 'warn', no_room: 'bad' } as const;
type Order = 'stop' | 'accept' | 'dismiss';

export function Teaching({ site, onChange }: { site: string; onChange: () => void }) {
  const list = useLoad((signal) => ask<TeachingSessions>('/fields/sessions', { signal }), site, 5_000);
  const [starting, setStarting] = useState(false);
  const [deciding, setDeciding] = useState<Order | null>(null);
  const session = list.value?.items.find((each) => each.site === site);
  const done = () => { setStarting(false); setDeciding(null); list.again(); onChange(); };
  // A dialog that is open stays while the server is gone.
  if (list.error !== null && !list.value) return <Failure error={list.error} retry={list.again} />;
  if (!list.value || (!session && !can('admin'))) return null;
  return (
    <Card title={t('teaching.title')} id="teaching">
      {session ? <Shown session={session} /> : <p class="dim">{t('teaching.intro')}</p>}
      {can('admin') && (
        <footer>
          {!session && <Button onClick={() => setStarting(true)}>{t('teaching.start')}</Button>}
          {session?.is_running && <Button onClick={() => setDeciding('stop')}>{t('teaching.stop')}</Button>}
          {session && !session.is_running && session.requests > 0 && <Button tone="primary" onClick={() => setDeciding('accept')}>{t('teaching.accept')}</Button>}
          {session && <Button tone="danger" onClick={() => setDeciding('dismiss')}>{t('teaching.dismiss')}</Button>}
        </footer>
      )}
      {starting && <Start site={site} address={list.value.address} onClose={() => setStarting(false)} onDone={done} />}
      {session && deciding && <Decide session={session} order={deciding} onClose={() => { setDeciding(null); list.again(); }} onDone={done} />}
    </Card>
  );
}

/** The learned fields, and the effect of accepting them. */
function Shown({ session }: { session: TeachingSession }) {
  const whose = session.network ?? t('teaching.trusted');
  const until = { whose, by: visible(session.by), until: time(session.until), dropped: time(session.dropped) };
  return (
    <>
      <p role="status">{t(session.is_running ? 'teaching.running' : 'teaching.ended', until)}</p>
      <p class="dim">{t('teaching.counts', { requests: number(session.requests), refused: number(session.refused) })}</p>
      {session.beyond_limit > 0 && <p class="notice">{t('teaching.beyond', { count: number(session.beyond_limit) })}</p>}
      {session.fields.length > 0 && (
        <div class="scroll" tabIndex={0} role="group" aria-label={t('teaching.title')}>
          <table class="stacked">
            <thead><tr><th scope="col">{t('fields.field')}</th><th scope="col">{t('fields.carries')}</th><th scope="col">{t('teaching.effect')}</th></tr></thead>
            <tbody>{session.fields.map((each) => <Row key={`${each.method} ${each.path} ${each.place} ${each.name}`} field={each} />)}</tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Row({ field }: { field: TaughtField }) {
  return (
    <tr>
      <td class="wrap">{visible(`${field.place}:${field.name}`)}<div class="dim">{visible(`${field.method} ${field.path}`)}</div></td>
      <td class="wrap">{t('teaching.values', { count: number(field.values), types: field.types.map(typeTitle).join(', ') })}</td>
      <td class="wrap">
        <Badge tone={TONES[field.effect]}>{t(`teaching.effect.${field.effect}` as Key)}</Badge>
        {field.kinds.map((each) => <div key={each.kind}><code>{visible(each.kind)}</code> {t(`teaching.kind.${each.effect}` as Key)}</div>)}
      </td>
    </tr>
  );
}

function Start({ site, address, onClose, onDone }: { site: string; address: string; onClose: () => void; onDone: () => void }) {
  const [whose, setWhose] = useState<'network' | 'trusted'>('network');
  const [network, setNetwork] = useState(address);
  const [minutes, setMinutes] = useState('15');
  const [reason, setReason] = useState('');
  const send = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    void send.run(async () => {
      const clients = whose === 'network' ? { network: network.trim() } : { trusted: true };
      await ask('/fields/sessions/start', { method: 'POST', body: { site, ...clients, minutes: Number(minutes), ...(reason ? { reason } : {}) } });
      onDone();
    });
  };
  return (
    <Dialog title={t('teaching.start')} onClose={onClose} onSubmit={submit}>
      <p class="notice">{t('teaching.about')}</p>
      <Select label={t('teaching.whose')} value={whose} onChange={setWhose}
        options={[['network', t('teaching.network')], ['trusted', t('teaching.trusted')]]} />
      {whose === 'network' && <Input label={t('teaching.network')} hint={t('teaching.networkHint', { address })} value={network} onInput={setNetwork} required maxLength={64} />}
      <Select label={t('teaching.minutes')} value={minutes} onChange={setMinutes} options={MINUTES.map((each): [string, string] => [each, each])} />
      <Input label={t('app.reason')} hint={t('fields.reasonHint')} value={reason} onInput={setReason} maxLength={1000} />
      {send.error !== null && <Failure error={send.error} />}
      <footer>
        <Button onClick={onClose}>{t('app.cancel')}</Button>
        <Button tone="primary" type="submit" disabled={send.busy}>{t('teaching.start')}</Button>
      </footer>
    </Dialog>
  );
}

function Decide({ session, order, onClose, onDone }: { session: TeachingSession; order: Order; onClose: () => void; onDone: () => void }) {
  const [reason, setReason] = useState('');
  const [message, setMessage] = useState('');
  const send = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    void send.run(async () => {
      const { site, requests } = session;
      const answer = await ask<{ message: string | null }>(`/fields/sessions/${order}`, {
        method: 'POST', body: { site, ...(order === 'accept' ? { requests } : {}), ...(reason ? { reason } : {}) },
      });
      if (answer.message === null) onDone();
      else setMessage(t('fields.notKept', { why: answer.message }));
    });
  };
  const title = t(`teaching.${order}` as Key);
  if (message) {
    return <Dialog title={title} onClose={onDone}><p class="notice warn" role="status">{message}</p><footer><Button onClick={onDone}>{t('app.close')}</Button></footer></Dialog>;
  }
  return (
    <Dialog title={title} onClose={onClose} onSubmit={submit}>
      <p class="notice">{t(`teaching.about.${order}` as Key, { fields: number(session.fields.length), requests: number(session.requests) })}</p>
      <Input label={t('app.reason')} hint={t('fields.reasonHint')} value={reason} onInput={setReason} maxLength={1000} autofocus />
      {send.error !== null && <Failure error={send.error} />}
      <footer>
        <Button onClick={onClose}>{t('app.cancel')}</Button>
        <Button tone={order === 'dismiss' ? 'danger' : 'primary'} type="submit" disabled={send.busy}>{title}</Button>
      </footer>
    </Dialog>
  );
}
