//! The settings after all checks: what the rest of the product works with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::access_log::AccessLog;
use crate::acme::Acme;
use crate::agents::Agent;
use crate::database::EventDatabase;
use crate::event_socket::EventSocket;
use crate::lists::List;
use crate::oidc::Oidc;
use crate::sinks::{EventForm, EventSink};
use crate::tracing::Tracing;
use crate::upstream::Upstream;

mod limits;
pub(crate) mod network;
pub(crate) mod policy;
mod site;

pub use limits::*;
pub use network::*;
pub use policy::*;
pub use site::*;

/// A configuration that cannot be wrong in itself: names resolve, addresses parse, every reference is an
/// index that exists. Files it names may still be missing; opening them reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Worker threads, at least 1.
    pub workers: usize,
    /// Each keeps to a core, and gets the connections that come to it.
    pub worker_affinity: bool,
    /// The admin listener.
    pub admin: Option<SocketAddr>,
    /// The listener of the admin API.
    pub console: Option<SocketAddr>,
    /// Names under which both may be asked, in lower case, beside addresses and `localhost`.
    pub admin_hosts: Vec<String>,
    /// Login to the admin API at a provider.
    pub oidc: Option<Oidc>,
    /// Changes of the document through the admin API are refused.
    pub read_only: bool,
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
    /// Inspection processes; [`Route::agents`](crate::Route::agents) points here.
    pub agents: Vec<Agent>,
    /// Distinct inspection policies; [`Route::policy`](crate::Route::policy) points here. Sites with equal
    /// settings share one.
    pub policies: Vec<Policy>,
    /// The source of client addresses.
    pub client_address: ClientAddress,
    /// Time limits towards clients.
    pub timeouts: Timeouts,
    /// Limits of one worker.
    pub limits: Limits,
    /// Persistent collections.
    pub store: Store,
    /// Settings for rules' questions to external services.
    pub lookups: Lookups,
    /// The folder of the event store, if there is one.
    pub data: Option<PathBuf>,
    /// Lists of addresses that are kept up to date.
    pub lists: Vec<List>,
    /// Limits of the event store.
    pub event_store: EventStore,
    /// The event file.
    pub events: Option<Events>,
    /// Receivers of events beside the file.
    pub event_sinks: Vec<EventSink>,
    /// The socket on which other processes send events.
    pub event_socket: Option<EventSocket>,
    /// The database of events that is read in place of the event store.
    pub event_database: Option<EventDatabase>,
    /// Bytes of the last events that are kept in memory.
    pub recent_events_bytes: u64,
    /// The access log of requests that no site serves.
    pub access_log: Option<AccessLog>,
    /// Tracing, and the requests that are traced.
    pub tracing: Option<Tracing>,
    /// The error log.
    pub error_log: Option<PathBuf>,
    /// Limits on the audit log.
    pub audit_log: AuditLogLimits,
    /// Bytes of all files in a folder of kept uploads.
    pub upload_folder_bytes_max: u64,
    /// The file that caches rule analysis for the next start.
    pub plan_cache: Option<PathBuf>,
    /// Databases that say where addresses are.
    pub geo_files: Vec<PathBuf>,
    /// The store in which nodes share rate limits.
    pub limit_store: Option<crate::access::LimitStore>,
    /// The controls of clients that ask for a host or path that no site serves.
    pub unserved: Unserved,
    /// The file in which bans outlive the process.
    pub ban_file: Option<PathBuf>,
    /// More names to redact.
    pub redact_names: Vec<String>,
    /// HTML file of the block page.
    pub block_page: Option<PathBuf>,
}

/// The controls of clients that ask for what no site serves: those of the whole document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unserved {
    /// The access lists.
    pub access: Option<crate::access::Access>,
    /// The ban policy.
    pub ban: Option<crate::access::Ban>,
}

/// The folder of lists in the data folder.
const LISTS: &str = "lists";

impl Config {
    /// The file in which the list `name` is kept; none without a data folder.
    pub fn list_file(&self, name: &str) -> Option<PathBuf> {
        let list = self.lists.iter().find(|list| list.name == name)?;
        self.list_folder().map(|folder| folder.join(list.file_name()))
    }

