//! The settings after all checks: what the rest of the product works with.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::access::RateLimit;
use crate::agents::Agent;
use portcullis_types::{Class, Level, Place};

use crate::acme::Acme;
use crate::http2::Http2;
use crate::https::Https;
use crate::route::Route;
use crate::tls::ListenerTls;
use crate::tracing::Tracing;
use crate::upstream::Upstream;

/// A configuration that cannot be wrong in itself: names resolve, addresses parse, every reference is an index that
/// exists. Files it names may still be missing; whoever opens them says so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Worker threads, at least 1.
    pub workers: usize,
    /// The admin listener.
    pub admin: Option<SocketAddr>,
    /// Changed files are read without being asked to.
    pub reload_on_change: bool,
    /// At least one.
    pub listeners: Vec<Listener>,
    /// At least one.
    pub sites: Vec<Site>,
    /// At least one; [`RouteTarget::Forward`](crate::RouteTarget::Forward) points here.
    pub upstreams: Vec<Upstream>,
    /// The account that certificates are ordered with.
    pub acme: Option<Acme>,
    /// Inspection processes; [`Route::agents`] points here.
    pub agents: Vec<Agent>,
    /// Distinct inspection policies; [`Route::policy`] points here. Sites with equal settings share one.
    pub policies: Vec<Policy>,
    /// Where client addresses come from.
    pub client_address: ClientAddress,
    /// Time limits towards clients.
    pub timeouts: Timeouts,
    /// Limits of one worker.
    pub limits: Limits,
    /// Persistent collections.
    pub store: Store,
    /// How rules' questions to the outside are asked.
    pub lookups: Lookups,
    /// The event file.
    pub events: Option<Events>,
    /// The access log of requests that no site serves.
    pub access_log: Option<AccessLog>,
    /// Which requests are traced.
    pub tracing: Option<Tracing>,
    /// The error log.
    pub error_log: Option<PathBuf>,
    /// How much of the audit log is kept.
    pub audit_log: AuditLogLimits,
    /// Bytes of all files in a folder of kept uploads.
    pub upload_folder_bytes_max: u64,
    /// What loading rules found out, for the next start.
    pub plan_cache: Option<PathBuf>,
    /// Databases that say where addresses are.
    pub geo_files: Vec<PathBuf>,
    /// Where nodes share rate limits.
    pub limit_store: Option<crate::access::LimitStore>,
    /// What bans outlive the process in.
    pub ban_file: Option<PathBuf>,
    /// More names to redact.
    pub redact_names: Vec<String>,
    /// HTML file of the block page.
    pub block_page: Option<PathBuf>,
}

impl Config {
    /// The files of all access logs, each once.
    pub fn access_log_files(&self) -> Vec<PathBuf> {
        let logs =
            self.access_log.iter().chain(self.sites.iter().filter_map(|site| site.access_log.as_ref()));
        let files: std::collections::BTreeSet<&PathBuf> = logs.map(|log| &log.file).collect();
        files.into_iter().cloned().collect()
    }
}

/// An address to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name, unique.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// If it serves TLS.
    pub tls: Option<ListenerTls>,
    /// Trusted peers begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// A client of HTTP/1 that ends its side is taken for one that still reads.
    pub half_close: bool,
    /// How strictly HTTP is read; the same for all its sites, since the host is known only after reading.
    pub compat: Compat,
    /// HTTP/2 to clients. Limits are those of HTTP/3, too.
    pub http2: Http2,
    /// It speaks HTTP/3, over UDP on the same port.
    pub http3: bool,
    /// Indices into [`Config::sites`] of those it serves, at least one.
    pub sites: Vec<usize>,
}

/// What is served under some hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The name in events and metrics, unique.
    pub name: String,
    /// At least one.
    pub hosts: Vec<HostPattern>,
    /// That clients should come by TLS.
    pub https: Https,
    /// At least one, in the order in which they are tried.
    pub routes: Vec<Route>,
    /// Rate limits of all its requests.
    pub rate_limits: Vec<RateLimit>,
    /// Its access log.
    pub access_log: Option<AccessLog>,
}

/// An access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where it is.
    pub file: PathBuf,
    /// How its lines look.
    pub format: AccessLogFormat,
}

/// How lines of an access log look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// A JSON object.
    Json,
    /// As Apache's and nginx's `combined`.
    Combined,
}

