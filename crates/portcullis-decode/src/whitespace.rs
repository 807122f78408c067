//! # `compressWhitespace`, `removeWhitespace`
//!
//! White space is blank, tab, line feed, vertical tab, form feed, carriage return, and the byte `A0` (the
//! non-breaking blank of Latin-1). `compressWhitespace` turns each run of it into one blank,
//! `removeWhitespace` drops it.
//!
//! Result: at most as long as the input. Idempotent.
//! Example: `a \t\n b` becomes `a b`, or `ab`.

use crate::scan::Table;
use portcullis_types::ByteSet;

pub(crate) const BYTES: ByteSet = ByteSet::range(b'\t', b'\r').with(b' ').with(0xa0);
pub(crate) static TRIGGERS: Table = Table::of(BYTES);

pub(crate) fn compress(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    let mut inside = false;
    append(clean, rest, out, |byte| {
        let white = TRIGGERS.has(byte);
        let keep = !(white & inside);
        inside = white;
        (if white { b' ' } else { byte }, keep)
    });
}

pub(crate) fn remove(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    append(clean, rest, out, |byte| (byte, !TRIGGERS.has(byte)));
}

/// Appends `clean` and what `each` makes of the bytes of `rest`: another byte, and whether it stays. Written
/// without a branch for each byte: white space comes too often to be foreseen.
fn append(clean: &[u8], rest: &[u8], out: &mut Vec<u8>, mut each: impl FnMut(u8) -> (u8, bool)) {
    out.extend_from_slice(clean);
    let mut end = out.len();
    out.resize(end + rest.len(), 0);
    for &byte in rest {
        let (byte, stays) = each(byte);
        out[end] = byte;
        end += usize::from(stays);
    }
    out.truncate(end);
}
