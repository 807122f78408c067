// The frame: who is logged in, which page is shown, keys that work everywhere.

import type { ComponentType } from 'preact';
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';
import { ask, currentSession, isGone, onChange, Problem, setSession } from './api/http.ts';
import { can } from './api/role.ts';
import type { Role, Session } from './api/types.ts';
import { t, type Key } from './i18n/index.ts';
import { useLoad } from './load.ts';
import { AccessPage } from './pages/access.tsx';
import { AccountPage } from './pages/account.tsx';
import { AuditPage } from './pages/audit.tsx';
import { EventPage } from './pages/event.tsx';
import { EventsPage } from './pages/events.tsx';
import { ExclusionsPage } from './pages/exclusions.tsx';
import { InterfacesPage } from './pages/interfaces.tsx';
import { Login } from './pages/login.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { PeoplePage } from './pages/people.tsx';
import { RevisionsPage } from './pages/revisions.tsx';
import { RulesPage } from './pages/rules.tsx';
import { SitesPage } from './pages/sites.tsx';
import { TryPage } from './pages/try.tsx';
import { go, href, usePlace, type Place } from './route.ts';
import { Icon, Mark } from './ui/icon.tsx';
import { Dialog, Empty, Failure, Skeleton } from './ui/kit.tsx';

interface Entry { path: string; title: Key; role: Role; key?: string; all?: true }

const ENTRIES: Entry[] = [
  { path: 'overview', title: 'nav.overview', role: 'viewer', key: 'o' },
  { path: 'events', title: 'nav.events', role: 'viewer', key: 'e' },
  { path: 'sites', title: 'nav.sites', role: 'viewer', key: 's' },
  { path: 'interfaces', title: 'nav.interfaces', role: 'viewer', key: 'i' },
  { path: 'rules', title: 'nav.rules', role: 'viewer', key: 'r' },
  { path: 'exclusions', title: 'nav.exclusions', role: 'viewer', key: 'x' },
  { path: 'try', title: 'nav.try', role: 'analyst', key: 't' },
  { path: 'access', title: 'nav.access', role: 'viewer' },
  { path: 'config', title: 'nav.config', role: 'admin', key: 'c' },
  { path: 'revisions', title: 'nav.revisions', role: 'analyst', all: true },
  { path: 'people', title: 'nav.people', role: 'admin' },
  { path: 'audit', title: 'nav.audit', role: 'admin' },
];

export function App() {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const [known, setKnown] = useState(false);
  const [ended, setEnded] = useState(false);
  const was = useRef<Session | null>(null);
  useEffect(() => onChange(() => {
    if (was.current && !currentSession()) setEnded(true);
    was.current = currentSession();
    draw(0);
  }), []);
  useEffect(() => {
    const look = () => ask<Session>('/session').then(
      (session) => { setSession(session); setKnown(true); },
      (error: unknown) => {
        if (error instanceof Problem && error.status === 0) setTimeout(look, 2000);
        else setKnown(true);
      });
    void look();
  }, []);
  // While the server is gone it is asked again; pages keep what they show.
  const gone = isGone();
  useEffect(() => {
    if (!gone) return undefined;
    const timer = setInterval(() => void ask('/health').catch(() => undefined), 2000);
    return () => clearInterval(timer);
  }, [gone]);
  const session = currentSession();
  const banner = gone && <div class="banner" role="status">{t('app.gone')}</div>;
  if (!known) return <>{banner}</>;
  if (!session) return <>{banner}<Login ended={ended} onLogin={(next) => { setEnded(false); setSession(next); }} /></>;
  return <>{banner}<Frame redraw={() => draw(0)} /></>;
}

/** The entry of the navigation that a page belongs to. */
const BELOW: Record<string, string> = { event: 'events', compare: 'overview', report: 'overview' };

function Frame({ redraw }: { redraw: () => void }) {
  const place = usePlace();
  const page = place.path[0] ?? 'overview';
  const [help, setHelp] = useState(false);
  const [more, setMore] = useState(false);
  useKeys(() => setHelp(true));
  useEffect(() => {
    // Readers of the screen hear where they are; nothing is scrolled away.
    document.title = `${title(page)} · Portcullis`;
    document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
    setMore(false);
  }, [page, place.path[1]]);
  if (page === 'wall') return <OverviewPage place={place} wall />;
  // Whoever is limited to some sites does not see what is about all of them.
  const entries = ENTRIES.filter((entry) => can(entry.role) && (!entry.all || !currentSession()?.sites));
  const link = (entry: Entry) => (
    <a href={href([entry.path])} aria-current={entry.path === (Object.hasOwn(BELOW, page) ? BELOW[page] : page) ? 'page' : undefined}>
      <Icon name={entry.path} /><span>{t(entry.title)}</span>
    </a>
  );
  return (
    <div class="frame">
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.querySelector<HTMLElement>('main h1')?.focus(); }}>{t('nav.skip')}</a>
      <nav class="side" aria-label={t('nav.main')}>
        <a class="brand" href={href(['overview'])}><Mark />Portcullis</a>
        <ul>{entries.map((entry) => <li key={entry.path}>{link(entry)}</li>)}</ul>
        <div class="foot">
          <a href={href(['account'])}>{currentSession()?.name} <span class="dim">({currentSession()?.role})</span></a>
        </div>
      </nav>
      <main id="content" data-page={page}>
        <Page page={page} place={place} redraw={redraw} />
      </main>
      <nav class="bottom" aria-label={t('nav.more')}>
        {entries.slice(0, 4).map((entry) => link(entry))}
        <button type="button" aria-expanded={more} onClick={() => setMore(true)}><Icon name="more" /><span>{t('nav.more')}</span></button>
      </nav>
      {more && (
        <Dialog title={t('nav.more')} onClose={() => setMore(false)}>
          <div class="more-sheet">
            <ul>
              {entries.slice(4).map((entry) => <li key={entry.path}>{link(entry)}</li>)}
              <li><a href={href(['account'])}><Icon name="account" />{t('nav.account')}</a></li>
            </ul>
          </div>
        </Dialog>
      )}
      {help && <Help onClose={() => setHelp(false)} />}
    </div>
  );
}