/// Which hosts a site serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Every host no other site names.
    Any,
    /// This host; lower case, without port.
    Exact(String),
    /// Every host under this domain, given with its leading dot, lower case.
    Under(String),
}

/// Everything that decides what is inspected and how. Equal policies are compiled once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Which detection runs.
    pub mode: Mode,
    /// How sure the semantic detector must be; the default where it does not run.
    pub level: Level,
    /// What it does about single classes, and what it leaves alone; empty where it does not run.
    pub semantic: Semantic,
    /// Files before the CRS, may hold `*`.
    pub setup: Vec<PathBuf>,
    /// Folder of the CRS.
    pub crs: Option<PathBuf>,
    /// 1 to 4.
    pub paranoia: Option<u8>,
    /// Files after the CRS, may hold `*`.
    pub include: Vec<PathBuf>,
    /// Directives after all files.
    pub directives: Option<String>,
    /// Messages are read as libmodsecurity reads them, where that differs from ModSecurity 2.
    pub modsecurity3: bool,
    /// What a disruptive rule does; none: as the rule files say, else blocking.
    pub engine: Option<Engine>,
    /// Request body settings that override the rule files.
    pub request_body: Body,
    /// Response body settings that override the rule files.
    pub response_body: Body,
}

/// Which detection runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The rules of the policy.
    #[default]
    Crs,
    /// The semantic detector; the policy has no rules of its own.
    Semantic,
    /// Both.
    Both,
}

impl Mode {
    /// The semantic detector runs.
    pub fn has_semantic(self) -> bool {
        self != Mode::Crs
    }

    /// The rules of the policy run.
    pub fn has_rules(self) -> bool {
        self != Mode::Semantic
    }
}

/// What the semantic detector does about single classes of attacks, and what it leaves alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Semantic {
    /// Classes for which something else is done than to block.
    pub classes: Vec<(Class, ClassAction)>,
    /// Findings that do not count.
    pub exclude: Vec<Exclusion>,
    /// How long the body of a response that no rule asks for is held for its upstream in all.
    pub response_wait: Duration,
}

impl Default for Semantic {
    fn default() -> Self {
        // A page that is sent in pieces should not appear noticeably later.
        Semantic { classes: Vec::new(), exclude: Vec::new(), response_wait: Duration::from_millis(200) }
    }
}

/// What is done about findings of a class that pass the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClassAction {
    /// The request is blocked.
    Block,
    /// It goes on, with an event.
    Log,
    /// Nothing.
    Off,
}

/// Findings that do not count: those to which all that is said here applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Exclusion {
    /// The class.
    pub class: Option<Class>,
    /// The place of the value.
    pub place: Option<Place>,
    /// The name of the value; `*` stands for any text.
    pub name: Option<String>,
    /// A prefix of the path, or with `*` the whole path.
    pub path: Option<String>,
}

/// Body settings; none means as the rule files say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Body {
    /// Whether it is inspected.
    pub inspect: Option<bool>,
    /// Bytes held.
    pub limit_bytes: Option<u64>,
    /// What happens above.
    pub over_limit: Option<OverLimit>,
    /// Requests only: a body that applications read differently passes.
    pub ambiguous_pass: bool,
    /// Requests only: whether rules see second readings.
    pub second_readings: Option<bool>,
}

/// What a match of a disruptive rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Interrupts the transaction.
    Blocking,
    /// Is logged only.
    DetectionOnly,
}

/// What happens to a body above its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OverLimit {
    /// 413 for a request, 500 for a response.
    Reject,
    /// The rest passes uninspected and is counted.
    PassUninspected,
}

/// HTTP profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// Refuses what two readers could read differently.
    #[default]
    Strict,
    /// As Apache httpd where that is safe.
    Apache,
}

/// What happens when inspection cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A caught bug.
    pub engine_error: OpenOrClosed,
    /// A request body whose content coding cannot be undone.
    pub undecodable: OpenOrClosed,
    /// A lookup without an answer.
    pub lookup: OpenOrClosed,
}

impl Default for Failure {
    fn default() -> Self {
        let (open, closed) = (OpenOrClosed::Open, OpenOrClosed::Closed);
        Failure { engine_error: closed, undecodable: closed, lookup: open }
    }
}

/// Pass or refuse; both are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenOrClosed {
    /// Pass.
    Open,
    /// Refuse.
    Closed,
}

/// Where client addresses come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientAddress {
    /// Whose word is taken.
    pub trusted_proxies: Vec<Network>,
    /// The header to read.
    pub header: Option<AddressHeader>,
}