    /// The folder of the files in which lists are kept.
    pub fn list_folder(&self) -> Option<PathBuf> {
        self.data.as_ref().map(|data| data.join(LISTS))
    }

    /// Warnings about settings that are valid but hardly intended.
    pub fn warnings(&self) -> Vec<String> {
        self.placed_warnings().into_iter().map(|(_, warning)| warning).collect()
    }

    /// The same, each with the key that it is about.
    pub fn placed_warnings(&self) -> Vec<(&'static str, String)> {
        let admin = self.admin.filter(|admin| is_public(admin.ip())).map(|admin| {
            format!(
                "the admin listener {admin} can be reached from other networks, and asks nobody who they are: /metrics, /bans and /reload \
                 are open to them; listen on 127.0.0.1 or on an address of the network that you manage it from"
            )
        });
        let capture = self.event_store.capture.as_ref().filter(|_| self.data.is_none()).map(|_| {
            "`events.capture` has no effect without a data folder: add `data = { folder = \"...\" }` or `--data DIR`"
                .to_owned()
        });
        let learns = self.policies.iter().any(|policy| policy.fields.is_some());
        let fields = (learns && self.data.is_none()).then(|| {
            "what `fields` has learned is lost at the end of the process: add `data = { folder = \"...\" }` or \
             `--data DIR`"
                .to_owned()
        });
        let discovers = self.policies.iter().any(|policy| policy.discovery.is_some());
        let discovery = (discovers && self.data.is_none()).then(|| {
            "what `discovery` has found is lost at the end of the process: add `data = { folder = \"...\" }` or \
             `--data DIR`"
                .to_owned()
        });
        let signs = self.sites.iter().any(|site| !site.cookies.sign.is_empty());
        let cookies = (signs && self.data.is_none()).then(|| {
            "the key of `cookies.sign` is a new one with each start, and cookies that were signed before are removed: \
             add `data = { folder = \"...\" }` or `--data DIR`"
                .to_owned()
        });
        let at = |key: &'static str| move |warning: String| (key, warning);
        let warnings = unreachable_for_acme(&self.listeners).into_iter().map(at("listeners"));
        let warnings = warnings.chain(admin.map(at("admin.listen")));
        let warnings = warnings.chain(capture.map(at("events.capture"))).chain(fields.map(at("fields")));
        let warnings = warnings.chain(discovery.map(at("discovery"))).chain(cookies.map(at("cookies")));
        warnings.chain(self.clients_of_one_address().map(at("client_address"))).collect()
    }

    /// The warning where all clients have the address of the proxy in front.
    fn clients_of_one_address(&self) -> Option<String> {
        let without = self.listeners.iter().find(|listener| !listener.proxy_protocol);
        let ClientAddress { trusted_proxies, header, .. } = &self.client_address;
        without.filter(|_| !trusted_proxies.is_empty() && header.is_none()).map(|listener| {
            format!(
                "`client_address.trusted_proxies` names proxies, but nothing tells their clients apart at the listener \
                 `{}`: all of them have the address of the proxy, and a ban or rate limit meets all at once; add `header = \
                 \"x-forwarded-for\"` (or `\"forwarded\"`) to `client_address`, or `proxy_protocol = true` to the listener",
                listener.name
            )
        })
    }

    /// Limits of bodies that are larger than what can be held, each with the text by which the configuration
    /// file is likely to give it.
    pub fn limits_out_of_reach(&self) -> Vec<(String, String)> {
        let network = self.limits.network_held_body_bytes_max;
        let limits = self.policies.iter().flat_map(|policy| {
            [
                ("request_body", policy.request_body.limit_bytes),
                ("response_body", policy.response_body.limit_bytes),
            ]
        });
        let told: std::collections::BTreeSet<(String, String)> = limits
            .filter_map(|(key, limit)| {
                let limit = limit?;
                let (text, room) = (size_text(limit), size_text(network));
                let why = if limit > crate::policy::HELD_BYTES_MAX {
                    "a body is held up to 1GiB, whatever this says".to_owned()
                } else if key == "request_body" && limit.saturating_mul(HELD_COPIES) > network {
                    format!(
                        "a body takes {HELD_COPIES} times its length in memory or more until it is decided, and one \
                         client network may take {room} (limits.network_held_bodies): uploads longer than that leaves \
                         room for go on while they are inspected, and other bodies are refused; raise \
                         limits.held_bodies, or lower the limit"
                    )
                } else {
                    return None;
                };
                Some((text.clone(), format!("`{key}.limit` of {text} cannot be reached: {why}")))
            })
            .collect();
        told.into_iter().collect()
    }

