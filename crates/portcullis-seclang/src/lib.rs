//! SecLang front end: text to tree, tree to text, and what is wrong with a text.
//!
//! ```text
//! files ──> lines ──> words ──> directives ──> Document ──> the compiler
//!  Files    lexer     lexer     parser │          │
//!                                      │          └──> print ──> text that reads back as the same Document
//!                                      └──> Diagnostics: every mistake of every file, in one pass
//! ```
//!
//! [`parse`] reads [`Root`]s through [`Files`] and never stops at a mistake: a wrong directive is reported
//! and left out. A document with errors ([`Parsed::has_errors`]) must not be used. The tree ([`ast`]) says
//! what was written and no more: default actions, chains, macros, data files and removals are the compiler's
//! work.
//!
//! Every name of the language stands in one table: [`directives`], [`operators`], [`actions`], and, in the
//! crates below, variables (`portcullis_types::Variable`) and transformations
//! (`portcullis_decode::Transformation`). Names that are known and not supported are errors with a way out,
//! never ignored.
//!
//! Not in this crate: resolving anything, compiling regular expressions, knowledge of requests, opening a
//! file by itself.
//!
//! Texts are cut as Apache and ModSecurity 2 cut them. Where ModSecurity 3 differs (it keeps a doubled
//! backslash), version 2 counts. Files may have a byte order mark, CRLF, NUL and bytes that are not UTF-8.
//! [`limits`] names what a text may ask for.
//!
//! ```
//! use portcullis_seclang::{MemoryFiles, Root, parse, print};
//!
//! let text = br#"
//! SecRule ARGS|!ARGS:comment "@rx (?i)<script" \
//!     "id:1,phase:2,deny,msg:'a, b',t:none,t:lowrcase"
//! "#;
//! let root = Root::Text { name: "site.conf".into(), text: text.to_vec() };
//! let parsed = parse(&[root], &MemoryFiles::default());
//! assert!(parsed.has_errors());
//! let message = parsed.diagnostics[0].render(&parsed.sources);
//! assert!(message.starts_with("site.conf:3:44: error: unknown transformation lowrcase"));
//! assert!(message.ends_with("hint: did you mean lowercase?\n"));
//!
//! let text = String::from_utf8_lossy(text).replace("lowrcase", "lowercase");
//! let root = Root::Text { name: "site.conf".into(), text: text.into_bytes() };
//! let parsed = parse(&[root], &MemoryFiles::default());
//! assert!(parsed.diagnostics.is_empty());
//! assert_eq!(
//!     print(&parsed.document),
//!     b"SecRule ARGS|!ARGS:comment \"@rx (?i)<script\" \"id:1,phase:2,deny,msg:'a, b',t:none,t:lowercase\"\n"
//! );
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod actions;
pub mod ast;
pub mod availability;
pub mod diagnostic;
pub mod directives;
pub mod files;
pub mod glob;
mod lexer;
pub mod limits;
pub mod operators;
mod parser;
mod printer;
mod remote;
pub mod settings;
pub mod source;
mod spanless;
pub mod standing;
mod suggest;

pub use diagnostic::{Diagnostic, Level};
pub use files::{DiskFiles, Files, MemoryFiles};
pub use parser::{Parsed, Root, argument_span, fits_a_place, parse};
pub use printer::print;
pub use remote::RemoteFile;
pub use source::{FileId, Position, SourceSpan, Sources};
