//! PHP's `serialize`.

use portcullis_types::Span;

use super::{PHP_OBJECT, PHP_PLAIN};
use crate::Found;

pub(super) fn detect(text: &[u8], found: &mut Found<'_>) {
    for colon in memchr::memchr_iter(b':', text) {
        let Some(at) = colon.checked_sub(1).filter(|at| matches!(text[*at], b'O' | b'C' | b'o')) else {
            continue;
        };
        // It stands where a value may: at the beginning, after another value, or after a quote or `=`.
        let before = text[..at].last();
        if before.is_some_and(|b| {
            !matches!(b, b'{' | b';' | b'"' | b'\'' | b'=' | b'|' | b':' | b'}' | b' ' | b'\n' | b'\0')
        }) {
            continue;
        }
        let Some(len) = object(&text[at..]) else { continue };
        found.add(PHP_OBJECT, Span::new(at, at + len));
    }
    let array = text.strip_prefix(b"a:").and_then(|rest| count(rest));
    if let Some((_, rest)) = array
        && rest.starts_with(b":{")
    {
        found.add(PHP_PLAIN, Span::new(0, text.len().min(16)));
    }
}

/// A number, perhaps with a sign, and what follows it.
fn count(text: &[u8]) -> Option<(usize, &[u8])> {
    let signed = text.strip_prefix(b"+").unwrap_or(text);
    let digits = signed.iter().take(8).take_while(|b| b.is_ascii_digit()).count();
    let number = signed[..digits].iter().fold(0usize, |all, b| all * 10 + usize::from(b - b'0'));
    (digits > 0).then_some((number, &signed[digits..]))
}

/// `O:8:"stdClass":0:{`, `C:11:"ArrayObject":37:{`. The bytes it takes.
fn object(text: &[u8]) -> Option<usize> {
    let (len, rest) = count(&text[2..])?;
    let rest = rest.strip_prefix(b":\"").or_else(|| rest.strip_prefix(b":\\\""))?;
    let end = memchr::memchr(b'"', &rest[..rest.len().min(len.clamp(1, 200) + 8)])?;
    let name = rest[..end].strip_suffix(b"\\").unwrap_or(&rest[..end]);
    let is_name = !name.is_empty()
        && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'\\') || *b >= 0x80);
    let (_, after) = count(rest[end + 1..].strip_prefix(b":")?)?;
    (is_name && after.starts_with(b":{")).then(|| text.len() - after.len() + 2)
}
