// A client is turned away: its address for a time, by a ban, or the address or its network for ever, by the list `deny`.

import { useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import { can } from '../api/role.ts';
import { network } from '../attacks.ts';
import { t, type Key } from '../i18n/index.ts';
import { Select } from '../ui/kit.tsx';
import { ChangeDialog, type Change } from './change.tsx';

type Length = '1h' | '24h' | '7d' | 'ever';
const LENGTHS: [Length, Key, number][] = [['1h', 'ban.1h', 3_600], ['24h', 'ban.24h', 86_400], ['7d', 'ban.7d', 604_800], ['ever', 'ban.ever', 0]];

/** `site`: the lists that count there; none: those of the document. */
export function BanDialog({ client, site, reason, onClose, onDone }: {
  client: string; site?: string; reason: string; onClose: () => void; onDone: () => void;
}) {
  const [whole, setWhole] = useState<'address' | 'network'>('address');
  const [length, setLength] = useState<Length>('24h');
  const target = whole === 'network' ? network(client) : client;
  const lists = can('analyst');
  // Bans are of addresses; a network is a line of the document.
  const effective = whole === 'network' ? 'ever' : length;
  const seconds = LENGTHS.find(([each]) => each === effective)?.[2] ?? 0;
  const change: Change = { method: 'POST', path: '/lists/deny/clients', body: { client: target, ...(site ? { site } : {}) } };
  const act = async (why: string) => {
    await ask('/bans', { method: 'POST', body: { client, seconds, ...(why ? { reason: why } : {}) } });
  };
  return (
    <ChangeDialog title={t('ban.title', { client: target })} danger onClose={onClose} onDone={onDone} reason={reason}
      change={effective === 'ever' ? change : null} act={effective === 'ever' ? undefined : act} applyLabel={t('ban.do')}>
      {lists && (
        <Select<'address' | 'network'> label={t('ban.who')} value={whole} onChange={setWhole}
          options={[['address', t('ban.address', { client })], ['network', t('ban.network', { network: network(client) })]]} />
      )}
      <Select<Length> label={t('ban.length')} value={effective} onChange={setLength}
        options={LENGTHS.filter(([each]) => (each === 'ever' ? lists : whole === 'address')).map(([each, key]): [Length, string] => [each, t(key)])} />
      <p class="dim">{effective === 'ever' ? t('ban.byList', { client: target, site: site ?? t('access.wholeDocument') }) : t('ban.byBan', { client })}</p>
    </ChangeDialog>
  );
}
