//! Settings of lookups, and the ways in which one can end.

use std::net::SocketAddr;
use std::time::Duration;

use super::dns;

/// The settings of lookups, from the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// At least one.
    pub(crate) resolvers: Vec<SocketAddr>,
    /// The operator named them; else they are those of the system.
    pub(crate) named: bool,
    /// For a DNS answer, all tries together.
    pub(crate) dns_timeout: Duration,
    /// For a scanner's answer.
    pub(crate) scan_timeout: Duration,
    /// DNS answers that a worker remembers.
    pub(crate) dns_cache_entries_max: usize,
    /// The number of the settings: answers of earlier ones are forgotten.
    pub(crate) generation: u64,
}

impl Settings {
    /// The settings of `config`; without resolvers, those of the system.
    pub(crate) fn new(config: &portcullis_config::Lookups, generation: u64) -> Settings {
        let mut resolvers = config.resolvers.clone();
        if resolvers.is_empty() {
            let system = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
            resolvers = dns::name_servers(&system);
        }
        Settings {
            resolvers,
            named: !config.resolvers.is_empty(),
            dns_timeout: config.dns_timeout,
            scan_timeout: config.scan_timeout,
            dns_cache_entries_max: config.dns_cache_entries_max,
            generation,
        }
    }
}

/// The outcome of a lookup. The order is that of [`RESULTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Found,
    Nothing,
    Cached,
    Timeout,
    Failed,
    Resting,
}

/// The values of the label `result`.
pub(super) const RESULTS: &[&str] = &["found", "nothing", "cached", "timeout", "failed", "resting"];
