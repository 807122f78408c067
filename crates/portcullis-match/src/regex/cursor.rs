//! A position in a pattern, and the error that points at one.

use std::fmt;

/// The error of a pattern that cannot be used, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexError {
    /// Byte offset into the pattern.
    pub offset: usize,
    /// One sentence fragment for the operator, without the offset.
    pub message: String,
    /// PCRE takes the pattern, and only this crate does not: it is too large here, or needs what is left out.
    pub is_valid_pcre: bool,
}

impl fmt::Display for RegexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {} of the pattern)", self.message, self.offset)
    }
}

impl std::error::Error for RegexError {}

/// An error at `offset`.
pub(super) fn error<T>(offset: usize, message: impl Into<String>) -> Result<T, RegexError> {
    Err(RegexError { offset, message: message.into(), is_valid_pcre: false })
}

/// The same for a pattern that PCRE takes.
pub(super) fn unsupported<T>(offset: usize, message: impl Into<String>) -> Result<T, RegexError> {
    Err(RegexError { offset, message: message.into(), is_valid_pcre: true })
}

/// Reads a pattern byte by byte.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'p> {
    pattern: &'p [u8],
    at: usize,
}

impl<'p> Cursor<'p> {
    pub(super) fn new(pattern: &'p [u8]) -> Self {
        Cursor { pattern, at: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'p [u8] {
        self.pattern.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.pattern.get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.pattern.len());
    }

    /// Consumes `text` if it comes next.
    pub(super) fn eat(&mut self, text: &[u8]) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Consumes the longest run of bytes that `accept` takes, at most `max` of them.
    pub(super) fn take_while(&mut self, max: usize, accept: impl Fn(u8) -> bool) -> &'p [u8] {
        let rest = self.rest();
        let len = rest.iter().take(max).take_while(|&&b| accept(b)).count();
        self.at += len;
        &rest[..len]
    }
}

/// The number that `digits` spell in `radix`, or none if there is no digit or it exceeds 32 bits.
pub(super) fn number(digits: &[u8], radix: u32) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}
