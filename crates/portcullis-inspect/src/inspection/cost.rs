//! The memory and work that an inspection takes, for who bounds them.

use super::Inspection;

/// More copies of a piece of a body are not charged before they are made.
const COPIES_MAX: usize = 64;

impl Inspection {
    /// Bytes of the response body that were shown, content codings undone.
    pub fn response_body_shown(&self) -> u64 {
        self.response.shown
    }

    /// Bytes of the request body that were shown, content codings undone.
    pub fn request_body_shown(&self) -> u64 {
        self.request_body_shown
    }

    /// The work that rules did, and how much is allowed; see
    /// [`Transaction::work_done`](portcullis_engine::Transaction::work_done).
    pub fn work_done(&mut self) -> (u64, u64) {
        self.transaction.work_done()
    }

    /// The same of the semantic detector, where it inspects.
    pub fn detector_work(&self) -> Option<(u64, u64)> {
        self.semantic.as_ref().map(|semantic| semantic.work())
    }

    /// The reason why it is not known what the rules would have said, if a limit on them was reached: a text
    /// for who refuses the request for it (`failure.pattern_limit`).
    pub fn given_up(&self) -> Option<&'static str> {
        if self.transaction.expansions_cut() > 0 {
            return Some(
                "The rules make more text of the request than this site allows (SecExpansionLimit, \
                 failure.pattern_limit).",
            );
        }
        (self.transaction.patterns_exhausted() > 0).then_some(
            "The request takes more steps to inspect than this site allows (failure.pattern_limit).",
        )
    }

    /// Bytes of memory that the inspection holds, about: each copy of the bodies, and what decodes them.
    pub fn held_bytes(&self) -> usize {
        let semantic = self.semantic.as_ref().map_or(0, |semantic| semantic.held_bytes());
        let coded = self.request_coded.held_bytes() + self.response.coded.held_bytes();
        let shown = self.shown.as_ref().map_or(0, |shown| shown.held_bytes());
        self.transaction.held_bytes()
            + semantic
            + coded
            + self.kept_body.held_bytes()
            + shown
            + self.streamed_bytes()
    }

    /// The number of bytes that each byte of the request body which is shown may take, until its end.
    pub fn request_copies(&self) -> usize {
        let decoded = match self.request_coded.is_coded() {
            true => usize::try_from(self.inspector.codings.ratio_max).unwrap_or(usize::MAX).min(COPIES_MAX),
            false => 1,
        };
        // With its frame it is shown once more to both.
        let framed = if self.request_coded.is_framed() { 2 } else { 0 };
        decoded + framed + usize::from(self.shown.is_some())
    }

    /// Bytes of memory that the values of the request body may take from phase 2 on, beside what is held
    /// then.
    pub fn request_end_bytes(&self) -> usize {
        self.transaction.request_values_bytes(usize::try_from(self.request_body_shown).unwrap_or(usize::MAX))
    }
}
