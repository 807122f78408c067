//! Strings, names and numbers in the notations of the dialects.

use super::bytes::{BIT, ENDS_VARIABLE, ENDS_WORD, HEX_DIGIT, LETTER, MONEY, ROLES, SEAM};
use super::bytes::{BLANK, find_pair, has_role, run, run_until};
use super::token::{Token, TokenKind, VALUE_BYTES_MAX};
use super::tokenizer::Tokenizer;
use super::words;

/// Strings.
impl<'a> Tokenizer<'a> {
    /// A string whose content begins at `start`. A delimiter after an odd number of backslashes, or a doubled
    /// one, belongs to the content.
    pub(super) fn quoted(&mut self, start: usize, delimiter: u8, open: Option<u8>) -> Token<'a> {
        let content = &self.input[start..];
        let mut from = 0;
        let end = loop {
            let Some(found) = memchr::memchr(delimiter, &content[from..]) else { break None };
            let at = from + found;
            let backslashes = content[..at].iter().rev().take_while(|&&byte| byte == b'\\').count();
            if backslashes % 2 == 1 {
                from = at + 1;
            } else if content.get(at + 1) == Some(&delimiter) {
                from = at + 2;
            } else {
                break Some(at);
            }
        };
        self.string(start, end, 1, open, end.map(|_| delimiter))
    }

    /// A string token of the input from `start` on: up to the offset `end` in it and the closing bytes, or
    /// all of it.
    fn string(
        &mut self,
        start: usize,
        end: Option<usize>,
        closing: usize,
        open: Option<u8>,
        close: Option<u8>,
    ) -> Token<'a> {
        self.at = start;
        let mut token = self.take(TokenKind::String, end.unwrap_or(self.input.len() - start));
        if end.is_some() {
            self.at += closing;
        }
        token.open = open;
        token.close = close;
        token
    }

    /// `e'...'`: a string after a prefix of one letter.
    pub(super) fn escape_string(&mut self) -> Token<'a> {
        match (self.peek(1), self.peek(2)) {
            (Some(b'\''), Some(_)) => self.quoted(self.at + 2, b'\'', Some(b'\'')),
            _ => self.word(),
        }
    }

    /// `u&'...'`
    pub(super) fn unicode_string(&mut self) -> Token<'a> {
        if !self.rest()[1..].starts_with(b"&'") {
            return self.word();
        }
        let mut token = self.quoted(self.at + 3, b'\'', Some(b'u'));
        token.close = token.close.map(|_| b'u');
        token
    }

    /// `n'...'` or `nq'[...]'`
    pub(super) fn national_string(&mut self) -> Token<'a> {
        match (self.peek(1), self.peek(2)) {
            (Some(b'\''), Some(_)) => self.escape_string(),
            _ => self.oracle_string(1),
        }
    }

    /// `q'[...]'` with any printable delimiter, after a prefix of so many bytes.
    pub(super) fn oracle_string(&mut self, prefix: usize) -> Token<'a> {
        let Some(&[b'q' | b'Q', b'\'', delimiter @ b'!'..=0x7f, ref content @ ..]) =
            self.rest().get(prefix..)
        else {
            return self.word();
        };
        let delimiter = match delimiter {
            b'(' => b')',
            b'[' => b']',
            b'{' => b'}',
            b'<' => b'>',
            same => same,
        };
        let end = find_pair(content, [delimiter, b'\'']);
        self.string(self.at + prefix + 3, end, 2, Some(b'q'), end.map(|_| b'q'))
    }

    /// `b'0101'`
    pub(super) fn bit_string(&mut self) -> Token<'a> {
        self.digit_string(BIT)
    }

    /// `x'12ab'`
    pub(super) fn hex_string(&mut self) -> Token<'a> {
        self.digit_string(HEX_DIGIT)
    }

    fn digit_string(&mut self, digit: u8) -> Token<'a> {
        if let Some(digits) = self.rest()[1..].strip_prefix(b"'") {
            let len = run(digits, digit);
            if digits.get(len) == Some(&b'\'') {
                return self.take(TokenKind::Number, len + 3);
            }
        }
        self.word()
    }

    /// `$1.000,00`, `$$...$$`, `$name$...$name$`, or a lone `$`.
    pub(super) fn dollar(&mut self) -> Token<'a> {
        let after = &self.rest()[1..];
        match run(after, MONEY) {
            0 => {}
            1 if after[0] == b'.' => return self.word(),
            len => return self.take(TokenKind::Number, len + 1),
        }
        let name = run(after, LETTER);
        if after.get(name) != Some(&b'$') {
            return self.take(TokenKind::Bareword, 1);
        }
        let (tag, content) = self.rest().split_at(name + 2);
        // A tag has a `$` at its ends only, so however often it almost occurs, the search stays linear.
        let end = memchr::memmem::find(content, tag);
        self.string(self.at + tag.len(), end, tag.len(), Some(b'$'), end.map(|_| b'$'))
    }
}

