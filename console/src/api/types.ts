// Types of the admin API's OpenAPI document (`/api/v1/openapi.json`), as far as the console uses them.

export type Role = 'viewer' | 'analyst' | 'admin';
export interface Session { name: string; role: Role; sites: string[] | null; csrf_token: string; expires: string }
export interface LoginMethods { password: boolean; oidc: { name: string; url: string } | null }
export interface Page<T> { items: T[]; next: string | null }
export interface Live<T> extends Page<T> { generation: number }

export interface Diagnostic {
  file: string; line: number | null; column: number | null; message: string; hint: string | null;
  pointer: string | null;
}
export interface ProblemBody {
  type: string; title: string; status: number; detail?: string; column?: number; diagnostics?: Diagnostic[];
}

export interface Finding {
  class: string; kind: string; place: string; name?: string; decoded?: string[]; span?: [number, number];
  evidence?: string; count?: number; mentioned?: boolean; suppressed_by?: { exception: string; reason: string };
  points: number; reason: string; reference?: string;
}
export interface RuleMatch {
  rule_id: number; phase: number; severity?: string; message?: string; data?: string; target?: string; value?: string;
  span?: [number, number]; points?: number; tags?: string[]; file?: string; line?: number; operator?: string;
}
export interface Score {
  class: string; place: string; name?: string; points: number; threshold: number; outcome: string;
}
export interface WafEvent {
  request_id: string; time: string; site: string; route: string; mode: string; engine: string;
  policy_generation: number;
  client: { addr: string; port?: number; country?: string; asn?: number };
  server?: { host?: string; tls?: boolean };
  request: { method: string; target: string; protocol?: string; body_bytes?: number; headers?: Record<string, string> };
  response?: { status?: number; body_bytes?: number };
  duration_us?: number;
  verdict: {
    action: string; status?: number; rule_id?: number; class?: string; phase?: number; reason?: string;
    control?: { by: string; name: string };
  };
  findings?: Finding[]; findings_below?: number; findings_suppressed?: number; findings_omitted?: number;
  matches?: RuleMatch[]; matches_omitted?: number;
  also_matched?: { rule_id: number; target?: string; points?: number; count?: number }[];
  scores?: {
    semantic?: Score[]; semantic_omitted?: number; inbound_blocking?: number; inbound_detection?: number;
    by_class?: Record<string, number>;
  };
  refusal?: string; upstream?: string; upstream_error?: string; upstream_reason?: string;
  coverage?: { bytes_inspected?: number; bytes_not_inspected?: Record<string, number> };
  integration?: { kind: string; blind_spots?: string[] };
}
/** The members of an event that the list shows. */
export type RowEvent = Pick<WafEvent,
  'request_id' | 'time' | 'site' | 'route' | 'mode' | 'client' | 'server' | 'request' | 'response' | 'duration_us' | 'verdict'
  | 'refusal' | 'upstream' | 'upstream_error' | 'also_matched'>;
/** The outcome of a request, whatever decided it. */
export type Outcome = 'blocked' | 'would_block' | 'refused' | 'control' | 'noted';
export interface EventItem<E = WafEvent> {
  cursor: string; count: number; has_request: boolean; node: string | null; outcome: Outcome | null; event: E;
}
export interface EventPage extends Page<EventItem> { complete: boolean; skipped: string[] }
export interface Facet { values: { value: string; count: number }[]; others: number; without: number }
/** Requests of events over time, by outcome. Steps without events are left out. */
export interface HistogramPage {
  from: number; to: number; step: number; total: number; complete: boolean; skipped: string[];
  items: ({ start: number; others: number } & Record<Outcome, number>)[];
}
export interface SavedView { id: number; name: string; place: string; saved: string }
export interface FacetPage { total: number; complete: boolean; fields: Record<string, Facet> }

export interface Label { label: string; count: number; error: number }
export interface Quantiles { p50: number | null; p95: number | null; p99: number | null }
export interface SiteStatistics {
  start: number; site: string; requests: number; events: number; request_bytes: number; response_bytes: number;
  bytes_inspected: number; bytes_not_inspected: number;
  duration_us: Quantiles; inspection_us: Quantiles;
  by: Record<string, Label[]>;
}
export interface Statistics { from: number; to: number; items: SiteStatistics[]; skipped: string[] }

