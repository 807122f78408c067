//! The document as a person writes it. Doc comments become the descriptions of the JSON schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::access::{self as control, raw as access};
use crate::access_log;
use crate::acme;
use crate::agents;
use crate::compression;
use crate::https;
use crate::spanned::Spanned;
use crate::tracing;
use crate::units::{Size, Time};

mod route;
mod tls;
mod upstream;

pub(crate) use route::*;
pub(crate) use tls::*;
pub(crate) use upstream::*;

/// A Portcullis configuration document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Portcullis configuration")]
pub(crate) struct Document {
    /// Worker threads, each with its own listeners, connections and upstream pool. Default: one for each core.
    #[schemars(range(min = 1, max = 1024))]
    pub workers: Option<Spanned<u32>>,
    /// The admin listener: `/metrics` and `/healthz`. Default: none.
    pub admin: Option<Admin>,
    /// Reload when the document, the block page or a file in the folders of rules changes. Default: `false`.
    #[serde(default)]
    pub reload_on_change: bool,
    /// Addresses to serve.
    #[serde(default)]
    pub listeners: Vec<Listener>,
    /// What is served, by host name.
    #[serde(default)]
    pub sites: Vec<Site>,
    /// The account that certificates are ordered with by ACME. Default: none.
    pub acme: Option<Spanned<acme::Raw>>,
    /// Groups of equal endpoints, by name.
    #[serde(default)]
    pub upstreams: BTreeMap<String, Upstream>,
    /// Inspection processes that sites and routes ask, by name.
    #[serde(default)]
    pub agents: BTreeMap<String, Spanned<agents::Raw>>,
    /// Where the address of the client comes from when trusted proxies stand in front.
    #[serde(default)]
    pub client_address: ClientAddress,
    /// Which clients may ask, at sites that do not say it themselves. Default: all.
    pub access: Option<Spanned<access::Access>>,
    /// Where clients are. Default: nobody knows.
    #[serde(default)]
    pub geo: Geo,
    /// Where rate limits with `shared = true` are counted together with those of other nodes. Default: none.
    pub limit_store: Option<access::LimitStore>,
    /// When clients are banned, at sites that do not say it themselves; they share the bans. Default: never.
    pub ban: Option<Spanned<control::ban::Raw>>,
    /// File that bans outlive the process in. Default: none.
    pub ban_file: Option<String>,
    /// Compression of responses, at sites that do not say it themselves. Default: none.
    pub compression: Option<Spanned<compression::Raw>>,
    /// Time limits towards clients.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Limits of one worker.
    #[serde(default)]
    pub limits: Limits,
    /// Persistent collections (`IP`, `SESSION`, ...): how many are kept, and where.
    #[serde(default)]
    pub store: Store,
    /// How questions of rules to the outside are asked: `@rbl`, `@inspectFile`.
    #[serde(default)]
    pub lookups: Lookups,
    /// The event file: one JSON line for each block or match. Default: none.
    pub events: Option<Events>,
    /// The access log: a line for each request. Default: none.
    pub access_log: Option<Spanned<access_log::Raw>>,
    /// Traces in the form of OpenTelemetry. Default: none.
    pub tracing: Option<tracing::Raw>,
    /// The error log: one line for each matched rule, in the form ModSecurity's tools read. Default: none.
    pub error_log: Option<ErrorLog>,
    /// How much of the audit log is kept; rules (`SecAuditLog`) say what is in it and where it is.
    #[serde(default)]
    pub audit_log: AuditLog,
    /// File that keeps what loading rules takes long to find out, so that the next start is faster. Default: none.
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
    /// Address and port, for example `127.0.0.1:9090`. Keep it away from the public network.
    pub listen: Spanned<String>,
}

