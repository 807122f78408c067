//! # `escapeSeqDecode`
//!
//! Decodes the escapes of ANSI C: `\a \b \f \n \r \t \v`, `\xHH`, `\OOO` (one to three octal digits, of which
//! the low eight bits count). Before any other byte the backslash is dropped; at the end of the input it
//! stays.
//!
//! Result: at most as long as the input.
//! Example: `\x73elect\040` becomes `select ` with a blank at its end.

use crate::js_decode::control;
use crate::scan::hex_pair;

pub(crate) fn escape_seq_decode(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
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
            b'x' | b'X' if let Some(byte) = hex_pair(tail) => (byte, 2),
            b'0'..=b'7' => {
                let digits = escape.iter().take(3).take_while(|b| (b'0'..=b'7').contains(b));
                let (value, len) =
                    digits.fold((0u16, 0), |(value, len), &b| (value << 3 | u16::from(b - b'0'), len + 1));
                (value as u8, len - 1)
            }
            other => (control(other).unwrap_or(other), 0),
        };
        out.push(byte);
        rest = &tail[used..];
    }
    out.extend_from_slice(rest);
}
