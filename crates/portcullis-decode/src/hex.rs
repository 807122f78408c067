//! # `hexDecode`, `hexEncode`, `sqlHexDecode`
//!
//! `hexDecode` turns each two bytes into one. Like ModSecurity it does not ask whether they are hexadecimal
//! digits: others give some byte. A last single digit is dropped.
//!
//! `hexEncode` writes each byte as two lower-case digits.
//!
//! `sqlHexDecode` decodes the hexadecimal literals of SQL: `0x` (or `0X`) with at least one pair of digits
//! behind it; as many pairs as follow are decoded. Other text stays. ModSecurity 2 stops at a NUL byte and
//! overlooks a literal that touches the one before; ours follows ModSecurity 3, which does not.
//!
//! Result: `hexDecode` half the input, `hexEncode` twice, `sqlHexDecode` at most as long as the input.
//! Example: `sqlHexDecode` turns `a=0x53514C` into `a=SQL`.

use crate::scan::hex_pair;

pub(crate) fn decode(input: &[u8], out: &mut Vec<u8>) {
    out.extend(input.chunks_exact(2).map(|pair| (lax_digit(pair[0]) << 4).wrapping_add(lax_digit(pair[1]))));
}

/// The arithmetic that ModSecurity does without a check: right for digits, some number for other bytes.
fn lax_digit(byte: u8) -> u8 {
    if byte >= b'A' { (byte & 0xdf).wrapping_sub(b'A' - 10) } else { byte.wrapping_sub(b'0') }
}

pub(crate) fn encode(input: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(input.iter().flat_map(|&b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]));
}

pub(crate) fn sql_decode(input: &[u8], out: &mut Vec<u8>) {
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'x', b'X', &input[at..]) {
        let x = at + found;
        at = x + 1;
        // The zero must not be a digit of the literal before.
        if x > copied && input[x - 1] == b'0' && hex_pair(&input[at..]).is_some() {
            out.extend_from_slice(&input[copied..x - 1]);
            while let Some(byte) = hex_pair(&input[at..]) {
                out.push(byte);
                at += 2;
            }
            copied = at;
        }
    }
    out.extend_from_slice(&input[copied..]);
}