/// One address to serve.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listener {
    /// A name for sites to refer to; default: the address.
    pub name: Option<Spanned<String>>,
    /// Address and port, for example `0.0.0.0:8080` or `[::]:8080`.
    pub address: Spanned<String>,
    /// Serve TLS.
    pub tls: Option<ListenerTls>,
    /// Expect a PROXY protocol header, version 1 or 2, from the trusted proxies of `client_address`.
    #[serde(default)]
    pub proxy_protocol: Option<Spanned<bool>>,
    /// How strictly HTTP is read.
    #[serde(default)]
    pub http: Http,
    /// HTTP/2 to clients.
    #[serde(default)]
    pub http2: crate::http2::Raw,
    /// Serve HTTP/3, too, over UDP on the same port, and say so in `Alt-Svc`. Needs `tls` and a build with the feature `http3`.
    /// Default: `false`.
    pub http3: Option<Spanned<bool>>,
}

/// What is served under some host names.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Site {
    /// The name in events and metrics.
    pub name: Spanned<String>,
    /// Host names: exact, `*.example.com`, or `*` for every host that no other site names.
    pub hosts: Spanned<Vec<Spanned<String>>>,
    /// That clients should come by TLS.
    #[serde(default)]
    pub https: https::Raw,
    /// Names of the listeners that serve it; default: all.
    pub listeners: Option<Vec<Spanned<String>>>,
    /// The upstream of every path that no route names.
    pub upstream: Option<Spanned<String>>,
    /// What happens to requests by path, method and header.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// `semantic`: parse what requests say. `crs`: inspect with the rules below. `both`: the one beside the other. `off`:
    /// forward without inspection. Default: `crs` with `rules`, `semantic` without.
    pub mode: Option<Mode>,
    /// How sure the semantic detector must be. Default: `balanced`.
    pub level: Option<Spanned<Level>>,
    /// What the semantic detector does about single classes of attacks, and what it leaves alone.
    pub semantic: Option<Spanned<Semantic>>,
    /// What a match of a disruptive rule does. Default: `blocking`, unless the rule files say otherwise.
    pub engine: Option<Engine>,
    /// The rules.
    pub rules: Option<Spanned<Rules>>,
    /// Changes of the headers that the upstream gets.
    pub request_headers: Option<HeaderChanges>,
    /// Changes of the headers of the upstream's answer.
    pub response_headers: Option<HeaderChanges>,
    /// Names of trailer fields of requests that go on, behind bodies that are held; rules see them as headers from phase 2 on.
    /// Default: none.
    #[serde(default)]
    pub request_trailers: Vec<Spanned<String>>,
    /// How request bodies are held for inspection.
    #[serde(default)]
    pub request_body: RequestBody,
    /// Whether response bodies are held for inspection.
    #[serde(default)]
    pub response_body: ResponseBody,
    /// What happens when inspection cannot be done.
    #[serde(default)]
    pub failure: Failure,
    /// Its access log; default: as the document says.
    pub access_log: Option<Spanned<access_log::Raw>>,
    /// Which clients may ask; default: as the document says.
    pub access: Option<Spanned<access::Access>>,
    /// When clients are banned for what they do here; default: as the document says.
    pub ban: Option<Spanned<control::ban::Raw>>,
    /// Compression of responses; default: as the document says.
    pub compression: Option<Spanned<compression::Raw>>,
    /// Rate limits of all its requests.
    #[serde(default)]
    pub rate_limits: Vec<access::RateLimit>,
    /// Agents that are asked about its requests. Default: none.
    #[serde(default)]
    pub agents: Vec<Spanned<agents::Use>>,
}

/// Which detection runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// The semantic detector, without the rules of `rules`.
    Semantic,
    /// The rules of `rules`.
    Crs,
    /// Both, combined.
    Both,
    /// No inspection.
    Off,
}

/// How sure the semantic detector must be to block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// Almost no false alarms.
    Balanced,
    /// More attacks are caught, with a few more false alarms.
    Strict,
}

/// What the semantic detector does about single classes of attacks, and what it leaves alone.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Semantic {
    /// By class, for example `{ xss = "log", ssrf = "off" }`. Default: `block`; for `leak`, private keys, files of the system
    /// and web shells block, all else is logged.
    #[serde(default)]
    pub classes: BTreeMap<String, Spanned<ClassAction>>,
    /// Findings that do not count.
    #[serde(default)]
    pub exclude: Vec<Spanned<Exclude>>,
    /// How long the body of a response that no rule asks for is held for its upstream in all. Default: `"200ms"`.
    pub response_wait: Option<Time>,
}

