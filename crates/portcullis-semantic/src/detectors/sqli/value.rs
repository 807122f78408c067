//! What stands for a value, with no condition and no statement: rows of an INSERT, `x','a@b.example',1),('y`, and calls that wait.

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

/// `sleep(5)`, `pg_sleep(5)`, `benchmark(4000000,md5(1))`: a number to a statement, and what a server waits for.
pub(super) fn wait(text: &[u8]) -> Option<Span> {
    is_wait(text.trim_ascii()).then(|| Span::new(0, text.len()))
}

fn is_wait(text: &[u8]) -> bool {
    let Some(open) = memchr::memchr(b'(', text).filter(|_| text.len() <= CALL_BYTES_MAX) else {
        return false;
    };
    let arguments = &text[open + 1..];
    let is_one = |name: &[u8]| text[..open].eq_ignore_ascii_case(name);
    let is_number = arguments.strip_suffix(b")").is_some_and(|inner| {
        !inner.is_empty() && inner.iter().all(|b| b.is_ascii_digit() || b" .".contains(b))
    });
    is_number && (is_one(b"sleep") || is_one(b"pg_sleep"))
        || is_one(b"benchmark")
            && arguments.first().is_some_and(u8::is_ascii_digit)
            && arguments.ends_with(b"))")
}

/// A call that is longer does more than wait.
const CALL_BYTES_MAX: usize = 48;
