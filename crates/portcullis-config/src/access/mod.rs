//! Who may ask, and how often: `access`, `rate_limits`.

mod check;
mod checked;
pub(crate) mod raw;

pub(crate) use check::{access, rate_limits};
pub use checked::*;
