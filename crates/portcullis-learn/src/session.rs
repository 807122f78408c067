//! Teaching by hand: for some minutes a person vouches for what some clients do.
//!
//! ```text
//!  start ──> requests of these clients ──Session::observe──> Batch ──> a Store of its own
//!                                                                           │
//!                              nothing <──dismiss── shown to the person ──accept──> Store::confirm
//! ```
//!
//! What these clients do in that time goes nowhere else. Others teach as always.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::batch::{Batch, Fields, KindIn, KindNews};
use crate::source::{Source, Standing};

/// Seconds that a session lasts, at most.
pub const SESSION_SECONDS_MAX: u64 = 3_600;
/// Seconds after its end within which an operator has to decide about it.
pub const SESSION_UNDECIDED_SECONDS: u64 = 24 * 3_600;
/// Fields that a session learns, at most.
pub const SESSION_FIELDS_MAX: usize = 512;

/// Whose requests teach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Teacher {
    /// Those of clients in this network: an address and the bits of its prefix.
    Network(IpAddr, u8),
    /// Those of the site's trusted sources.
    Trusted,
}

/// A session that runs.
#[derive(Debug)]
pub struct Session {
    teacher: Teacher,
    /// From when to when, in milliseconds since 1970.
    time: (u64, u64),
    waiting: Mutex<Batch>,
    refused: AtomicU64,
}

impl Session {
    /// One that lasts so many seconds from `now`, which is in milliseconds since 1970.
    pub fn new(teacher: Teacher, now: u64, seconds: u64) -> Session {
        let time = (now, now.saturating_add(seconds.min(SESSION_SECONDS_MAX) * 1_000));
        Session { teacher, time, waiting: Mutex::default(), refused: AtomicU64::new(0) }
    }

    /// Whose requests teach.
    pub fn teacher(&self) -> Teacher {
        self.teacher
    }

    /// From when to when it lasts, in milliseconds since 1970.
    pub fn time(&self) -> (u64, u64) {
        self.time
    }

    /// True if a request of this client and time teaches.
    pub fn covers(&self, client: IpAddr, standing: Standing, millis: u64) -> bool {
        let is_of_it = match self.teacher {
            Teacher::Network(network, prefix) => is_within(client, (network, prefix)),
            Teacher::Trusted => standing == Standing::Trusted,
        };
        is_of_it && (self.time.0..self.time.1).contains(&millis)
    }

    /// Has a request learned that was let through and answered well, and the kinds of findings in its fields.
    pub fn observe(
        &self,
        source: Source,
        (method, path): (&[u8], &[u8]),
        fields: &Fields,
        found: &[KindIn<'_>],
    ) {
        let source = Source { standing: Standing::Trusted, ..source };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // What is not counted is not shown, and must not be accepted with the rest.
        let is_counted = waiting.add(source, method, path, fields, 1);
        if is_counted && !found.is_empty() {
            waiting.add_kinds(source, method, path, found, KindNews::Carried);
        }
    }

    /// Counts a request that was refused. It teaches nothing.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The requests that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The requests that wait.
    pub fn take(&self) -> Batch {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// True if a client is in a network: an address and the bits of its prefix.
pub fn is_within(client: IpAddr, (network, prefix): (IpAddr, u8)) -> bool {
    let bits = |address: IpAddr| match address.to_canonical() {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let ((client, width), (network, of_network)) = (bits(client), bits(network));
    let differs = (client ^ network).leading_zeros() < u32::from(prefix);
    width == of_network && !differs
}
