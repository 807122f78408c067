//! Base64 with something else around it or in it: decoders of most languages skip bytes outside its alphabet.
//! Each text is decoded a fixed number of times at most, and nothing is said of it unless the result is text.

use super::binary::{BASE64, base64_parts, emit_decoded};
use crate::ByteGroups;

/// Fewer letters, with other bytes between them, prove nothing.
const LETTERS_MIN: usize = 16;
/// Spaces within lines. Prose has more of them, and shows it early.
const SPACES_MAX: usize = 8;
/// In longer texts nobody takes a token from between words.
const TOKENS_BYTES_MAX: usize = 16 << 10;
/// The longest tokens of a text that are read.
const TOKENS_MAX: usize = 8;
/// A word before Base64, as the scheme of `Authorization` or `v1:`, is no longer.
pub(super) const LEAD_BYTES_MAX: usize = 24;

/// Emits what `text` decodes to without quotes, without the bytes that are no letters of Base64, and what its
/// longest tokens decode to. What is Base64 as it is, is left to [`super::binary::base64`]; `is_read` says
/// that it has read the end of `text`.
pub(super) fn base64(
    text: &[u8],
    groups: ByteGroups,
    (is_json, is_read): (bool, bool),
    out: &mut Vec<u8>,
    emit: &mut dyn FnMut(&[u8]),
) {
    const LETTERS: ByteGroups = ByteGroups::of(b"Aa0+/-_");
    if text.len() < BARE_BYTES_MIN || groups.is_within(LETTERS) {
        return;
    }
    let trimmed = text.trim_ascii();
    let body = unquoted(trimmed);
    let is_quoted = body.len() < trimmed.len();
    if is_quoted && body.iter().all(|b| value(*b) < 64 || matches!(b, b'=' | b'.')) {
        base64_parts(body, out, emit);
    }
    if is_odd(body) {
        whole(body, out, emit);
    }
    if let Some(rest) = after_lead(body).filter(|rest| is_odd(rest)) {
        whole(rest, out, emit);
    }
    // The strings of JSON are values of their own.
    if !is_json && body.len() <= TOKENS_BYTES_MAX {
        tokens(body, is_read, out, emit);
    }
}

/// A shorter text has no room for quotes around Base64.
const BARE_BYTES_MIN: usize = 10;

/// True if [`base64`] may find something in a text that looks like words.
pub(super) fn is_hidden_in_words(text: &[u8]) -> bool {
    text.len() >= LETTERS_MIN
        && (is_odd(text.trim_ascii()) || next_token(&text[..text.len().min(TOKENS_BYTES_MAX)]).is_some())
}

fn value(b: u8) -> u8 {
    BASE64[usize::from(b)]
}

/// Without one pair of quotes.
fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] => inner.trim_ascii(),
        _ => text,
    }
}

/// What stands behind the first word, if that is short.
fn after_lead(text: &[u8]) -> Option<&[u8]> {
    let at = text.iter().take(LEAD_BYTES_MAX).position(|b| is_after_lead(*b))?;
    let rest = &text[at..];
    let start = rest.iter().position(|b| !is_after_lead(*b) && *b != b'"')?;
    Some(unquoted(&rest[start..])).filter(|_| at > 0)
}

/// Ends the word before Base64.
pub(super) fn is_after_lead(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b':' | b',' | b'=')
}

/// True if nine bytes of ten are letters of Base64, some of either case, and something stands between them.
/// White space where lines end and padding is not counted. It reads no more of prose than some words.
fn is_odd(text: &[u8]) -> bool {
    let begins_with_words = || text.len() > MIX_BYTES && Mix::of(&text[..MIX_BYTES]).is_none();
    if text.len() < LETTERS_MIN || begins_with_words() {
        return false;
    }
    // Most others have too many other signs, or letters of one case only, and one short pass tells.
    let mut tally = Tally::default();
    for block in text.chunks(TALLY_BYTES) {
        let of_block = Tally::of(block);
        tally.others += of_block.others;
        tally.has_upper |= of_block.has_upper;
        tally.has_lower |= of_block.has_lower;
    }
    if tally.others * 10 > text.len() || !(tally.has_upper && tally.has_lower) {
        return false;
    }
    let Some(Mix { letters, spaces, others, has_blank, has_padding }) = Mix::of(text) else { return false };
    let padding = text.iter().rev().take_while(|b| **b == b'=').count();
    let is_split = has_blank || has_padding && padding == 0;
    let is_padded_twice = || memchr::memchr(b'=', &text[..text.len() - padding]).is_some();
    letters >= LETTERS_MIN
        && (spaces + others) * 9 <= letters
        && (is_split || spaces + others > 0 || padding > 0 && is_padded_twice())
}