/** Titles of pages that the navigation does not have. */
const OTHERS: Record<string, Key> = { event: 'event.title', account: 'nav.account', compare: 'compare.title', report: 'report.title' };

function title(page: string): string {
  const entry = ENTRIES.find((each) => each.path === page);
  if (entry) return t(entry.title);
  return t(Object.hasOwn(OTHERS, page) ? OTHERS[page]! : 'overview.title');
}

function Page({ page, place, redraw }: { page: string; place: Place; redraw: () => void }) {
  const entry = ENTRIES.find((each) => each.path === page);
  // Its address can be written by hand, or come from a colleague.
  if (entry && !can(entry.role)) return <><h1 tabIndex={-1}>{t(entry.title)}</h1><Empty>{t('app.notAllowed')}</Empty></>;
  switch (page) {
    case 'overview': return <OverviewPage place={place} />;
    case 'events': return <EventsPage place={place} />;
    case 'event': return <EventPage id={place.path[1] ?? ''} key={place.path[1]} />;
    case 'sites': return <SitesPage />;
    case 'interfaces': return <InterfacesPage place={place} />;
    case 'rules': return <RulesPage place={place} />;
    case 'exclusions': return <ExclusionsPage />;
    case 'try': return <TryPage place={place} />;
    case 'access': return <AccessPage />;
    case 'config': return <Later title="config.title" page={page} code={() => import('./pages/config.tsx')} place={place} />;
    case 'compare': return <Later title="compare.title" page={page} code={() => import('./pages/compare.tsx')} place={place} />;
    case 'report': return <Later title="report.title" page={page} code={() => import('./pages/report.tsx')} place={place} />;
    case 'revisions': return <RevisionsPage place={place} />;
    case 'people': return <PeoplePage />;
    case 'audit': return <AuditPage />;
    case 'account': return <AccountPage redraw={redraw} />;
    default: return <><h1 tabIndex={-1}>404</h1><Empty>{t('app.notFound')}</Empty></>;
  }
}

/** A page whose code is loaded on demand, so that it is not part of the first load. */
function Later({ title, page, code: load, place }: {
  title: Key; page: string; code: () => Promise<{ default: ComponentType<{ place: Place }> }>; place: Place;
}) {
  const code = useLoad(load, page);
  const Loaded = code.value?.default;
  if (Loaded) return <Loaded key={page} place={place} />;
  return <><h1 tabIndex={-1}>{t(title)}</h1>{code.error !== null ? <Failure error={code.error} retry={code.again} /> : <Skeleton />}</>;
}

/** `g` and a letter goes to a page, `/` to the filter, `?` shows the help. */
function useKeys(help: () => void): void {
  const first = useRef(0);
  // Before the page is drawn, so that its keys work as soon as it is visible.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, select, textarea, dialog')) return;
      const entry = ENTRIES.find((each) => each.key === event.key && can(each.role));
      if (event.key === 'g') first.current = Date.now();
      else if (entry && Date.now() - first.current < 1500) go([entry.path]);
      else if (event.key === '/') {
        const field = () => document.querySelector<HTMLElement>('[data-filter]');
        if (field()) field()?.focus();
        else {
          focusSoon(field);
          go(['events']);
        }
      } else if (event.key === '?') help();
      else return;
      event.preventDefault();
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, [help]);
}

/** Gives the focus to a part of the page that comes next, after the heading has had it. */
function focusSoon(part: () => HTMLElement | null): void {
  const watch = new MutationObserver(() => {
    if (!part()) return;
    watch.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => part()?.focus()));
  });
  watch.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => watch.disconnect(), 5_000);
}

function Help({ onClose }: { onClose: () => void }) {
  const keys: [string, Key][] = [
    ['/', 'keys.filter'], ['j k', 'keys.rows'], ['Enter', 'keys.open'], ['n', 'keys.exclude'], ['z', 'keys.zoom'], ['g o e s i r x t c', 'keys.go'], ['?', 'keys.help'], ['Esc', 'keys.escape'],
  ];
  return (
    <Dialog title={t('app.help')} onClose={onClose}>
      <dl>{keys.map(([key, text]) => <><dt>{key.split(' ').map((each) => <><kbd>{each}</kbd> </>)}</dt><dd>{t(text)}</dd></>)}</dl>
    </Dialog>
  );
}
