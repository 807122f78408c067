//! Upstream groups: the choice of an endpoint, connections to it, and the pool of unused ones.
//!
//! What is known of an endpoint (health, ejection, breaker, requests in flight) is shared by all workers, in
//! atomic words (`portcullis-balance`); connections and turns are each worker's own. One thread, the
//! [`keeper`], does what belongs to no request. See ADR 0008.

mod ask;
mod checks;
mod connect;
mod group;
pub(crate) mod keeper;
mod key;
mod lease;
mod login;
mod names;
mod pool;
mod queue;
mod report;
mod session;
mod slot;
mod sticky;
mod tries;

pub(crate) use connect::{UpstreamConnection, connect, dial};
pub(crate) use group::{Group, Origin};
pub(crate) use lease::Lease;
pub(crate) use login::{Fate, Logins, fate, is_continued, is_used};
pub(crate) use pool::Pool;
pub(crate) use report::Retried;
pub(crate) use session::{Failed, Sessions, alone};
pub(crate) use slot::Slot;
pub(crate) use tries::Tries;
