//! Encodings of whole values.

use memchr::memmem;

use super::{hex_digit, is_mostly_text, push_char};
use crate::ByteGroups;

/// Shorter values are not tried as Base64 or hexadecimal: too many words are both.
pub(super) const BASE64_BYTES_MIN: usize = 8;
const HEX_BYTES_MIN: usize = 12;

/// Base64 with either alphabet, padding or not, perhaps behind `...;base64,` or `Basic `; tokens with dots in parts.
pub(super) fn base64(text: &[u8], groups: ByteGroups, out: &mut Vec<u8>, emit: &mut dyn FnMut(&[u8])) {
    const ALPHABET: ByteGroups = ByteGroups::of(b"Aa0+/-_=.\r\n");
    let trimmed = text.trim_ascii();
    let body = if groups.is_within(ALPHABET) {
        trimmed
    } else if groups.has(b';') && groups.has(b',') {
        let Some(at) = memmem::find(trimmed, b";base64,") else { return };
        &trimmed[at + 8..]
    } else {
        let Some(space) = trimmed.iter().take(8).position(|&b| b == b' ') else { return };
        &trimmed[space + 1..]
    };
    if body.iter().any(|&b| base64_value(b).is_none() && !matches!(b, b'=' | b'.' | b'\r' | b'\n')) {
        return;
    }
    for part in body.split(|&b| b == b'.').take(5).filter(|part| part.len() >= BASE64_BYTES_MIN) {
        out.clear();
        if base64_part(part, out) && out.len() >= 6 && is_mostly_text(out) {
            emit(out);
        }
    }
}

fn base64_value(b: u8) -> Option<u32> {
    Some(match b {
        b'A'..=b'Z' => u32::from(b - b'A'),
        b'a'..=b'z' => u32::from(b - b'a') + 26,
        b'0'..=b'9' => u32::from(b - b'0') + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

/// False if it is not whole: padding in the middle, or one letter too many.
fn base64_part(text: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut bits, mut count) = (0u32, 0usize);
    let mut padding = 0;
    for &b in text {
        match base64_value(b) {
            Some(_) if padding > 0 => return false,
            Some(value) => {
                bits = bits << 6 | value;
                count += 1;
                if count % 4 == 0 {
                    out.extend_from_slice(&bits.to_be_bytes()[1..]);
                    bits = 0;
                }
            }
            None if b == b'=' => padding += 1,
            None => {}
        }
    }
    match count % 4 {
        2 => out.push((bits >> 4) as u8),
        3 => out.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
        1 => return false,
        _ => {}
    }
    padding <= 2
}

/// Pairs of hexadecimal digits and nothing else, perhaps behind `0x`.
pub(super) fn hex(text: &[u8], groups: ByteGroups, out: &mut Vec<u8>) -> bool {
    if !groups.is_within(ByteGroups::ALPHANUMERIC) || text.len() < HEX_BYTES_MIN {
        return false;
    }
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return false;
    }
    let byte = |pair: &[u8]| (hex_digit(pair[0]).unwrap_or(0) << 4 | hex_digit(pair[1]).unwrap_or(0)) as u8;
    out.extend(digits.chunks_exact(2).map(byte));
    is_mostly_text(out)
}

/// UTF-16 of either order whose characters are mostly ASCII.
pub(super) fn utf16(text: &[u8], out: &mut Vec<u8>) -> bool {
    let (text, forced) = match text {
        [0xFE, 0xFF, rest @ ..] => (rest, Some(true)),
        [0xFF, 0xFE, rest @ ..] => (rest, Some(false)),
        rest => (rest, None),
    };
    let pairs = text.len() / 2;
    let zeros = |at: usize| text.chunks_exact(2).filter(|pair| pair[at] == 0).count();
    let (high, low) = (zeros(0), zeros(1));
    let big_endian = forced.unwrap_or(high > low);
    if pairs < 3 || high.max(low) * 5 < pairs * 4 {
        return false;
    }
    for pair in text.chunks_exact(2) {
        let unit = if big_endian { [pair[0], pair[1]] } else { [pair[1], pair[0]] };
        push_char(out, u32::from(u16::from_be_bytes(unit)));
    }
    is_mostly_text(out)
}

/// UTF-7: `+ADw-` is `<`. Only runs that begin as ASCII signs do (`+AC`, `+AD`, `+AF`, `+AG`, `+AH`) count.
pub(super) fn utf7(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = text;
    let mut decoded = false;
    while let Some(at) = memchr::memchr(b'+', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let run = rest.iter().take_while(|&&b| b.is_ascii_alphanumeric() || matches!(b, b'/')).count();
        let begins_so = matches!(rest, [b'A', b'C' | b'D' | b'F' | b'G' | b'H', _, ..]);
        let mut units = [0u8; 48];
        let mut used = 0;
        if begins_so && (3..=64).contains(&run) {
            let (mut bits, mut have) = (0u32, 0);
            for &b in &rest[..run] {
                bits = bits << 6 | base64_value(b).unwrap_or(0);
                have += 6;
                if have >= 8 {
                    have -= 8;
                    units[used] = (bits >> have) as u8;
                    used += 1;
                }
            }
        }
        let ascii = |pair: &[u8]| pair[0] == 0 && (pair[1].is_ascii_graphic() || pair[1] == b' ');
        if used >= 2 && units[..used].chunks_exact(2).all(ascii) {
            out.extend(units[..used].chunks_exact(2).map(|pair| pair[1]));
            rest = &rest[run..];
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
            decoded = true;
        } else {
            out.push(b'+');
        }
    }
    out.extend_from_slice(rest);
    decoded
}
