//! Encodings of whole values.

use memchr::memmem;
use portcullis_lex::base64::NONE as BASE64_NONE;
pub(super) use portcullis_lex::base64::TABLE as BASE64;

use super::loose::{LEAD_BYTES_MAX, is_after_lead};
use super::packed::{is_stored, may_be_packed, unpacked};
use super::{base64_value, has_more_noise, hex_digit, is_mostly_text, push_char, serialised};
use crate::ByteGroups;

/// Shorter values are not tried as Base64 or hexadecimal: too many words are both. No word has padding.
pub(super) const BASE64_BYTES_MIN: usize = 8;
const PADDED_BYTES_MIN: usize = 4;
/// What shorter values decode to says nothing, but after padding.
const DECODED_BYTES_MIN: usize = 6;

/// True if `text` is long enough for Base64.
pub(super) fn may_be_base64(text: &[u8]) -> bool {
    text.len() >= BASE64_BYTES_MIN || is_padded(text) || is_short_command(text)
}

/// Shorter than other Base64, without padding, and nothing but a separator of commands and a word: `O2lk` is
/// `;id`. The first letter tells the separator, so that hardly any word is decoded.
pub(crate) fn is_short_command(text: &[u8]) -> bool {
    let (&[b'O' | b'f' | b'J' | b'C', _, _, _, ..], ..BASE64_BYTES_MIN) = (text, text.len()) else {
        return false;
    };
    let mut bits = 0u64;
    for &b in text {
        let Some(value) = base64_value(b) else { return false };
        bits = bits << 6 | u64::from(value);
    }
    // What is left over of the last byte is zero.
    let over = 6 * text.len() % 8;
    let len = 6 * text.len() / 8;
    let bytes = (bits >> over << (64 - 8 * len)).to_be_bytes();
    over < 6
        && bits & ((1 << over) - 1) == 0
        && matches!(bytes[0], b';' | b'|' | b'&' | b'\n')
        && bytes[1..len].iter().all(u8::is_ascii_lowercase)
}

fn is_padded(text: &[u8]) -> bool {
    text.len() >= PADDED_BYTES_MIN && text.len().is_multiple_of(4) && text.ends_with(b"=")
}

const HEX_BYTES_MIN: usize = 12;

/// Base64, perhaps of gzip, zlib or raw DEFLATE, with either alphabet, padding or not, perhaps after
/// `...;base64,`, `Basic ` or `v1:`; tokens with dots in parts. True if the
/// end of `text` was Base64.
pub(super) fn base64(
    text: &[u8],
    groups: ByteGroups,
    out: &mut Vec<u8>,
    emit: &mut dyn FnMut(&[u8]),
) -> bool {
    const ALPHABET: ByteGroups = ByteGroups::of(b"Aa0+/-_=.\r\n");
    const SPACED: ByteGroups = ByteGroups::of(b"Aa0+/-_= ");
    const WITH_SPACE: ByteGroups = ALPHABET.union(SPACED);
    // Each byte of these groups is a letter of Base64, padding or a dot.
    const ONLY_LETTERS: ByteGroups = ByteGroups::of(b"Aa0+/-_=.");
    let has_lost_plus = groups.has(b' ') && has_lost_plus(text);
    // White space around it is not part of it.
    let trimmed = text.trim_ascii();
    let groups = match trimmed.len() < text.len() && groups.is_within(WITH_SPACE) {
        true => ByteGroups::of(trimmed),
        false => groups,
    };
    let restored;
    let body = if groups.is_within(ALPHABET) && !has_lost_plus {
        trimmed
    } else if groups.is_within(SPACED) && has_lost_plus {
        restored = text.iter().map(|&b| if b == b' ' { b'+' } else { b }).collect::<Vec<u8>>();
        &restored[..]
    } else if groups.has(b';') && groups.has(b',') {
        let Some(at) = memmem::find(trimmed, b";base64,") else { return false };
        &trimmed[at + 8..]
    } else {
        let lead = trimmed.iter().take(LEAD_BYTES_MAX).position(|b| is_after_lead(*b));
        let Some(lead) = lead else { return false };
        trimmed[lead + 1..].trim_ascii_start()
    };
    let is_none = |b: &u8| BASE64[usize::from(*b)] == BASE64_NONE && *b != b'.';
    if !groups.is_within(ONLY_LETTERS) && body.iter().any(is_none) {
        return false;
    }
    base64_parts(body, out, emit);
    // What looks as if it had lost plus signs may be words before a token.
    !has_lost_plus
}

