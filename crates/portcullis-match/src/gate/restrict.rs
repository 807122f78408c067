//! A pattern as it is for texts of some bytes only.

use portcullis_types::ByteSet;
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, HirKind, Repetition};

/// What matches where `hir` does in texts of these bytes; `None` if nothing does. Captures are left out. Recursion follows the nesting
/// of the pattern, which its parser bounds.
pub(super) fn restrict(hir: &Hir, alphabet: &ByteSet) -> Option<Hir> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Unicode(_)) => Some(hir.clone()),
        HirKind::Literal(text) => text.0.iter().all(|&byte| alphabet.contains(byte)).then(|| hir.clone()),
        HirKind::Class(Class::Bytes(class)) => {
            let bytes = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            let kept = bytes.filter(|&byte| alphabet.contains(byte));
            let class = ClassBytes::new(kept.map(|byte| ClassBytesRange::new(byte, byte)));
            (!class.ranges().is_empty()).then(|| Hir::class(Class::Bytes(class)))
        }
        HirKind::Repetition(repetition) => match restrict(&repetition.sub, alphabet) {
            Some(sub) => Some(Hir::repetition(Repetition { sub: Box::new(sub), ..repetition.clone() })),
            None if repetition.min == 0 => Some(Hir::empty()),
            None => None,
        },
        HirKind::Capture(capture) => restrict(&capture.sub, alphabet),
        HirKind::Concat(parts) => {
            let parts: Option<Vec<Hir>> = parts.iter().map(|part| restrict(part, alphabet)).collect();
            parts.map(Hir::concat)
        }
        HirKind::Alternation(branches) => {
            let left: Vec<Hir> = branches.iter().filter_map(|branch| restrict(branch, alphabet)).collect();
            (!left.is_empty()).then(|| Hir::alternation(left))
        }
    }
}
