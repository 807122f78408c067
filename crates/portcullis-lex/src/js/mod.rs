//! JavaScript (ECMAScript 2024, with what browsers add), a fragment of it.
//!
//! The lexer decides by the token before whether `/` is a division or a regular expression, and keeps the
//! nesting of template literals in one word of bits ([`NESTING_MAX`]).
//!
//! | text | reading |
//! |---|---|
//! | a string that a line end or the text's end cuts off | a string that is not closed |
//! | `` `a${b}c` `` | a piece, the tokens of `b`, a piece |
//! | `<!--`, and `-->` at a line's start | a comment to the end of the line (Annex B) |
//! | `\u0061` in a name | part of the name |
//! | `#x`, `@x` | [`TokenKind::Other`] and a name |
//!
//! ```
//! use portcullis_lex::js::{Lexer, TokenKind};
//! let text = b"alert`1`//x";
//! let kinds: Vec<_> = Lexer::new(text, 0).map(|token| token.kind).collect();
//! assert!(matches!(kinds[0], TokenKind::Name));
//! assert!(matches!(kinds[1], TokenKind::Template { opens: true, closes: true }));
//! ```

mod lexer;
#[cfg(test)]
mod tests;

use portcullis_types::Span;

pub use lexer::{Lexer, NESTING_MAX};

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Its bytes.
    pub span: Span,
    /// A line ended before it.
    pub newline: bool,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name or keyword.
    Name,
    /// A number, with suffix.
    Number,
    /// A string with its quotes.
    String {
        /// The quote.
        quote: u8,
        /// False if the text or the line ends first.
        closed: bool,
    },
    /// A piece of a template literal, between back-ticks and `${`...`}`.
    Template {
        /// It begins with the back-tick.
        opens: bool,
        /// It ends with the back-tick.
        closes: bool,
    },
    /// A regular expression with its flags.
    Regex,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `[`
    OpenBracket,
    /// `]`
    CloseBracket,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// `;`
    Semicolon,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `?.`
    OptionalDot,
    /// `...`
    Spread,
    /// `=>`
    Arrow,
    /// `=`, `+=` and the like
    Assign,
    /// `++`, `--`
    Step,
    /// `!`, `~`: before an operand only
    Prefix,
    /// `+`, `-`: between operands or before one
    Sign,
    /// `*`, `==`, `&&`, `<` and the like: between operands only
    Binary,
    /// `?`
    Question,
    /// `:`
    Colon,
    /// `// ...`, `/* ... */`; the flag is true for a line comment
    Comment {
        /// `//` or `<!--`
        line: bool,
        /// False for a block comment that the text's end cuts off
        closed: bool,
    },
    /// A byte that is nothing in JavaScript.
    Other,
}
