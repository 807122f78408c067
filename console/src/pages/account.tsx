// One's own account: password, one-time codes, language, theme.

import { useState } from 'preact/hooks';
import { ask, currentSession, setSession } from '../api/http.ts';
import { dateTime } from '../format.ts';
import { choose, chosen, LANGUAGES, t, type Language } from '../i18n/index.ts';
import { useAction } from '../load.ts';
import { setTheme, theme, type Theme } from '../theme.ts';
import { Sessions } from './sessions.tsx';
import { Button, Card, CopyButton, Failure, Input, PageHead, Select, Tabs } from '../ui/kit.tsx';

export function AccountPage({ redraw }: { redraw: () => void }) {
  const session = currentSession();
  const logout = useAction();
  const speak = useAction();
  if (!session) return null;
  return (
    <>
      <PageHead title={t('account.title')}>
        <Button disabled={logout.busy} onClick={() => void logout.run(async () => { await ask('/logout', { method: 'POST' }); setSession(null); })}>{t('app.logout')}</Button>
      </PageHead>
      {session.sites && <p>{t('account.limited', { sites: session.sites.join(', ') })}</p>}
      <p>{t('account.loggedIn', { name: session.name, role: session.role, time: dateTime(session.expires) })}</p>
      <div class="grid">
        <Card title={t('app.theme')}>
          <Tabs<Theme> label={t('app.theme')} value={theme()} onChange={(next) => { setTheme(next); redraw(); }}
            options={[['auto', t('app.theme.auto')], ['light', t('app.theme.light')], ['dark', t('app.theme.dark')]]} />
        </Card>
        <Card title={t('app.language')}>
          <Select<Language> hidden label={t('app.language')} value={chosen()} options={LANGUAGES}
            onChange={(next) => void speak.run(async () => { await choose(next); redraw(); })} />
          {speak.error !== null && <Failure error={speak.error} />}
        </Card>
        <Password />
        <OneTimeCodes />
      </div>
      <Sessions />
    </>
  );
}

function Password() {
  const [old, setOld] = useState('');
  const [next, setNext] = useState('');
  const [done, setDone] = useState(false);
  const change = useAction();
  return (
    <Card title={t('account.password')}>
      <form onSubmit={(event) => {
        event.preventDefault();
        void change.run(async () => {
          await ask('/session/password', { method: 'POST', body: { password: old, new_password: next } });
          setDone(true);
          setOld('');
          setNext('');
        });
      }}>
        <Input label={t('account.old')} type="password" value={old} onInput={setOld} autocomplete="current-password" required />
        <Input label={t('account.new')} type="password" value={next} onInput={setNext} autocomplete="new-password" minLength={12} required />
        {change.error !== null && <Failure error={change.error} />}
        {done && change.error === null && <p class="notice good" role="status">{t('account.changed')}</p>}
        <Button type="submit" disabled={change.busy}>{t('app.save')}</Button>
      </form>
    </Card>
  );
}

function OneTimeCodes() {
  const [offer, setOffer] = useState<{ secret: string; url: string } | null>(null);
  const [code, setCode] = useState('');
  const [done, setDone] = useState(false);
  const work = useAction();
  return (
    <Card title={t('account.totp')}>
      {work.error !== null && <Failure error={work.error} />}
      {done && <p class="notice good" role="status">{t('account.totpOn')}</p>}
      {!offer && !done && <Button disabled={work.busy} onClick={() => void work.run(async () => setOffer(await ask('/session/totp', { method: 'POST' })))}>{t('account.totpOffer')}</Button>}
      {offer && !done && (
        <form onSubmit={(event) => {
          event.preventDefault();
          void work.run(async () => { await ask('/session/totp', { method: 'PUT', body: { code } }); setDone(true); });
        }}>
          <p>{t('account.totpHint')}</p>
          <p class="inline"><code class="wrap">{offer.secret}</code><CopyButton text={offer.secret} /></p>
          <Input label={t('account.code')} value={code} onInput={setCode} inputMode="numeric" autocomplete="one-time-code" required />
          <Button type="submit" disabled={work.busy}>{t('app.save')}</Button>
        </form>
      )}
    </Card>
  );
}
