//! Rate limits that nodes share.
//!
//! ```text
//! request ──> Shared::take: a token that is here, or on credit ──> passes; no thread waits
//!                │ few are left: an order for the key
//!                v
//! thread "share" ──some ms, many keys in one exchange──> Redis, Valkey (a script) or Memcached (cas)
//!                └──> tokens, or how long there are none
//! ```
//!
//! The error of a node is bounded by [`Leases::most`]: so many tokens for each key on credit, and as many
//! that it leased and did not use. While the store is away [`Taken::Unknown`] says so at once, and the caller
//! does what its policy is.

#![warn(clippy::wildcard_enum_match_arm)]

mod link;
mod memcached;
mod metrics;
mod redis;

use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_access::{Key, Leases, Taken};

pub use link::Link;
pub use metrics::ShareMetrics;

/// The time after which a client should retry that is refused while an answer is on its way.
const SOON: Duration = Duration::from_millis(100);

/// Takes a line for the operator.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// One limit that is shared.
#[derive(Debug)]
pub struct Shared {
    /// Tells it from others in the store.
    name: String,
    interval: Duration,
    burst: u64,
    leases: Leases,
}

impl Shared {
    /// A limit of one request in each `interval`, `burst` of them at once, for at least `keys` keys. Nodes
    /// share it by `name`.
    pub fn new(name: String, interval: Duration, burst: u64, keys: usize) -> Arc<Shared> {
        // The store counts in microseconds.
        let interval = interval.max(Duration::from_micros(1));
        Arc::new(Shared { name, interval, burst, leases: Leases::new(burst, keys) })
    }

    /// Returns the leases of this node.
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Takes a token for a request at `now`, in nanoseconds of a clock that began at `started`. `bytes` says
    /// whose it is, the same at all nodes.
    pub fn take(self: &Arc<Self>, link: &Link, key: Key, now: u64, bytes: impl FnOnce() -> Vec<u8>) -> Taken {
        if !link.is_up() {
            return Taken::Unknown;
        }
        let (taken, asks) = self.leases.take(key, now);
        if asks {
            link.ask(self, key, bytes());
        }
        match taken {
            // The answer is on its way. Else a client could go beyond the limit while it takes.
            Taken::Unknown if !link.is_late(now) => Taken::Refused(SOON),
            taken @ (Taken::Admitted | Taken::Refused(_) | Taken::Unknown) => taken,
        }
    }
}

/// Nanoseconds of the clock that began at `started`, never 0.
pub(crate) fn clock(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX - 1) + 1
}
