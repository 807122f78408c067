//! The settings after all checks: what the rest of the product works with.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::acme::Acme;
use crate::agents::Agent;
use crate::tracing::Tracing;
use crate::upstream::Upstream;

mod limits;
mod network;
mod policy;
mod site;

pub use limits::*;
pub use network::*;
pub use policy::*;
pub use site::*;

/// A configuration that cannot be wrong in itself: names resolve, addresses parse, every reference is an index that
/// exists. Files it names may still be missing; whoever opens them says so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Worker threads, at least 1.
    pub workers: usize,
    /// Each keeps to a core, and gets the connections that come to it.
    pub worker_affinity: bool,
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
    /// Inspection processes; [`Route::agents`](crate::Route::agents) points here.
    pub agents: Vec<Agent>,
    /// Distinct inspection policies; [`Route::policy`](crate::Route::policy) points here. Sites with equal settings share one.
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

/// The event file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// Its path.
    pub file: PathBuf,
    /// Rotated above this size.
    pub rotate_at_bytes: u64,
}
