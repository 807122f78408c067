//! # `compressWhitespace`, `removeWhitespace`
//!
//! White space is blank, tab, line feed, vertical tab, form feed, carriage return, and the byte `A0` (the
//! non-breaking blank of Latin-1). `compressWhitespace` turns each run of it into one blank, `removeWhitespace` drops
//! it.
//!
//! Result: at most as long as the input. Idempotent.
//! Example: `a \t\n b` becomes `a b`, or `ab`.

use crate::scan::Table;
use portcullis_types::ByteSet;

pub(crate) static TRIGGERS: Table = Table::of(ByteSet::range(b'\t', b'\r').with(b' ').with(0xa0));

pub(crate) fn compress(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    let mut inside = false;
    for &byte in rest {
        let white = TRIGGERS.has(byte);
        if !white {
            out.push(byte);
        } else if !inside {
            out.push(b' ');
        }
        inside = white;
    }
}

pub(crate) fn remove(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    out.extend(rest.iter().filter(|&&b| !TRIGGERS.has(b)));
}
