//! Rate limits, bans and GeoIP.
//!
//! ```text
//!  key (address, header, ... hashed with a secret) ──> Table: one of 8 entries of one set ──> a time
//!                                                         │ Rate (GCRA): may this request go on, what is the time then
//!                                                         └ no thread waits; a full set forgets who has used the least
//! ```
//!
//! A [`Limiter`] is a [`Rate`] and a [`Table`] of fixed size that all workers share: a check reads two cache
//! lines and changes one word, without a lock. [`Bans`] keep points and bans of clients in a table of the
//! same shape; as long as no client is banned, one comparison lets a client in. The crate opens no socket
//! and reads no clock: times are nanoseconds of a clock that never goes back, so that
//! `tests/it/simulation.rs` runs hours in a second and prints the seed of what went wrong.
//!
//! ```
//! use std::time::Duration;
//! use portcullis_access::{Limiter, Rate};
//!
//! // Ten requests a minute, three of them at once.
//! let limiter = Limiter::new(Rate::new(10, Duration::from_secs(60), 3), 1024);
//! let key = limiter.key([b"192.0.2.1".as_slice()]);
//! let second = 1_000_000_000;
//! assert_eq!([3, 2, 1].map(|_| limiter.check(key, second).remaining), [2, 1, 0]);
//! assert_eq!(limiter.check(key, second).wait, Some(Duration::from_secs(6)));
//! assert_eq!(limiter.check(key, 7 * second).wait, None);
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod ban;
mod country;
mod gcra;
mod geo;
mod lease;
mod limiter;
mod table;

pub use ban::{Ban, BanPolicy, Bans, Offence};
pub use country::Code;
pub use gcra::Rate;
pub use geo::{GeoData, Whereabouts};
pub use lease::{Grant, Leases, Order, Taken};
pub use limiter::{Check, Limiter};
pub use table::{Key, Keying, Table, Updated};
