//! Harmless surroundings of a query: text, documentation and programs that quote one.

/// Prose about a query: a word with a colon or two words stand before `db.`.
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

/// A program of several lines closes what it opened: `head`, and with the white space after its semicolon
/// `lines`.
pub(super) fn closes_its_own(head: &[u8], lines: &[u8]) -> bool {
    memchr::memchr(b'\n', head).is_some() && (is_balanced(head) || is_of_program(lines))
}

/// Lines of a program, the last of which is to begin with `return`: what they close that they did not open
/// stands in lines by itself, as in a copy from the middle, and every quote has its second one.
fn is_of_program(text: &[u8]) -> bool {
    let is_closer = |line: &[u8]| line.iter().all(|b| b" \t\r});,".contains(b));
    let last = text.iter().rposition(|b| *b == b'\n').unwrap_or(0);
    let is_line = text[last..].iter().all(u8::is_ascii_whitespace);
    let is_paired = |quote: u8| memchr::memchr_iter(quote, text).count().is_multiple_of(2);
    let (mut depth, mut statements) = (0u32, 0);
    for line in text.split(|b| *b == b'\n').filter(|line| !is_closer(line)) {
        statements += 1;
        for b in line {
            match b {
                b'(' | b'{' => depth += 1,
                b')' | b'}' if depth == 0 => return false,
                b')' | b'}' => depth -= 1,
                _ => {}
            }
        }
    }
    is_line && statements >= 2 && is_paired(b'\'') && is_paired(b'"')
}

/// What is closed in `text` was opened in it, quotes among it: it ends nothing that stands before the value.
fn is_balanced(text: &[u8]) -> bool {
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
