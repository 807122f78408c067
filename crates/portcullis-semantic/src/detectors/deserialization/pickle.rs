//! Python's pickle.

use portcullis_types::Span;

use super::types::{Language, Types};
use super::{PICKLE, PICKLE_PLAIN};
use crate::Found;
use crate::decode::pickle;

/// Lines at which a pickle may begin: behind a name, or a checksum of its own.
const BEGINNINGS_MAX: usize = 8;

/// A pickle of any protocol from the first byte of `text` on, or from one of its lines on that begins by
/// naming a module.
pub(super) fn detect(types: &Types, text: &[u8], found: &mut Found<'_>) {
    let lines = memchr::memchr_iter(b'\n', text).map(|at| at + 1).filter(|at| begins_global(&text[*at..]));
    for at in std::iter::once(0).chain(lines).take(BEGINNINGS_MAX) {
        let bytes = &text[at..];
        let Some(read) = pickle::read(bytes) else { continue };
        if !found.may_read(bytes.len()) {
            return;
        }
        let span = |module: Span, name: Span| {
            Span::new(at + module.start as usize, at + name.end.max(module.end) as usize)
        };
        if at == 0 && bytes[0] == 0x80 {
            found.add(PICKLE_PLAIN, Span::new(0, bytes.len().min(48)));
        }
        // What makes an object of such a module calls nothing by itself, and no data has one.
        let of_system = read.global.filter(|(module, _)| types.has(Language::Python, module.of(bytes)));
        if let Some((module, name)) = read.call.or(of_system) {
            found.add(PICKLE, span(module, name));
            return;
        }
    }
}

/// `cMODULE` on a line of its own, perhaps after the marks that open a tuple.
fn begins_global(text: &[u8]) -> bool {
    let marks = text.iter().take(8).take_while(|b| **b == b'(').count();
    let is_part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
    text[marks..].strip_prefix(b"c").is_some_and(|rest| {
        let len = rest.iter().take(64).take_while(is_part).count();
        len > 0 && rest.get(len) == Some(&b'\n')
    })
}
