//! The first argument of a call.

use portcullis_lex::expr::{Lexer, Token, TokenKind};

/// What stands after the parenthesis of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument<'t> {
    None,
    Text(&'t [u8]),
    Variable,
    Call,
    Number,
    /// A name, and nothing behind it: `(id)`.
    Word(&'t [u8]),
    Name,
    Other,
}

/// A text that is written as one or joined from several: `'system'`, `'sys'.'tem'`, `"sys" + "tem"`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Constant {
    bytes: [u8; CONSTANT_BYTES_MAX],
    len: usize,
}

/// The longest name of a function that is looked up.
const CONSTANT_BYTES_MAX: usize = 24;

impl Constant {
    /// The text that begins with `first`, behind which the lexer stands; empty if it is longer than a name.
    pub fn read(first: &[u8], mut lexer: Lexer<'_>, text: &[u8]) -> Constant {
        let mut constant = Constant::default();
        let mut part = Some(first);
        while let Some(bytes) = part {
            let end = constant.len + bytes.len();
            let Some(place) = constant.bytes.get_mut(constant.len..end) else { return Constant::default() };
            place.copy_from_slice(bytes);
            constant.len = end;
            let is_joined = lexer.next().is_some_and(|token| token.is(b'.') || token.is(b'+'));
            let next = lexer.next().filter(|token| is_joined && token.kind == TokenKind::Text);
            part = next.map(|token| token.inner(text));
        }
        constant
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// What stands at the lexer: the first argument of a call whose parenthesis was read.
pub(super) fn argument_at<'t>(mut lexer: Lexer<'t>, text: &'t [u8]) -> Argument<'t> {
    let Some(mut first) = lexer.next() else { return Argument::Other };
    if first.is(b'@') || first.is(b'&') {
        let Some(next) = lexer.next() else { return Argument::Other };
        first = next;
    }
    // `system(\'id\')`: what is a text once the one around it is read.
    if first.is(b'\\')
        && let Some((&quote @ (b'\'' | b'"'), rest)) = text[first.span.end as usize..].split_first()
        && let Some(end) = memchr::memmem::find(rest, &[b'\\', quote])
    {
        return Argument::Text(&rest[..end]);
    }
    match first.kind {
        TokenKind::Sign(b')') => Argument::None,
        TokenKind::Sign(b'[' | b'(' | b'~' | b'$' | b'\'' | b'"') => Argument::Other,
        TokenKind::Sign(_) => Argument::Name,
        TokenKind::Text => Argument::Text(first.inner(text)),
        TokenKind::Number => Argument::Number,
        TokenKind::Name => {
            let name = first.span.of(text);
            let next = lexer.next();
            if name[0] == b'$' {
                Argument::Variable
            } else if next.is_some_and(|next| next.is(b')')) {
                Argument::Word(name)
            } else if let Some(open) = next.filter(|next| next.is(b'(')) {
                // `system (Linux (any))` is said, not called.
                let mut is_given = || {
                    lexer
                        .next()
                        .is_some_and(|t| t.kind == TokenKind::Text || t.span.of(text).first() == Some(&b'$'))
                };
                if open.span.start == first.span.end || is_given() { Argument::Call } else { Argument::Name }
            } else {
                Argument::Name
            }
        }
    }
}

/// `(Thread.java:750)`, `(Native Method)`, `(Unknown Source)`
pub(super) fn is_trace_argument(mut lexer: Lexer<'_>, text: &[u8]) -> bool {
    let (first, second, third) = (lexer.next(), lexer.next(), lexer.next());
    let is = |token: Option<Token>, word: &[u8]| token.is_some_and(|t| t.span.of(text) == word);
    is(third, b"java") && second.is_some_and(|t| t.is(b'.'))
        || is(first, b"Native") && is(second, b"Method")
        || is(first, b"Unknown") && is(second, b"Source")
}
