//! Upstream groups: which endpoint to ask, connections to it, and the pool of unused ones.

mod connect;
mod group;
mod pool;

pub(crate) use connect::{Failed, UpstreamConnection, connect};
pub(crate) use group::Group;
pub(crate) use pool::Pool;