/// What is done about findings of a class that pass the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClassAction {
    /// The request is blocked.
    Block,
    /// It goes on, with an event.
    Log,
    /// Nothing.
    Off,
}

/// Findings that do not count: those to which all that is said here applies.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exclude {
    /// The class; default: every class.
    pub class: Option<Spanned<String>>,
    /// Place and name of the value as events show them, for example `form:comment`, `header:X-*`, `json:*.html`, `*:q`, or a
    /// place alone. Default: every value.
    pub location: Option<Spanned<String>>,
    /// Path of the request: a prefix, or the whole path if there is a `*` in it. Default: every path.
    pub path: Option<Spanned<String>>,
}

/// What a match of a disruptive rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Engine {
    /// Answer with the block page.
    Blocking,
    /// Log only.
    DetectionOnly,
}

/// SecLang rules, read in the order of the keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    /// Files with settings and exclusions to read before the CRS; `*` is allowed in names.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Folder of the CRS: `crs-setup.conf` (or its `.example`) and `rules/*.conf`.
    pub crs: Option<String>,
    /// CRS paranoia level, 1 to 4. Default: as `crs-setup.conf` says.
    #[schemars(range(min = 1, max = 4))]
    pub paranoia: Option<Spanned<u8>>,
    /// Files to read after the CRS; `*` is allowed in names.
    #[serde(default)]
    pub include: Vec<String>,
    /// Directives to read last.
    pub directives: Option<String>,
    /// Which ModSecurity's reading counts where the two differ: `modsecurity2`, the default, or `modsecurity3`.
    pub compat: Option<RulesCompat>,
}

/// Which ModSecurity the rules were written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum RulesCompat {
    /// Version 2.9 on Apache.
    #[serde(rename = "modsecurity2")]
    ModSecurity2,
    /// libmodsecurity, version 3.
    #[serde(rename = "modsecurity3")]
    ModSecurity3,
}

/// How request bodies are held for inspection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestBody {
    /// `false` forwards request bodies without inspection. Default: as the rules say.
    pub inspect: Option<bool>,
    /// Bytes held for inspection; default: as the rules say (`SecRequestBodyLimit`).
    pub limit: Option<Size>,
    /// What happens to a longer body.
    pub over_limit: Option<OverLimit>,
    /// What happens to a body that applications are known to read differently, such as one in UTF-7 or with parts in
    /// Base64. Default: `refuse`, with 400.
    pub ambiguous: Option<Ambiguous>,
    /// Whether rules also see arguments as other applications read them. Default: `true`.
    pub second_readings: Option<bool>,
}

/// What happens to a body that applications read differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ambiguous {
    /// Refused by rule 9000105, where the engine blocks.
    Refuse,
    /// Passed and counted.
    Pass,
}

/// How response bodies are held for inspection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResponseBody {
    /// `true` holds responses of the inspected media types until their verdict; `false` lets all pass. Default: rules see
    /// what they ask for, the semantic detector text that need not wait for its upstream.
    pub inspect: Option<bool>,
    /// Bytes held for inspection; default: as the rules say (`SecResponseBodyLimit`).
    pub limit: Option<Size>,
    /// What happens to a longer body.
    pub over_limit: Option<OverLimit>,
}

/// What happens to a body above its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OverLimit {
    /// Refuse it: 413 for a request, 500 for a response.
    Reject,
    /// Inspect the part within the limit, pass the rest uninspected, and count it.
    PassUninspected,
}

/// How strictly HTTP is read.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http {
    /// `strict` refuses everything two readers could read differently; `apache` answers as Apache httpd does where
    /// that is safe, which is what the CRS regression suite expects.
    pub compat: Option<Compat>,
    /// A client that ends what it sends while it waits for an answer still gets it. Default: `false`; it has gone away then,
    /// and what is done for it is given up.
    pub half_close: Option<bool>,
}

/// HTTP profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Compat {
    /// The default.
    Strict,
    /// As Apache httpd.
    Apache,
}

