//! Expressions of languages that look like C: PHP, JavaScript, Java and its expression languages, Python,
//! Ruby, template engines.
//!
//! Names, numbers, quoted texts and signs are enough to see what is called on what; no language's operators
//! are distinguished.
//!
//! - A name may have `$`, digits and bytes from 0x80 in it: `$_GET`, `__class__`.
//! - A quoted text ends at its quote, not at an escaped one; a quote that does not close within
//!   [`TEXT_BYTES_MAX`] bytes is a sign.
//! - `/* ... */` is white space (`new/**/String`); other comments are not told from signs.
//!
//! ```
//! use portcullis_lex::expr::{Lexer, TokenKind};
//! let kinds: Vec<TokenKind> = Lexer::new(b"a.b('c', 1)", 0).map(|token| token.kind).collect();
//! assert_eq!(kinds[..3], [TokenKind::Name, TokenKind::Sign(b'.'), TokenKind::Name]);
//! assert_eq!(kinds[4], TokenKind::Text);
//! ```

use portcullis_types::Span;

/// Limit on the search for the end of a quoted text.
pub const TEXT_BYTES_MAX: usize = 512;

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Its bytes in the text.
    pub span: Span,
}

impl Token {
    /// Returns the text between the quotes; the token itself if it is no quoted text.
    pub fn inner<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let bytes = self.span.of(text);
        if let TokenKind::Text = self.kind {
            bytes.get(1..bytes.len() - 1).unwrap_or_default()
        } else {
            bytes
        }
    }

    /// True for that sign.
    pub fn is(&self, sign: u8) -> bool {
        self.kind == TokenKind::Sign(sign)
    }
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name or keyword.
    Name,
    /// A number, with fraction, exponent or base.
    Number,
    /// A text in `'`, `"` or back-ticks.
    Text,
    /// Any other byte.
    Sign(u8),
}

/// Bytes that may stand in a name behind its first one, as in SQL.
pub(crate) const NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        table[b] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80;
        b += 1;
    }
    table
};

fn is_name(b: u8) -> bool {
    NAME[usize::from(b)]
}

/// Reads tokens from `text`; an iterator that ends with the text.
#[derive(Clone, Copy, Debug)]
pub struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
    /// No closing quote of that sort within the window of an earlier one: not looked for again before this
    /// byte.
    unclosed: [usize; 3],
    /// The same for the end of a comment.
    open_comment: usize,
}

impl<'t> Lexer<'t> {
    /// Starts at byte `at` of `text`.
    pub fn new(text: &'t [u8], at: usize) -> Lexer<'t> {
        Lexer { text, at: at.min(text.len()), unclosed: [0; 3], open_comment: 0 }
    }

    /// Returns the offset at which the search for the next token begins.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The same behind names and signs up to the byte `at`.
    pub fn go_on_at(&self, at: usize) -> Lexer<'t> {
        Lexer { at: at.min(self.text.len()), ..*self }
    }

    /// The end of the name that begins at the byte `at`, if one does.
    pub fn name_at(&self, at: usize) -> Option<usize> {
        let begins = match self.text.get(at)? {
            b'0'..=b'9' => false,
            b'$' => self.text.get(at + 1).is_some_and(|&b| is_name(b)),
            b => is_name(*b),
        };
        begins.then(|| self.run(at, is_name))
    }

    fn run(&self, from: usize, belongs: impl Fn(u8) -> bool) -> usize {
        let rest = self.text.get(from..).unwrap_or_default();
        from + rest.iter().position(|&b| !belongs(b)).unwrap_or(rest.len())
    }

    fn skip_space(&mut self) {
        if self.text.get(self.at).is_some_and(|b| *b > b' ' && *b != b'/') {
            return;
        }
        loop {
            self.at = self.run(self.at, |b| b <= b' ');
            if !self.text[self.at..].starts_with(b"/*") {
                return;
            }
            let from = self.at + 2;
            let end = self.text.len().min(from + TEXT_BYTES_MAX);
            // No byte is looked at for two of them: there may be one in every two.
            let known = from.max(self.open_comment.saturating_sub(1)).min(end);
            let closes =
                |at: &usize| self.text.get(known + at + 1..end).is_some_and(|rest| rest.starts_with(b"/"));
            match memchr::memchr_iter(b'*', &self.text[known..end]).find(closes) {
                Some(len) => self.at = known + len + 2,
                None => {
                    self.open_comment = end;
                    return;
                }
            }
        }
    }

