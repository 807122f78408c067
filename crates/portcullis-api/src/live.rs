//! The running data plane as the API shows it: plain data that the program fills in. Nothing here holds a
//! secret: no value of a header condition, no URL with credentials, no key file.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The settings that serve now, and the state of their parts. Each method looks at one generation; a reload
/// between two of them shows in [`Snapshot::generation`].
pub trait LiveState: Send + Sync {
    /// The sites.
    fn sites(&self) -> Snapshot<Site>;
    /// The groups of endpoints.
    fn upstreams(&self) -> Snapshot<Upstream>;
    /// The rate limits.
    fn limits(&self) -> Snapshot<RateLimit>;
    /// The access lists.
    fn lists(&self) -> Snapshot<AccessList>;
    /// The certificates of listeners.
    fn certificates(&self) -> Snapshot<Certificate>;
    /// The inspection agents.
    fn agents(&self) -> Snapshot<Agent>;
    /// The rules of a route, with their texts if `text`; none: there is no such route, or it is not
    /// inspected.
    fn rules(&self, site: &str, route: &str, text: Option<u32>) -> Option<Snapshot<Rule>>;
    /// True if a rule of this id, of any site, blocks by what other rules have found.
    fn decides(&self, rule: u32) -> bool;
}

/// Parts of one generation.
#[derive(Clone, Debug)]
pub struct Snapshot<T> {
    /// The number of the settings, from 1.
    pub generation: u64,
    /// The parts.
    pub items: Vec<T>,
}

/// A part with a place in its list, which stays the same over a reload.
pub(crate) trait Keyed {
    /// Its place: lists are in the order of these texts.
    fn key(&self) -> String;
}

/// A site.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Site {
    /// Its name in events and metrics.
    pub name: String,
    /// The hosts: a name, `*.` and a domain, or `*` for all that no other site names.
    pub hosts: Vec<String>,
    /// The listeners that serve it.
    pub listeners: Vec<String>,
    /// The routes, in the order in which they are tried.
    pub routes: Vec<Route>,
    /// Names of the rate limits of all its requests.
    pub limits: Vec<String>,
    /// Applications that its answers look like, and whose profiles it does not take.
    pub looks_like: Vec<Application>,
}

/// An application that answers of a site look like.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Application {
    /// The name of its profile, for `profiles` of the site.
    pub profile: String,
    /// The application.
    pub application: String,
    /// Evidence in the answers, in the words of the profile.
    pub signs: Vec<String>,
    /// The exclusions of the profile.
    pub exclusions: usize,
    /// The fields that the profile opens.
    pub opens: Vec<OpenedField>,
}

/// A field that a profile opens.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OpenedField {
    /// Place and name of the value, or the target of rules.
    pub location: String,
    /// The paths.
    pub paths: Vec<String>,
    /// An attacker's gain, and the users who may write there.
    pub opens: String,
    /// Classes of attacks of which some pass there.
    pub lets_pass: Vec<String>,
}

/// A route of a site.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Route {
    /// Its name in events and metrics.
    pub name: String,
    /// Meaning of `path`.
    pub path_kind: PathKind,
    /// The path, the prefix, or the regular expression.
    pub path: String,
    /// The methods that it takes; empty: all.
    pub methods: Vec<String>,
    /// Names of headers that a request must have. Values are not shown, since some are shared secrets.
    pub headers: Vec<String>,
    /// The treatment of its requests.
    pub target: Target,
    /// The inspection; null: its requests are not inspected.
    pub inspection: Option<Inspection>,
    /// Names of the agents that are asked.
    pub agents: Vec<String>,
    /// Names of its own rate limits, beside those of the site.
    pub limits: Vec<String>,
}

/// The way in which a route compares paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PathKind {
    /// The whole path.
    Exact,
    /// Its beginning.
    Prefix,
    /// A regular expression.
    Pattern,
}

/// The treatment of a route's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Target {
    /// They are forwarded.
    Forward {
        /// The name of the group of endpoints.
        upstream: String,
    },
    /// They are redirected.
    Redirect {
        /// The status.
        status: u16,
    },
    /// They are answered with a text.
    Respond {
        /// The status.
        status: u16,
    },
}

