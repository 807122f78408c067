//! The SQL injection detector.
//!
//! An input is read as if it stood in a statement in up to five [`Context`]s: as it is, after `'`, after `"`,
//! each by standard or by MySQL rules where that makes a difference. In each, the [`Tokenizer`] cuts it into
//! tokens, [`fold`] leaves at most five, and their kinds are the [`Fingerprint`]. It is an attack if the
//! fingerprint is one of a list and the tokens of a short one do not look harmless.

mod bytes;
mod fingerprint;
mod fold;
mod literals;
mod token;
mod tokenizer;
mod verdict;
mod words;
mod words_data;

pub use fingerprint::Fingerprint;
pub use fold::{Folded, TOKENS_MAX, fold};
pub use token::{Token, TokenKind, VALUE_BYTES_MAX};
pub use tokenizer::Tokenizer;

/// The context in which an input is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The quote before the input.
    pub quote: Quote,
    /// The dialect of comments.
    pub dialect: Dialect,
}

/// The quote that is open where the input begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quote {
    /// None.
    #[default]
    None,
    /// `'`
    Single,
    /// `"`
    Double,
}

impl Quote {
    fn byte(self) -> Option<u8> {
        match self {
            Quote::None => None,
            Quote::Single => Some(b'\''),
            Quote::Double => Some(b'"'),
        }
    }
}

/// The dialect whose rules for `#` and `--` hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `--` begins a comment, `#` is an operator.
    #[default]
    Ansi,
    /// `--` begins a comment only before a blank, `#` always.
    MySql,
}

pub(crate) fn detect(input: &[u8]) -> Option<Fingerprint> {
    let has = |byte| memchr::memchr(byte, input).is_some();
    in_both_dialects(input, Quote::None)
        .or_else(|| if has(b'\'') { in_both_dialects(input, Quote::Single) } else { None })
        // Only MySQL puts strings in double quotes.
        .or_else(|| if has(b'"') { in_dialect(input, Quote::Double, Dialect::MySql).0 } else { None })
}

fn in_both_dialects(input: &[u8], quote: Quote) -> Option<Fingerprint> {
    match in_dialect(input, quote, Dialect::Ansi) {
        (None, true) => in_dialect(input, quote, Dialect::MySql).0,
        (found, _) => found,
    }
}

/// The fingerprint of an attack, and whether another dialect would read the input differently.
fn in_dialect(input: &[u8], quote: Quote, dialect: Dialect) -> (Option<Fingerprint>, bool) {
    let mut folded = fold(input, Context { quote, dialect });
    (verdict::verdict(input, &mut folded), folded.seen.dialects_differ)
}
