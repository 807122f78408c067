//! # `lowercase`, `uppercase`
//!
//! Turns ASCII letters into lower or upper case; other bytes, those above 127 too, stay.
//!
//! Result: as long as the input. Idempotent.
//! Example: `SELECT Ä` becomes `select Ä`.

pub(crate) fn lower(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    out.extend(rest.iter().map(u8::to_ascii_lowercase));
}

pub(crate) fn upper(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    out.extend(rest.iter().map(u8::to_ascii_uppercase));
}
