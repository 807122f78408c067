//! Injections in place of a value, without a condition or a statement: rows of an INSERT,
//! `x','a@b.example',1),('y`, columns of an UPDATE, `x',admin='1`, and calls alone.

use memchr::memmem;
use portcullis_lex::sql::{Comment, Lexer, Operator, TokenKind};
use portcullis_types::Span;

/// Bytes in which the rows are looked for.
const BYTES_MAX: usize = 512;

/// A quote ends the value's literal, more values follow, a parenthesis that the text did not open ends the
/// row, and another row begins. A list that is whole opens its own.
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

/// Tokens in which columns are looked for.
const COLUMN_TOKENS_MAX: usize = 64;

/// `,admin='1`, `,role='x',y='`, `,admin=1-- `: what follows the quote at `at`, which the text did not open,
/// sets further columns, and ends in an open string or a comment.
pub(super) fn columns(text: &[u8], at: usize) -> Option<Span> {
    if !text.get(at + 1..)?.trim_ascii_start().starts_with(b",") {
        return None;
    }
    let quote = text.get(at)?;
    let end = text.trim_ascii_end().len();
    let mut tokens = Lexer::new(text, at + 1)
        .take(COLUMN_TOKENS_MAX)
        .filter(|token| !matches!(token.kind, TokenKind::Comment(Comment::Block(true))))
        .peekable();
    while tokens.next_if(|token| token.kind == TokenKind::Comma).is_some() {
        tokens.next_if(|token| matches!(token.kind, TokenKind::Word(_) | TokenKind::QuotedName(_)))?;
        tokens
            .next_if(|token| token.kind == TokenKind::Operator(Operator::Equal) && token.span.len() == 1)?;
        let value = tokens.next()?;
        match value.kind {
            TokenKind::String { quote: ends, closed: false } if ends == *quote => {
                let is_line = memchr::memchr(b'\n', value.span.of(text)).is_none();
                return is_line.then(|| Span::new(at, text.len()));
            }
            TokenKind::String { closed: true, .. }
            | TokenKind::Number
            | TokenKind::Variable
            | TokenKind::QuotedName(_)
            | TokenKind::Word(_) => {}
            TokenKind::String { .. }
            | TokenKind::Operator(_)
            | TokenKind::Open
            | TokenKind::Close
            | TokenKind::Comma
            | TokenKind::Semicolon
            | TokenKind::Dot
            | TokenKind::OpenBrace
            | TokenKind::CloseBrace
            | TokenKind::Comment(_)
            | TokenKind::Other => return None,
        }
    }
    let last = tokens.next()?;
    let is_cut =
        matches!(last.kind, TokenKind::Comment(Comment::Dashes | Comment::Hash | Comment::Block(false)));
    let says = last.span.of(text).iter().filter(|b| b.is_ascii_alphanumeric()).count() > 2;
    (is_cut && !says && last.span.end as usize >= end).then(|| Span::new(at, text.len()))
}

/// `sleep(5)`, `benchmark(4000000,md5(1))`, `version()`, `@@version`: a value to a statement, and what a
/// server waits for or tells.
pub(super) fn call(text: &[u8]) -> Option<Span> {
    let short = text.trim_ascii();
    let is_one = short.len() <= CALL_BYTES_MAX
        && match short.last() {
            Some(b')') => is_call(short),
            Some(_) => short.strip_prefix(b"@@").is_some_and(|name| is_word(name, VARIABLES)),
            None => false,
        };
    is_one.then(|| Span::new(0, text.len()))
}

/// A call that is longer does more.
const CALL_BYTES_MAX: usize = 48;

const TELLING: &[&[u8]] =
    &[b"version", b"user", b"database", b"current_user", b"system_user", b"session_user"];

const VARIABLES: &[&[u8]] =
    &[b"version", b"hostname", b"datadir", b"basedir", b"servername", b"version_comment"];

fn is_call(text: &[u8]) -> bool {
    let Some(open) = memchr::memchr(b'(', text) else { return false };
    let (name, arguments) = (&text[..open], &text[open + 1..text.len() - 1]);
    let is_number =
        !arguments.is_empty() && arguments.iter().all(|b| b.is_ascii_digit() || b" .".contains(b));
    is_number && is_word(name, &[b"sleep", b"pg_sleep"])
        || arguments.is_empty() && is_word(name, TELLING)
        || is_word(name, &[b"benchmark"])
            && arguments.first().is_some_and(u8::is_ascii_digit)
            && arguments.ends_with(b")")
}

fn is_word(text: &[u8], list: &[&[u8]]) -> bool {
    list.iter().any(|word| text.eq_ignore_ascii_case(word))
}
