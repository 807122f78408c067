//! How much of a body was shown.

use portcullis_exchange::{Beyond, Shown};
use portcullis_inspect::BodyPlan;

/// A body as it comes, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// Bytes that came.
    pub(crate) seen: u64,
    /// Bytes that came behind the phase of the body.
    pub(crate) late: u64,
    /// The part that is inspected.
    pub(crate) shown: Shown,
}

impl Body {
    /// Takes in a piece: how many bytes of it are to be shown, and whether it is too long.
    pub(crate) fn take(&mut self, piece: &[u8], plan: BodyPlan) -> (usize, Option<Beyond>) {
        self.seen += piece.len() as u64;
        self.shown.take(piece.len(), plan)
    }
}
