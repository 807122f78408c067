//! Proof that Portcullis loses nothing: faults under load, hours of load, and the readings of other servers
//! of the requests that we pass on. Development only. It meets Portcullis as any stranger does: the binary,
//! sockets, files, the metrics page.
//!
//! ```text
//!   backend    an application that crashes, freezes, lies or resets when it is told to
//!   load       clients that go on meanwhile and remember each answer
//!   chaos      one scenario for each fault, with hard assertions
//!   soak       TLS, keep-alive, attacks and reloads for hours; memory, descriptors and latency must not drift
//!   smuggling  every way to say where a request ends, to nginx, Apache, HAProxy, Node, Go and Python
//! ```
//!
//! Binaries: `chaos`, `smuggling`, `soak`. Everything talks to loopback addresses only and stops by itself.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod backend;
pub mod chaos;
pub mod load;
pub mod smuggling;
pub mod soak;

use portcullis_testkit::TestkitError;
use portcullis_testkit::proxy::Proxy;

/// The sum of all samples of a metric whose line begins so.
pub fn metric(proxy: &Proxy, begin: &str) -> Result<f64, TestkitError> {
    let text = proxy.metrics()?;
    let values = text.lines().filter(|line| line.starts_with(begin));
    Ok(values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
}
