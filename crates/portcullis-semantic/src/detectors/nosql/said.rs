//! What surrounds a query, or ends before it, that is no injection.

/// Somebody writes about a query: a word with a colon or two words stand before `db.`.
pub(super) fn is_said(text: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(text, b"db.") else { return false };
    let before = text[..at].trim_ascii_end();
    let mut words = before.split(|b| *b == b' ').filter(|word| !word.is_empty());
    let is_word = |word: &[u8]| word.len() >= 2 && word.iter().all(u8::is_ascii_alphabetic);
    match before.strip_suffix(b":") {
        Some(head) => head.rsplit(|b| *b == b' ').next().is_some_and(is_word),
        None => words.clone().count() >= 2 && words.all(is_word),
    }
}

/// What is closed in `text` was opened in it, quotes among it: it ends nothing that stands before the value.
pub(super) fn is_balanced(text: &[u8]) -> bool {
    let depth = text.iter().try_fold(0u32, |depth, b| match b {
        b'(' | b'{' => Some(depth + 1),
        b')' | b'}' => depth.checked_sub(1),
        _ => Some(depth),
    });
    let is_paired = |quote: u8| memchr::memchr_iter(quote, text).count().is_multiple_of(2);
    depth.is_some() && is_paired(b'\'') && is_paired(b'"')
}

/// `log('done')`: a call that is whole, which ends nothing that stands before the value.
pub(super) fn is_statement(text: &[u8]) -> bool {
    text.first().is_some_and(|b| b.is_ascii_alphabetic())
        && !text.starts_with(b"db.")
        && text.ends_with(b")")
        && is_balanced(text)
}
