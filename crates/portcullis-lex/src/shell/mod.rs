//! Words and operators of POSIX shells (with what bash and zsh add), and of cmd.exe where it does not
//! disagree.
//!
//! A word is given as the shell would see it after quote removal and expansion, as far as that can be known
//! without running anything: `c''at`, `c\at`, `c$@at`, `$'\x63at'` and `{cat,...}` all read `cat`, and
//! [`Marks`] say what stood in the way.
//!
//! Readings where shells disagree:
//!
//! | text | reading |
//! |---|---|
//! | `c\at` | an escape, except in what looks like a Windows path (`C:\at`, `..\at`, `%TEMP%\at`) |
//! | `c^at` | cmd.exe's escape, if a letter or another `^` follows |
//! | `%COMSPEC%`, `%X:~0,1%` | a variable of cmd.exe |
//! | `$IFS`, `${IFS}`, `$IFS$9` | white space |
//! | `$x`, `${x}` | what [`Variables`] know; else nothing, as an unset variable is |
//! | `$@`, `$*`, `$1`, `$()`, two back-ticks | nothing |
//! | `$(...)`, back-ticks, `$((...))` | something unknown; their inside is for a lexer that starts there |
//! | a quote that does not close within [`WINDOW_BYTES_MAX`] bytes | the end of the word |
//!
//! ```
//! use portcullis_lex::shell::{Lexer, Marks, TokenKind, Variables};
//! let mut lexer = Lexer::new(b"c''at$IFS/etc/pass?d|sh", 0, Variables::default());
//! let word = lexer.next().unwrap();
//! assert_eq!(lexer.text(), b"cat");
//! assert!(word.kind.marks().has(Marks::SPLIT));
//! assert_eq!(lexer.next().map(|_| lexer.text().to_vec()), Some(b"/etc/pass?d".to_vec()));
//! assert_eq!(lexer.next().unwrap().kind, TokenKind::Pipe);
//! ```

mod escape;
mod lexer;
mod token;
mod variables;
mod word;

pub use lexer::Lexer;
pub use token::{Marks, Token, TokenKind};
pub use variables::Variables;

/// Limit on the search for the end of a quote or an expansion.
pub const WINDOW_BYTES_MAX: usize = 256;

/// Bytes of a word that are kept after expansion.
pub const WORD_BYTES_MAX: usize = 96;
