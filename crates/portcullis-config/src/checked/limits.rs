//! Timeouts and size limits.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

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
    /// For a client to read the last answer of a connection, while it still sends.
    pub linger: Duration,
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
            linger: seconds(5),
        }
    }
}

/// Limits of what clients may take of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Client connections of a worker.
    pub connections_max: usize,
    /// Those of them that one client network may have.
    pub network_connections_max: usize,
    /// Bytes of memory for all bodies together, copies and decoders included, of the process.
    pub held_body_bytes_max: u64,
    /// The share of them that one client network may have.
    pub network_held_body_bytes_max: u64,
    /// Unfinished request bodies that one client network may have, of the process.
    pub network_bodies_max: u32,
    /// The longest time for which a body waits for memory.
    pub held_body_wait_max: Duration,
    /// The part of the memory that the process may have, in thousandths, from which bodies find no room.
    pub memory_part_thousandths: u32,
    /// Leading bits of an IPv4 address that make a client network.
    pub network_prefix_v4: u8,
    /// The same of an IPv6 address.
    pub network_prefix_v6: u8,
    /// The lag of a worker from which requests of the heaviest client networks are refused.
    pub overload_lag_max: Duration,
    /// The longest `pause` of a rule.
    pub pause_max: Duration,
    /// Requests that a rule makes wait at one time; further ones do not wait.
    pub pauses_max: usize,
    /// Bytes read from a client after the last answer of a connection.
    pub linger_bytes_max: u64,
    /// Bytes of memory for the hashes of cookies that upstreams set, of all sites.
    pub issued_cookie_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 8192,
            network_connections_max: 4096,
            held_body_bytes_max: 256 << 20,
            network_held_body_bytes_max: 128 << 20,
            network_bodies_max: 256,
            held_body_wait_max: Duration::from_secs(1),
            memory_part_thousandths: 850,
            network_prefix_v4: 24,
            network_prefix_v6: 48,
            overload_lag_max: Duration::from_millis(50),
            pause_max: Duration::from_secs(10),
            pauses_max: 256,
            linger_bytes_max: 16 << 20,
            issued_cookie_bytes_max: 16 << 20,
        }
    }
}

/// Limits on the audit log and the debug log.
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
    /// Records have the values of names that events redact.
    pub shows_secrets: bool,
}

impl Default for AuditLogLimits {
    fn default() -> Self {
        AuditLogLimits {
            rotate_at_bytes: 1 << 30,
            files_max: 100_000,
            stored_bytes_max: 4 << 30,
            queue_bytes_max: 64 << 20,
            shows_secrets: false,
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
    /// The Redis server over which nodes share the store.
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
        // The credentials before the @ are secret.
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

/// Settings for rules' questions to external services: `@rbl`, `@inspectFile`.
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
