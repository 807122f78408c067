//! Byte classes of the HTTP/1 grammar, one table.

/// May stand in a token (RFC 9110, section 5.6.2).
pub const TOKEN: u8 = 1;
/// 0x00 to 0x1f and 0x7f; in the targets' table a space too.
pub const CONTROL: u8 = 2;
/// The space.
pub const SPACE: u8 = 4;
/// `#`
pub const NUMBER_SIGN: u8 = 8;
/// Printable, but only percent-encoded in a URI: `"` `<` `>` `^` `` ` `` `{` `|` `}`.
pub const UNSAFE: u8 = 16;
/// `\`
pub const BACKSLASH: u8 = 32;
/// 0x80 to 0xff
pub const HIGH: u8 = 64;
/// `a` to `z`
pub const LOWER: u8 = 128;

static CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut b = 0usize;
    while b < 256 {
        let byte = b as u8;
        let mut class = 0;
        if byte.is_ascii_alphanumeric() {
            class |= TOKEN;
        }
        if byte.is_ascii_lowercase() {
            class |= LOWER;
        }
        match byte {
            0..=0x1f | 0x7f => class |= CONTROL,
            b'!' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'_' | b'~' => class |= TOKEN,
            b'#' => class |= TOKEN | NUMBER_SIGN,
            b'^' | b'`' | b'|' => class |= TOKEN | UNSAFE,
            b'"' | b'<' | b'>' | b'{' | b'}' => class |= UNSAFE,
            b'\\' => class |= BACKSLASH,
            b' ' => class |= SPACE,
            0x80.. => class |= HIGH,
            _ => {}
        }
        table[b] = class;
        b += 1;
    }
    table
};

/// The classes of one byte.
pub fn class(byte: u8) -> u8 {
    CLASS[usize::from(byte)]
}

/// The classes that occur in `text`.
pub fn classes(text: &[u8]) -> u8 {
    text.iter().fold(0, |seen, &b| seen | class(b))
}

/// True if `text` is a token.
pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&b| class(b) & TOKEN != 0)
}

/// True if `text` holds a control byte other than HT. Eight bytes at a time, the last eight perhaps twice;
/// only where a word holds a control byte at all is it looked at byte by byte.
pub fn has_control(text: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const TOPS: u64 = ONES << 7;
    // The top bit of a byte is set in the result if a byte of `word` is below 0x20 or 0x7f. Borrows can set
    // bits for bytes behind such a byte, never for a word without one.
    let suspicious = |word: u64| {
        let delete = word ^ (ONES * 0x7f);
        ((word.wrapping_sub(ONES * 0x20) & !word) | (delete.wrapping_sub(ONES) & !delete)) & TOPS != 0
    };
    let exact = |bytes: &[u8]| bytes.iter().any(|&b| class(b) & CONTROL != 0 && b != b'\t');
    let in_word = |word: &[u8; 8]| suspicious(u64::from_ne_bytes(*word)) && exact(word);
    match text.last_chunk() {
        Some(last) => text.as_chunks().0.iter().any(in_word) || in_word(last),
        None => exact(text),
    }
}

/// True if `text` holds a byte above 0x7f.
pub fn has_high(text: &[u8]) -> bool {
    text.iter().fold(0u8, |seen, &b| seen | b) >= 0x80
}

/// True for SP and HT.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// `text` without blanks (SP, HT) at its ends; the offsets of what is left.
pub fn trim_blanks(text: &[u8], start: usize, end: usize) -> (usize, usize) {
    let (mut start, mut end) = (start, end);
    while start < end && is_blank(text[start]) {
        start += 1;
    }
    while start < end && is_blank(text[end - 1]) {
        end -= 1;
    }
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_bytes_are_those_of_rfc_9110() {
        for b in 0..=255u8 {
            let expected = b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            assert_eq!(class(b) & TOKEN != 0, expected, "{b:#x}");
            for at in 0..20 {
                let mut text = *b"ab\tde \xff~ijklmno\tqrst";
                text[at] = b;
                assert_eq!(has_control(&text), (b < 32 && b != 9) || b == 127, "{b:#x} at {at}");
            }
        }
    }
}