/// What the parts between the dots of `body` decode to.
pub(super) fn base64_parts(body: &[u8], out: &mut Vec<u8>, emit: &mut dyn FnMut(&[u8])) {
    let mut rest = Some(body);
    for _ in 0..TOKEN_PARTS_MAX {
        let Some(text) = rest else { break };
        let part = &text[..memchr::memchr(b'.', text).unwrap_or(text.len())];
        rest = text.get(part.len() + 1..);
        if !may_be_base64(part) || is_noise(part, out) {
            continue;
        }
        out.clear();
        if !base64_part(part, out)
            || out.len() < DECODED_BYTES_MIN && !is_padded(part) && !is_short_command(part)
        {
            continue;
        }
        emit_decoded(out, emit);
    }
}

/// Emits `decoded`, if it is text or a serialised object, perhaps packed.
pub(super) fn emit_decoded(decoded: &[u8], emit: &mut dyn FnMut(&[u8])) {
    if is_mostly_text(decoded) {
        emit(decoded);
        // The marks before each block are few, and no document begins with them.
        if let Some(text) = Some(decoded).filter(|bytes| is_stored(bytes)).and_then(unpacked) {
            emit(&text);
        }
    } else if let Some(narrow) = narrowed(decoded) {
        emit(&narrow);
    } else if serialised::is_object(decoded) {
        emit(decoded);
    } else if let Some(text) = unpacked(decoded) {
        emit(&text);
    }
}

/// True if the beginning of `part` shows that [`base64`] emits nothing of it: most words that are no Base64
/// show it there, and need not be decoded.
fn is_noise(part: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(beginning) = part.get(..SAMPLE_BYTES).filter(|_| part.len() <= SAMPLED_BYTES_MAX) else {
        return false;
    };
    out.clear();
    // With marks between its letters it is not how the whole begins.
    if !base64_part(beginning, out) || out.len() < SAMPLE_BYTES / 4 * 3 {
        return false;
    }
    let decoded_max = part.len() / 4 * 3 + 3;
    let is_wide = out[..2].contains(&0);
    let may_be_other = is_wide || may_be_packed(out) || serialised::may_begin(out);
    !may_be_other && has_more_noise(out, decoded_max / 10)
}

/// Bytes of a part that tell whether it is noise; a longer part may have as much of it and be text.
const SAMPLE_BYTES: usize = 32;
const SAMPLED_BYTES_MAX: usize = 128;

/// Parts of a token that are looked at.
const TOKEN_PARTS_MAX: usize = 16;

/// Text in UTF-16 of nothing but ASCII, as PowerShell encodes commands: its letters.
fn narrowed(bytes: &[u8]) -> Option<Vec<u8>> {
    let pairs = bytes.chunks_exact(2);
    if bytes.len() < 2 * DECODED_BYTES_MIN || !bytes.len().is_multiple_of(2) {
        return None;
    }
    // Which of each two bytes is the letter: the first zero is one of the others.
    let low = (bytes.iter().position(|b| *b == 0)? & 1) ^ 1;
    if !pairs.clone().all(|pair| pair[low ^ 1] == 0) {
        return None;
    }
    let narrow: Vec<u8> = pairs.map(|pair| pair[low]).collect();
    is_mostly_text(&narrow).then_some(narrow)
}

/// The same of a text that has nothing else that a decoder acts on.
pub(super) fn is_spaced_base64(text: &[u8], groups: ByteGroups) -> bool {
    groups.is_within(ByteGroups::of(b"Aa0+/-_= ")) && has_lost_plus(text)
}

/// A space nearer to the beginning stands after a word before Base64: `Basic `.
const LEAD_BYTES: usize = 8;