export interface Inspection {
  mode: string; engine: string; paranoia: number | null; level: string | null; rules: number; exclusions: number;
  response_body: boolean | null; classes: { class: string; action: string }[];
}
export interface SiteRoute {
  name: string; path_kind: string; path: string; methods: string[]; headers: string[];
  target: { kind: string; upstream?: string; status?: number };
  inspection: Inspection | null; agents: string[]; limits: string[];
}
export interface Site { name: string; hosts: string[]; listeners: string[]; routes: SiteRoute[]; limits: string[]; looks_like: Application[] }
/** An application that answers of a site look like, and what its profile opens. */
export interface Application {
  profile: string; application: string; signs: string[]; exclusions: number;
  opens: { location: string; paths: string[]; opens: string; lets_pass: string[] }[];
}
export interface Endpoint {
  address: string; state: string; in_flight: number; weight: number;
  last_error: { message: string; seconds_ago: number } | null;
}
export interface Upstream {
  name: string; tls: boolean; checked: boolean; healthy: number; queued: number; endpoints: Endpoint[];
}
export interface RateLimit {
  site: string; route: string | null; name: string; key: string[]; rate: number; per_seconds: number; burst: number;
  action: string; limited: number; methods: string[];
}
export interface Clients {
  networks: string[]; networks_total: number; files: { path: string; ranges: number }[]; lists: { name: string; ranges: number }[]; countries: string[];
  continents: string[]; asns: number[];
}
export interface AccessList {
  site: string; route: string; bypass: Clients; allow: Clients; deny: Clients; deny_others: boolean; action: string;
  site_decisions: { bypassed: number; allowed: number; denied: number; logged: number };
}
export interface Certificate {
  listener: string; source: string; file: string; issued: boolean; names: string[]; issuer: string | null;
  not_before: number | null; not_after: number | null;
}
export interface Agent {
  name: string; address: string; breaker: string; in_flight: number; waiting: number; failure: string;
}
export interface Ban { ban: string; client: string; until: string; count: number }
/** Events with the same objection to the same field on the same path. */
export interface Group {
  site: string; objection: string; location: string; path: string; requests: number; clients: number;
  clients_with_nothing_else: number;
  newest: string | null;
}
export interface GroupPage { items: Group[]; complete: boolean }
export interface Exclusion {
  id: string; site: string | null; route: string | null; class: string | null; kind: string | null;
  location: string | null; path: string | null; directive: string | null; reason: string | null; until: string | null;
  rules: number[]; target: string | null; author: string | null;
  origin: 'document' | 'profile'; profile: string | null; opens: string | null;
  trial: { since: string | null; seen: number; passes: number; lost: number; stopped: number; unknown: number } | null;
  use: { hits: number; last_hit: string | null; counted_since: string; unused_since: string | null } | null;
}
export interface Changed { revision: number | null; etag: string; diff: string; text?: string; message: string | null }
export interface Replayed {
  requests: number; stopped: number; lost: number; new: number; untried: number;
  changes: { change: 'lost' | 'new'; id: string; request: string; reason: string }[];
}
export interface SinkTest { outcome: 'confirmed' | 'sent' | 'failed'; milliseconds: number; error: string | null }
export interface Rule {
  rule_id: number; phase: number; state: 'active' | 'overridden' | 'dead' | 'excluded'; severity: string | null;
  message: string; tags: string[]; paranoia: number | null; file: string; line: number; notes: string[];
  matches: number;
  text: string | null;
}
export interface RulePage extends Page<Rule> { generation: number; site: string; route: string; total: number }
export interface Sighted { values: number; networks: number; sessions: number; days: number }
export interface LearningSite {
  site: string; unusual: 'off' | 'detect' | 'block'; fields: number; closed: number; kept_open: number;
  reopened: number;
  fields_max: number; beyond_limit: number; closes_after: Sighted;
}
export interface LearnedField {
  site: string; method: string; path: string; place: string; name: string;
  state: 'closed' | 'open' | 'reopened' | 'kept_open';
  closed_as: string | null; closes_as: string | null; options: number;
  closed_before: { closed_as: string; until: string } | null;
  evidence: string; confidence: number; missing: Sighted; values: number; networks: number; sessions: number;
  days: number;
  last_day: string; bytes_min: number; bytes_max: number;
  types: { type: string; values: number; networks: number; days: number }[];
}
/** An endpoint that was discovered. */
export interface Interface {
  id: string; site: string; method: string; path: string; first_seen: string; last_seen: string; is_new: boolean;
  is_idle: boolean;
  requests: number; refused: number; networks: number; days: number; authentication: string[]; sensitive: string[];
}
export type DeviationKind = 'shadow' | 'drifted' | 'zombie' | 'unseen';
export interface InterfacePage extends Page<Interface> {
  total: number; sites: { site: string; deviations: Record<DeviationKind, number> | null }[];
}
/** An endpoint that deviates from the declared API. */
export interface InterfaceDeviation {
  site: string; kind: DeviationKind; method: string; path: string;
  differences: { what: string; declared: string | null; seen: string | null }[];
}
/** A session in which a site is taught by hand. */
export interface TeachingSession {
  site: string; by: string; network: string | null; is_running: boolean; started: string; until: string;
  dropped: string;
  requests: number; refused: number; beyond_limit: number; fields: TaughtField[];
}
export interface TaughtField {
  method: string; path: string; place: string; name: string; values: number; types: string[];
  effect: 'new' | 'known' | 'closes' | 'opens' | 'widens' | 'no_room';
  kinds: { kind: string; effect: 'opens' | 'open' | 'dismissed' | 'no_room' }[];
}
export interface TeachingSessions { items: TeachingSession[]; address: string }
export interface FieldProposal {
  id: string; site: string; method: string; path: string; place: string; name: string; kind: string;
  state: 'seen' | 'proposed' | 'trial' | 'live' | 'dismissed'; since: string; evidence: string;
  requests: number; networks: number; sessions: number; days: number; passes: number; lost: number; stopped: number;
}
export interface Revision {
  number: number; time: string; author: string | null; reason: string; origin: string; bytes: number; etag: string;
}
export interface RevisionText extends Revision { text: string; diff: string | null }
export interface User {
  name: string; role: Role; sites: string[] | null; created: string; disabled: boolean; totp: boolean; origin: 'local' | 'oidc'; etag: string;
}
export interface Token {
  id: number; name: string; role: Role; sites: string[] | null; created: string; expires: string | null; last_used: string | null;
  last_address: string | null; revoked: string | null;
}
export interface ListedSession {
  number: number; user: string; current: boolean; created: string; last_used: string; expires: string;
  address: string | null; last_address: string | null; agent: string;
}
export interface AuditEntry {
  number: number; time: string; actor: string; address: string | null; action: string; object: string; detail: string;
  change: string | null;
}
export interface AuditPage extends Page<AuditEntry> { complete: boolean }
export interface ProbeCount { stopped: number; lost: number }
export interface Candidate {
  reach: 'kinds' | 'rules' | 'class' | 'field' | 'rules_everywhere';
  exclusions: { class?: string; kind?: string; location?: string; path?: string; rule_id?: number; target?: string }[];
  clears: boolean; still: string; recommended: boolean;
  stored: { requests: number; stopped: number; let_through: number; clients: number; ids: string[] };
  probed: {
    own: ProbeCount; others: ProbeCount; lost: { class: string; kind: string; change: string; text: string }[];
  };
}
export interface Advised {
  site: string; route: string;
  advice: { fields: string[]; probes: number; fields_without_probes: number; candidates: Candidate[] };
}
export interface Explained {
  generation: number; site: string; route: string;
  explanation: {
    request: string; response?: string; mode: string; engine: string; notes: string[];
    refusal?: { name: string; status: number; explanation: string };
    matches: {
      rule_id: number; phase: number; severity?: string; message: string; target: string; value: string;
      span?: [number, number]; transformations: string[]; operator: string; points: { score: string; added: number }[];
      disruptive: boolean; file: string; line: number; data?: string;
    }[];
    matches_not_shown: number;
    semantic?: {
      level: string; values: (Score & { terms: { name: string; weight: number }[]; findings: Finding[] })[];
    };
    not_run: { why: string; rules: number[] }[];
    scores: Record<string, unknown>;
    verdict: { action: string; status?: number; rule_id?: number; class?: string; phase?: number; reason?: string };
    body_bytes_inspected: number; body_bytes_not_inspected: number;
  };
}
