//! SecLang transformations (`t:`): bytes to bytes.
//!
//! ```text
//!   value ──t:urlDecodeUni──> bytes ──t:htmlEntityDecode──> bytes ──> operator
//!              │
//!              └─ no byte of Transformation::triggers in it: the value itself, nothing copied
//! ```
//!
//! [`Transformation`] is the one list of them; each is described in the file that has it. The reference is
//! ModSecurity 2.9.7, and where two versions or C's NUL-terminated strings disagree the file says what we do
//! and why.
//!
//! A transformation appends to a buffer of the caller's and allocates nothing else. Any bytes will do as
//! input: none makes it panic, it takes linear time, and the length of the result is bounded by
//! [`Transformation::length_max`].
//!
//! Not in this crate: which transformations a rule has, caching their results, and the parsing of bodies.
//! Only [`url::decode_form`] is shared with that.
//!
//! ```
//! use portcullis_decode::Transformation;
//!
//! let mut out = Vec::new();
//! assert!(Transformation::UrlDecodeUni.apply(b"1%27+or+%u0031", &mut out));
//! assert_eq!(out, b"1' or 1");
//!
//! out.clear();
//! assert!(!Transformation::UrlDecodeUni.apply(b"plain", &mut out));
//! assert!(out.is_empty());
//!
//! assert_eq!(Transformation::from_name("NORMALISEPATH"), Some(Transformation::NormalizePath));
//! ```

#![warn(clippy::wildcard_enum_match_arm)]

mod base64;
mod bound;
mod case;
mod cmd_line;
mod comments;
mod css_decode;
mod digest;
mod escape_seq_decode;
mod hex;
mod html_entity_decode;
mod js_decode;
mod length;
mod normalize_path;
mod nulls;
mod parity;
mod residue;
mod scan;
mod transformation;
mod trim;
mod unicode_map;
pub mod url;
mod utf8_to_unicode;
mod whitespace;

pub use residue::{is_escaped, is_removed, residue};
pub use transformation::{Effect, Sign, Transformation};
pub use unicode_map::{UnicodeMap, UnknownCodePage};
