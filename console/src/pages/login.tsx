// Log in with a password and a one-time code, or at a provider, or create the administrator at the first start.

import { useEffect, useState } from 'preact/hooks';
import { ask, Problem } from '../api/http.ts';
import type { LoginMethods, Session } from '../api/types.ts';
import { t } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { Mark } from '../ui/icon.tsx';
import { Button, Input } from '../ui/kit.tsx';

export function Login({ ended, onLogin }: { ended: boolean; onLogin: (session: Session) => void }) {
  const [start] = useState(() => new URLSearchParams(location.hash.split('?')[1] ?? '').get('setup'));
  const [setup, setSetup] = useState(start !== null);
  // The code creates an administrator: it stays in no history and no bookmark.
  useEffect(() => { if (start !== null) history.replaceState(null, '', location.pathname); }, []);
  return setup
    ? <Setup code={start ?? ''} onLogin={onLogin} onBack={() => setSetup(false)} />
    : <Password ended={ended} onLogin={onLogin} onSetup={() => setSetup(true)} />;
}

function Password({ ended, onLogin, onSetup }: { ended: boolean; onLogin: (session: Session) => void; onSetup: () => void }) {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const [needsCode, setNeedsCode] = useState(false);
  const login = useAction();
  const oidc = useLoad((signal) => ask<LoginMethods>('/login/methods', { signal }), 'methods').value?.oidc;
  const submit = (event: Event) => {
    event.preventDefault();
    void login.run(async () => {
      try {
        onLogin(await ask<Session>('/login', { method: 'POST', body: { name, password, ...(code ? { code } : {}) } }));
      } catch (error) {
        if (error instanceof Problem && error.kind === 'code-needed') setNeedsCode(true);
        if (!(error instanceof Problem && error.kind === 'code-needed' && !code)) throw error;
      }
    });
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1><Mark />{t('login.title')}</h1>
        {ended && <p class="notice">{t('login.ended')}</p>}
        <Input label={t('login.name')} value={name} onInput={setName} autocomplete="username" autocapitalize="none" required autofocus />
        <Input label={t('login.password')} type="password" value={password} onInput={setPassword} autocomplete="current-password" required />
        {needsCode && <Input label={t('login.code')} value={code} onInput={setCode} inputMode="numeric" autocomplete="one-time-code" autofocus />}
        {login.error !== null && <p class="error" role="alert">{message(login.error)}</p>}
        <Button tone="primary" type="submit" disabled={login.busy}>{t('login.submit')}</Button>
        {oidc && <a class="button provider" href={oidc.url}>{t('login.provider', { name: oidc.name })}</a>}
        <p class="foot">{t('login.lost')}</p>
        <p class="foot"><Button class="link" onClick={onSetup}>{t('login.first')}</Button></p>
      </form>
    </main>
  );
}

function Setup({ code: given, onLogin, onBack }: { code: string; onLogin: (session: Session) => void; onBack: () => void }) {
  const [code, setCode] = useState(given);
  const [name, setName] = useState('admin');
  const [password, setPassword] = useState('');
  const setup = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    void setup.run(async () => {
      await ask('/setup', { method: 'POST', body: { code, name, password } });
      onLogin(await ask<Session>('/login', { method: 'POST', body: { name, password } }));
    });
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1><Mark />{t('setup.title')}</h1>
        <Input label={t('setup.code')} value={code} onInput={setCode} autocomplete="off" required />
        <Input label={t('login.name')} value={name} onInput={setName} autocomplete="username" required />
        <Input label={t('setup.password')} type="password" value={password} onInput={setPassword} autocomplete="new-password" minLength={12} required />
        {setup.error !== null && <p class="error" role="alert">{message(setup.error)}</p>}
        <Button tone="primary" type="submit" disabled={setup.busy}>{t('setup.submit')}</Button>
        <p class="foot"><Button class="link" onClick={onBack}>{t('setup.back')}</Button></p>
      </form>
    </main>
  );
}

function message(error: unknown): string {
  if (error instanceof Problem && error.body) return error.body.detail ?? error.body.title;
  return t('app.failed');
}
