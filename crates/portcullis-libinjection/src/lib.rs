//! A libinjection-compatible SQL injection and XSS detector.
//!
//! Rules such as `@detectSQLi` and `@detectXSS` ask whether a value looks like an attack on a database or a
//! browser, whatever pattern it was written to avoid. libinjection answers by reading the value as a
//! tokenizer of the language would. This crate gives the same answers as libinjection (commit 85e252a, after
//! 3.9.2), fingerprints included, in safe code that allocates nothing:
//!
//! ```text
//!              as it is          ┌───────────┐ tokens ┌──────┐ at most five ┌─────────────┐
//!  value ──┬─> after ' ────────> │ Tokenizer │ ─────> │ fold │ ───────────> │ Fingerprint │ ─> listed, not harmless?
//!          │   after "           └───────────┘        └──────┘              └─────────────┘
//!          │   text              ┌───────────────┐ tags, attributes, comments
//!          └─> in a tag ───────> │ HtmlTokenizer │ ──────────────────────────> can it run a script?
//!              in a quoted value └───────────────┘
//! ```
//!
//! ```
//! let found = portcullis_libinjection::sqli(b"1' OR '1'='1").expect("an attack");
//! assert_eq!(found.as_str(), "s&sos");
//! assert!(portcullis_libinjection::sqli(b"O'Neil and sons").is_none());
//!
//! assert!(portcullis_libinjection::xss(b"<img src=x onerror=alert(1)>"));
//! assert!(!portcullis_libinjection::xss(b"1 < 2 and a = b"));
//! ```
//!
//! Both take time linear in the input: SQL is read at most five times, HTML at most five times, and no state
//! reads a byte more than a constant number of times. Neither recurses, allocates or panics.
//!
//! Not in this crate: decoding (percent-encoding and the like are transformations, which come first),
//! explanations, and attacks that libinjection does not find. Where libinjection's answer depends on the
//! machine or on bytes after its input, this crate answers as libinjection does on x86-64 with a NUL after
//! the input.
//!
//! The tables of words, fingerprints, tags and attributes are libinjection's, under the BSD 3-clause licence
//! in `LICENSE-libinjection`.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod sqli;
pub mod xss;

pub use sqli::Fingerprint;

use portcullis_types::ByteSet;

/// The fingerprint of the SQL injection that the input looks like, if it does.
pub fn sqli(input: &[u8]) -> Option<Fingerprint> {
    sqli::detect(input)
}

/// Returns true if the input looks like cross-site scripting.
pub fn xss(input: &[u8]) -> bool {
    xss::detect(input)
}

/// Bytes of which every input has one that [`sqli()`] takes for an attack: it is more than numbers and a
/// word.
pub fn sqli_needs() -> ByteSet {
    let of_words =
        ByteSet::range(b'a', b'z').union(ByteSet::range(b'A', b'Z')).union(ByteSet::range(b'0', b'9'));
    of_words.with(b'_').complement()
}

/// Bytes of which every input has one that [`xss()`] takes for an attack.
pub fn xss_needs() -> ByteSet {
    ByteSet::of(b"<=")
}
