//! `@validateUrlEncoding`, `@validateUtf8Encoding`: is the value encoded as it should be?

use portcullis_types::Span;
use std::fmt;

/// The first fault that [`url_encoding_error`] finds; the span covers what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlEncodingError {
    /// A `%` with fewer than two bytes behind it.
    NotEnoughBytes(Span),
    /// A `%` with two bytes behind it that are not both hexadecimal digits.
    InvalidHex(Span),
}

/// Checks every `%` for two hexadecimal digits behind it, as ModSecurity 2's `@validateUrlEncoding` does; the
/// operator matches if there is an error. `%u0041` is an error. Linear in the length of `value`.
///
/// ```
/// use portcullis_match::{UrlEncodingError, url_encoding_error};
///
/// assert_eq!(url_encoding_error(b"a%20b"), None);
/// assert!(matches!(url_encoding_error(b"a%2xb"), Some(UrlEncodingError::InvalidHex(_))));
/// assert!(matches!(url_encoding_error(b"100%"), Some(UrlEncodingError::NotEnoughBytes(_))));
/// ```
pub fn url_encoding_error(value: &[u8]) -> Option<UrlEncodingError> {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'%', value.get(at..)?) {
        let start = at + found;
        match value.get(start + 1..start + 3) {
            None => return Some(UrlEncodingError::NotEnoughBytes(Span::new(start, value.len()))),
            Some(pair) if pair.iter().all(u8::is_ascii_hexdigit) => at = start + 3,
            Some(_) => return Some(UrlEncodingError::InvalidHex(Span::new(start, start + 3))),
        }
    }
    None
}

impl fmt::Display for UrlEncodingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlEncodingError::NotEnoughBytes(_) => "not enough characters at the end of the value",
            UrlEncodingError::InvalidHex(_) => "digits that are not hexadecimal",
        })
    }
}

impl std::error::Error for UrlEncodingError {}

/// The reason why bytes are not UTF-8. The names are those of ModSecurity's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Utf8Fault {
    /// The value ends inside a character.
    NotEnoughBytes,
    /// A byte that cannot stand where it does.
    InvalidByte,
    /// More bytes than the character needs, such as `C0 AF` for the slash.
    Overlong,
    /// A surrogate (U+D800 to U+DFFF), or a first byte of F5 to F7, for characters above U+10FFFF.
    Restricted,
}

/// The first fault that [`utf8_error`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utf8Error {
    /// The fault.
    pub fault: Utf8Fault,
    /// Offset of the character's first byte.
    pub offset: usize,
}

/// Checks that `value` is UTF-8, with the classification of ModSecurity 2's `@validateUtf8Encoding`; the
/// operator matches if there is an error. One difference: U+110000 to U+13FFFF (`F4 90` and up) pass there
/// and are [`Utf8Fault::Restricted`] here. Linear in the length of `value`.
pub fn utf8_error(value: &[u8]) -> Option<Utf8Error> {
    let offset = std::str::from_utf8(value).err()?.valid_up_to();
    let fault = fault_of(value.get(offset..)?);
    Some(Utf8Error { fault, offset })
}

/// True if `value` is UTF-8.
pub fn utf8_valid(value: &[u8]) -> bool {
    utf8_error(value).is_none()
}

/// Classifies bytes that begin with an invalid character.
fn fault_of(bytes: &[u8]) -> Utf8Fault {
    let first = bytes.first().copied().unwrap_or_default();
    let (len, least) = match first {
        0xc0..=0xdf => (2, 0x80),
        0xe0..=0xef => (3, 0x800),
        0xf0..=0xf4 => (4, 0x1_0000),
        0xf5..=0xf7 => return Utf8Fault::Restricted,
        _ => return Utf8Fault::InvalidByte,
    };
    let Some(rest) = bytes.get(1..len) else {
        return Utf8Fault::NotEnoughBytes;
    };
    if rest.iter().any(|b| b & 0xc0 != 0x80) {
        return Utf8Fault::InvalidByte;
    }
    let lead = u32::from(first) & (0x7f >> len);
    let code = rest.iter().fold(lead, |code, b| code << 6 | u32::from(b & 0x3f));
    if code < least { Utf8Fault::Overlong } else { Utf8Fault::Restricted }
}

impl fmt::Display for Utf8Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.fault {
            Utf8Fault::NotEnoughBytes => "not enough bytes in a character",
            Utf8Fault::InvalidByte => "invalid byte in a character",
            Utf8Fault::Overlong => "overlong character",
            Utf8Fault::Restricted => "restricted character",
        })?;
        write!(f, " at byte {}", self.offset)
    }
}

impl std::error::Error for Utf8Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_encoding() {
        let check = |value: &[u8], expected| assert_eq!(url_encoding_error(value), expected);
        check(b"", None);
        check(b"plain", None);
        check(b"%00%fF%Aa", None);
        check(b"%", Some(UrlEncodingError::NotEnoughBytes(Span::new(0, 1))));
        check(b"ab%4", Some(UrlEncodingError::NotEnoughBytes(Span::new(2, 4))));
        check(b"%41%4g%", Some(UrlEncodingError::InvalidHex(Span::new(3, 6))));
        check(b"%u0041", Some(UrlEncodingError::InvalidHex(Span::new(0, 3))));
        check(b"%%41", Some(UrlEncodingError::InvalidHex(Span::new(0, 3))));
    }

    #[test]
    fn utf8() {
        let check = |value: &[u8], expected: Option<(Utf8Fault, usize)>| {
            assert_eq!(utf8_error(value).map(|e| (e.fault, e.offset)), expected, "{}", value.escape_ascii());
        };
        check(b"", None);
        check("aä€😀".as_bytes(), None);
        check(b"a\x80", Some((Utf8Fault::InvalidByte, 1)));
        check(b"\xff", Some((Utf8Fault::InvalidByte, 0)));
        check(b"\xc3", Some((Utf8Fault::NotEnoughBytes, 0)));
        check(b"x\xe2\x82", Some((Utf8Fault::NotEnoughBytes, 1)));
        check(b"\xe2\x28\xa1", Some((Utf8Fault::InvalidByte, 0)));
        check(b"\xc0\xaf", Some((Utf8Fault::Overlong, 0)));
        check(b"\xc1\xbf", Some((Utf8Fault::Overlong, 0)));
        check(b"\xe0\x80\xaf", Some((Utf8Fault::Overlong, 0)));
        check(b"\xf0\x80\x80\xaf", Some((Utf8Fault::Overlong, 0)));
        check(b"\xed\xa0\x80", Some((Utf8Fault::Restricted, 0)));
        check(b"\xf5\x80", Some((Utf8Fault::Restricted, 0)));
        check(b"\xf4\x90\x80\x80", Some((Utf8Fault::Restricted, 0)));
        check(b"\xf4\x8f\xbf\xbf", None);
    }
}