impl ClientAddress {
    /// Whether the word of this peer is taken. A v4 address that arrives v6-mapped counts as v4.
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(peer))
    }
}

/// Headers that name the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressHeader {
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded`, RFC 7239.
    Forwarded,
}

/// An address block such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

impl Network {
    /// An address in it.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Bits that its addresses agree in.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether the address lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                u32::from(network) & mask == u32::from(address) & mask
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                u128::from(network) & mask == u128::from(address) & mask
            }
            _ => false,
        }
    }
}

impl std::str::FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr =
            address.parse().map_err(|_| format!("`{text}` is not an address or a network"))?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(prefix) => prefix
                .parse()
                .ok()
                .filter(|prefix| *prefix <= bits)
                .ok_or_else(|| format!("the prefix of `{text}` is not a number from 0 to {bits}"))?,
        };
        Ok(Network { address, prefix })
    }
}

/// Time limits towards clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a complete request head, TLS handshake included.
    pub header: Duration,
    /// Between two parts of a request body.
    pub body: Duration,
    /// For a complete request body.
    pub body_total: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// Without progress while a response is sent.
    pub write: Duration,
    /// For requests in flight after SIGTERM.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Timeouts {
            header: seconds(15),
            body: seconds(30),
            body_total: seconds(300),
            idle: seconds(60),
            write: seconds(30),
            drain: seconds(30),
        }
    }
}

/// Limits of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Client connections.
    pub connections_max: usize,
    /// Bytes of all held bodies together.
    pub held_body_bytes_max: u64,
    /// The longest `pause` of a rule.
    pub pause_max: Duration,
    /// Requests that a rule makes wait at one time; further ones do not wait.
    pub pauses_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 8192,
            held_body_bytes_max: 256 << 20,
            pause_max: Duration::from_secs(10),
            pauses_max: 256,
        }
    }
}

/// How much of the audit log and the debug log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditLogLimits {
    /// A file is rotated above this size.
    pub rotate_at_bytes: u64,
    /// Files of concurrent records in one folder, at least 1.
    pub files_max: u64,
    /// Bytes of all of them together.
    pub stored_bytes_max: u64,
    /// Bytes that wait to be written.
    pub queue_bytes_max: u64,
}

impl Default for AuditLogLimits {
    fn default() -> Self {
        AuditLogLimits {
            rotate_at_bytes: 1 << 30,
            files_max: 100_000,
            stored_bytes_max: 4 << 30,
            queue_bytes_max: 64 << 20,
        }
    }
}

/// Persistent collections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Folder of their file.
    pub folder: Option<PathBuf>,
    /// Records, at least 1.
    pub records_max: usize,
    /// Bytes of all records.
    pub bytes_max: u64,
    /// Bytes of one record.
    pub record_bytes_max: u64,
    /// Where it is shared with other nodes.
    pub redis: Option<Redis>,
}

/// A Redis that nodes share.
#[derive(Clone, PartialEq, Eq)]
pub struct Redis {
    /// Its address, perhaps with a password.
    pub url: String,
    /// Before every key.
    pub prefix: String,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What stands before the @ is nobody's business.
        let host = self.url.rsplit('@').next().unwrap_or_default();
        f.debug_struct("Redis").field("host", &host).field("prefix", &self.prefix).finish()
    }
}

impl Default for Store {
    fn default() -> Self {
        Store {
            folder: None,
            records_max: 262_144,
            bytes_max: 64 << 20,
            record_bytes_max: 8 << 10,
            redis: None,
        }
    }
}

/// How rules' questions to the outside are asked: `@rbl`, `@inspectFile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookups {
    /// DNS servers; none: those of the system.
    pub resolvers: Vec<SocketAddr>,
    /// For a DNS answer, all tries together.
    pub dns_timeout: Duration,
    /// DNS answers that a worker remembers.
    pub dns_cache_entries_max: usize,
    /// For the verdict of a virus scanner.
    pub scan_timeout: Duration,
}

impl Default for Lookups {
    fn default() -> Self {
        Lookups {
            resolvers: Vec::new(),
            dns_timeout: Duration::from_secs(2),
            dns_cache_entries_max: 10_000,
            scan_timeout: Duration::from_secs(10),
        }
    }
}

/// The event file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// Its path.
    pub file: PathBuf,
    /// Rotated above this size.
    pub rotate_at_bytes: u64,
}
