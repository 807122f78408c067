//! The inside of JSON strings.

use crate::body::{Ambiguities, Ambiguity};

const ONES: u64 = u64::MAX / 255;
const HIGHS: u64 = ONES << 7;

/// Returns the number of bytes before the first quote, backslash or control character. Sets `has_high` if
/// there may be bytes above 0x7F among them.
pub(super) fn plain_len(bytes: &[u8], has_high: &mut bool) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest bit of each mask is exact, so the lowest of them all is.
        let stops = zero_bytes(word ^ (ONES * b'"' as u64))
            | zero_bytes(word ^ (ONES * b'\\' as u64))
            | word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        *has_high |= word & HIGHS != 0;
        if stops != 0 {
            return index * 8 + stops.trailing_zeros() as usize / 8;
        }
    }
    let stop = rest.iter().position(|&b| {
        *has_high |= b >= 0x80;
        b < 0x20 || b == b'"' || b == b'\\'
    });
    words.len() * 8 + stop.unwrap_or(rest.len())
}

/// The high bit of each zero byte, and perhaps of bytes above a zero byte.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// Appends `raw` with its escapes resolved; `raw` is UTF-8. A surrogate without its other half becomes U+FFFD
/// and an ambiguity. The error is the offset of a bad escape.
pub(super) fn unescape(raw: &[u8], out: &mut Vec<u8>, ambiguities: &mut Ambiguities) -> Result<(), usize> {
    let mut at = 0;
    while let Some(len) = memchr::memchr(b'\\', &raw[at..]) {
        out.extend_from_slice(&raw[at..at + len]);
        at += len;
        let plain = match raw.get(at + 1) {
            Some(b'u') => {
                let (character, len) = unicode_escape(&raw[at..]).ok_or(at)?;
                if character.is_none() {
                    ambiguities.insert(Ambiguity::LoneSurrogate);
                }
                let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at += len;
                continue;
            }
            Some(&plain @ (b'"' | b'\\' | b'/')) => plain,
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'b') => 8,
            Some(b'f') => 12,
            _ => return Err(at),
        };
        out.push(plain);
        at += 2;
    }
    out.extend_from_slice(&raw[at..]);
    Ok(())
}

/// The character of `\uXXXX` or of a pair of them, and its length in bytes. No character: half of a pair.
fn unicode_escape(raw: &[u8]) -> Option<(Option<char>, usize)> {
    let unit = code_unit(raw)?;
    if let 0xD800..0xDC00 = unit
        && let Some(low @ 0xDC00..0xE000) = code_unit(&raw[6..])
    {
        return Some((char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)), 12));
    }
    Some((char::from_u32(unit), 6))
}

/// The number in `\uXXXX`.
fn code_unit(raw: &[u8]) -> Option<u32> {
    let digits = raw.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | (digit as char).to_digit(16)?))
}
