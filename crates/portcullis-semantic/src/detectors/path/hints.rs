//! The gate.

use crate::Hint;

/// Words of which a suspicious path has at least one.
pub(super) const HINTS: &[Hint] = hints!("path", "gate");