/// A form's decoder has made spaces of plus signs: with them the text is whole, and it does not consist of
/// words. Without its padding it has few of them.
fn has_lost_plus(text: &[u8]) -> bool {
    let may_be_whole = match text.len() % 4 {
        0 => true,
        1 => false,
        _ => {
            let head = &text[..text.len().min(LEAD_BYTES)];
            memchr::memchr(b' ', head).is_none() && memchr::memchr_iter(b' ', text).count() * 16 <= text.len()
        }
    };
    may_be_whole
        && text.len() >= 2 * BASE64_BYTES_MIN
        && memchr::memchr(b' ', text).is_some()
        && !text.starts_with(b" ")
        && memmem::find(text, b"  ").is_none()
        && text.iter().any(u8::is_ascii_digit)
        && text.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

/// False if it is not whole: padding in the middle, or one letter too many for a short text.
fn base64_part(text: &[u8], out: &mut Vec<u8>) -> bool {
    // Four letters at a time, as far as nothing else stands between them.
    let (fours, _) = text.as_chunks::<4>();
    out.resize(3 * fours.len(), 0);
    let mut read = 0;
    for (four, three) in fours.iter().zip(out.as_chunks_mut::<3>().0) {
        let [a, b, c, d] = four.map(|b| BASE64[usize::from(b)]);
        if (a | b | c | d) >= 64 {
            break;
        }
        *three = [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d];
        read += 1;
    }
    out.truncate(3 * read);
    let (mut bits, mut count) = (0u32, 0usize);
    let mut is_padded = false;
    for &b in &text[4 * read..] {
        match base64_value(b) {
            Some(_) if is_padded => return false,
            Some(value) => {
                bits = bits << 6 | value;
                count += 1;
                if count % 4 == 0 {
                    out.extend_from_slice(&bits.to_be_bytes()[1..]);
                    bits = 0;
                }
            }
            None if b == b'=' => is_padded = true,
            None => {}
        }
    }
    match count % 4 {
        2 => out.push((bits >> 4) as u8),
        3 => out.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
        // Decoders leave it out. Words are shorter.
        1 => return text.len() > 2 * BASE64_BYTES_MIN,
        _ => {}
    }
    true
}

/// Pairs of hexadecimal digits and nothing else, perhaps after `0x`.
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
    is_mostly_text(out) || serialised::is_object(out)
}

/// UTF-16 of either order whose characters are mostly ASCII; UTF-32 with its three zeros a character, too.
pub(super) fn utf16(text: &[u8], out: &mut Vec<u8>) -> bool {
    let units = text.chunks_exact(4);
    let is_wide = |unit: &&[u8]| unit.iter().filter(|b| **b == 0).count() == 3;
    let wide = units.clone().filter(is_wide).count();
    if text.len() >= 16 && wide * 5 >= units.len() * 4 {
        out.extend(text.iter().filter(|b| **b != 0));
        return is_mostly_text(out);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// All of `bytes` that make whole groups of letters.
    fn encoded(bytes: &[u8]) -> Vec<u8> {
        let letter = |bits: u32| BASE64.iter().position(|value| u32::from(*value) == bits & 63);
        let threes = bytes.as_chunks::<3>().0.iter();
        let fours = threes.flat_map(|&[a, b, c]| {
            let bits = u32::from_be_bytes([0, a, b, c]);
            [bits >> 18, bits >> 12, bits >> 6, bits]
        });
        fours.map(|bits| letter(bits).expect("there are 64") as u8).collect()
    }

    proptest::proptest! {
        /// A beginning that shows noise is the beginning of nothing that would be emitted.
        #[test]
        fn noise_is_never_emitted(
            text in "[ -~]{0,60}",
            noise in proptest::collection::vec(proptest::num::u8::ANY, 0..40),
            letters in "[A-Za-z0-9+/]{0,60}",
            mark in "(|=|-|\r\n)",
        ) {
            let [text, noise] = [text.as_bytes(), &noise].map(encoded);
            let letters = letters.as_bytes();
            for part in [[&text[..], &noise], [&noise, &text], [letters, &text], [&text, letters]] {
                let part = part.join(mark.as_bytes());
                let mut out = Vec::new();
                if is_noise(&part, &mut out) {
                    out.clear();
                    let is_text = |out: &[u8]| {
                        is_mostly_text(out) || narrowed(out).is_some() || serialised::is_object(out)
                    };
                    let is_emitted = base64_part(&part, &mut out)
                        && (is_text(&out) || unpacked(&out).is_some());
                    proptest::prop_assert!(!is_emitted, "{}", part.escape_ascii());
                }
            }
        }
    }
}
