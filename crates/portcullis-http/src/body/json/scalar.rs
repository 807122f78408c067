//! Numbers and words.

/// Bytes that numbers and words are made of, so that `1x` is one malformed token.
#[inline]
pub(super) fn is_scalar_byte(byte: u8) -> bool {
    SCALAR_BYTES[usize::from(byte)]
}

static SCALAR_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        bytes[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'-' | b'+' | b'.');
        byte += 1;
    }
    bytes
};

/// `-? (0 | [1-9][0-9]*) (\. [0-9]+)? ([eE] [+-]? [0-9]+)?`
#[inline]
pub(super) fn is_number(text: &[u8]) -> bool {
    let digits = |text: &mut &[u8]| {
        let count = text.iter().take_while(|b| b.is_ascii_digit()).count();
        *text = &text[count..];
        count
    };
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let leading_zero = rest.first() == Some(&b'0');
    let whole = digits(&mut rest);
    if whole == 0 || leading_zero && whole > 1 {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        rest = fraction;
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        rest = exponent;
        if let [b'+' | b'-', unsigned @ ..] = rest {
            rest = unsigned;
        }
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    rest.is_empty()
}
