//! # `cssDecode`
//!
//! Decodes the escapes of CSS 2: a backslash with one to six hexadecimal digits stands for a character, of
//! which the low byte is kept; full-width ASCII (FF01 to FF5E) becomes ASCII; one white space behind the
//! digits belongs to the escape. A backslash before a line feed drops both; before another byte, or at the
//! end, it is dropped alone.
//!
//! Result: at most as long as the input.
//! Example: `ja\vas\63 ript\(` becomes `javascript(`.

use crate::scan::{full_width, hex_digit, is_space};

const DIGITS_MAX: usize = 6;

pub(crate) fn css_decode(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    let mut rest = rest;
    while let Some(backslash) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..backslash]);
        let escape = &rest[backslash + 1..];
        let mut code = 0;
        let mut len = 0;
        for digit in escape.iter().take(DIGITS_MAX).map_while(|&b| hex_digit(b)) {
            code = code << 4 | u32::from(digit);
            len += 1;
        }
        rest = match (len, escape) {
            (0, [b'\n', tail @ ..]) => tail,
            (0, [byte, tail @ ..]) => {
                out.push(*byte);
                tail
            }
            (0, []) => escape,
            (len, _) => {
                let low = code as u8;
                // "FF41" is full-width however it is padded: `\ff41`, `\0ff41`, `\00ff41`.
                out.push(if len >= 4 && code >> 8 == 0xff { full_width(low) } else { low });
                let tail = &escape[len..];
                match tail {
                    [white, tail @ ..] if is_space(*white) => tail,
                    _ => tail,
                }
            }
        };
    }
    out.extend_from_slice(rest);
}
