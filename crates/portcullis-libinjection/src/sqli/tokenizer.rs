//! Cuts an input into tokens, the way several SQL dialects at once might.

use super::bytes::{BLANK, START, Start, find_pair, has_role};
use super::token::{Token, TokenKind};
use super::words;
use super::{Context, Dialect};

/// An iterator over the tokens of an input in one context.
///
/// The tokens are found in order and do not overlap; every call moves on by at least a byte, and no byte is
/// read more than a constant number of times, so reading all tokens is linear in the input.
#[derive(Clone, Debug)]
pub struct Tokenizer<'a> {
    pub(super) input: &'a [u8],
    /// Offset of the next byte to read.
    pub(super) at: usize,
    context: Context,
    pub(super) seen: Seen,
}

/// Facts met on the way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) tokens: usize,
    /// A `#`, or `--` with something other than a blank after it: MySQL and the others disagree about them.
    pub(super) dialects_differ: bool,
}

impl<'a> Tokenizer<'a> {
    /// Starts at the beginning of the input.
    pub fn new(input: &'a [u8], context: Context) -> Self {
        Tokenizer { input, at: 0, context, seen: Seen::default() }
    }

    fn scan(&mut self) -> Option<Token<'a>> {
        if self.at == 0
            && !self.input.is_empty()
            && let Some(delimiter) = self.context.quote.byte()
        {
            return Some(self.quoted(0, delimiter, None));
        }
        loop {
            let byte = *self.input.get(self.at)?;
            return Some(match START[byte as usize] {
                Start::Blank => {
                    self.at += 1;
                    continue;
                }
                Start::Word => self.word(),
                Start::Number => self.number(),
                Start::String => self.quoted(self.at + 1, byte, Some(byte)),
                Start::Tick => self.tick(),
                Start::Punctuation => self.take(punctuation(byte), 1),
                Start::Operator => self.take(TokenKind::Operator, 1),
                Start::LongOperator => self.long_operator(),
                Start::Dash => self.dash(),
                Start::Slash => self.slash(),
                Start::Hash => self.hash(),
                Start::At => self.variable(),
                Start::Dollar => self.dollar(),
                Start::Bracket => self.bracket_word(),
                Start::Backslash => self.backslash(),
                Start::Unknown => self.take(TokenKind::Unknown, 1),
                Start::BitString => self.bit_string(),
                Start::HexString => self.hex_string(),
                Start::EscapeString => self.escape_string(),
                Start::UnicodeString => self.unicode_string(),
                Start::OracleString => self.oracle_string(0),
                Start::NationalString => self.national_string(),
            });
        }
    }

    /// The next `len` bytes as a token.
    pub(super) fn take(&mut self, kind: TokenKind, len: usize) -> Token<'a> {
        let (bytes, _) = self.rest().split_at(len);
        self.at += len;
        Token::new(kind, bytes)
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.input[self.at..]
    }

    /// The byte `offset` bytes after the current one.
    pub(super) fn peek(&self, offset: usize) -> Option<u8> {
        self.input.get(self.at + offset).copied()
    }

    fn long_operator(&mut self) -> Token<'a> {
        let rest = self.rest();
        if rest.starts_with(b"<=>") {
            return self.take(TokenKind::Operator, 3);
        }
        if let Some(kind) = rest.get(..2).and_then(words::kind_of) {
            return self.take(kind, 2);
        }
        // A last `:` is an operator, one before other bytes a colon: so the original has it.
        let kind = if rest[0] == b':' && rest.len() > 1 { TokenKind::Colon } else { TokenKind::Operator };
        self.take(kind, 1)
    }

    /// `--` begins a comment when a blank or nothing follows; elsewhere too, except in MySQL.
    fn dash(&mut self) -> Token<'a> {
        match (self.peek(1), self.peek(2)) {
            (Some(b'-'), None) => self.line_comment(),
            (Some(b'-'), Some(next)) if has_role(next, BLANK) => self.line_comment(),
            (Some(b'-'), _) if self.context.dialect == Dialect::Ansi => {
                self.seen.dialects_differ = true;
                self.line_comment()
            }
            _ => self.take(TokenKind::Operator, 1),
        }
    }

    /// An operator, and in MySQL a comment.
    fn hash(&mut self) -> Token<'a> {
        self.seen.dialects_differ = true;
        match self.context.dialect {
            Dialect::MySql => self.line_comment(),
            Dialect::Ansi => self.take(TokenKind::Operator, 1),
        }
    }

    fn line_comment(&mut self) -> Token<'a> {
        let rest = self.rest();
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        self.take(TokenKind::Comment, len)
    }

    fn slash(&mut self) -> Token<'a> {
        let rest = self.rest();
        if rest.get(1) != Some(&b'*') {
            return self.take(TokenKind::Operator, 1);
        }
        let end = find_pair(&rest[2..], *b"*/").map(|at| at + 2);
        // PostgreSQL nests comments, others do not, and MySQL runs what stands in `/*! */`: no telling what
        // is meant.
        let nested = end.is_some_and(|end| find_pair(&rest[2..=end], *b"/*").is_some());
        let kind = if nested || rest.get(2) == Some(&b'!') { TokenKind::Evil } else { TokenKind::Comment };
        self.take(kind, end.map_or(rest.len(), |end| end + 2))
    }

    /// `\N` is MySQL's other name for NULL.
    fn backslash(&mut self) -> Token<'a> {
        match self.peek(1) {
            Some(b'N') => self.take(TokenKind::Number, 2),
            _ => self.take(TokenKind::Backslash, 1),
        }
    }
}

impl<'a> Iterator for Tokenizer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.scan()?;
        self.seen.tokens += 1;
        Some(token)
    }
}

fn punctuation(byte: u8) -> TokenKind {
    match byte {
        b'(' => TokenKind::LeftParen,
        b')' => TokenKind::RightParen,
        b'{' => TokenKind::LeftBrace,
        b'}' => TokenKind::RightBrace,
        b',' => TokenKind::Comma,
        _ => TokenKind::Semicolon,
    }
}
