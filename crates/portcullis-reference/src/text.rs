//! C's ways with texts, where rules depend on them.

use bstr::BString;

/// C's `atoi`: blanks, a sign, digits; the rest is ignored. C leaves open what too large a number gives; ours
/// saturates at 64 bits, where glibc would keep the lower half.
pub(crate) fn atoi(text: &[u8]) -> i64 {
    let start = text.iter().position(|b| !matches!(b, b' ' | 9..=13)).unwrap_or(text.len());
    let text = &text[start..];
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let mut value: i64 = 0;
    for digit in digits.iter().take_while(|b| b.is_ascii_digit()) {
        let digit = i64::from(digit - b'0');
        let digit = if negative { -digit } else { digit };
        value = value.saturating_mul(10).saturating_add(digit);
    }
    value
}

/// A key as it stands in a variable's name: control bytes, backslashes and bytes above 126 as escapes.
pub(crate) fn escape_key(key: &[u8]) -> BString {
    let mut out = Vec::with_capacity(key.len());
    for &byte in key {
        match byte {
            8 => out.extend_from_slice(b"\\b"),
            9 => out.extend_from_slice(b"\\t"),
            10 => out.extend_from_slice(b"\\n"),
            11 => out.extend_from_slice(b"\\v"),
            13 => out.extend_from_slice(b"\\r"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0..=0x1f | 0x7f.. => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.into()
}

/// The first place of `needle` in `hay`.
pub(crate) fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return Some(0);
    }
    hay.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoi_is_cs() {
        for (text, number) in [
            ("", 0),
            ("12x", 12),
            (" \t+7", 7),
            ("-5", -5),
            ("+-5", 0),
            ("x1", 0),
            ("4294967297", 4_294_967_297),
            ("99999999999999999999", i64::MAX),
            ("-99999999999999999999", i64::MIN),
        ] {
            assert_eq!(atoi(text.as_bytes()), number, "{text}");
        }
    }
}
