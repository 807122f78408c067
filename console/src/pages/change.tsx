// A change of the document: previewed as a difference, then applied, with a reason.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ask, askTagged } from '../api/http.ts';
import type { Changed } from '../api/types.ts';
import { t } from '../i18n/index.ts';
import { useAction } from '../load.ts';
import { Button, Dialog, DiffView, Failure, Input, Skeleton } from '../ui/kit.tsx';

export interface Change { method: string; path: string; body?: Record<string, unknown>; query?: Record<string, string> }

/** The entity tag of the document: of the list of exclusions, which every role may read. */
export async function documentTag(): Promise<string> {
  return (await askTagged('/exclusions')).etag ?? '*';
}

async function send(change: Change, etag: string, reason: string, dryRun: boolean): Promise<Changed> {
  const more = { ...(reason ? { reason } : {}), dry_run: dryRun };
  return change.method === 'DELETE'
    ? ask<Changed>(change.path, { method: 'DELETE', query: { ...change.query, ...more }, etag })
    : ask<Changed>(change.path, { method: change.method, body: { ...change.body, ...more }, etag });
}

/** Several changes are made one after the other. `changes` is empty while the form does not say enough. */
export function ChangeDialog({ title, changes, children, onClose, onDone, danger, reason: suggested = '' }: {
  title: string; changes: Change[]; children?: ComponentChildren; onClose: () => void; onDone: () => void;
  danger?: boolean; reason?: string;
}) {
  const [reason, setReason] = useState(suggested);
  const [preview, setPreview] = useState<{ diff: string; etag: string; key: string } | null>(null);
  const look = useAction();
  const apply = useAction();
  const key = JSON.stringify(changes);
  useEffect(() => {
    if (changes.length === 0) return undefined;
    // Typing goes on; the last state is what counts.
    const timer = setTimeout(() => void look.run(async () => {
      const etag = await documentTag();
      const diffs: string[] = [];
      for (const change of changes) diffs.push((await send(change, etag, '', true)).diff);
      setPreview({ diff: diffs.join('\n'), etag, key });
    }), 250);
    return () => clearTimeout(timer);
  }, [key]);
  const isCurrent = preview !== null && preview.key === key && !look.busy;
  return (
    <Dialog title={title} onClose={onClose} wide>
      {children}
      <Input label={t('app.reason')} hint={t('app.reasonHint')} value={reason} onInput={setReason} maxLength={1000} />
      <h3>{t('app.preview')}</h3>
      {look.error !== null ? <Failure error={look.error} /> : preview ? <DiffView text={preview.diff} /> : changes.length > 0 && <Skeleton lines={3} />}
      {apply.error !== null && <Failure error={apply.error} />}
      <footer>
        <Button onClick={onClose}>{t('app.cancel')}</Button>
        <Button tone={danger ? 'danger' : 'primary'} disabled={!isCurrent || !preview?.diff || apply.busy || look.error !== null}
          onClick={() => preview && void apply.run(async () => {
            let etag = preview.etag;
            for (const change of changes) etag = (await send(change, etag, reason, false)).etag;
            onDone();
          })}>
          {t('app.apply')}
        </Button>
      </footer>
    </Dialog>
  );
}
