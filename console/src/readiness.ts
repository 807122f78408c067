// The roll-out state of a site: it observes, is ready to enforce or not, or enforces.

import type { Site, SiteStatistics } from './api/types.ts';
import { number, percent, quoted } from './format.ts';
import { t } from './i18n/index.ts';
import { outcomes } from './statistics.ts';

/** Share of requests that would be blocked up to which a site is ready to enforce. */
const READY_SHARE = 0.02;

export interface Readiness { state: 'off' | 'quiet' | 'enforced' | 'ready' | 'notReady'; text: string; look?: string }

/** The verdict on a week's traffic; `look` is the filter of the events behind it. */
export function readiness(site: Site, week: SiteStatistics | undefined): Readiness {
  const inspected = site.routes.filter((route) => route.inspection);
  if (inspected.length === 0) return { state: 'off', text: '' };
  const observes = inspected.some((route) => route.inspection?.engine !== 'blocking');
  const requests = week?.requests ?? 0;
  if (!week || requests === 0) return { state: 'quiet', text: t('sites.noTraffic') };
  // Decisions of lists, limits and bans say nothing about rules and detectors.
  const detected = outcomes([week], ['would_block']);
  const blocked = outcomes([week], ['blocked', 'refused']);
  const atMost = (of: { count: number; bound: boolean }) => (of.bound ? t('sites.atMost', { count: number(of.count) }) : number(of.count));
  const look = (outcome: string) => `site = ${quoted(site.name)} and ${outcome} and time >= -7d`;
  if (!observes) {
    return { state: 'enforced', text: t('sites.enforced', { blocked: atMost(blocked), requests: number(requests) }), look: look('outcome in (blocked, refused)') };
  }
  const state = detected.count / requests <= READY_SHARE ? 'ready' : 'notReady';
  const share = percent(detected.count, requests);
  const text = `${t('sites.readiness', { requests: number(requests), detected: atMost(detected), share })} ${t(`sites.${state}`)}`;
  return { state, text, ...(detected.count > 0 ? { look: look('outcome = would_block') } : {}) };
}
