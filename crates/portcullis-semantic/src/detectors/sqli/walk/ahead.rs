//! Look-ahead, with the last answer cached: a walk asks for the next token several times at each name.

use portcullis_lex::sql::{Lexer, Token, TokenKind};

use super::Walk;

/// A look ahead.
#[derive(Debug)]
pub(super) struct Ahead<'t> {
    /// Where it began.
    at: usize,
    /// The first token that is no comment.
    token: Option<Token>,
    /// The lexer after that token, if no comment stands before it.
    lexer: Option<Lexer<'t>>,
}

/// The next token, as far as its first byte tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Near {
    Open,
    Dot,
    /// Neither.
    Else,
    Unclear,
}

impl Walk<'_, '_> {
    /// A parenthesis comes next.
    pub(super) fn is_before_open(&self) -> bool {
        match self.near() {
            Near::Unclear => self.peek().is_some_and(|next| next.kind == TokenKind::Open),
            Near::Open => true,
            Near::Dot | Near::Else => false,
        }
    }

    /// A dot comes next.
    pub(super) fn is_before_dot(&self) -> bool {
        match self.near() {
            Near::Unclear => self.peek().is_some_and(|next| next.kind == TokenKind::Dot),
            Near::Dot => true,
            Near::Open | Near::Else => false,
        }
    }

    /// What comes next, as far as its first byte tells.
    fn near(&self) -> Near {
        let at = self.lexer.position();
        let at = at + usize::from(matches!(self.text.get(at), Some(b' ' | b'\n')));
        match self.text.get(at) {
            None => Near::Else,
            Some(b'(') => Near::Open,
            Some(b'.') if !self.text.get(at + 1).is_some_and(u8::is_ascii_digit) => Near::Dot,
            // White space, or what may be a comment: the token after it counts. An exponent without digits
            // is one, too.
            Some(0..=b' ' | 0x7F.. | b'/' | b'-' | b'#' | b'*' | b'.' | b'0'..=b'9') => Near::Unclear,
            Some(_) => Near::Else,
        }
    }

    /// The next token, which a look ahead may have read.
    pub(super) fn next(&mut self) -> Option<Token> {
        let at = self.lexer.position();
        match self.ahead.get_mut() {
            Some(Ahead { at: seen, token, lexer: Some(after) }) if *seen == at => {
                self.lexer = after.clone();
                *token
            }
            _ => self.lexer.next(),
        }
    }

    /// The next significant token, not taken.
    pub(super) fn peek(&self) -> Option<Token> {
        let at = self.lexer.position();
        let mut known = self.ahead.borrow_mut();
        if let Some(known) = known.as_ref().filter(|known| known.at == at) {
            return known.token;
        }
        let mut lexer = self.lexer.clone();
        let first = lexer.next();
        let is_comment = first.is_some_and(|token| matches!(token.kind, TokenKind::Comment(_)));
        let token = if is_comment { next_significant(&mut lexer, 7) } else { first };
        *known = Some(Ahead { at, token, lexer: (!is_comment).then_some(lexer) });
        token
    }

    /// Takes the token that [`Walk::peek`] shows.
    pub(super) fn skip(&mut self) {
        self.lexer.by_ref().find(|token| !matches!(token.kind, TokenKind::Comment(_)));
    }

    pub(super) fn peeks(&self) -> [Option<Token>; 2] {
        let mut ahead = self.lexer.clone();
        [next_significant(&mut ahead, 8), next_significant(&mut ahead, 8)]
    }
}

/// The next token that is no comment, if it is one of the next `near` tokens.
fn next_significant(lexer: &mut Lexer<'_>, near: usize) -> Option<Token> {
    lexer.by_ref().take(near).find(|token| !matches!(token.kind, TokenKind::Comment(_)))
}
