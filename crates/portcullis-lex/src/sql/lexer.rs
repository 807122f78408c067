use std::cell::Cell;
use std::rc::Rc;

use memchr::{memchr, memchr2, memmem};
use portcullis_types::Span;

use super::{Comment, Operator, Token, TokenKind, Word};
use crate::expr::NAME;

/// Limit on the length of a `[name]`.
pub const BRACKET_BYTES_MAX: usize = 128;

/// Limit on the search for the end of `$$..$$` and `q'[..]'`: a text that does not close is searched again
/// and again.
const STRING_WINDOW_BYTES_MAX: usize = 256;

/// Longer strings, names in quotes and comments are counted, see [`Reads`].
const NEAR_BYTES_MAX: usize = 128;
/// So many bytes in which one sign is looked for cost what one costs that is read.
const BYTES_SEARCHED: usize = 16;
/// The same for strings, where each escape stops the search.
const STRING_BYTES_SEARCHED: usize = 2;

/// State that readings of one text share, lookaheads among them: results of searches, and how far these went
/// for the ends of strings and comments. Such an end may be as far as that of the text, and be looked for
/// from anywhere.
#[derive(Debug, Default)]
pub struct Reads {
    /// From the one place to the other there is no line end.
    line: Cell<(usize, usize)>,
    /// No `*/`.
    comment: Cell<(usize, usize)>,
    cost: Cell<usize>,
}

impl Reads {
    /// Returns the cost of strings and comments that were longer than near, in bytes that are read one by
    /// one.
    pub fn cost(&self) -> usize {
        self.cost.get()
    }

    /// Counts anew.
    pub fn forget_cost(&self) {
        self.cost.set(0);
    }

    fn charge(&self, bytes: usize, searched: usize) {
        if bytes > NEAR_BYTES_MAX {
            self.cost.set(self.cost.get().saturating_add(bytes / searched));
        }
    }
}

/// Reads tokens from `text`; an iterator that ends with the text.
#[derive(Clone, Debug)]
pub struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
    /// Version comments open: their `*/` is a mark, not an operator.
    version_comments: u32,
    /// No `*/` from here on: an unclosed comment is found once, not at each `/*`.
    no_comment_end: bool,
    reads: Option<Rc<Reads>>,
}

