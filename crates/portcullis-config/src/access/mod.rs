//! Access control: `access`, `rate_limits`, `ban`.

pub(crate) mod ban;
mod check;
mod checked;
pub(crate) mod raw;

pub use ban::{Ban, Points};
pub(crate) use check::{Available, access, limit_store, rate_limits};
pub use checked::*;
