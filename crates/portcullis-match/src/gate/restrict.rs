//! A pattern as it is for texts of some bytes only.

use portcullis_types::ByteSet;
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, HirKind, Repetition};

/// What matches where `hir` does in texts of these bytes; `None` if nothing does. Captures are left out.
pub(super) fn restrict(hir: &Hir, alphabet: &ByteSet) -> Option<Hir> {
    let class = ClassBytes::new(alphabet.iter().map(|byte| ClassBytesRange::new(byte, byte)));
    Alphabet { set: *alphabet, class }.restrict(hir)
}

/// The bytes, in two forms.
struct Alphabet {
    set: ByteSet,
    class: ClassBytes,
}

impl Alphabet {
    /// Recursion follows the nesting of the pattern, which its parser bounds.
    fn restrict(&self, hir: &Hir) -> Option<Hir> {
        match hir.kind() {
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
