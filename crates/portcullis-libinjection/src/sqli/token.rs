//! Tokens of the tokenizer: a kind and the bytes it was read from.

use std::fmt;

/// The kind of a token for the detector. The letters are libinjection's and make up fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenKind {
    /// `k`: a word that is not one of the more special kinds below, such as `FROM`.
    Keyword,
    /// `U`: `UNION`, `EXCEPT`, `INTERSECT` and their phrases.
    Union,
    /// `B`: what may follow a query's conditions, such as `GROUP BY` or `LIMIT`.
    Group,
    /// `E`: a word that begins an expression or statement, such as `SELECT`.
    Expression,
    /// `t`: a type name or character set, such as `INT` or `_UTF8`.
    SqlType,
    /// `f`: a function name.
    Function,
    /// `n`: any other word.
    Bareword,
    /// `1`: a number literal in any notation.
    Number,
    /// `v`: `@name`, `@@name`, or a word that acts like a variable.
    Variable,
    /// `s`: a string literal in any notation.
    String,
    /// `o`: an operator.
    Operator,
    /// `&`: a logical operator, such as `AND` or `||`.
    Logic,
    /// `c`: a comment.
    Comment,
    /// `A`: `COLLATE`.
    Collate,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `.`
    Dot,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// `;`
    Semicolon,
    /// `T`: a word that begins a Transact-SQL statement, such as `DECLARE`.
    Tsql,
    /// `?`: a byte with no meaning here.
    Unknown,
    /// `X`: what databases read in different ways, such as nested comments: an attack by itself.
    Evil,
    /// `\`
    Backslash,
}

impl TokenKind {
    /// The kind's letter in a fingerprint.
    pub const fn letter(self) -> u8 {
        b"kUBEtfn1vso&cA(){}.,:;T?X\\"[self as usize]
    }

    /// The kind with this letter.
    pub const fn from_letter(letter: u8) -> Option<Self> {
        let mut i = 0;
        while i < Self::ALL.len() {
            if Self::ALL[i].letter() == letter {
                return Some(Self::ALL[i]);
            }
            i += 1;
        }
        None
    }

    /// Every kind, in the order of declaration.
    pub const ALL: [TokenKind; 26] = {
        use TokenKind::*;
        [
            Keyword, Union, Group, Expression, SqlType, Function, Bareword, Number, Variable, String,
            Operator, Logic, Comment, Collate, LeftParen, RightParen, LeftBrace, RightBrace, Dot, Comma,
            Colon, Semicolon, Tsql, Unknown, Evil, Backslash,
        ]
    };
}

/// A piece of the input, or a phrase folded from several pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its kind.
    pub kind: TokenKind,
    /// Number of `@` that a variable begins with; 0 for everything else.
    pub at_signs: u8,
    /// The opening of a string, a quoted word or variable: the quote, or the letter `u` or `q`, or `$`.
    /// `None` where the quote stands before the input, as [`Quote`](super::Quote) says.
    pub open: Option<u8>,
    /// The byte that closed it; `None` where the input ended first.
    pub close: Option<u8>,
    /// The first [`VALUE_BYTES_MAX`] bytes of the token, without quotes and `@`. A phrase folded from several
    /// words has the phrase's upper-case spelling here instead.
    pub value: &'a [u8],
}

/// The most bytes of a token that count; longer ones are cut, as libinjection does, so no decision depends on
/// the rest.
pub const VALUE_BYTES_MAX: usize = 31;

impl<'a> Token<'a> {
    pub(super) const NONE: Token<'static> =
        Token { kind: TokenKind::Unknown, at_signs: 0, open: None, close: None, value: &[] };

    pub(super) fn new(kind: TokenKind, bytes: &'a [u8]) -> Self {
        let value = &bytes[..bytes.len().min(VALUE_BYTES_MAX)];
        Token { kind, at_signs: 0, open: None, close: None, value }
    }

    /// Returns true if the value is this word, in any case of ASCII letters.
    pub(super) fn is(&self, word: &str) -> bool {
        self.value.eq_ignore_ascii_case(word.as_bytes())
    }

    pub(super) fn is_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    pub(super) fn first_byte(&self) -> Option<u8> {
        self.value.first().copied()
    }

    /// `+1`, `-1`, `!1`, `~1`, `!!1`, `NOT 1`.
    pub(super) fn is_unary_operator(&self) -> bool {
        self.kind == TokenKind::Operator
            && match self.value {
                [sign] => matches!(sign, b'+' | b'-' | b'!' | b'~'),
                [first, second] => [*first, *second] == *b"!!",
                [_, _, _] => self.is("NOT"),
                _ => false,
            }
    }

    pub(super) fn is_arithmetic_operator(&self) -> bool {
        self.kind == TokenKind::Operator && matches!(self.value, [b'*' | b'/' | b'-' | b'+' | b'%'])
    }
}

impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.kind, self.value.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_distinct_and_in_order() {
        for (i, kind) in TokenKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, i);
            assert_eq!(TokenKind::from_letter(kind.letter()), Some(kind));
        }
        assert_eq!(TokenKind::from_letter(b'z'), None);
    }
}