    /// The files of all access logs, each once.
    pub fn access_log_files(&self) -> Vec<PathBuf> {
        let logs =
            self.access_log.iter().chain(self.sites.iter().filter_map(|site| site.access_log.as_ref()));
        let files: std::collections::BTreeSet<&PathBuf> = logs.map(|log| &log.file).collect();
        files.into_iter().cloned().collect()
    }
}

/// Copies of a request body while it is inspected, at least: that of the proxy and that of the inspection.
const HELD_COPIES: u64 = 2;

/// A size with the largest unit of which it is a multiple.
fn size_text(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// Certificates by ACME without a listener at which the authority could ask.
fn unreachable_for_acme(listeners: &[Listener]) -> Option<String> {
    let asks = |listener: &&Listener| listener.tls.as_ref().is_some_and(|tls| !tls.acme.is_empty());
    let in_clear = listeners.iter().any(|listener| listener.tls.is_none());
    let asking = listeners.iter().find(asks).filter(|_| !in_clear);
    asking.map(|listener| {
        format!(
            "the listener `{}` has certificates by ACME, and there is no listener without TLS: the authority comes \
             in clear text, to port 80 of each name; add `[[listeners]]` with `address = \"0.0.0.0:80\"`",
            listener.name
        )
    })
}

/// Neither of this machine nor of a private network; an address that stands for all of them is public.
fn is_public(address: std::net::IpAddr) -> bool {
    match address.to_canonical() {
        std::net::IpAddr::V4(address) => {
            !(address.is_loopback() || address.is_private() || address.is_link_local())
        }
        std::net::IpAddr::V6(address) => {
            !(address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local())
        }
    }
}

/// Limits of the event store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventStore {
    /// Older events are deleted.
    pub keep: Duration,
    /// The oldest events are deleted while the store is larger.
    pub keep_bytes: u64,
    /// Older hourly statistics are deleted.
    pub keep_rollups: Duration,
    /// Events a second of one kind that are made and stored one by one; 0: all.
    pub coalesce_above: u32,
    /// Bytes of a request's body that are stored with its event, beside its head; 0: requests are not stored.
    pub keep_request_bytes: usize,
    /// The sample of requests that passed.
    pub capture: Option<Capture>,
}

/// A sample of the requests that were inspected and passed without an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Of a billion of them so many are kept.
    pub of_billion: u32,
    /// The oldest requests are deleted while the sample is larger.
    pub keep_bytes: u64,
}

impl Capture {
    /// [`keep_bytes`](Self::keep_bytes) where the document does not say.
    pub const KEEP_BYTES: u64 = 256 << 20;

    /// The share of them that is kept: above 0, at most 1.
    pub fn share(&self) -> f64 {
        f64::from(self.of_billion) / 1e9
    }
}

impl EventStore {
    /// Least of [`keep_bytes`](Self::keep_bytes).
    pub const KEEP_BYTES_MIN: u64 = 64 << 20;
    /// Most of [`keep_request_bytes`](Self::keep_request_bytes).
    pub const KEEP_REQUEST_BYTES_MAX: u64 = 1 << 20;
}

impl Default for EventStore {
    fn default() -> EventStore {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        EventStore {
            keep: days(30),
            keep_bytes: 10 << 30,
            keep_rollups: days(400),
            coalesce_above: 100,
            keep_request_bytes: 64 << 10,
            capture: None,
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
    /// The form of its lines.
    pub form: EventForm,
}
