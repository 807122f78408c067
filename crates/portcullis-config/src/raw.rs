//! The configuration document as it is written, before it is checked. Doc comments become the descriptions of
//! the JSON schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::access::{self as control, raw as access};
use crate::access_log;
use crate::acme;
use crate::agents;
use crate::compression;
use crate::lists;
use crate::oidc;
use crate::spanned::Spanned;
use crate::tracing;
use crate::units::{Size, Time};

mod database;
mod listener;
mod logs;
pub(crate) mod policy;
mod route;
mod sinks;
mod site;
pub(crate) mod tls;
pub(crate) mod upstream;

pub(crate) use database::*;
pub(crate) use listener::*;
pub(crate) use logs::*;
pub(crate) use policy::*;
pub(crate) use route::*;
pub(crate) use sinks::*;
pub(crate) use site::*;
pub(crate) use upstream::*;

/// A Portcullis configuration document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Portcullis configuration")]
pub(crate) struct Document {
    /// Worker threads, each with its own listeners, connections and upstream pool. Default: one for each
    /// core.
    #[schemars(range(min = 1, max = 1024))]
    pub workers: Option<Spanned<u32>>,
    /// Pin each worker to a core of its own, which serves the connections whose packets arrive there.
    /// Default: `false`.
    #[serde(default)]
    pub worker_affinity: bool,
    /// The admin listener: `/metrics` and `/healthz`. Default: none.
    pub admin: Option<Admin>,
    /// Reload when the document, the block page or a file in the folders of rules changes. Default: `false`.
    #[serde(default)]
    pub reload_on_change: bool,
    /// Addresses to serve.
    #[serde(default)]
    pub listeners: Vec<Listener>,
    /// Sites, by host name.
    #[serde(default)]
    pub sites: Vec<Site>,
    /// The ACME account for ordering certificates. Default: none.
    pub acme: Option<Spanned<acme::Raw>>,
    /// Groups of equal endpoints, by name.
    #[serde(default)]
    pub upstreams: BTreeMap<String, Upstream>,
    /// Inspection agents for sites and routes, by name.
    #[serde(default)]
    pub agents: BTreeMap<String, Spanned<agents::Raw>>,
    /// The source of the client's address when trusted proxies forward requests.
    #[serde(default)]
    pub client_address: ClientAddress,
    /// Access lists of sites without lists of their own. Default: all clients are allowed.
    pub access: Option<Spanned<access::Access>>,
    /// GeoIP databases. Default: none.
    #[serde(default)]
    pub geo: Geo,
    /// Store in which nodes count rate limits with `shared = true` together. Default: none.
    pub limit_store: Option<access::LimitStore>,
    /// Ban policy of sites without one of their own; they share the bans. Default: none.
    pub ban: Option<Spanned<control::ban::Raw>>,
    /// File in which bans survive a restart. Default: none.
    pub ban_file: Option<String>,
    /// Compression of responses, at sites that do not say it themselves. Default: none.
    pub compression: Option<Spanned<compression::Raw>>,
    /// Time limits towards clients.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Limits on clients' connections and memory.
    #[serde(default)]
    pub limits: Limits,
    /// Persistent collections (`IP`, `SESSION`, ...): how many are kept, and where.
    #[serde(default)]
    pub store: Store,
    /// Lists of addresses that are fetched from servers or found by names of hosts.
    #[serde(default)]
    pub lists: Vec<Spanned<lists::Raw>>,
    /// External lookups of rules: `@rbl`, `@inspectFile`.
    #[serde(default)]
    pub lookups: Lookups,
    /// Folder in which events are stored, to be searched and counted. Default: none, no events are stored.
    pub data: Option<Data>,
    /// Events: their file, one line for each block or match, other receivers, and limits of the event store.
    pub events: Option<Events>,
    /// Bytes of the last events that are kept in memory, for `portcullis events` and `portcullis exclude`; 0
    /// for none. Default: 4MiB.
    pub recent_events: Option<Size>,
    /// The access log: a line for each request. Default: none.
    pub access_log: Option<Spanned<access_log::Raw>>,
    /// Traces in the form of OpenTelemetry. Default: none.
    pub tracing: Option<tracing::Raw>,
    /// The error log: one line for each matched rule, in the form ModSecurity's tools read. Default: none.
    pub error_log: Option<ErrorLog>,
    /// Limits of the audit log; rules (`SecAuditLog`) set its content and place.
    #[serde(default)]
    pub audit_log: AuditLog,
    /// File that caches rule analysis for faster restarts. Default: none.
    pub plan_cache: Option<String>,
    /// Uploaded files that rules keep (`SecUploadKeepFiles`).
    #[serde(default)]
    pub uploads: Uploads,
    /// Names whose values never reach an event, beside the built-in ones.
    #[serde(default)]
    pub redact: Redact,
    /// The page a blocked client sees.
    #[serde(default)]
    pub block_page: BlockPage,
}

