//! A pattern as it is for texts of some bytes only.

use portcullis_types::ByteSet;
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, HirKind, Look, Repetition};

/// Returns a pattern that matches where `hir` does in texts of these bytes; `None` if nothing does. Captures
/// are left out.
pub(super) fn restrict(hir: &Hir, alphabet: &ByteSet) -> Option<Hir> {
    Alphabet::new(alphabet, false).restrict(hir)
}

/// The same for what begins behind the text's first byte.
pub(super) fn restrict_behind_start(hir: &Hir, alphabet: &ByteSet) -> Option<Hir> {
    Alphabet::new(alphabet, true).restrict(hir)
}

/// The bytes, in two forms.
struct Alphabet {
    set: ByteSet,
    class: ClassBytes,
    /// Nothing matches at the start of a text.
    behind_start: bool,
}

impl Alphabet {
    fn new(set: &ByteSet, behind_start: bool) -> Alphabet {
        let class = ClassBytes::new(set.iter().map(|byte| ClassBytesRange::new(byte, byte)));
        Alphabet { set: *set, class, behind_start }
    }

    /// Recursion follows the nesting of the pattern, which its parser bounds.
    fn restrict(&self, hir: &Hir) -> Option<Hir> {
        match hir.kind() {
            HirKind::Look(Look::Start) if self.behind_start => None,
            HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Unicode(_)) => Some(hir.clone()),
            HirKind::Literal(text) => text.0.iter().all(|&byte| self.set.contains(byte)).then(|| hir.clone()),
            HirKind::Class(Class::Bytes(class)) => {
                let mut class = class.clone();
                class.intersect(&self.class);
                (!class.ranges().is_empty()).then(|| Hir::class(Class::Bytes(class)))
            }
            HirKind::Repetition(repetition) => match self.restrict(&repetition.sub) {
                Some(sub) => Some(Hir::repetition(Repetition { sub: Box::new(sub), ..*repetition })),
                None if repetition.min == 0 => Some(Hir::empty()),
                None => None,
            },
            HirKind::Capture(capture) => self.restrict(&capture.sub),
            HirKind::Concat(parts) => {
                let parts: Option<Vec<Hir>> = parts.iter().map(|part| self.restrict(part)).collect();
                parts.map(Hir::concat)
            }
            HirKind::Alternation(branches) => {
                let left: Vec<Hir> = branches.iter().filter_map(|branch| self.restrict(branch)).collect();
                (!left.is_empty()).then(|| Hir::alternation(left))
            }
        }
    }
}
