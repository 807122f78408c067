// The short ways to common changes of the document: what a few answers become in it.

import { pointer, type Json, type Table } from './schema.ts';

export interface ValueChange { path: string; value?: Json }

function tablesOf(value: Json | undefined): Table[] {
  return Array.isArray(value) ? value.filter((each): each is Table => each !== null && typeof each === 'object' && !Array.isArray(each)) : [];
}

function tableOf(value: Json | undefined): Table {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : {};
}

/** A name that is not among those taken: `shop`, `shop-2`. */
function free(name: string, taken: unknown[]): string {
  let found = name;
  for (let count = 2; taken.includes(found); count += 1) found = `${name}-${count}`;
  return found;
}

/** Words of a list: by spaces, commas, lines. */
export function words(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

export interface NewSite {
  hosts: string; servers: string; health: string; observe: boolean; tls: 'none' | 'files' | 'acme'; listener: string; cert: string; key: string;
}

/** Listeners with TLS: their places and addresses. */
export function tlsListeners(document: Table): { place: string; address: string }[] {
  return tablesOf(document['listeners']).flatMap((each, at) => (each['tls'] ? [{ place: pointer('/listeners', at), address: String(each['address'] ?? '') }] : []));
}

/** The name of a site for these hosts. */
export function siteName(document: Table, hosts: string): string {
  const first = (words(hosts)[0] ?? '').replace(/^\*\.?/, '').replace(/[^a-z0-9._-]/gi, '-').toLowerCase() || 'site';
  const taken = [...tablesOf(document['sites']).map((each) => each['name']), ...Object.keys(tableOf(document['upstreams']))];
  return free(first, taken);
}

/** A site with its upstream, and its certificate at a listener. */
export function newSite(document: Table, form: NewSite): ValueChange[] | null {
  const [hosts, servers] = [words(form.hosts), words(form.servers)];
  if (hosts.length === 0 || servers.length === 0 || (form.tls === 'files' && !(form.cert.trim() && form.key.trim()))) return null;
  const name = siteName(document, form.hosts);
  const upstream: Table = { endpoints: servers.map((each) => (each.includes('://') ? each : `http://${each}`)), ...(form.health.trim() ? { health: { path: form.health.trim() } } : {}) };
  const site: Table = { name, hosts, upstream: name, ...(form.observe ? { engine: 'detection_only' } : {}) };
  const changes: ValueChange[] = [{ path: pointer('/upstreams', name), value: upstream }, { path: '/sites/-', value: site }];
  if (form.tls === 'none') return changes;
  const certificate: Table = { cert: form.cert.trim(), key: form.key.trim() };
  const at = tlsListeners(document).find((each) => each.place === form.listener);
  if (!at) {
    const tls: Table = form.tls === 'files' ? { certificates: [certificate] } : { acme: { domains: hosts } };
    return [...changes, { path: '/listeners/-', value: { address: '0.0.0.0:443', tls } }];
  }
  return [...changes, form.tls === 'files' ? { path: `${at.place}/tls/certificates/-`, value: certificate }
    : { path: `${at.place}/tls/acme/domains`, value: [...acmeDomains(document, at.place), ...hosts] }];
}

function acmeDomains(document: Table, place: string): Json[] {
  const listener = tablesOf(document['listeners'])[Number(place.split('/').pop())];
  const domains = tableOf(tableOf(listener?.['tls'])['acme'])['domains'];
  return Array.isArray(domains) ? domains : [];
}

export interface NewLimit { site: string; path: string; rate: string; per: string; methods: string }

/** A rate limit on a path: of the route that has the path, or of a new one; without a path of the whole site. */
export function newLimit(document: Table, form: NewLimit): ValueChange[] | null {
  const index = tablesOf(document['sites']).findIndex((each) => each['name'] === form.site);
  const site = tablesOf(document['sites'])[index];
  if (!site || !/^[1-9]\d*$/.test(form.rate.trim())) return null;
  const routes = tablesOf(site['routes']);
  const taken = [...tablesOf(site['rate_limits']), ...routes.flatMap((route) => tablesOf(route['rate_limits']))].map((each) => each['name']);
  const path = form.path.trim();
  const base = path.replace(/[^a-z0-9]+/gi, '-').replace(/^-+|-+$/g, '').toLowerCase() || 'requests';
  const limit: Table = { name: free(base, taken), rate: Number(form.rate), per: form.per.trim() || '1s', ...(words(form.methods).length > 0 ? { methods: words(form.methods) } : {}) };
  const place = pointer('/sites', index);
  if (path === '' || path === '/') return [{ path: `${place}/rate_limits/-`, value: limit }];
  const route = routes.findIndex((each) => [each['path'], each['path_exact']].includes(path) && each['methods'] === undefined && each['headers'] === undefined);
  if (route >= 0) return [{ path: `${place}/routes/${route}/rate_limits/-`, value: limit }];
  return [{ path: `${place}/routes/-`, value: { path, rate_limits: [limit] } }];
}

export interface OwnRules { place: string; text: string; mode: string; changes: (text: string) => ValueChange[] }

/** The directives of a site that stand in the document; null if there is no such site. A site that has had no rules goes
 * on to be inspected by the semantic detector: by itself it would be by rules alone. */
export function ownRules(document: Table, name: string): OwnRules | null {
  const index = tablesOf(document['sites']).findIndex((each) => each['name'] === name);
  const site = tablesOf(document['sites'])[index];
  if (!site) return null;
  const rules = tableOf(site['rules']);
  const place = `${pointer('/sites', index)}/rules/directives`;
  const text = typeof rules['directives'] === 'string' ? rules['directives'] : '';
  const beside: ValueChange[] = site['rules'] === undefined && site['mode'] === undefined ? [{ path: `${pointer('/sites', index)}/mode`, value: 'both' }] : [];
  return {
    place, text, mode: typeof site['mode'] === 'string' ? site['mode'] : '',
    changes: (next) => (next.trim() === '' ? [{ path: place }] : [{ path: place, value: next.endsWith('\n') ? next : `${next}\n` }, ...beside]),
  };
}

/** The pointer of an appended value, as what is wrong with it names it: `-` is the place behind the last one. */
export function placed(document: Table, change: ValueChange): string {
  if (!change.path.endsWith('/-')) return change.path;
  const above = change.path.slice(0, -2);
  let value: Json | undefined = document;
  for (const part of above.split('/').slice(1)) value = Array.isArray(value) ? value[Number(part)] : tableOf(value)[part];
  return `${above}/${Array.isArray(value) ? value.length : 0}`;
}

/** The name of the sink at a place of `events.sinks`, as the program gives it: its own, or its kind with a number. */
export function sinkName(sinks: Json | undefined, at: number): string {
  const names: string[] = [];
  for (const { name, kind } of tablesOf(sinks).slice(0, at + 1)) names.push(typeof name === 'string' ? name : free(String(kind), names));
  return names[at] ?? '';
}
