// Users and API tokens.

import { useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import type { Page, Role, Token, User } from '../api/types.ts';
import { ago, dateTime } from '../format.ts';
import { t } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { Sessions } from './sessions.tsx';
import { Badge, Button, Card, CopyButton, Dialog, Empty, Failure, Input, PageHead, Select, Skeleton } from '../ui/kit.tsx';

const roles = (): [Role, string][] => [['viewer', t('people.viewer')], ['analyst', t('people.analyst')], ['admin', t('people.admin')]];

/** The names of sites in a text, as the API takes them: none stands for all sites. */
const named = (text: string): string[] | null => {
  const names = text.split(',').map((name) => name.trim()).filter((name) => name !== '');
  return names.length > 0 ? names : null;
};
const shown = (sites: string[] | null): string => sites?.join(', ') ?? t('people.allSites');

export function PeoplePage() {
  const users = useLoad((signal) => ask<Page<User>>('/users', { query: { limit: 1000 }, signal }), 'users');
  const tokens = useLoad((signal) => ask<Page<Token>>('/tokens', { query: { limit: 1000 }, signal }), 'tokens');
  const [dialog, setDialog] = useState<'user' | 'token' | null>(null);
  const [limiting, setLimiting] = useState<User | null>(null);
  const change = useAction();
  const update = (user: User, body: Record<string, unknown>) => change.run(async () => {
    await ask(`/users/${encodeURIComponent(user.name)}`, { method: 'PATCH', body, etag: user.etag });
    users.again();
  });
  return (
    <>
      <PageHead title={t('people.title')} />
      {change.error !== null && <Failure error={change.error} />}
      <div class="stack">
        <Card title={t('people.users')} aside={<Button icon="plus" onClick={() => setDialog('user')}>{t('people.addUser')}</Button>}>
          {users.error !== null && <Failure error={users.error} retry={users.again} />}
          {!users.value && users.error === null && <Skeleton />}
          {users.value && (
            <div class="scroll" tabIndex={0} role="group"><table>
              <thead><tr><th scope="col">{t('app.name')}</th><th scope="col">{t('app.role')}</th><th scope="col">{t('people.sites')}</th><th scope="col">{t('people.totp')}</th><th scope="col">{t('app.created')}</th><th scope="col"><span class="visually-hidden">{t('app.actions')}</span></th></tr></thead>
              <tbody>{users.value.items.map((user) => (
                <tr key={user.name}>
                  <td>{user.name} {user.disabled && <Badge tone="warn">{t('people.disabled')}</Badge>}</td>
                  <td><Select<Role> hidden label={`${t('app.role')} ${user.name}`} value={user.role} onChange={(role) => void update(user, { role })}
                    options={[['viewer', 'viewer'], ['analyst', 'analyst'], ['admin', 'admin']]} /></td>
                  <td>{user.role === 'admin' && user.sites === null ? shown(null) : (
                    <Button tone="ghost" aria-label={`${t('people.sites')} ${user.name}: ${shown(user.sites)}`} onClick={() => setLimiting(user)}>{shown(user.sites)}</Button>
                  )}</td>
                  <td>{t(user.totp ? 'app.yes' : 'app.no')}</td>
                  <td>{dateTime(user.created)}</td>
                  <td class="right"><Button tone="ghost" disabled={change.busy} aria-label={`${t(user.disabled ? 'people.enable' : 'people.disable')} ${user.name}`} onClick={() => void update(user, { disabled: !user.disabled })}>{t(user.disabled ? 'people.enable' : 'people.disable')}</Button></td>
                </tr>
              ))}</tbody>
            </table></div>
          )}
        </Card>
        <Card title={t('people.tokens')} aside={<Button icon="plus" onClick={() => setDialog('token')}>{t('people.addToken')}</Button>}>
          {tokens.error !== null && <Failure error={tokens.error} retry={tokens.again} />}
          {tokens.value?.items.length === 0 && <Empty>{t('app.none')}</Empty>}
          {(tokens.value?.items.length ?? 0) > 0 && (
            <div class="scroll" tabIndex={0} role="group"><table>
              <thead><tr><th scope="col">{t('app.name')}</th><th scope="col">{t('app.role')}</th><th scope="col">{t('people.sites')}</th><th scope="col">{t('people.expires')}</th><th scope="col">{t('people.lastUsed')}</th><th scope="col"><span class="visually-hidden">{t('app.actions')}</span></th></tr></thead>
              <tbody>{tokens.value?.items.map((token) => (
                <tr key={token.id}>
                  <td>{token.name}</td><td>{token.role}</td><td>{shown(token.sites)}</td><td>{token.expires ? ago(token.expires) : t('app.never')}</td><td>{token.last_used ? ago(token.last_used) : t('app.never')}{token.last_address && <> <span class="mono dim">{token.last_address}</span></>}</td>
                  <td class="right">{token.revoked ? <Badge tone="warn">{t('people.revoked')}</Badge> : (
                    <Button tone="ghost" disabled={change.busy} aria-label={`${t('people.revoke')} ${token.name}`} onClick={() => void change.run(async () => {
                      await ask(`/tokens/${token.id}`, { method: 'DELETE' });
                      tokens.again();
                    })}>{t('people.revoke')}</Button>
                  )}</td>
                </tr>
              ))}</tbody>
            </table></div>
          )}
        </Card>
        <Sessions all />
      </div>
      {dialog === 'user' && <UserDialog onClose={() => setDialog(null)} onDone={() => { setDialog(null); users.again(); }} />}
      {limiting && <SitesDialog user={limiting} onClose={() => setLimiting(null)} onDone={() => { setLimiting(null); users.again(); }} />}
      {dialog === 'token' && <TokenDialog onClose={() => { setDialog(null); tokens.again(); }} />}
    </>
  );
}

function UserDialog({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('viewer');
  const [password, setPassword] = useState('');
  const [sites, setSites] = useState('');
  const add = useAction();
  return (
    <Dialog title={t('people.addUser')} onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        void add.run(async () => { await ask('/users', { method: 'POST', body: { name, role, password, sites: role === 'admin' ? null : named(sites) } }); onDone(); });
      }}>
        <Input label={t('app.name')} value={name} onInput={setName} autocomplete="off" required />
        <Select<Role> label={t('app.role')} value={role} options={roles()} onChange={setRole} />
        {role !== 'admin' && <Input label={t('people.sites')} hint={t('people.sitesHint')} value={sites} onInput={setSites} autocomplete="off" />}
        <Input label={t('people.password')} type="password" value={password} onInput={setPassword} autocomplete="new-password" minLength={12} required />
        {add.error !== null && <Failure error={add.error} />}
        <footer><Button onClick={onClose}>{t('app.cancel')}</Button><Button tone="primary" type="submit" disabled={add.busy}>{t('app.add')}</Button></footer>
      </form>
    </Dialog>
  );
}