/// The inspection of a route.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Inspection {
    /// `crs`, `semantic` or `both`.
    pub mode: &'static str,
    /// `blocking`, `detection_only` or `off`.
    pub engine: &'static str,
    /// The paranoia level that the document sets; null: as the rule files say.
    pub paranoia: Option<u8>,
    /// The level of the semantic detector, which sets its threshold; null: it does not run.
    pub level: Option<&'static str>,
    /// Rules that are loaded.
    pub rules: usize,
    /// The bodies of responses are inspected, where the document says so; null: as the rule files say.
    pub response_body: Option<bool>,
    /// Classes of attacks for which the semantic detector does something else than to block.
    pub classes: Vec<ClassPolicy>,
    /// Exclusions from the semantic detector.
    pub exclusions: usize,
}

/// The action for findings of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ClassPolicy {
    /// The class.
    pub class: &'static str,
    /// `block`, `log` or `off`.
    pub action: &'static str,
}

/// A group of endpoints.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Upstream {
    /// Its name.
    pub name: String,
    /// Connections are over TLS.
    pub tls: bool,
    /// Active checks are made.
    pub checked: bool,
    /// Endpoints that are not known to be out of order.
    pub healthy: usize,
    /// Requests that wait for a place at an endpoint.
    pub queued: u32,
    /// Its endpoints; a name with several addresses is one for each.
    pub endpoints: Vec<Endpoint>,
}

/// An endpoint as the balancer sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Endpoint {
    /// Address and port, or the name where the address is not known.
    pub address: String,
    /// The state.
    pub state: EndpointState,
    /// `closed`, `open` or `half_open`; null: there is no circuit breaker.
    pub breaker: Option<&'static str>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Its share of the requests.
    pub weight: u32,
    /// Those of a higher number wait until none of a lower one is available.
    pub priority: u32,
    /// The last failure since these settings came into use.
    pub last_error: Option<LastError>,
}

/// The state of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndpointState {
    /// It gets requests.
    Healthy,
    /// Active checks say that it is down.
    Unhealthy,
    /// It failed too often and is left out for a while.
    Ejected,
    /// Its circuit breaker is open.
    Open,
    /// Its circuit breaker lets single requests through to see whether it is back.
    Probing,
}

/// A failure of an endpoint.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LastError {
    /// The reason.
    pub message: String,
    /// Seconds since then.
    pub seconds_ago: u64,
}

/// A rate limit.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RateLimit {
    /// Its site.
    pub site: String,
    /// Its route; null: all requests of the site count.
    pub route: Option<String>,
    /// Its name, unique in the site.
    pub name: String,
    /// The parts of a request that have a bucket of their own; empty: one bucket for all.
    pub key: Vec<String>,
    /// Requests in each `per_seconds`.
    pub rate: u32,
    /// The time for them.
    pub per_seconds: f64,
    /// Requests at once.
    pub burst: u32,
    /// Methods that are counted; empty: all.
    pub methods: Vec<String>,
    /// `block` or `log`.
    pub action: &'static str,
    /// The status of the answer to a request that comes too early.
    pub status: u16,
    /// It is counted together with other nodes.
    pub shared: bool,
    /// Buckets at one time.
    pub keys_max: usize,
    /// Requests that came too early, since the start.
    pub limited: u64,
    /// Buckets that were forgotten before they were full again, since the start: raise `keys` if this grows.
    pub evicted: u64,
}

/// The access lists of a route.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AccessList {
    /// Its site.
    pub site: String,
    /// Its route.
    pub route: String,
    /// The place of the route among those of its site, from 0; two routes may have one name.
    pub place: usize,
    /// Clients that are let in without inspection.
    pub bypass: Clients,
    /// Clients that are let in whatever `deny` says.
    pub allow: Clients,
    /// Clients that are refused.
    pub deny: Clients,
    /// All others are refused, too.
    pub deny_others: bool,
    /// `block` or `log`.
    pub action: &'static str,
    /// The status of the answer to refused clients.
    pub status: u16,
    /// Decisions of the lists of this site, all routes together, since the start.
    pub site_decisions: Decisions,
}

