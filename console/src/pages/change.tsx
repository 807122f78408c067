// A change of the document: previewed as a difference, then applied, with a reason.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ask, askTagged, Problem } from '../api/http.ts';
import type { Changed, Diagnostic } from '../api/types.ts';
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

/** `change` is null while the form does not say enough; `act` is done in place of a change of the document. `etag` is that
 * of the document that the form was filled in from: a change by somebody else in between is not undone. Children that
 * are a function get what is wrong with the change, in parts and as a text. */
export function ChangeDialog({ title, change, act, applyLabel, children, onClose, onDone, danger, reason: suggested = '', focusReason, etag: read, below }: {
  title: string; change: Change | null; children?: ComponentChildren | ((found: Diagnostic[], detail: string) => ComponentChildren); onClose: () => void; onDone: () => void;
  danger?: boolean; reason?: string; focusReason?: boolean; act?: (reason: string) => Promise<void>; applyLabel?: string; etag?: string;
  below?: (text: string) => ComponentChildren;
}) {
  const [reason, setReason] = useState(suggested);
  const [preview, setPreview] = useState<{ diff: string; etag: string; key: string; text: string } | null>(null);
  const look = useAction();
  const apply = useAction();
  const key = JSON.stringify(change);
  useEffect(() => {
    if (!change) return undefined;
    // Typing goes on; the last state is what counts.
    const timer = setTimeout(() => void look.run(async () => {
      const etag = read ?? await documentTag();
      const { diff, text = '' } = await send(change, etag, '', true);
      setPreview({ diff, etag, key, text });
    }), 250);
    return () => clearTimeout(timer);
  }, [key]);
  const isCurrent = preview !== null && preview.key === key && !look.busy;
  const isReady = !apply.busy && (act !== undefined || (isCurrent && preview.diff !== '' && look.error === null));
  const found = change && look.error instanceof Problem ? look.error.body?.diagnostics ?? [] : [];
  const detail = change && look.error instanceof Problem ? look.error.body?.detail ?? '' : '';
  const submit = (event: Event) => {
    event.preventDefault();
    if (!isReady) return;
    void apply.run(async () => {
      if (act) await act(reason);
      else if (change && preview) await send(change, preview.etag, reason, false);
      onDone();
    });
  };
  return (
    <Dialog title={title} onClose={onClose} wide onSubmit={submit}>
      {typeof children === 'function' ? children(found, detail) : children}
      <Input label={t('app.reason')} hint={t(act ? 'fields.reasonHint' : 'app.reasonHint')} value={reason} onInput={setReason} maxLength={1000} autofocus={focusReason} />
      {change && (
        <>
          <h3>{t('app.preview')}</h3>
          {look.error !== null ? <Failure error={look.error} /> : preview ? <DiffView text={preview.diff} />
            : <><p class="dim" role="status">{t('app.previewBusy')}</p><Skeleton lines={3} /></>}
          {isCurrent && look.error === null && preview.diff !== '' && below?.(preview.text)}
        </>
      )}
      {apply.error !== null && <Failure error={apply.error} />}
      <footer>
        <Button onClick={onClose}>{t('app.cancel')}</Button>
        <Button tone={danger ? 'danger' : 'primary'} type="submit" disabled={!isReady}>{applyLabel ?? t('app.apply')}</Button>
      </footer>
    </Dialog>
  );
}
