//! The statement between what ends a string or a call of a program and what takes the rest of it away.

/// Quotes and brackets of a text that are looked at.
const BEGINNINGS_MAX: usize = 64;
/// Bytes of a statement.
const STATEMENT_BYTES_MAX: usize = 400;

/// `');unlink('x');//`, `'.getenv('X').'`, `"+process.env.X+"`: what stands between, at the beginning of
/// `text` or behind each quote in it that ends no string of the text itself: what stands before is in the
/// string of the program that the quote ends.
pub(super) fn statements(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let start = text.len() - text.trim_ascii_start().len();
    let bracket =
        matches!(text.get(start), Some(b')' | b']' | b'}')).then(|| statement(&text[start..], None));
    let mut count = [0u32; 3];
    let quotes = memchr::memchr3_iter(b'\'', b'"', b'`', text).take(BEGINNINGS_MAX).filter(move |at| {
        let is_letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        // `it's`
        if is_letter(at.checked_sub(1).and_then(|before| text.get(before))) && is_letter(text.get(at + 1)) {
            return false;
        }
        let of_kind = &mut count[usize::from(text[*at] == b'"') + 2 * usize::from(text[*at] == b'`')];
        *of_kind += 1;
        *of_kind % 2 == 1
    });
    bracket.into_iter().chain(quotes.map(|at| statement(&text[at + 1..], Some(text[at])))).flatten()
}

/// What `rest` goes on with behind brackets and what joins or ends.
fn statement(rest: &[u8], quote: Option<u8>) -> Option<&[u8]> {
    let closes = |b: &&u8| matches!(b, b')' | b']' | b'}') || b.is_ascii_whitespace();
    let rest = &rest[rest.iter().take_while(closes).count()..];
    let joined = rest.iter().take_while(|b| is_joint(b)).count();
    let inner = &rest[joined..];
    // A sentence goes on behind its comma, too, and a list with its next word.
    let is_tight = rest[..joined].iter().any(|b| !b.is_ascii_whitespace());
    if !is_tight || inner.is_empty() {
        return None;
    }
    let inner = without_end(inner, quote);
    (inner.len() <= STATEMENT_BYTES_MAX).then_some(inner)
}

fn is_joint(b: &u8) -> bool {
    matches!(b, b';' | b'.' | b'+' | b',' | b'|' | b'&' | b'~') || b.is_ascii_whitespace()
}

/// Without the comment or the reopened string at its end.
fn without_end(inner: &[u8], quote: Option<u8>) -> &[u8] {
    const MARKS: &[&[u8]] = &[b"//", b"#", b"/*", b"--"];
    let head = &inner[..inner.len().min(STATEMENT_BYTES_MAX)];
    let ends = MARKS.iter().flat_map(|mark| memchr::memmem::find_iter(head, mark));
    let is_end = |at: &usize| {
        let before = head[..*at].trim_ascii_end().last();
        before.is_some_and(|b| matches!(b, b';' | b')' | b'`' | b'}'))
    };
    if let Some(at) = ends.filter(is_end).min() {
        return &inner[..at];
    }
    let inner = inner.trim_ascii_end();
    let before = quote.and_then(|quote| inner.strip_suffix(&[quote])).unwrap_or_default();
    let opens = |b: &u8| is_joint(b) || *b == b'(';
    match before.trim_ascii_end().last() {
        Some(last) if opens(last) => {
            &before[..before.iter().rposition(|b| !opens(b)).map_or(0, |last| last + 1)]
        }
        _ => inner,
    }
}
