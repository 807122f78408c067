//! Python's pickle.

use portcullis_types::Span;

use super::PICKLE;
use super::types::{Language, Types};
use crate::Found;

/// Protocol 0 as text: `cMODULE\nNAME\n(`, or `(iMODULE\nNAME\n`; and the call `R` or the end `.` after it.
pub(super) fn text(types: &Types, text: &[u8], found: &mut Found<'_>) {
    let mut line_start = 0;
    for end in memchr::memchr_iter(b'\n', text) {
        let line = &text[line_start..end];
        let start = line_start;
        line_start = end + 1;
        let Some((at, module)) = global(line) else { continue };
        if !types.has(Language::Python, module) {
            continue;
        }
        let rest = &text[end + 1..];
        let Some(next) = memchr::memchr(b'\n', &rest[..rest.len().min(64)]) else { continue };
        let name = &rest[..next];
        let is_name =
            !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
        let after = &rest[next + 1..];
        let is_called = matches!(after.first(), Some(b'(' | b'p' | b'q' | b']' | b'}' | b'S' | b'V' | b'X'))
            || after.starts_with(b"R")
            || at > 0;
        if is_name && is_called && ends_as_pickle(after) {
            found.add(PICKLE, Span::new(start + at, end + 1 + next));
            return;
        }
    }
}

/// `c` and a module, perhaps after a mark `(`; or `(i`.
fn global(line: &[u8]) -> Option<(usize, &[u8])> {
    let at = line.iter().take(8).take_while(|b| matches!(b, b'(' | b')' | b']' | b'}')).count();
    let (sign, module) = line[at..].split_first()?;
    let is_one = *sign == b'c' || *sign == b'i' && at > 0;
    is_one.then_some((at, module))
}

/// The opcode that calls, and the one that ends, are among the last.
fn ends_as_pickle(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let tail = &text[text.len().saturating_sub(24)..];
    tail.ends_with(b".") || memchr::memchr(b'R', tail).is_some()
}

/// Protocols 2 to 5, after their mark.
pub(super) fn binary(types: &Types, bytes: &[u8], found: &mut Found<'_>) {
    let add = |found: &mut Found<'_>| found.add(PICKLE, Span::new(0, bytes.len().min(64)));
    // `c MODULE \n NAME \n`
    for at in memchr::memchr_iter(b'c', bytes) {
        let rest = &bytes[at + 1..];
        let Some(end) = memchr::memchr(b'\n', &rest[..rest.len().min(40)]) else { continue };
        if types.has(Language::Python, &rest[..end]) {
            return add(found);
        }
    }
    // `\x8c LENGTH MODULE \x94 \x8c LENGTH NAME \x94 \x93`
    for at in memchr::memchr_iter(0x8C, bytes) {
        let Some(&len) = bytes.get(at + 1) else { continue };
        let Some(module) = bytes.get(at + 2..at + 2 + usize::from(len)) else { continue };
        if types.has(Language::Python, module) && bytes[at..].contains(&0x93) {
            return add(found);
        }
    }
}