function SitesDialog({ user, onClose, onDone }: { user: User; onClose: () => void; onDone: () => void }) {
  const [sites, setSites] = useState(user.sites?.join(', ') ?? '');
  const change = useAction();
  return (
    <Dialog title={`${t('people.sites')}: ${user.name}`} onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        void change.run(async () => {
          await ask(`/users/${encodeURIComponent(user.name)}`, { method: 'PATCH', body: { sites: named(sites) }, etag: user.etag });
          onDone();
        });
      }}>
        <Input label={t('people.sites')} hint={t('people.sitesHint')} value={sites} onInput={setSites} autocomplete="off" />
        {change.error !== null && <Failure error={change.error} />}
        <footer><Button onClick={onClose}>{t('app.cancel')}</Button><Button tone="primary" type="submit" disabled={change.busy}>{t('app.save')}</Button></footer>
      </form>
    </Dialog>
  );
}

function TokenDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('viewer');
  const [days, setDays] = useState('90');
  const [sites, setSites] = useState('');
  const [made, setMade] = useState<string | null>(null);
  const add = useAction();
  if (made !== null) {
    return (
      <Dialog title={t('people.addToken')} onClose={onClose}>
        <p class="notice warn">{t('people.tokenOnce')}</p>
        <pre class="request" tabIndex={0}>{made}</pre>
        <footer><CopyButton text={made} /><Button tone="primary" onClick={onClose}>{t('app.close')}</Button></footer>
      </Dialog>
    );
  }
  return (
    <Dialog title={t('people.addToken')} onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        void add.run(async () => {
          const body = { name, role, sites: role === 'admin' ? null : named(sites), ...(days ? { expires_in_seconds: Math.round(Number(days) * 86_400) } : {}) };
          setMade((await ask<{ token: string }>('/tokens', { method: 'POST', body })).token);
        });
      }}>
        <Input label={t('app.name')} value={name} onInput={setName} autocomplete="off" required />
        <Select<Role> label={t('app.role')} value={role} options={roles()} onChange={setRole} />
        {role !== 'admin' && <Input label={t('people.sites')} hint={t('people.sitesHint')} value={sites} onInput={setSites} autocomplete="off" />}
        <Input label={t('people.days')} type="number" min={1} value={days} onInput={setDays} />
        {add.error !== null && <Failure error={add.error} />}
        <footer><Button onClick={onClose}>{t('app.cancel')}</Button><Button tone="primary" type="submit" disabled={add.busy}>{t('app.add')}</Button></footer>
      </form>
    </Dialog>
  );
}
