//! # `jsDecode`
//!
//! Decodes the escapes of JavaScript strings: `\uHHHH` (the low byte; full-width ASCII, FF01 to FF5E, becomes
//! ASCII), `\xHH`, `\OOO` (one to three octal digits, up to `\377`), and `\a \b \f \n \r \t \v`. Before any
//! other byte the backslash is dropped; at the end of the input it stays.
//!
//! Result: at most as long as the input.
//! Example: `\u0061l\x65rt` becomes `alert`.

use crate::scan::{hex_pair, wide};

pub(crate) fn js_decode(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    let mut rest = rest;
    while let Some(backslash) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..backslash]);
        let escape = &rest[backslash + 1..];
        let Some(&kind) = escape.first() else {
            out.push(b'\\');
            return;
        };
        let tail = &escape[1..];
        let (byte, used) = match kind {
            b'u' if let Some(byte) = wide(tail) => (byte, 4),
            b'x' if let Some(byte) = hex_pair(tail) => (byte, 2),
            b'0'..=b'7' => {
                let (byte, digits) = octal(escape);
                (byte, digits - 1)
            }
            other => (control(other).unwrap_or(other), 0),
        };
        out.push(byte);
        rest = &tail[used..];
    }
    out.extend_from_slice(rest);
}

/// One to three octal digits, as many as fit a byte, and how many those are.
fn octal(text: &[u8]) -> (u8, usize) {
    let max = if text.first().is_some_and(|&b| b > b'3') { 2 } else { 3 };
    let digits = text.iter().take(max).take_while(|b| (b'0'..=b'7').contains(b));
    digits.fold((0, 0), |(value, len), &b| (value << 3 | (b - b'0'), len + 1))
}

/// The control character of `\n` and its kin.
pub(crate) fn control(letter: u8) -> Option<u8> {
    Some(match letter {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        _ => return None,
    })
}
