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

/// True if `text` holds a control byte other than HT. Without early exit, so that it compiles to vector code.
pub fn has_control(text: &[u8]) -> bool {
    text.iter().fold(false, |bad, &b| bad | ((b < 0x20) & (b != b'\t')) | (b == 0x7f))
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
            assert_eq!(has_control(&[b]), (b < 32 && b != 9) || b == 127, "{b:#x}");
        }
    }
}
