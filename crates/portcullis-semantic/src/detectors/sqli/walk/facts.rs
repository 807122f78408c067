//! The facts that a walk notes: a set of kinds, each with its span.

use portcullis_types::Span;

use crate::KindId;
use crate::detectors::sqli::*;

/// The kinds that were noted, each with the span where it was noted first.
#[derive(Clone, Copy, Debug)]
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

    /// One of the kinds says more than how the piece stands in the text.
    pub(super) fn is_telling(&self) -> bool {
        const UNTELLING: u64 =
            1 << WHOLE.0 | 1 << BARE_TAIL.0 | 1 << UNBALANCED.0 | 1 << LIMIT.0 | 1 << COMMENT_TAIL.0;
        self.kinds & !UNTELLING != 0
    }

    /// One of the kinds is a condition, a call or a statement.
    pub(super) fn does_something(&self) -> bool {
        const SIGNS: u64 = 1 << QUOTE_SIGN.0
            | 1 << QUOTE_WORD.0
            | 1 << BOOLEAN_STRING.0
            | 1 << VARIABLE.0
            | 1 << COMMENT_SPLIT.0
            | 1 << BRACE.0
            | 1 << JSON_OPERATOR.0
            | 1 << ANY_FUNCTION.0
            | 1 << TEXT_FUNCTION.0
            | 1 << CONDITIONAL_FUNCTION.0
            | 1 << STATEMENT_PLAIN.0
            | 1 << UNION_PLAIN.0;
        let rest = Facts { kinds: self.kinds & !SIGNS, spans: [Span::default(); KINDS.len()] };
        rest.is_telling()
    }

    /// One of the kinds reads a table, runs, waits or holds always.
    pub(super) fn reads_or_runs(&self) -> bool {
        const DOES: u64 = 1 << TAUTOLOGY.0
            | 1 << UNION_SELECT.0
            | 1 << UNION_COLUMNS.0
            | 1 << STACKED.0
            | 1 << SUBSELECT.0
            | 1 << SELECT_FROM.0
            | 1 << SCHEMA.0
            | 1 << TIME_FUNCTION.0
            | 1 << ERROR_FUNCTION.0
            | 1 << OUT_OF_BAND_FUNCTION.0
            | 1 << FILE_FUNCTION.0
            | 1 << EXECUTE_FUNCTION.0
            | 1 << INTO_FILE.0;
        self.kinds & DOES != 0
    }

    /// The kinds, each with its span.
    pub(super) fn spans(&self) -> impl Iterator<Item = (KindId, Span)> + '_ {
        kinds_in(self.kinds).map(|kind| (kind, self.spans[usize::from(kind.0)]))
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