/// What happens when inspection cannot be done.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    /// A bug of ours was caught while inspecting. Default: `closed`.
    pub engine_error: Option<OpenOrClosed>,
    /// The request body has a content coding that is not decoded here, or is not what its coding says. Default:
    /// `closed`, where the engine blocks.
    pub undecodable: Option<OpenOrClosed>,
    /// A lookup that a rule asks for gets no answer: `closed` answers 503. Default: `open`, the rule does not match.
    pub lookup: Option<OpenOrClosed>,
}

/// Pass or refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpenOrClosed {
    /// Pass the request on and count it.
    Open,
    /// Refuse the request and count it.
    Closed,
}

/// Where the address of the client comes from.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientAddress {
    /// Addresses or networks of the proxies in front, for example `10.0.0.0/8`. Only their word is taken.
    #[serde(default)]
    pub trusted_proxies: Vec<Spanned<String>>,
    /// The request header to read. Default: none.
    pub header: Option<Spanned<AddressHeader>>,
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
    /// Files in MaxMind's format (`.mmdb`) with countries, autonomous systems or both; what the first does not know the next is asked.
    /// A file that changes is read again.
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
}

/// Limits of one worker.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// Client connections; more wait in the backlog. Default: 8192.
    #[schemars(range(min = 1))]
    pub connections: Option<Spanned<u32>>,
    /// Bytes of all bodies held at one time; a request that needs more is answered 503. Default: 256MiB.
    pub held_bodies: Option<Size>,
    /// The longest time that a rule's `pause` holds a request up; a longer one is shortened. Default: 10s.
    pub pause: Option<Time>,
    /// Requests that wait for a `pause` at one time; more go on at once. Default: 256.
    pub pauses: Option<u32>,
}

/// Persistent collections.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Store {
    /// Folder of the file that lets them survive a restart. Default: the first `SecDataDir` of the rules; without one they
    /// are in memory only.
    pub folder: Option<String>,
    /// Records of all collections; beyond it those that were not used for long are dropped. Default: 262144.
    #[schemars(range(min = 1))]
    pub records: Option<Spanned<u32>>,
    /// Bytes of all records. The file takes up to twice as much and 4MiB. Default: 64MiB.
    pub memory: Option<Size>,
    /// Bytes of one record; changes beyond it are not kept. At most 1MiB. Default: 8KiB.
    pub record: Option<Spanned<Size>>,
    /// Redis or Valkey through which several nodes share their records: `redis://[user:password@]host[:port][/database]`,
    /// `rediss://` for TLS. Default: none.
    pub redis: Option<Spanned<String>>,
    /// Before every key in Redis; nodes with the same prefix share. Default: `portcullis:`.
    pub redis_prefix: Option<String>,
}

/// How questions of rules to the outside are asked.
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

/// The event file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Events {
    /// Its path.
    pub file: String,
    /// It is renamed to `<file>.1` when it grows above this. Default: 1GiB.
    pub rotate_at: Option<Size>,
}

/// How much of the audit log and the debug log is kept.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditLog {
    /// A file is renamed to `<file>.1` when it grows above this. Default: 1GiB.
    pub rotate_at: Option<Size>,
    /// Files of concurrent records in one storage folder; the oldest make room. Default: 100000.
    pub files: Option<Spanned<u32>>,
    /// All of these files together. Default: 4GiB.
    pub stored: Option<Size>,
    /// Records that wait to be written; further ones are dropped and counted. Default: 64MiB.
    pub queue: Option<Size>,
}

/// Uploaded files that rules keep.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Uploads {
    /// Bytes of all files in one `SecUploadDir`; more are not kept, and counted. Default: 1GiB.
    pub folder_limit: Option<Size>,
}

/// The error log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorLog {
    /// Its path.
    pub file: String,
}

/// Names whose values never reach an event.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redact {
    /// Names of headers, cookies, arguments and form fields, any case.
    #[serde(default)]
    pub names: Vec<String>,
}

/// The page a blocked client sees.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlockPage {
    /// HTML file; `{{request_id}}` and `{{status}}` are filled in. Default: a small page of our own.
    pub file: Option<String>,
}