/// A set of clients.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct Clients {
    /// Addresses and networks of the document, the first 100.
    pub networks: Vec<String>,
    /// Addresses and networks of the document, in all.
    pub networks_total: usize,
    /// Files of addresses.
    pub files: Vec<ListFile>,
    /// Lists that are kept up to date.
    pub lists: Vec<KeptList>,
    /// Countries.
    pub countries: Vec<String>,
    /// Continents.
    pub continents: Vec<String>,
    /// Autonomous systems.
    pub asns: Vec<u32>,
}

/// Addresses of the document that are shown of each set.
pub const NETWORKS_SHOWN_MAX: usize = 100;

/// A file of addresses.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ListFile {
    /// Its path.
    pub path: String,
    /// Ranges of addresses that it has now; addresses side by side are one.
    pub ranges: usize,
}

/// A list that is kept up to date.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct KeptList {
    /// Its name.
    pub name: String,
    /// Ranges of addresses that it has now.
    pub ranges: usize,
}

/// Decisions of access lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Decisions {
    /// Requests that were let in without inspection.
    pub bypassed: u64,
    /// Requests that were allowed.
    pub allowed: u64,
    /// Requests that were refused.
    pub denied: u64,
    /// Requests that would have been refused.
    pub logged: u64,
}

/// A certificate of a listener.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Certificate {
    /// The listener.
    pub listener: String,
    /// `file` or `acme`.
    pub source: &'static str,
    /// The file with the chain.
    pub file: String,
    /// It is in use. One by ACME is not until it has been issued.
    pub issued: bool,
    /// The names that it bears.
    pub names: Vec<String>,
    /// The issuer, as RFC 4514 writes it; null: it is not issued.
    pub issuer: Option<String>,
    /// The first second of its validity, since 1970; null: it is not issued.
    pub not_before: Option<i64>,
    /// The last second of its validity, since 1970; null: it is not issued.
    pub not_after: Option<i64>,
}

/// An inspection agent.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its address: `unix:` and a path, `grpc://` or `grpcs://` with host and port.
    pub address: String,
    /// `closed`, `open` or `half_open`.
    pub breaker: &'static str,
    /// Exchanges that it decides on.
    pub in_flight: usize,
    /// Exchanges that wait for a place.
    pub waiting: u32,
    /// Exchanges at one time, at most.
    pub concurrency: u32,
    /// The longest time for which a request waits for it, in seconds.
    pub timeout_seconds: f64,
    /// `open` or `closed`: the policy where it gives no decision, at routes that set none.
    pub failure: &'static str,
}

impl Keyed for Site {
    fn key(&self) -> String {
        self.name.clone()
    }
}

impl Keyed for Upstream {
    fn key(&self) -> String {
        self.name.clone()
    }
}

impl Keyed for RateLimit {
    fn key(&self) -> String {
        format!("{}\t{}", self.site, self.name)
    }
}

impl Keyed for AccessList {
    fn key(&self) -> String {
        format!("{}\t{:06}", self.site, self.place)
    }
}

impl Keyed for Certificate {
    fn key(&self) -> String {
        format!("{}\t{}", self.listener, self.file)
    }
}

impl Keyed for Agent {
    fn key(&self) -> String {
        self.name.clone()
    }
}

/// The state of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleState {
    /// It runs as it was written.
    Active,
    /// It runs, changed by a `SecRuleUpdate` directive.
    Overridden,
    /// It is loaded, but no request can reach or match it with these settings.
    Dead,
    /// A `SecRuleRemove` directive took it out.
    Excluded,
}

/// A rule of a policy.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Rule {
    /// Its id.
    pub rule_id: u32,
    /// The phase, 1 to 5.
    pub phase: u8,
    /// Its state.
    pub state: RuleState,
    /// Its severity, if it has one.
    pub severity: Option<&'static str>,
    /// The message; macros are not expanded.
    pub message: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The paranoia level of the CRS that its tags name.
    pub paranoia: Option<u8>,
    /// The file that it stands in.
    pub file: String,
    /// The line where it begins.
    pub line: u32,
    /// The reason of its state, and what `ctl` of other rules can do to it.
    pub notes: Vec<String>,
    /// Requests that it matched since the start of the program, at all routes.
    pub matches: u64,
    /// The text in its file, if it was asked for and the file still holds it.
    pub text: Option<String>,
}
