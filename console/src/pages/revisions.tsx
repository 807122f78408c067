// The document and its history.

import { useState } from 'preact/hooks';
import { ask, askTagged } from '../api/http.ts';
import { can } from '../api/role.ts';
import type { Diagnostic, Page, Revision, RevisionText } from '../api/types.ts';
import { bytes, dateTime } from '../format.ts';
import { t } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { refine, type Place } from '../route.ts';
import { Badge, Button, Card, Dialog, DiffView, Failure, Field, PageHead, Skeleton } from '../ui/kit.tsx';
import { ChangeDialog } from './change.tsx';

interface Document { path: string; format: string; text: string; revision: number; is_live: boolean; is_read_only: boolean }

export function RevisionsPage({ place }: { place: Place }) {
  const list = useLoad((signal) => ask<Page<Revision>>('/revisions', { query: { limit: 200 }, signal }), 'revisions', 10_000);
  const document = useLoad(async (signal) => (can('admin') ? (await askTagged<Document>('/config', { signal })).value : null), 'config', 10_000);
  const [editing, setEditing] = useState(false);
  const number = Number(place.query.get('number') ?? 0);
  const again = () => { list.again(); document.again(); };
  return (
    <>
      <PageHead title={t('revisions.title')}>
        {document.value && !document.value.is_read_only && <Button onClick={() => setEditing(true)}>{t('revisions.edit')}</Button>}
      </PageHead>
      {document.value?.is_read_only && <p class="notice">{t('revisions.readOnly')}</p>}
      {document.value && !document.value.is_live && <p class="notice warn">{t('revisions.notLive')}</p>}
      {list.error !== null && <Failure error={list.error} retry={list.again} />}
      <Card>
        {!list.value && list.error === null && <Skeleton />}
        {(list.value?.items.length ?? 0) > 0 && (
          <div class="scroll" tabIndex={0} role="group"><table>
            <thead><tr><th scope="col">{t('revisions.number')}</th><th scope="col">{t('app.time')}</th><th scope="col">{t('revisions.author')}</th><th scope="col">{t('app.reason')}</th><th scope="col"><span class="visually-hidden">{t('rules.state')}</span></th></tr></thead>
            <tbody>{list.value?.items.map((revision) => (
              <tr key={revision.number}>
                <td>{can('admin') ? <button type="button" class="button ghost" onClick={() => refine({ number: revision.number })}>{revision.number}</button> : revision.number}</td>
                <td>{dateTime(revision.time)}</td>
                <td>{revision.author ?? <span class="dim">{t('revisions.outside')}</span>}</td>
                <td class="wrap">{revision.reason || <span class="dim">–</span>}</td>
                <td class="right">{document.value?.revision === revision.number ? <Badge tone="good">{t('revisions.serves')}</Badge> : <span class="dim">{bytes(revision.bytes)}</span>}</td>
              </tr>
            ))}</tbody>
          </table></div>
        )}
      </Card>
      {number > 0 && can('admin') && <RevisionDialog number={number} present={document.value?.revision === number} onClose={() => refine({ number: null })} onDone={() => { refine({ number: null }); again(); }} />}
      {editing && document.value && <EditDialog document={document.value} onClose={() => setEditing(false)} onDone={() => { setEditing(false); again(); }} />}
    </>
  );
}

function RevisionDialog({ number, present, onClose, onDone }: { number: number; present: boolean; onClose: () => void; onDone: () => void }) {
  const revision = useLoad((signal) => ask<RevisionText>(`/revisions/${number}`, { signal }), String(number));
  const [restoring, setRestoring] = useState(false);
  if (restoring) {
    return <ChangeDialog title={t('revisions.restoreTitle', { number })} onClose={() => setRestoring(false)} onDone={onDone}
      change={{ method: 'POST', path: `/revisions/${number}/restore`, body: {} }} />;
  }
  return (
    <Dialog title={`${t('revisions.title')} ${number}`} onClose={onClose} wide>
      {revision.error !== null && <Failure error={revision.error} retry={revision.again} />}
      {!revision.value && revision.error === null && <Skeleton />}
      {revision.value && (
        <>
          <p class="dim">{dateTime(revision.value.time)} · {revision.value.author ?? t('revisions.outside')} · {revision.value.reason}</p>
          <h3>{t('revisions.diff')}</h3>
          <DiffView text={revision.value.diff ?? ''} />
          <details><summary>{t('revisions.document')}</summary><pre class="request" tabIndex={0}>{revision.value.text}</pre></details>
          <footer>{!present && <Button tone="primary" onClick={() => setRestoring(true)}>{t('revisions.restore')}</Button>}</footer>
        </>
      )}
    </Dialog>
  );
}

interface Checked { valid: boolean; mistakes: Diagnostic[]; warnings: Diagnostic[]; rules: { errors: string[]; warnings: string[] }[] }

function EditDialog({ document, onClose, onDone }: { document: Document; onClose: () => void; onDone: () => void }) {
  const [text, setText] = useState(document.text);
  const [applying, setApplying] = useState(false);
  const [checked, setChecked] = useState<Checked | null>(null);
  const check = useAction();
  if (applying) {
    return <ChangeDialog title={t('revisions.edit')} onClose={() => setApplying(false)} onDone={onDone} change={{ method: 'PUT', path: '/config', body: { text } }} />;
  }
  const problems = checked ? [...checked.mistakes, ...checked.warnings] : [];
  return (
    <Dialog title={document.path} onClose={onClose} wide>
      <Field label={t('revisions.document')}>
        {(id) => <textarea id={id} rows={24} spellcheck={false} value={text} onInput={(event) => { setText(event.currentTarget.value); setChecked(null); }} />}
      </Field>
      {check.error !== null && <Failure error={check.error} />}
      {checked && (
        <div role="status" class={`notice ${checked.valid ? 'good' : 'warn'}`}>
          {checked.valid && <p>{t('revisions.valid')}</p>}
          <ul>{problems.map((each) => <li>{each.line !== null && <b>{t('revisions.line', { line: each.line })}: </b>}{each.message} <em>{each.hint}</em></li>)}</ul>
          {checked.rules.flatMap((set) => [...set.errors, ...set.warnings]).map((each) => <pre>{each}</pre>)}
        </div>
      )}
      <footer>
        <Button disabled={check.busy} onClick={() => void check.run(async () => setChecked(await ask<Checked>('/check', { method: 'POST', body: { text } })))}>{t('revisions.check')}</Button>
        <Button tone="primary" disabled={text === document.text} onClick={() => setApplying(true)}>{t('app.preview')}</Button>
      </footer>
    </Dialog>
  );
}
