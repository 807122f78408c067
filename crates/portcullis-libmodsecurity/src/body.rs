//! How much of a body was shown.

use portcullis_inspect::{BodyLimitAction, BodyPlan};

/// A body as it comes, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// Bytes that came.
    pub(crate) seen: u64,
    /// Bytes that are inspected.
    pub(crate) shown: u64,
    /// Bytes that came behind the phase of the body.
    pub(crate) late: u64,
    /// There was more than is inspected.
    pub(crate) is_truncated: bool,
}

impl Body {
    /// Takes in a piece: how many bytes of it are to be shown, and whether the body is to be refused.
    pub(crate) fn take(&mut self, piece: &[u8], plan: BodyPlan) -> (usize, bool) {
        self.seen += piece.len() as u64;
        let BodyPlan::Hold { limit_bytes, over_limit } = plan else { return (0, false) };
        let room = usize::try_from(limit_bytes.saturating_sub(self.shown)).unwrap_or(usize::MAX);
        let shown = piece.len().min(room);
        self.shown += shown as u64;
        let is_over = shown < piece.len();
        self.is_truncated |= is_over;
        (shown, is_over && over_limit == BodyLimitAction::Reject)
    }
}
