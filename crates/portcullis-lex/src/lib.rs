//! Tolerant tokenizers of the languages that injections speak, and of the wire format of Protocol Buffers. No
//! knowledge of attacks.
//!
//! ```text
//! bytes of a value ──lexer──> tokens with spans ──> portcullis-semantic's detectors
//! ```
//!
//! Common properties:
//! - **Any bytes are input.** What is not a token of the language is a token that says so; nothing is an
//!   error.
//! - **Fragments.** A value is rarely a whole program; a lexer may be started at any offset.
//! - **Linear.** Each byte is looked at a bounded number of times; nothing recurses but `graphql`, within a
//!   bound, and nothing is allocated but by what decodes Base64.
//! - **Dialects.** Where dialects disagree the lexer takes the reading that sees more, and says so at the
//!   place.
//!
//! One module per language; each has its own tests in plain text.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod base64;
pub mod expr;
pub mod graphql;
pub mod html;
pub mod js;
pub mod path;
pub mod protobuf;
pub mod shell;
pub mod sql;
pub mod url;
