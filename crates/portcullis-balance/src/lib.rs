//! Load balancing: the choice of an endpoint for each request, and learning from the outcomes.
//!
//! ```text
//!  request ──> Endpoints::choose ──────────────────> Grant ──> (the caller asks the endpoint) ──> succeeded / failed
//!                │ healthy? (Checks)                                                                 │
//!                │ ejected? (ejection, by what requests met)  <──────────────────────────────────────┤
//!                │ breaker? (Breaker)                         <──────────────────────────────────────┘
//!                │ room?    (requests in flight)
//!                └ Balance: round robin, least connections, power of two, consistent hash
//! ```
//!
//! An [`Endpoint`] is a handful of atomic words that all workers share; nothing is locked on the way of a
//! request that succeeds, and each change (opened, ejected, back) is reported to exactly one caller, who logs
//! it. The state of each worker is a [`Rotation`]. The crate opens no socket and reads no clock: times
//! ([`Moment`]) and seeds come in, so that `tests/it/simulation.rs` runs hours of faults in a second and
//! prints the seed of what went wrong.
//!
//! ```
//! use portcullis_balance::{Ask, Endpoints, Member, Moment, Policy, Refused};
//!
//! let member = |name: &str| Member { endpoint: Default::default(), name: name.into(), weight: 1, priority: 0 };
//! let group = Endpoints::new(vec![member("10.0.0.5:80"), member("10.0.0.6:80")], Policy::default());
//! let mut rotation = group.rotation(1);
//! let ask = |now| Ask { now, tried: &[], key: None, preferred: None };
//!
//! group.members()[0].endpoint.set_healthy(false, Moment(1));
//! let grant = group.choose(&mut rotation, &ask(Moment(2))).unwrap();
//! assert_eq!(grant.endpoint, 1);
//! group.succeeded(grant.endpoint, grant.permit);
//! group.release(grant.endpoint, None);
//!
//! group.members()[1].endpoint.set_healthy(false, Moment(3));
//! assert_eq!(group.choose(&mut rotation, &ask(Moment(4))), Err(Refused::Unavailable));
//! ```
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests have threads"))]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod breaker;
mod budget;
mod ejection;
mod endpoint;
mod endpoints;
mod health;
mod moment;
mod random;
mod ring;

pub use breaker::{Breaker, BreakerSettings, BreakerState, Permit};
pub use budget::{Budget, BudgetSettings};
pub use ejection::EjectionSettings;
pub use endpoint::Endpoint;
pub use endpoints::{Ask, Balance, Changes, Endpoints, Grant, Member, Policy, Refused, Rotation};
pub use health::{Checks, Thresholds, next_check};
pub use moment::Moment;
pub use random::Random;
pub use ring::hash;
