//! Rows of an INSERT, where a value stands between others: `x','a@b.example',1),('y`.

use memchr::memmem;
use portcullis_types::Span;

/// How far the rows are looked for.
const BYTES_MAX: usize = 512;

/// A quote ends the value's literal, more values follow, a parenthesis that the text did not open ends the row, and another row
/// begins. A list that is whole opens its own.
pub(super) fn row_break(text: &[u8]) -> Option<Span> {
    let text = &text[..text.len().min(BYTES_MAX)];
    let close = memchr::memchr(b')', text)?;
    let rest = text[close + 1..].trim_ascii_start();
    let next = rest.strip_prefix(b",")?.trim_ascii_start();
    let head = &text[..close];
    let quote = memchr::memchr2(b'\'', b'"', head)?;
    let goes_on = head[quote + 1..].trim_ascii_start().starts_with(b",");
    let is_value = matches!(next, [b'(', b'\'' | b'"' | b'0'..=b'9' | b'n' | b'N' | b'@' | b'(', ..]);
    let opens = memchr::memchr(b'(', head).is_some();
    (goes_on && is_value && !opens && memmem::find(head, b"\n").is_none())
        .then(|| Span::new(quote, text.len() - next.len() + 1))
}
