//! Bytes of a request as text.

use std::fmt::Write as _;

/// UTF-8 as it is, any other byte as `\xHH`.
pub(crate) fn text(bytes: &[u8]) -> String {
    portcullis_event::text(bytes, usize::MAX)
}

/// As ModSecurity escapes what it puts between quotes.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out
}

/// The reason phrase of a status. Never empty: readers of the log split the line at its spaces.
pub(crate) fn reason(status: u16) -> &'static str {
    match portcullis_types::reason_phrase(status) {
        "" => "Status",
        phrase => phrase,
    }
}