/// The admin listener.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Admin {
    /// Address and port of `/metrics` and `/healthz`, for example `127.0.0.1:9090`. Keep it away from the
    /// public network. Default: none.
    pub listen: Option<Spanned<String>>,
    /// Address and port of the admin API, for example `127.0.0.1:9443`; over TLS unless the address is a
    /// loopback one. `--console` takes its place. It needs a data folder. Default: none.
    pub console: Option<Spanned<String>>,
    /// Refuse changes of this document through the admin API: the document comes from elsewhere, such as a
    /// Git repository. Default: `false`.
    #[serde(default)]
    pub read_only: bool,
    /// Names under which they may be asked, beside addresses and `localhost`: a page in a browser could have
    /// a name of its own stand for our address. Default: none.
    #[serde(default)]
    pub hosts: Vec<Spanned<String>>,
    /// Login to the admin API at an OpenID Connect provider, beside passwords. Default: none.
    pub oidc: Option<oidc::RawOidc>,
}

/// The source of the client's address.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientAddress {
    /// Addresses or networks of the proxies in front, for example `10.0.0.0/8`. Only their word is taken.
    #[serde(default)]
    pub trusted_proxies: Vec<Spanned<String>>,
    /// The request header to read. Default: none.
    pub header: Option<Spanned<AddressHeader>>,
    /// Treatment of request headers that name the client or the target where the peer is not a trusted proxy:
    /// `True-Client-IP`, `X-Original-URL`, `Proxy` and the like. Default: `drop`. `X-Forwarded-For` and its
    /// kin are replaced in any case.
    pub identity_headers: Option<IdentityHeaders>,
    /// The id of a request: `own`, which we make, or `trusted`, the `X-Request-Id` that a trusted proxy
    /// sends, if it is 1 to 128 letters, digits and `-._~+/=:@`. Default: `own`.
    pub request_id: Option<Spanned<RequestIdSource>>,
}

/// The source of request ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequestIdSource {
    /// They are made here.
    Own,
    /// Those of trusted proxies are kept.
    Trusted,
}

/// Treatment of headers that only a proxy may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IdentityHeaders {
    /// They are not forwarded.
    Drop,
    /// They are forwarded as they came.
    Pass,
}

/// Headers that name the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AddressHeader {
    /// `X-Forwarded-For`: the last address that is not a trusted proxy.
    XForwardedFor,
    /// `Forwarded` (RFC 7239), read the same way.
    Forwarded,
}

/// Databases that say where addresses are.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Geo {
    /// Files in MaxMind's format (`.mmdb`) with countries, autonomous systems or both; what the first does
    /// not know the next is asked. A file that changes is read again.
    #[serde(default)]
    pub files: Vec<String>,
}

/// Time limits towards clients.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timeouts {
    /// For a complete request head, TLS handshake included. Default: 15s.
    pub header: Option<Time>,
    /// Between two parts of a request body. Default: 30s.
    pub body: Option<Time>,
    /// For a complete request body, however steadily it drips. Default: 5m.
    pub body_total: Option<Time>,
    /// Between two requests. Default: 60s.
    pub idle: Option<Time>,
    /// Without progress while a response is sent. Default: 30s.
    pub write: Option<Time>,
    /// For requests in flight after SIGTERM. Default: 30s.
    pub drain: Option<Time>,
    /// For a client that still sends to read the last answer of its connection, such as a 413. Default: 5s.
    pub linger: Option<Time>,
}

