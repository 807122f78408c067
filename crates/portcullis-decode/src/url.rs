//! # `urlDecode`, `urlDecodeUni`, `urlEncode`
//!
//! `urlDecode` decodes `%HH` and turns `+` into a blank. A `%` without two hexadecimal digits behind it
//! stays.
//!
//! `urlDecodeUni` also decodes `%uHHHH`, as IIS does: through the [`UnicodeMap`] if it has the character,
//! otherwise to the low byte, with full-width ASCII (FF01 to FF5E) turned into ASCII. `%u` without four
//! digits behind it stays.
//!
//! `urlEncode` turns a blank into `+` and every byte but `*`, ASCII letters and digits into `%hh`.
//!
//! Result: decoding at most as long as the input, encoding at most three times.
//! Example: `%75nion+%u0073elect%zz` becomes `union select%zz` with `urlDecodeUni`.

use crate::UnicodeMap;
use crate::scan::{Table, hex_pair, wide};
use portcullis_types::ByteSet;

/// Everything but the bytes that `urlEncode` keeps.
pub(crate) static ENCODE_TRIGGERS: Table = Table::of(
    ByteSet::of(b"*")
        .union(ByteSet::range(b'0', b'9'))
        .union(ByteSet::range(b'A', b'Z'))
        .union(ByteSet::range(b'a', b'z'))
        .complement(),
);

/// Decodes a name or value of `application/x-www-form-urlencoded` and appends it to `out`: the same as
/// `t:urlDecode`. Returns how many `%` had no two hexadecimal digits behind them; they stay.
pub fn decode_form(input: &[u8], out: &mut Vec<u8>) -> usize {
    decode(&[], input, out)
}

pub(crate) fn decode(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(clean);
    let start = out.len();
    // A block of eight bytes is copied at a time; what is decoded from it or stands behind that is written
    // again.
    out.resize(start + rest.len() + BLOCK, 0);
    let made = &mut out[start..];
    let (mut at, mut end, mut invalid) = (0, 0, 0);
    while at < rest.len() {
        if let Some(block) = rest[at..].first_chunk::<BLOCK>() {
            let block = u64::from_le_bytes(*block);
            made[end..end + BLOCK].copy_from_slice(&with_blanks(block).to_le_bytes());
            let plain = before_percent(block);
            at += plain;
            end += plain;
            if plain == BLOCK {
                continue;
            }
        }
        if rest[at] != b'%' {
            made[end] = if rest[at] == b'+' { b' ' } else { rest[at] };
            at += 1;
            end += 1;
        }
        // Encoded bytes often stand in rows.
        while rest.get(at) == Some(&b'%') {
            let byte = hex_pair(&rest[at + 1..]);
            made[end] = byte.unwrap_or(b'%');
            invalid += usize::from(byte.is_none());
            at += if byte.is_some() { 3 } else { 1 };
            end += 1;
        }
    }
    out.truncate(start + end);
    invalid
}

/// Bytes that are looked at together.
const BLOCK: usize = 8;
const ONES: u64 = u64::from_le_bytes([1; BLOCK]);
const HIGH: u64 = u64::from_le_bytes([0x80; BLOCK]);

/// Returns the number of bytes of `block` before its first `%`, the lowest byte first.
fn before_percent(block: u64) -> usize {
    let rest = block ^ (ONES * b'%' as u64);
    // A borrow may mark bytes above the first one that is zero, but none below it.
    ((rest.wrapping_sub(ONES) & !rest & HIGH).trailing_zeros() / 8) as usize
}

/// `block` with a blank for each `+`.
fn with_blanks(block: u64) -> u64 {
    let rest = block ^ (ONES * b'+' as u64);
    // No carry leaves its byte: the high bit of each sum tells whether one of the low seven is set.
    let low = (rest & !HIGH) + !HIGH;
    let is_plus = !(low | rest) & HIGH;
    block ^ ((is_plus >> 7) * (b'+' ^ b' ') as u64)
}

pub(crate) fn decode_uni(clean: &[u8], rest: &[u8], map: Option<&UnicodeMap>, out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    let mut rest = rest;
    while let Some(at) = memchr::memchr2(b'%', b'+', rest) {
        out.extend_from_slice(&rest[..at]);
        let tail = &rest[at + 1..];
        let (byte, used) = match (rest[at], tail) {
            (b'+', _) => (b' ', 0),
            (percent, [b'u' | b'U', digits @ ..]) => match unicode(digits, map) {
                Some(byte) => (byte, 5),
                None => (percent, 0),
            },
            (percent, tail) => hex_pair(tail).map_or((percent, 0), |byte| (byte, 2)),
        };
        out.push(byte);
        rest = &tail[used..];
    }
    out.extend_from_slice(rest);
}

fn unicode(digits: &[u8], map: Option<&UnicodeMap>) -> Option<u8> {
    let unmapped = wide(digits)?;
    let Some(map) = map else { return Some(unmapped) };
    let code = u16::from_be_bytes([hex_pair(digits)?, hex_pair(digits.get(2..)?)?]);
    Some(map.get(code).unwrap_or(unmapped))
}

pub(crate) fn encode(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(clean);
    for &byte in rest {
        if byte == b' ' {
            out.push(b'+');
        } else if ENCODE_TRIGGERS.has(byte) {
            out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        } else {
            out.push(byte);
        }
    }
}
