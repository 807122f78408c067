//! Matching primitives of the operators: what a value is held against, without knowing what a rule is.
//!
//! ```text
//!   rule argument ──(load time)──> Regex | WordSet | IpSet | ByteSet        immutable, shared by all threads
//!                                      │
//!   value bytes ────(run time)─────────┴──> verdict, span of the match      linear time, no allocation
//! ```
//!
//! | operator | type |
//! |---|---|
//! | `@rx` | [`Pcre`]: PCRE patterns, on a linear-time engine ([`Regex`]) or, where that cannot be, under a [`Budget`] |
//! | `@pm`, `@pmFromFile` | [`WordSet`]: many words in one pass |
//! | `@ipMatch`, `@ipMatchFromFile` | [`IpSet`] |
//! | `@validateByteRange` | [`parse_byte_range`], [`first_byte_outside`] |
//! | `@validateUrlEncoding` | [`url_encoding_error`] |
//! | `@validateUtf8Encoding` | [`utf8_error`] |
//!
//! A [`Gate`] says what a text must have before a pattern can match in it, and [`LiteralSets`] say of many
//! gates at once whether their words are there.
//!
//! Arguments come from rule files: a bad one is an error with an offset, at load time. Values come from the
//! network: no value makes anything here panic or allocate without bound, and none but a pattern that
//! backtracks, within its budget, takes more than linear time.
//!
//! Not in this crate: operators that are one comparison (`@streq`, `@within`, `@eq`), macros, captures into
//! `TX`. They belong to the engine.
//!
//! ```
//! use portcullis_match::{Regex, RegexFlags};
//!
//! let regex = Regex::new(br"^/admin/(\w+)$", RegexFlags::default()).unwrap();
//! let mut groups = [None; 10];
//! assert!(regex.captures(b"/admin/users", &mut groups));
//! assert_eq!(groups[1].unwrap().of(b"/admin/users"), b"users");
//! ```
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests have threads"))]
#![warn(clippy::wildcard_enum_match_arm)]

mod byte_range;
mod encoding;
mod facts;
mod gate;
mod ip_set;
mod literals;
mod ranges;
pub mod regex;
mod word_set;

pub use byte_range::{ByteRangeError, first_byte_outside, parse_byte_range};
pub use encoding::{UrlEncodingError, Utf8Error, Utf8Fault, url_encoding_error, utf8_error, utf8_valid};
pub use facts::{FACTS_VERSION, Facts};
pub use gate::{Gate, Gates};
pub use ip_set::{IpSet, IpSetError};
pub use literals::{Folded, LiteralSet, LiteralSets, LiteralSetsBuilder, LiteralTable};
pub use regex::{Budget, Captures, Exhausted, Pcre, Regex, RegexCache, RegexError, RegexFlags};
pub use word_set::{WordSet, WordSetError, parse_pm_words, parse_text, parse_word_file};