/// Limits on clients' connections and memory. A client network is the first bits of a client's address, see
/// `network_prefix_v4`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// Client connections of a worker. When they are used up, idle ones of the client network with the most
    /// are closed; if there are none, more wait in the backlog. Default: 8192.
    #[schemars(range(min = 1))]
    pub connections: Option<Spanned<u32>>,
    /// Connections of a worker that one client network may have, but for trusted proxies. Beyond it its idle
    /// ones are closed; if there are none, the new one is. Default: half of `connections`.
    #[schemars(range(min = 1))]
    pub network_connections: Option<Spanned<u32>>,
    /// Bytes of memory of the process for all bodies held at one time: each copy of them, and what decodes
    /// and compresses them. A request that needs more waits, then it is answered 503. Default: 256MiB.
    pub held_bodies: Option<Size>,
    /// The largest share of `held_bodies` for one client network. Default: half of `held_bodies`.
    pub network_held_bodies: Option<Size>,
    /// Unfinished request bodies that one client network may have at one time; more are answered 503.
    /// Default: 256.
    #[schemars(range(min = 1))]
    pub network_bodies: Option<Spanned<u32>>,
    /// The longest wait of a body for memory before it is refused. Default: 1s.
    pub held_bodies_wait: Option<Time>,
    /// The part of the memory limit of the process's cgroup, or of the machine's memory where there is none,
    /// from which bodies of client networks that hold much are answered 503, 0.1 to 1; those of others are at
    /// half of what is left. Default: 0.85.
    #[schemars(range(min = 0.1, max = 1.0))]
    pub memory_part: Option<Spanned<f64>>,
    /// Leading bits of an IPv4 address that make a client network, 8 to 32. Default: 24.
    #[schemars(range(min = 8, max = 32))]
    pub network_prefix_v4: Option<Spanned<u8>>,
    /// Leading bits of an IPv6 address that make a client network, 16 to 128. Default: 48.
    #[schemars(range(min = 16, max = 128))]
    pub network_prefix_v6: Option<Spanned<u8>>,
    /// How late a worker may be, for work of its own, before requests of the client networks that cost the
    /// most of the processor are answered 503; with `"1h"` none are. Default: 50ms.
    pub overload_lag: Option<Time>,
    /// The longest time that a rule's `pause` holds a request up; a longer one is shortened. Default: 10s.
    pub pause: Option<Time>,
    /// Requests that wait for a `pause` at one time; more are forwarded at once. Default: 256.
    pub pauses: Option<u32>,
    /// Bytes that are read, and dropped, from a client that still sends after the last answer of its
    /// connection. Default: 16MiB.
    pub linger: Option<Size>,
    /// Memory for the hashes of cookies that upstreams set, of all sites together. Default: 16MiB.
    pub issued_cookies: Option<Size>,
}

/// Persistent collections.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Store {
    /// Folder of the file that lets them survive a restart. Default: the first `SecDataDir` of the rules;
    /// without one they are in memory only.
    pub folder: Option<String>,
    /// Records of all collections; beyond it those that were not used for long are dropped. Default: 262144.
    #[schemars(range(min = 1))]
    pub records: Option<Spanned<u32>>,
    /// Bytes of all records. The file takes up to twice as much and 4MiB. Default: 64MiB.
    pub memory: Option<Size>,
    /// Bytes of one record; changes beyond it are not kept. At most 1MiB. Default: 8KiB.
    pub record: Option<Spanned<Size>>,
    /// Redis or Valkey through which several nodes share their records:
    /// `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS. Default: none.
    pub redis: Option<Spanned<String>>,
    /// Before every key in Redis; nodes with the same prefix share. Default: `portcullis:`.
    pub redis_prefix: Option<String>,
}

/// Lookups that rules ask for: DNS block lists and virus scanners.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lookups {
    /// DNS servers, each an address with or without a port. Default: those of `/etc/resolv.conf`.
    #[serde(default)]
    pub resolvers: Vec<Spanned<String>>,
    /// For a DNS answer, all tries together. Default: 2s.
    pub dns_timeout: Option<Time>,
    /// DNS answers that a worker remembers; 0 for none. Default: 10000.
    #[schemars(range(max = 10_000_000))]
    pub dns_cache: Option<Spanned<u32>>,
    /// For the verdict of a virus scanner on one file. Default: 10s.
    pub scan_timeout: Option<Time>,
}

/// The page a blocked client sees.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlockPage {
    /// HTML file; `{{request_id}}` and `{{status}}` are filled in. Default: a small page of our own.
    pub file: Option<String>,
}