impl<'t> Lexer<'t> {
    /// Starts at byte `at` of `text`.
    pub fn new(text: &'t [u8], at: usize) -> Lexer<'t> {
        Lexer { text, at: at.min(text.len()), version_comments: 0, no_comment_end: false, reads: None }
    }

    /// The same, sharing what it finds with other readings of the text.
    pub fn sharing(text: &'t [u8], at: usize, reads: &Rc<Reads>) -> Lexer<'t> {
        Lexer { reads: Some(reads.clone()), ..Lexer::new(text, at) }
    }

    /// Returns the first place behind `from` that `find` finds, unless it is known.
    fn far(
        &self,
        from: usize,
        known: impl Fn(&Reads) -> &Cell<(usize, usize)>,
        find: impl Fn(&[u8]) -> Option<usize>,
    ) -> usize {
        let text = self.text.get(from..).unwrap_or_default();
        let Some(reads) = self.reads.as_deref() else {
            return find(text).map_or(self.text.len(), |found| from + found);
        };
        let (begin, end) = known(reads).get();
        if (begin..end).contains(&from) {
            return end;
        }
        let end = find(text).map_or(self.text.len(), |found| from + found);
        reads.charge(end - from.min(end), BYTES_SEARCHED);
        known(reads).set((from, end));
        end
    }

    fn charge(&self, (kind, end): (TokenKind, usize), searched: usize) -> (TokenKind, usize) {
        if let Some(reads) = self.reads.as_deref() {
            reads.charge(end.saturating_sub(self.at), searched);
        }
        (kind, end)
    }

    /// Returns the offset at which the search for the next token begins.
    pub fn position(&self) -> usize {
        self.at
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// The kind of the token at `self.at`, which is no word, and its end. Apart from words, which are most
    /// tokens.
    #[inline(never)]
    fn sign(&mut self) -> (TokenKind, usize) {
        let at = self.at;
        let sign = |operator, bytes: usize| (TokenKind::Operator(operator), at + bytes);
        let (first, second, third) = (self.byte(0), self.byte(1), self.byte(2));
        match first {
            b'0'..=b'9' => self.number_or_noise(),
            b'.' if second.is_ascii_digit() => (TokenKind::Number, self.number()),
            b'.' => (TokenKind::Dot, at + 1),
            b'\'' | b'"' => self.string(at, first),
            b'`' => self.quoted_name(at + 1, b'`'),
            b'[' => self.bracketed(),
            b'(' => (TokenKind::Open, at + 1),
            b')' => (TokenKind::Close, at + 1),
            b',' => (TokenKind::Comma, at + 1),
            b';' => (TokenKind::Semicolon, at + 1),
            b'{' => (TokenKind::OpenBrace, at + 1),
            b'}' => (TokenKind::CloseBrace, at + 1),
            b'@' => match second {
                b'>' => sign(Operator::Json, 2),
                _ => self.at_sign(),
            },
            b'$' => self.dollar(),
            b':' => match second {
                b'=' => sign(Operator::Assign, 2),
                b':' => sign(Operator::Cast, 2),
                b if is_name(b) => (TokenKind::Variable, self.name_end(at + 1)),
                _ => sign(Operator::Colon, 1),
            },
            b'?' => match second {
                b'|' | b'&' => sign(Operator::Json, 2),
                _ => (TokenKind::Variable, at + 1),
            },
            b'#' => match (second, third) {
                (b'>', b'>') => sign(Operator::Json, 3),
                (b'>', _) => sign(Operator::Json, 2),
                _ => (TokenKind::Comment(Comment::Hash), self.line_end()),
            },
            b'-' => match (second, third) {
                (b'-', _) => (TokenKind::Comment(Comment::Dashes), self.line_end()),
                (b'>', b'>') => sign(Operator::Json, 3),
                (b'>', _) => sign(Operator::Json, 2),
                _ => sign(Operator::Minus, 1),
            },
            b'/' if second == b'*' => self.block_comment(),
            b'/' | b'%' => sign(Operator::Divide, 1),
            b'*' if second == b'/' && (self.version_comments > 0 || !self.no_comment_end) => {
                self.version_comments = self.version_comments.saturating_sub(1);
                (TokenKind::Comment(Comment::BlockClose), at + 2)
            }
            b'*' => sign(Operator::Star, 1),
            b'+' => sign(Operator::Plus, 1),
            b'=' => sign(Operator::Equal, 1 + usize::from(second == b'=')),
            b'<' => match (second, third) {
                (b'=', b'>') => sign(Operator::Equal, 3),
                (b'>', _) => sign(Operator::NotEqual, 2),
                (b'=', _) => sign(Operator::Less, 2),
                (b'<', _) => sign(Operator::Bit, 2),
                (b'@', _) => sign(Operator::Json, 2),
                _ => sign(Operator::Less, 1),
            },
            b'>' => match second {
                b'=' => sign(Operator::Greater, 2),
                b'>' => sign(Operator::Bit, 2),
                _ => sign(Operator::Greater, 1),
            },
            b'!' => match (second, third) {
                (b'=', _) => sign(Operator::NotEqual, 2),
                (b'<', _) => sign(Operator::Greater, 2),
                (b'>', _) => sign(Operator::Less, 2),
                (b'~', b'*') => sign(Operator::Match, 3),
                (b'~', _) => sign(Operator::Match, 2),
                _ => sign(Operator::Not, 1),
            },
            b'~' => match second {
                b'*' | b'~' => sign(Operator::Match, 2),
                _ => sign(Operator::Tilde, 1),
            },
            b'^' => match second {
                b'=' => sign(Operator::NotEqual, 2),
                _ => sign(Operator::Bit, 1),
            },
            b'|' if second == b'|' => sign(Operator::Pipes, 2),
            b'&' if second == b'&' => sign(Operator::Ampersands, 2),
            b'|' | b'&' => sign(Operator::Bit, 1),
            // MySQL's other way to write NULL; a word may touch it.
            b'\\' if second == b'N' => (TokenKind::Word(Word::Null), at + 2),
            _ => (TokenKind::Other, at + 1),
        }
    }

    fn number_or_noise(&self) -> (TokenKind, usize) {
        let end = self.number();
        let is_noise = matches!(self.text[self.at..end], [.., b'.', b'e' | b'E']);
        let kind = if is_noise { TokenKind::Comment(Comment::Exponent) } else { TokenKind::Number };
        (kind, end)
    }

    fn number(&self) -> usize {
        let text = self.text;
        let digits = |mut at: usize| {
            // `1_000` is a number to new PostgreSQL and SQLite.
            let joins = |at: usize| {
                text.get(at) == Some(&b'_')
                    && at > 0
                    && text[at - 1].is_ascii_digit()
                    && text.get(at + 1).is_some_and(u8::is_ascii_digit)
            };
            while text.get(at).is_some_and(u8::is_ascii_digit) || joins(at) {
                at += 1;
            }
            at
        };
        let second = self.byte(1) | 0x20;
        if self.byte(0) == b'0' && matches!(second, b'x' | b'b') {
            let is_digit =
                |b: &u8| if second == b'x' { b.is_ascii_hexdigit() } else { matches!(b, b'0' | b'1') };
            let mut at = self.at + 2;
            while text.get(at).is_some_and(is_digit) {
                at += 1;
            }
            if at > self.at + 2 {
                return at;
            }
        }
        let mut at = digits(self.at);
        if text.get(at) == Some(&b'.') {
            at = digits(at + 1);
        }
        if text.get(at).is_some_and(|b| b | 0x20 == b'e') {
            let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
            let end = digits(at + 1 + sign);
            if end > at + 1 + sign {
                return end;
            }
            // MySQL takes an exponent without digits after a point: `1.e(`.
            let next_is_name = text.get(at + 1).is_some_and(|&b| is_name(b));
            if text[at - 1] == b'.' && !next_is_name {
                return at + 1;
            }
        }
        // Oracle's `1f` and `1d`, where a keyword touches them.
        if text.get(at).is_some_and(|b| matches!(b | 0x20, b'f' | b'd')) {
            let word = &text[at + 1..self.name_end(at + 1)];
            if Word::of(word) != Word::Name {
                return at + 1;
            }
        }
        at
    }

    /// A string that starts at the token's start or later (after a prefix), with `quote` at `open`.
    fn string(&self, open: usize, quote: u8) -> (TokenKind, usize) {
        let mut at = open + 1;
        while let Some(found) = self.text.get(at..).and_then(|rest| memchr2(quote, b'\\', rest)) {
            at += found;
            let is_escape = self.text[at] == b'\\' || self.text.get(at + 1) == Some(&quote);
            if is_escape {
                at += 2;
            } else {
                return self
                    .charge((TokenKind::String { quote, closed: true }, at + 1), STRING_BYTES_SEARCHED);
            }
        }
        self.charge((TokenKind::String { quote, closed: false }, self.text.len()), STRING_BYTES_SEARCHED)
    }

    fn quoted_name(&self, from: usize, close: u8) -> (TokenKind, usize) {
        let token = match self.text.get(from..).and_then(|rest| memchr(close, rest)) {
            Some(found) => (TokenKind::QuotedName(true), from + found + 1),
            None => (TokenKind::QuotedName(false), self.text.len()),
        };
        self.charge(token, BYTES_SEARCHED)
    }

    fn bracketed(&self) -> (TokenKind, usize) {
        let from = self.at + 1;
        let window = &self.text[from..self.text.len().min(from + BRACKET_BYTES_MAX)];
        match memchr(b']', window) {
            Some(found) if found > 0 => (TokenKind::QuotedName(true), from + found + 1),
            _ => (TokenKind::Other, from),
        }
    }

    fn at_sign(&self) -> (TokenKind, usize) {
        let mut at = self.at + 1;
        if self.text.get(at) == Some(&b'@') {
            at += 1;
        }
        match self.text.get(at) {
            Some(&quote @ (b'`' | b'\'' | b'"')) => {
                let (_, end) = self.quoted_name(at + 1, quote);
                (TokenKind::Variable, end)
            }
            // A lone `@` is a variable without a name, which MySQL takes.
            _ => (TokenKind::Variable, self.name_end(at)),
        }
    }

    /// `$$ ... $$`, `$tag$ ... $tag$`, `$1`, or a name.
    fn dollar(&self) -> (TokenKind, usize) {
        let tag_end = self.name_end_without_dollar(self.at + 1);
        if self.text.get(tag_end) == Some(&b'$') && tag_end - self.at <= 32 {
            let tag = &self.text[self.at..=tag_end];
            let quote = b'$';
            return match memmem::find(self.window(tag_end + 1), tag) {
                Some(found) => (TokenKind::String { quote, closed: true }, tag_end + 1 + found + tag.len()),
                None => (TokenKind::Other, self.at + 1),
            };
        }
        match tag_end > self.at + 1 {
            true => (TokenKind::Variable, tag_end),
            false => (TokenKind::Other, self.at + 1),
        }
    }

    fn window(&self, from: usize) -> &'t [u8] {
        let rest = self.text.get(from..).unwrap_or_default();
        &rest[..rest.len().min(STRING_WINDOW_BYTES_MAX)]
    }

    fn line_end(&self) -> usize {
        self.far(self.at, |reads| &reads.line, |text| memchr2(b'\n', b'\r', text))
    }

    fn block_comment(&mut self) -> (TokenKind, usize) {
        let inner = self.at + 2;
        let mark = match (self.byte(2), self.byte(3)) {
            (b'!', _) => Some(inner + 1),
            (b'M' | b'm', b'!') => Some(inner + 2),
            _ => None,
        };
        if let Some(mut at) = mark {
            // Five or six digits are a version; fewer are given by some who mean any version.
            let digits = self.text[at..].iter().take(6).take_while(|b| b.is_ascii_digit()).count();
            at += digits;
            self.version_comments = self.version_comments.saturating_add(1);
            return (TokenKind::Comment(Comment::VersionOpen), at);
        }
        let end = match self.no_comment_end {
            true => None,
            false => {
                let end = self.far(inner, |reads| &reads.comment, |text| memmem::find(text, b"*/"));
                (end < self.text.len()).then_some(end)
            }
        };
        match end {
            Some(found) => (TokenKind::Comment(Comment::Block(true)), found + 2),
            None => {
                self.no_comment_end = true;
                (TokenKind::Comment(Comment::Block(false)), self.text.len())
            }
        }
    }

    fn word(&self) -> (TokenKind, usize) {
        let end = self.name_end(self.at);
        let text = &self.text[self.at..end];
        if let Some(&quote @ (b'\'' | b'"')) = self.text.get(end) {
            let is_prefix = match text {
                [b'n' | b'N' | b'x' | b'X' | b'b' | b'B' | b'e' | b'E'] => quote == b'\'',
                [b'_', ..] => text.len() <= 16,
                _ => false,
            };
            if is_prefix {
                return self.string(end, quote);
            }
            if text.eq_ignore_ascii_case(b"q") && quote == b'\'' {
                return self.alternative_string(end);
            }
        }
        (TokenKind::Word(Word::of(text)), end)
    }

    /// Oracle's `q'[ ... ]'`.
    fn alternative_string(&self, open: usize) -> (TokenKind, usize) {
        let close = match self.text.get(open + 1) {
            Some(b'[') => b']',
            Some(b'(') => b')',
            Some(b'{') => b'}',
            Some(b'<') => b'>',
            Some(&b) if b.is_ascii_punctuation() && b != b'\'' => b,
            _ => return self.string(open, b'\''),
        };
        let quote = b'\'';
        match memmem::find(self.window(open + 2), &[close, b'\'']) {
            Some(found) => (TokenKind::String { quote, closed: true }, open + 2 + found + 2),
            None => self.string(open, quote),
        }
    }

    fn name_end(&self, from: usize) -> usize {
        let mut at = from;
        while let Some(&b) = self.text.get(at) {
            match CLASS[usize::from(b)] & (IN_NAME | HIGH) {
                IN_NAME => {}
                0 => break,
                _ if self.is_space(at) => break,
                _ => {}
            }
            at += 1;
        }
        at
    }

    /// Skips white space; returns the start of the next token.
    fn skip_space(&mut self) -> Option<usize> {
        loop {
            let class = CLASS[usize::from(*self.text.get(self.at)?)];
            if class & SPACE != 0 {
                self.at += 1;
            } else if class & MAYBE_SPACE != 0 && self.is_space(self.at) {
                self.at += if self.text[self.at] == 0xC2 { 2 } else { 1 };
            } else {
                return Some(self.at);
            }
        }
    }

    fn name_end_without_dollar(&self, from: usize) -> usize {
        let rest = self.text.get(from..).unwrap_or_default();
        let ends = |(at, b): (usize, &u8)| {
            !(is_name(*b) || b.is_ascii_digit()) || *b >= 0x80 && self.is_space(from + at)
        };
        from + rest.iter().enumerate().position(ends).unwrap_or(rest.len())
    }

    /// 0xA0 is white space in MySQL's Latin-1, and the second byte of many UTF-8 characters.
    fn is_space(&self, at: usize) -> bool {
        match self.text[at] {
            0..=0x20 | 0x7F => true,
            0xA0 => at == 0 || self.text[at - 1] < 0x80,
            0xC2 => self.text.get(at + 1) == Some(&0xA0),
            _ => false,
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let start = self.skip_space()?;
        let (kind, end) = match CLASS[usize::from(self.text[start])] & NAME_START {
            0 => self.sign(),
            _ => self.word(),
        };
        self.at = end.clamp(start + 1, self.text.len());
        Some(Token { kind, span: Span::new(start, self.at) })
    }
}

/// The class of each byte.
const CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        let is_start = byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80;
        table[b] = if is_start { NAME_START } else { 0 }
            | if NAME[b] { IN_NAME } else { 0 }
            | if byte >= 0x80 { HIGH } else { 0 }
            | if byte <= 0x20 || byte == 0x7F { SPACE } else { 0 }
            | if byte == 0xA0 || byte == 0xC2 { MAYBE_SPACE } else { 0 };
        b += 1;
    }
    table
};
const NAME_START: u8 = 1;
const IN_NAME: u8 = 2;
const HIGH: u8 = 4;
const SPACE: u8 = 8;
const MAYBE_SPACE: u8 = 16;

/// A byte that may stand in a name, digits aside.
fn is_name(b: u8) -> bool {
    CLASS[usize::from(b)] & NAME_START != 0
}

#[cfg(test)]
#[path = "lexer_tests.rs"]
mod tests;