/// Words show within so many bytes that they are no Base64.
const MIX_BYTES: usize = 256;

/// What stands in a text beside letters of Base64.
#[derive(Clone, Copy, Debug, Default)]
struct Mix {
    letters: usize,
    /// Gaps of white space within lines.
    spaces: usize,
    others: usize,
    has_blank: bool,
    has_padding: bool,
}

impl Mix {
    /// `None` if there are too many spaces or other signs among the letters at some point, whatever follows.
    fn of(text: &[u8]) -> Option<Mix> {
        let mut mix = Mix::default();
        let mut gap = None;
        for &b in text {
            match b {
                b'\r' | b'\n' => gap = Some(true),
                b' ' | b'\t' => {
                    gap = gap.or(Some(false));
                    mix.has_blank = true;
                }
                b'=' => mix.has_padding = true,
                _ => {
                    mix.spaces += usize::from(gap.take() == Some(false));
                    let is_letter = value(b) < 64;
                    mix.letters += usize::from(is_letter);
                    mix.others += usize::from(!is_letter);
                    if mix.spaces > SPACES_MAX + mix.letters / 16 || mix.others > SPACES_MAX + mix.letters / 9
                    {
                        return None;
                    }
                }
            }
        }
        Some(mix)
    }
}

/// Bytes that are counted together: their number fits in a byte.
const TALLY_BYTES: usize = 128;

/// What a text has for one that may be Base64.
#[derive(Debug, Default)]
struct Tally {
    /// Bytes that are neither letters of Base64 nor padding nor white space.
    others: usize,
    has_upper: bool,
    has_lower: bool,
}

impl Tally {
    /// Of a block, without a branch or a table, so that the compiler looks at many bytes at once.
    fn of(block: &[u8]) -> Tally {
        let (mut others, mut has_upper, mut has_lower) = (0u8, false, false);
        for &b in block {
            let (upper, lower) = (b.wrapping_sub(b'A') < 26, b.wrapping_sub(b'a') < 26);
            let digit = b.wrapping_sub(b'0') < 10;
            let sign = (b == b'+') | (b == b'/') | (b == b'-') | (b == b'_') | (b == b'=');
            let space = (b == b' ') | (b == b'\t') | (b == b'\r') | (b == b'\n');
            others = others.wrapping_add(u8::from(!(upper | lower | digit | sign | space)));
            has_upper |= upper;
            has_lower |= lower;
        }
        Tally { others: usize::from(others), has_upper, has_lower }
    }
}

/// Emits what the letters of `text` decode to, whatever stands between them.
fn whole(text: &[u8], out: &mut Vec<u8>, emit: &mut dyn FnMut(&[u8])) {
    if is_signed_json(text, out) {
        return;
    }
    decode(text, false, out);
    emit_decoded(out, emit);
    // Two texts, one after the other: some decoders stop or begin anew where padding ends the first, others
    // skip the padding.
    let padding = text.iter().rev().take_while(|b| **b == b'=').count();
    if memchr::memchr(b'=', &text[..text.len() - padding]).is_some() {
        decode(text, true, out);
        emit_decoded(out, emit);
    }
}

/// True for the usual token: its dots part it, and nobody reads it without them.
fn is_signed_json(text: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(dot) = memchr::memchr(b'.', text) else { return false };
    if !text.starts_with(b"eyJ") || !text.iter().all(|b| value(*b) < 64 || matches!(b, b'.' | b'=')) {
        return false;
    }
    decode(&text[..dot], false, out);
    out.ends_with(b"}")
}

/// The letters of `text` decoded; with `is_anew`, padding ends a text and begins the next one.
fn decode(text: &[u8], is_anew: bool, out: &mut Vec<u8>) {
    out.clear();
    out.reserve(text.len() / 4 * 3 + 3);
    let (mut bits, mut count) = (0u32, 0);
    let end = |bits: u32, count: usize, out: &mut Vec<u8>| match count {
        2 => out.push((bits >> 4) as u8),
        3 => out.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
        // One letter is less than a byte.
        _ => {}
    };
    for &b in text {
        let value = value(b);
        if value < 64 {
            bits = bits << 6 | u32::from(value);
            count += 1;
            if count == 4 {
                out.extend_from_slice(&bits.to_be_bytes()[1..]);
                (bits, count) = (0, 0);
            }
        } else if is_anew && b == b'=' {
            end(bits, count, out);
            (bits, count) = (0, 0);
        }
    }
    end(bits, count, out);
}