    /// The end of the text that begins at `self.at`, if it closes.
    fn quoted(&mut self, quote: u8) -> Option<usize> {
        let slot = match quote {
            b'\'' => 0,
            b'"' => 1,
            _ => 2,
        };
        let end = self.text.len().min(self.at + 1 + TEXT_BYTES_MAX);
        if self.unclosed[slot] >= end {
            return None;
        }
        let mut at = self.at + 1;
        while let Some(found) = self.text.get(at..end).and_then(|rest| memchr::memchr2(quote, b'\\', rest)) {
            at += found;
            if self.text[at] == quote {
                return Some(at + 1);
            }
            at += 2;
        }
        self.unclosed[slot] = end;
        None
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip_space();
        let start = self.at;
        let &first = self.text.get(start)?;
        let (kind, end) = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => (TokenKind::Name, self.run(start + 1, is_name)),
            b'0'..=b'9' => {
                let end = self.run(start, |b| b.is_ascii_alphanumeric() || b == b'_');
                let is_fraction = self.text.get(end) == Some(&b'.')
                    && self.text.get(end + 1).is_some_and(u8::is_ascii_digit);
                (
                    TokenKind::Number,
                    if is_fraction { self.run(end + 1, |b| b.is_ascii_alphanumeric()) } else { end },
                )
            }
            b if is_name(b) => match self.name_at(start) {
                Some(end) => (TokenKind::Name, end),
                None => (TokenKind::Sign(b), start + 1),
            },
            b'\'' | b'"' | b'`' => match self.quoted(first) {
                Some(end) => (TokenKind::Text, end),
                None => (TokenKind::Sign(first), start + 1),
            },
            b => (TokenKind::Sign(b), start + 1),
        };
        self.at = end.min(self.text.len());
        Some(Token { kind, span: Span::new(start, self.at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let mut have = String::new();
        for token in Lexer::new(text.as_bytes(), 0) {
            let bytes = String::from_utf8_lossy(token.span.of(text.as_bytes())).into_owned();
            let name = match token.kind {
                TokenKind::Name => format!("n<{bytes}>"),
                TokenKind::Number => format!("0<{bytes}>"),
                TokenKind::Text => format!("s<{bytes}>"),
                TokenKind::Sign(_) => bytes,
            };
            have.push_str(&name);
            have.push(' ');
        }
        assert_eq!(have.trim_end(), want, "{text}");
    }

    #[test]
    fn tokens() {
        check("$_GET[0]('x')", "n<$_GET> [ 0<0> ] ( s<'x'> )");
        check("new/**/String(7.5e3)", "n<new> n<String> ( 0<7.5e3> )");
        check("''.__class__ + \"a\\\"b\"", "s<''> . n<__class__> + s<\"a\\\"b\">");
        check("it's `id` $x $(y)", "n<it> ' n<s> s<`id`> n<$x> $ ( n<y> )");
        check("/* never closed", "/ * n<never> n<closed>");
        check("/* /* a */ b /* c", "n<b> / * n<c>");
        check(&format!("{}*/ b", "/* ".repeat(300)), &format!("{}n<b>", "/ * ".repeat(130)));
        check("1.. 0x1F \u{e9}t\u{e9}", "0<1> . . 0<0x1F> n<\u{e9}t\u{e9}>");
    }

    #[test]
    fn names_and_what_is_behind_them() {
        let lexer = Lexer::new(b"a.$b.1.$ c", 0);
        let ends = [0, 2, 5, 7, 9, 10].map(|at| lexer.name_at(at));
        assert_eq!(ends, [Some(1), Some(4), None, None, Some(10), None]);
        assert_eq!(lexer.go_on_at(8).next().map(|token| token.span), Some(Span::new(9, 10)));
        assert_eq!(lexer.go_on_at(90).next(), None);
    }

    #[test]
    fn hostile_texts_end() {
        for unit in ["'", "\"", "`", "/*", "\\", "'\\", "$", "\u{e9}"] {
            let text = unit.repeat(30_000);
            let mut end = 0;
            for token in Lexer::new(text.as_bytes(), 0) {
                assert!(token.span.start >= end && token.span.end > token.span.start);
                end = token.span.end;
            }
        }
    }
}