/// Names.
impl<'a> Tokenizer<'a> {
    /// A word, which may hold dots and back-ticks; it is cut before one of them where a known word ends
    /// there.
    pub(super) fn word(&mut self) -> Token<'a> {
        let rest = self.rest();
        let mut roles = 0;
        let len = rest
            .iter()
            .position(|&byte| {
                let role = ROLES[byte as usize];
                roles |= role;
                role & ENDS_WORD != 0
            })
            .unwrap_or(rest.len());
        if roles & SEAM != 0 {
            let value = &rest[..len.min(VALUE_BYTES_MAX)];
            for (at, _) in value.iter().enumerate().filter(|&(_, &byte)| has_role(byte, SEAM)) {
                match words::kind_of(&value[..at]) {
                    None | Some(TokenKind::Bareword) => {}
                    Some(kind) => return self.take(kind, at),
                }
            }
        }
        self.take(words::kind_of(&rest[..len]).unwrap_or(TokenKind::Bareword), len)
    }

    /// `[...]`, a name in SQL Server.
    pub(super) fn bracket_word(&mut self) -> Token<'a> {
        let rest = self.rest();
        let len = memchr::memchr(b']', rest).map_or(rest.len(), |at| at + 1);
        self.take(TokenKind::Bareword, len)
    }

    /// `` `...` ``, a name in MySQL; a function's stays a function.
    pub(super) fn tick(&mut self) -> Token<'a> {
        let mut token = self.quoted(self.at + 1, b'`', Some(b'`'));
        token.kind = match words::kind_of(token.value) {
            Some(TokenKind::Function) => TokenKind::Function,
            _ => TokenKind::Bareword,
        };
        token
    }

    /// `@name`, `@@name`, `` @@`name` ``, `@'name'`, or just the signs.
    pub(super) fn variable(&mut self) -> Token<'a> {
        let at_signs = if self.peek(1) == Some(b'@') { 2 } else { 1 };
        self.at += usize::from(at_signs);
        let mut token = match self.peek(0) {
            Some(quote @ (b'`' | b'\'' | b'"')) => self.quoted(self.at + 1, quote, Some(quote)),
            _ => self.take(TokenKind::Variable, run_until(self.rest(), ENDS_VARIABLE)),
        };
        token.kind = TokenKind::Variable;
        token.at_signs = at_signs;
        token
    }
}

/// Numbers.
impl<'a> Tokenizer<'a> {
    /// A number, or a lone dot, or a word such as `0x` or `1.e` that only begins like a number.
    pub(super) fn number(&mut self) -> Token<'a> {
        let rest = self.rest();
        let digit = match rest {
            [b'0', b'x' | b'X', ..] => Some(HEX_DIGIT),
            [b'0', b'b' | b'B', ..] => Some(BIT),
            _ => None,
        };
        if let Some(digit) = digit {
            let len = run(&rest[2..], digit);
            let kind = if len == 0 { TokenKind::Bareword } else { TokenKind::Number };
            return self.take(kind, len + 2);
        }
        let mut len = digits(rest);
        if rest.get(len) == Some(&b'.') {
            len += 1;
            len += digits(&rest[len..]);
            if len == 1 {
                return self.take(TokenKind::Dot, 1);
            }
        }
        let mut kind = TokenKind::Number;
        if let Some(b'e' | b'E') = rest.get(len) {
            len += 1;
            len += usize::from(matches!(rest.get(len), Some(b'+' | b'-')));
            let exponent = digits(&rest[len..]);
            len += exponent;
            if exponent == 0 {
                kind = TokenKind::Bareword;
            }
        }
        // Oracle's suffix of a float or double. `1fUNION` is `1f UNION`, while `123FROM` is `123 FROM`.
        if let Some(b'd' | b'D' | b'f' | b'F') = rest.get(len) {
            match rest.get(len + 1) {
                None | Some(b';' | b'u' | b'U') => len += 1,
                Some(&next) if has_role(next, BLANK) => len += 1,
                Some(_) => {}
            }
        }
        self.take(kind, len)
    }
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len())
}