/// Emits what the longest tokens of `text` decode to: `Token token="MScg..."`, `a b v1:MScg...`.
fn tokens(text: &[u8], is_read: bool, out: &mut Vec<u8>, emit: &mut dyn FnMut(&[u8])) {
    let mut longest: [&[u8]; TOKENS_MAX] = [b""; TOKENS_MAX];
    let mut rest = text;
    while let Some((token, behind)) = next_token(rest) {
        rest = behind;
        // The first of them is the shortest.
        let is_known = || is_read && behind.iter().all(|b| *b == b'=');
        if token.len() > longest[0].len() && token.len() < text.len() && !is_known() {
            longest[0] = token;
            longest.sort_by_key(|token| token.len());
        }
    }
    for token in longest.into_iter().filter(|token| !token.is_empty()) {
        if token.iter().all(|b| value(*b) < 64 || *b == b'.') {
            base64_parts(token, out, emit);
        }
        if is_odd(token) {
            whole(token, out, emit);
        }
    }
}

/// By byte: whether it may stand in a token, as a letter of Base64 or as one of the few signs that nothing
/// ends with.
const IN_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = BASE64[b] < 64 || matches!(b as u8, b'.' | b'!' | b'#' | b'$' | b'%' | b'*' | b'@' | b'~');
        b += 1;
    }
    table
};

/// The first token that is long enough and has letters of both cases, as hardly a word has, and what stands
/// behind it. Of words hardly more than every third byte is read.
fn next_token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_in = |b: &u8| IN_TOKEN[usize::from(*b)];
    let mut start = 0;
    while let Some(window) = text.get(start..start + LETTERS_MIN) {
        if let Some(other) = window.iter().rposition(|b| !is_in(b)) {
            start += other + 1;
            continue;
        }
        let more = text[start + LETTERS_MIN..].iter().take_while(|b| is_in(b)).count();
        let (token, behind) = text[start..].split_at(LETTERS_MIN + more);
        if token.iter().any(u8::is_ascii_uppercase) && token.iter().any(u8::is_ascii_lowercase) {
            return Some((token, behind));
        }
        start += token.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// The short looks say no only where all of the text says so.
        #[test]
        fn short_looks_change_nothing(
            pieces in proptest::collection::vec("[A-Za-z0-9+/=]{1,40}|[a-z]{1,9} |[ \\t\\r\\n.,!-]{1,3}", 0..60),
        ) {
            let text = pieces.concat();
            let text = text.as_bytes();
            let plainly = Mix::of(text).is_some_and(|mix| {
                let Mix { letters, spaces, others, has_blank, has_padding } = mix;
                let padding = text.iter().rev().take_while(|b| **b == b'=').count();
                let is_split = has_blank || has_padding && padding == 0;
                let within = &text[..text.len() - padding];
                let marks = text.iter().filter(|b| value(**b) >= 64 && !b" \t\r\n=".contains(b)).count();
                text.len() >= LETTERS_MIN
                    && marks * 10 <= text.len()
                    && text.iter().any(u8::is_ascii_uppercase)
                    && text.iter().any(u8::is_ascii_lowercase)
                    && letters >= LETTERS_MIN
                    && (spaces + others) * 9 <= letters
                    && (is_split || spaces + others > 0 || padding > 0 && within.contains(&b'='))
            });
            proptest::prop_assert_eq!(is_odd(text), plainly);
        }
    }

    #[test]
    fn a_tally_knows_the_letters_of_base64() {
        for b in 0..=u8::MAX {
            let is_other = value(b) >= 64 && !matches!(b, b' ' | b'\t' | b'\r' | b'\n' | b'=');
            let Tally { others, has_upper, has_lower } = Tally::of(&[b; TALLY_BYTES]);
            assert_eq!(others, if is_other { TALLY_BYTES } else { 0 }, "{b:#x}");
            assert_eq!((has_upper, has_lower), (b.is_ascii_uppercase(), b.is_ascii_lowercase()), "{b:#x}");
        }
    }
}
