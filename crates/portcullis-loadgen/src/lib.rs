//! Load on loopback, and what a proxy adds to it.
//!
//! ```text
//! study: finds capacities, alternates rounds, compares
//!   │
//!   ├─> load: one thread ── schedule ─> connections ──> proxy under test ──> application (one thread)
//!   │           arrivals at a fixed rate; latency from the moment a request was due, not from when it could be sent
//!   └─> cpu: nanoseconds that the processes of the proxy took meanwhile
//! ```
//!
//! The generator is **open loop**: a request is due at its time whether or not earlier ones have been
//! answered, and what it waits for a free connection counts as latency. A server that stalls for a second is
//! therefore seen by all requests that were due in that second, not by the one that was on its way
//! (coordinated omission). How late the generator itself was is measured, too, and told where it is not small
//! against what was measured.
//!
//! Not in this crate: starting proxies (the caller does), HTTP/2, and sending to anything but loopback.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod certificate;
mod client;
mod cpu;
mod load;
mod message;
mod random;
mod report;
mod schedule;
mod study;
mod table;
mod thousand;
mod timer;
mod upstream;

pub use certificate::{Certificates, NAME};
pub use cpu::{CpuTime, listening};
pub use load::{Load, Measured, Pace, drive};
pub use message::{Message, Traffic, messages};
pub use report::{Added, Group, Latency, Machine, Report, Row, SCHEMA_VERSION};
pub use study::{Role, Study, Subject, Transport};
pub use upstream::Upstream;

/// The reason why there is no measurement.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system does not give what is needed: sockets, threads, a timer.
    System(std::io::Error),
    /// No connection could be made to what is to be measured.
    Connect(String, std::io::Error),
    /// Certificates cannot be made or used.
    Certificate(String),
    /// Nothing came back from it.
    Silent(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::System(error) => write!(f, "the load cannot be made: {error}"),
            Error::Connect(who, error) => write!(f, "cannot connect to {who}: {error}"),
            Error::Certificate(error) => write!(f, "cannot make certificates for the measurement: {error}"),
            Error::Silent(who) => write!(f, "{who} has answered no request within the time"),
        }
    }
}

impl std::error::Error for Error {}
