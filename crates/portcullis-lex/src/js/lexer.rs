use memchr::memmem;
use portcullis_types::Span;

use super::{Token, TokenKind};

/// Nested `${` and `{` that are distinguished; deeper ones are read as braces.
pub const NESTING_MAX: u32 = 64;

/// The tokens of a text, comments among them. See the module.
#[derive(Clone, Debug)]
pub struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
    /// An operand may begin here: `/` begins a regular expression.
    operand: bool,
    /// Open braces, the innermost in the lowest bit; set for those of a template.
    braces: u64,
    depth: u32,
    no_comment_end: bool,
}

impl<'t> Lexer<'t> {
    /// The tokens of `text` from the byte `at`, where an operand may begin.
    pub fn new(text: &'t [u8], at: usize) -> Lexer<'t> {
        Lexer { text, at: at.min(text.len()), operand: true, braces: 0, depth: 0, no_comment_end: false }
    }

    /// The same behind an operand: `/` divides.
    pub fn behind_operand(text: &'t [u8], at: usize) -> Lexer<'t> {
        Lexer { operand: false, ..Lexer::new(text, at) }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Passes over white space; true if a line ended.
    fn skip_space(&mut self) -> bool {
        let mut newline = self.at == 0;
        if self.text.get(self.at).is_some_and(u8::is_ascii_graphic) {
            return newline;
        }
        loop {
            let len = match &self.text[self.at..] {
                [b'\n' | b'\r', ..] => {
                    newline = true;
                    1
                }
                [b'\t' | 0x0B | 0x0C | b' ' | 0, ..] => 1,
                [0xC2, 0xA0, ..] => 2,
                [0xEF, 0xBB, 0xBF, ..] | [0xE3, 0x80, 0x80, ..] | [0xE1, 0xA0, 0x8E, ..] => 3,
                [0xE2, 0x80, 0x80..=0x8A | 0xAF, ..] => 3,
                [0xE2, 0x80, 0xA8 | 0xA9, ..] => {
                    newline = true;
                    3
                }
                _ => return newline,
            };
            self.at += len;
        }
    }

    /// The kind and the end of the token here.
    fn token(&mut self, newline: bool) -> (TokenKind, usize) {
        use TokenKind as T;
        let at = self.at;
        let (first, second, third) = (self.byte(0), self.byte(1), self.byte(2));
        match first {
            b'\'' | b'"' => self.string(first),
            b'`' => self.template(at + 1, true),
            b'0'..=b'9' => (T::Number, self.name_end(at)),
            b'.' if second.is_ascii_digit() => (T::Number, self.name_end(at + 1)),
            b'.' if second == b'.' && third == b'.' => (T::Spread, at + 3),
            b'.' => (T::Dot, at + 1),
            b'/' if second == b'/' => (T::Comment { line: true, closed: true }, self.line_end()),
            b'/' if second == b'*' => self.block_comment(),
            b'/' if self.operand => self.regex(),
            b'<' if self.text[at..].starts_with(b"<!--") => {
                (T::Comment { line: true, closed: true }, self.line_end())
            }
            b'-' if newline && self.text[at..].starts_with(b"-->") => {
                (T::Comment { line: true, closed: true }, self.line_end())
            }
            b'(' => (T::Open, at + 1),
            b')' => (T::Close, at + 1),
            b'[' => (T::OpenBracket, at + 1),
            b']' => (T::CloseBracket, at + 1),
            b'{' => {
                self.open_brace(false);
                (T::OpenBrace, at + 1)
            }
            b'}' => {
                let of_template = self.depth > 0 && self.braces & 1 == 1;
                self.depth = self.depth.saturating_sub(1);
                self.braces >>= 1;
                if of_template { self.template(at + 1, false) } else { (T::CloseBrace, at + 1) }
            }
            b';' => (T::Semicolon, at + 1),
            b',' => (T::Comma, at + 1),
            b':' => (T::Colon, at + 1),
            b'?' => match (second, third) {
                (b'?', b'=') => (T::Assign, at + 3),
                (b'?', _) => (T::Binary, at + 2),
                (b'.', third) if !third.is_ascii_digit() => (T::OptionalDot, at + 2),
                _ => (T::Question, at + 1),
            },
            b'=' => match (second, third) {
                (b'>', _) => (T::Arrow, at + 2),
                (b'=', b'=') => (T::Binary, at + 3),
                (b'=', _) => (T::Binary, at + 2),
                _ => (T::Assign, at + 1),
            },
            b'!' => match (second, third) {
                (b'=', b'=') => (T::Binary, at + 3),
                (b'=', _) => (T::Binary, at + 2),
                _ => (T::Prefix, at + 1),
            },
            b'~' => (T::Prefix, at + 1),
            b'+' | b'-' => match second {
                _ if second == first => (T::Step, at + 2),
                b'=' => (T::Assign, at + 2),
                _ => (T::Sign, at + 1),
            },
            b'*' | b'%' | b'^' | b'&' | b'|' | b'<' | b'>' | b'/' => {
                // Doubled and tripled signs, and `=` behind them.
                let same = self.text[at..].iter().take(3).take_while(|&&b| b == first).count();
                let is_assign = self.text.get(at + same) == Some(&b'=');
                let is_comparison = matches!(first, b'<' | b'>') && same == 1;
                let kind = if is_assign && !is_comparison { T::Assign } else { T::Binary };
                (kind, at + same + usize::from(is_assign))
            }
            b'\\' if second == b'u' => (T::Name, self.name_end(at)),
            b if is_name(b) => (T::Name, self.name_end(at)),
            _ => (T::Other, at + 1),
        }
    }

    fn open_brace(&mut self, of_template: bool) {
        self.depth = (self.depth + 1).min(NESTING_MAX);
        self.braces = self.braces << 1 | u64::from(of_template);
    }

    fn string(&self, quote: u8) -> (TokenKind, usize) {
        let mut at = self.at + 1;
        while let Some(&b) = self.text.get(at) {
            match b {
                b'\\' => at += 1,
                b'\n' | b'\r' => return (TokenKind::String { quote, closed: false }, at),
                _ if b == quote => return (TokenKind::String { quote, closed: true }, at + 1),
                _ => {}
            }
            at += 1;
        }
        (TokenKind::String { quote, closed: false }, self.text.len())
    }

    fn template(&mut self, from: usize, opens: bool) -> (TokenKind, usize) {
        let mut at = from;
        while let Some(found) = self.text.get(at..).and_then(|rest| memchr::memchr3(b'\\', b'`', b'$', rest))
        {
            at += found;
            match self.text[at] {
                b'\\' => at += 1,
                b'`' => return (TokenKind::Template { opens, closes: true }, at + 1),
                _ if self.text.get(at + 1) == Some(&b'{') => {
                    self.open_brace(true);
                    return (TokenKind::Template { opens, closes: false }, at + 2);
                }
                _ => {}
            }
            at += 1;
        }
        (TokenKind::Template { opens, closes: false }, self.text.len())
    }

    /// A regular expression ends on its line; otherwise the `/` is a sign.
    fn regex(&self) -> (TokenKind, usize) {
        let mut at = self.at + 1;
        let mut in_class = false;
        while let Some(&b) = self.text.get(at) {
            match b {
                b'\\' => at += 1,
                b'\n' | b'\r' => break,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => return (TokenKind::Regex, self.name_end(at + 1)),
                _ => {}
            }
            at += 1;
        }
        // To the line's end: what is no regular expression is none at each later `/` of the line either.
        (TokenKind::Other, at.min(self.text.len()))
    }

    fn block_comment(&mut self) -> (TokenKind, usize) {
        let end = match self.no_comment_end {
            true => None,
            false => memmem::find(&self.text[self.at + 2..], b"*/"),
        };
        self.no_comment_end |= end.is_none();
        let closed = end.is_some();
        (TokenKind::Comment { line: false, closed }, end.map_or(self.text.len(), |found| self.at + found + 4))
    }

    fn line_end(&self) -> usize {
        memchr::memchr2(b'\n', b'\r', &self.text[self.at..]).map_or(self.text.len(), |found| self.at + found)
    }

    fn name_end(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            // Most names are of ASCII.
            while self.text.get(at).is_some_and(|b| NAME[usize::from(*b)]) {
                at += 1;
            }
            at += match &self.text[at.min(self.text.len())..] {
                [b'\\', b'u', b'{', ..] => 3,
                [b'\\', b'u', ..] => 2,
                [b'}', ..] if self.text[from..at].iter().rev().take(8).any(|&b| b == b'{') => 1,
                // White space of Unicode ends a name.
                [0xC2, 0xA0, ..] | [0xE2, 0x80, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF, ..] => return at,
                [0xE3, 0x80, 0x80, ..] | [0xEF, 0xBB, 0xBF, ..] => return at,
                [b, ..] if is_name(*b) || b.is_ascii_digit() => 1,
                _ => return at,
            };
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let newline = self.skip_space();
        if self.at >= self.text.len() {
            return None;
        }
        let start = self.at;
        let (kind, end) = self.token(newline);
        self.at = end.clamp(start + 1, self.text.len());
        let span = Span::new(start, self.at);
        self.operand = match kind {
            TokenKind::Name => takes_operand(span.of(self.text)),
            TokenKind::Number
            | TokenKind::String { .. }
            | TokenKind::Template { closes: true, .. }
            | TokenKind::Regex
            | TokenKind::Close
            | TokenKind::CloseBracket
            | TokenKind::CloseBrace
            | TokenKind::Other => false,
            // `a++ / b` and `++ /x/`: the former is what people write.
            TokenKind::Step => false,
            TokenKind::Comment { .. } => self.operand,
            TokenKind::Template { closes: false, .. }
            | TokenKind::Open
            | TokenKind::OpenBracket
            | TokenKind::OpenBrace
            | TokenKind::Semicolon
            | TokenKind::Comma
            | TokenKind::Dot
            | TokenKind::OptionalDot
            | TokenKind::Spread
            | TokenKind::Arrow
            | TokenKind::Assign
            | TokenKind::Prefix
            | TokenKind::Sign
            | TokenKind::Binary
            | TokenKind::Question
            | TokenKind::Colon => true,
        };
        Some(Token { kind, span, newline })
    }
}

/// Keywords behind which an operand stands.
fn takes_operand(name: &[u8]) -> bool {
    matches!(
        name,
        b"return"
            | b"typeof"
            | b"instanceof"
            | b"in"
            | b"of"
            | b"new"
            | b"delete"
            | b"void"
            | b"throw"
            | b"case"
            | b"do"
            | b"else"
            | b"yield"
            | b"await"
    )
}

/// Bytes of ASCII that may stand in a name.
const NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 128 {
        let byte = b as u8;
        table[b] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        b += 1;
    }
    table
};

fn is_name(b: u8) -> bool {
    b.is_ascii_alphabetic() || matches!(b, b'_' | b'$') || b >= 0x80
}
