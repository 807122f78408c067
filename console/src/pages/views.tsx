// Saved views: a name for a place of the console, kept on the server for whoever saved it.

import { useEffect, useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import type { SavedView } from '../api/types.ts';
import { t } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { visit } from '../route.ts';
import { Button, CopyButton, Dialog, Empty, Failure, Input, Select, Skeleton } from '../ui/kit.tsx';
import { visible } from '../visible.ts';

/** `name`: what a new view is called unless its user says otherwise. */
export function Views({ name }: { name: string }) {
  const views = useLoad(async (signal) => (await ask<{ items: SavedView[] }>('/session/views', { signal })).items, 'views');
  const [open, setOpen] = useState(false);
  const items = views.value ?? [];
  const here = items.find(({ place }) => place === location.hash);
  return (
    <div class="inline">
      {items.length > 0 && (
        <Select hidden label={t('events.saved')} value={here?.place ?? ''} onChange={(place) => { if (place) visit(place); }}
          options={[['', t('events.saved')], ...items.map((each): [string, string] => [each.place, visible(each.name)])]} />
      )}
      <Button icon="star" onClick={() => setOpen(true)}>{t('events.save')}</Button>
      {open && (
        <Dialog title={t('events.saved')} onClose={() => setOpen(false)}>
          <NewView name={here ? '' : name} done={views.again} />
          <h3>{t('views.own')}</h3>
          {views.error !== null && <Failure error={views.error} retry={views.again} />}
          {!views.value && views.error === null && <Skeleton lines={2} />}
          {views.value?.length === 0 && <Empty>{t('views.none')}</Empty>}
          <ul class="named views">{items.map((view) => <OneView key={view.id} view={view} done={views.again} open={() => { setOpen(false); visit(view.place); }} />)}</ul>
        </Dialog>
      )}
    </div>
  );
}

function NewView({ name: proposed, done }: { name: string; done: () => void }) {
  const [name, setName] = useState(proposed);
  const save = useAction();
  return (
    <form class="line-form" onSubmit={(event) => {
      event.preventDefault();
      void save.run(async () => {
        await ask('/session/views', { method: 'POST', body: { name, place: location.hash } });
        setName('');
        done();
      });
    }}>
      <Input label={t('events.saveName')} hint={t('views.hint')} value={name} onInput={setName} maxLength={100} required autofocus />
      {save.error !== null && <Failure error={save.error} />}
      <Button tone="primary" type="submit" disabled={save.busy}>{t('app.save')}</Button>
    </form>
  );
}

function OneView({ view, done, open }: { view: SavedView; done: () => void; open: () => void }) {
  const [naming, setNaming] = useState(false);
  const [name, setName] = useState(view.name);
  const work = useAction();
  useEffect(() => setName(view.name), [view.name]);
  const path = `/session/views/${view.id}`;
  const put = (change: Partial<SavedView>) => void work.run(async () => {
    await ask(path, { method: 'PUT', body: { name: view.name, place: view.place, ...change } });
    setNaming(false);
    done();
  });
  const own = visible(view.name);
  return (
    <li>
      {naming ? (
        <form class="inline" onSubmit={(event) => { event.preventDefault(); put({ name }); }}>
          <Input label={t('views.rename', { name: view.name })} value={name} onInput={setName} maxLength={100} required autofocus />
          <Button tone="primary" type="submit" disabled={work.busy}>{t('app.save')}</Button>
          <Button onClick={() => setNaming(false)}>{t('app.cancel')}</Button>
        </form>
      ) : (
        <div class="inline">
          <a class="wrap" href={view.place} onClick={(event) => { event.preventDefault(); open(); }}>{own}</a>
          <span class="inline end">
            {view.place !== location.hash && <Button tone="ghost" icon="star" aria-label={t('views.replace', { name: view.name })} title={t('views.replace', { name: view.name })} onClick={() => put({ place: location.hash })} />}
            <Button tone="ghost" aria-label={t('views.rename', { name: view.name })} onClick={() => setNaming(true)}>{t('views.renameShort')}</Button>
            <CopyButton text={() => `${location.origin}${location.pathname}${view.place}`} label={t('views.link')} />
            <Button tone="ghost" icon="close" aria-label={`${t('app.remove')} ${own}`} disabled={work.busy}
              onClick={() => void work.run(async () => { await ask(path, { method: 'DELETE' }); done(); })} />
          </span>
        </div>
      )}
      {work.error !== null && <Failure error={work.error} />}
    </li>
  );
}
