//! Bodies within the limit of what is inspected of them.

use portcullis_inspect::{BodyLimitAction, BodyPlan};

/// A body as it comes, piece by piece: how much of it is shown to the inspection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    /// Bytes that are shown.
    pub bytes: u64,
    /// There was more than is shown.
    pub is_truncated: bool,
}

/// A piece of a body that goes beyond its limit.
#[derive(Clone, Copy, Debug)]
pub struct Beyond {
    /// The limit.
    pub limit_bytes: u64,
    /// The policy.
    pub over_limit: BodyLimitAction,
    /// No piece before this one did.
    pub is_first: bool,
}

impl Shown {
    /// Takes a piece of `length` bytes: those of them that are to be shown, and whether it is too long.
    pub fn take(&mut self, length: usize, plan: BodyPlan) -> (usize, Option<Beyond>) {
        let BodyPlan::Hold { limit_bytes, over_limit } = plan else { return (0, None) };
        let room = usize::try_from(limit_bytes.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        let fits = length.min(room);
        self.bytes += fits as u64;
        if fits == length {
            return (fits, None);
        }
        let is_first = !std::mem::replace(&mut self.is_truncated, true);
        (fits, Some(Beyond { limit_bytes, over_limit, is_first }))
    }
}
