//! `@validateByteRange`: which bytes may a value hold?

use portcullis_types::ByteSet;
use std::fmt;

/// An error in a byte range argument, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteRangeError {
    /// Byte offset into the argument.
    pub offset: usize,
    /// One sentence fragment for the operator, without the offset.
    pub message: String,
}

impl fmt::Display for ByteRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {} of the argument)", self.message, self.offset)
    }
}

impl std::error::Error for ByteRangeError {}

/// Reads the bytes that `@validateByteRange` allows: decimal codes and ranges between commas, such as
/// `9,10,32-126`. Blanks around a number and empty items are allowed.
///
/// The operator matches a value with any byte outside the set: see [`first_byte_outside`].
///
/// ```
/// use portcullis_match::{first_byte_outside, parse_byte_range};
///
/// let allowed = parse_byte_range("9,10,13,32-126").unwrap();
/// assert_eq!(first_byte_outside(&allowed, b"plain text"), None);
/// assert_eq!(first_byte_outside(&allowed, b"nul\x00"), Some(3));
/// ```
pub fn parse_byte_range(argument: &str) -> Result<ByteSet, ByteRangeError> {
    let mut set = ByteSet::EMPTY;
    let mut offset = 0;
    for item in argument.split(',') {
        if !item.trim().is_empty() {
            let (low, high) = match item.split_once('-') {
                None => (code(item, offset)?, code(item, offset)?),
                Some((low, high)) => (code(low, offset)?, code(high, offset + low.len() + 1)?),
            };
            if low > high {
                let message = format!("the range `{}` is out of order", item.trim());
                return Err(ByteRangeError { offset, message });
            }
            set = set.union(ByteSet::range(low, high));
        }
        offset += item.len() + 1;
    }
    Ok(set)
}

fn code(text: &str, offset: usize) -> Result<u8, ByteRangeError> {
    text.trim().parse().map_err(|_| ByteRangeError {
        offset,
        message: format!("`{}` is not a byte code from 0 to 255", text.trim()),
    })
}

/// Returns the offset of the first byte that is not in `allowed`.
pub fn first_byte_outside(allowed: &ByteSet, value: &[u8]) -> Option<usize> {
    value.iter().position(|&byte| !allowed.contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let check = |argument: &str, expected: ByteSet| assert_eq!(parse_byte_range(argument), Ok(expected));
        check("0", ByteSet::of(&[0]));
        check("1-255", ByteSet::of(&[0]).complement());
        check("0-255", ByteSet::FULL);
        check(" 38, 44 - 46 ,,", ByteSet::of(b"&,-."));
        check("65-67,66,90", ByteSet::of(b"ABCZ"));
        check("", ByteSet::EMPTY);
    }

    #[test]
    fn errors_point_at_the_culprit() {
        let check = |argument: &str, offset: usize| {
            assert_eq!(parse_byte_range(argument).unwrap_err().offset, offset, "{argument}");
        };
        check("256", 0);
        check("1,-5", 2);
        check("1,10-300", 5);
        check("1,9-8", 2);
        check("a", 0);
        check("1-2-3", 2);
    }

    #[test]
    fn the_first_byte_outside() {
        let allowed = parse_byte_range("97-122").unwrap();
        assert_eq!(first_byte_outside(&allowed, b""), None);
        assert_eq!(first_byte_outside(&allowed, b"abcX"), Some(3));
        assert_eq!(first_byte_outside(&allowed, b"\xffabc"), Some(0));
    }
}
