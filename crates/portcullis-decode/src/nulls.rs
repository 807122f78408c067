//! # `removeNulls`, `replaceNulls`
//!
//! Drops NUL bytes, or turns each into a blank.
//!
//! Result: at most as long as the input. Idempotent.
//! Example: `a\0b` becomes `ab`, or `a b`.

pub(crate) fn remove(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    out.extend(rest.iter().filter(|&&b| b != 0));
}

pub(crate) fn replace(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    out.extend(rest.iter().map(|&b| if b == 0 { b' ' } else { b }));
}
