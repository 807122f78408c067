//! What a walk notes: a set of kinds, and where.

use portcullis_types::Span;

use crate::KindId;
use crate::detectors::sqli::KINDS;

/// What was noted, each kind where it was noted first.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) kinds: u64,
    spans: [Span; KINDS.len()],
}

const _: () = assert!(KINDS.len() <= 64, "the set of noted kinds has 64 places");

impl Facts {
    pub(super) const fn new() -> Facts {
        Facts { kinds: 0, spans: [Span { start: 0, end: 0 }; KINDS.len()] }
    }

    pub(super) fn note(&mut self, kind: KindId, span: Span) {
        if !self.has(kind) {
            self.set(kind, span);
        }
    }

    pub(super) fn set(&mut self, kind: KindId, span: Span) {
        self.kinds |= 1 << kind.0;
        self.spans[usize::from(kind.0)] = span;
    }

    pub(super) fn has(&self, kind: KindId) -> bool {
        self.kinds >> kind.0 & 1 == 1
    }

    pub(super) fn get(&self, kind: KindId) -> Option<Span> {
        self.has(kind).then(|| self.spans[usize::from(kind.0)])
    }
}

/// The kinds of a set of [`Facts`].
pub(super) fn kinds_in(mut kinds: u64) -> impl Iterator<Item = KindId> {
    std::iter::from_fn(move || {
        let kind = (kinds != 0).then(|| KindId(kinds.trailing_zeros() as u16));
        kinds &= kinds.wrapping_sub(1);
        kind
    })
}
