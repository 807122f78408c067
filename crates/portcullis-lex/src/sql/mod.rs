//! SQL as MySQL, PostgreSQL, SQL Server, Oracle and SQLite write it, all at once.
//!
//! Readings where SQL dialects disagree:
//!
//! | text | reading |
//! |---|---|
//! | `#` | a comment to the end of the line (MySQL), except before `>` and `-`, where PostgreSQL has operators |
//! | `--` | a comment, whatever follows (MySQL wants a space) |
//! | `/*! ... */`, `/*M! ... */` | the marks are a comment token each, the text between is SQL (MySQL) |
//! | `"x"` | a string (MySQL); a parser that wants a name may take it as one |
//! | `\'` in a string | does not end it (MySQL, `E''`); a doubled quote does not either |
//! | `[x]` | a name (SQL Server) if the bracket closes within [`BRACKET_BYTES_MAX`] bytes |
//! | `1union` | a number and a word; `1e0union`, `1.union` and `0x1g` likewise |
//! | white space | all bytes up to 0x20, 0x7F, and 0xA0 where it is not part of UTF-8 text |
//!
//! ```
//! use portcullis_lex::sql::{Lexer, Token, TokenKind, Word};
//! let tokens: Vec<Token> = Lexer::new(b"1 /*!uNion*/ select 'a'", 0).collect();
//! assert_eq!(tokens[0].kind, TokenKind::Number);
//! assert_eq!(tokens[2].kind, TokenKind::Word(Word::Union));
//! assert_eq!(tokens.last().unwrap().span.of(b"1 /*!uNion*/ select 'a'"), b"'a'");
//! ```

mod lexer;
mod token;
mod word;

pub use lexer::{BRACKET_BYTES_MAX, Lexer, Reads};
pub use token::{Comment, Operator, Token, TokenKind};
pub use word::Word;
