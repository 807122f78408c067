//! The filter language of events: one text for the command line, the API and the console's address bar.
//!
//! ```text
//!  verdict = deny and client in 192.0.2.0/24 and (class = sqli or rule in (942100, 942190)) and time >= -1h
//!  └ field    └ value              └ network                      └ list                      └ an hour ago
//! ```
//!
//! A value alone ([`bare`]) stands for a comparison: `192.0.2.1`, `/admin`, `942100`, a request id.
//!
//! A filter is parsed once ([`parse`]) into a tree of comparisons ([`Filter`]) that event stores evaluate,
//! each in its own way. Everything that can be wrong is found while parsing: unknown fields, comparisons that
//! a field does not have, values that it cannot take. Each mistake has its column and says what would be
//! right.
//!
//! [`Filter::matches`] evaluates a filter over one event in memory; [`Field::number`], [`Field::word`] and
//! [`Field::list`] say what an event has of a field.
//!
//! This crate does not know how events are stored, and it never reads a clock: relative times become absolute
//! ones through the caller's `now`.
//!
//! ```
//! use portcullis_query::parse;
//!
//! let now = 1_790_000_000_000;
//! let filter = parse("status >= 500 and not path ^= \"/health\"", now).unwrap();
//! assert_eq!(filter.to_string(), "status >= 500 and not path ^= \"/health\"");
//!
//! let mistake = parse("statsu = 403", now).unwrap_err();
//! assert_eq!(mistake.to_string(), "column 1: there is no field `statsu`; did you mean `status`?");
//! ```

#![warn(clippy::wildcard_enum_match_arm)]

mod bare;
mod error;
mod event;
mod field;
mod filter;
mod lexer;
mod network;
mod outcome;
mod parser;

pub use bare::bare;
pub use error::Mistake;
pub use field::{Add, Field, Kind, Read, location};
pub use filter::{Comparison, Filter, Operator, Value};
pub use network::Network;
pub use outcome::Outcome;
pub use parser::{TERMS_MAX, TEXT_BYTES_MAX, parse};

#[cfg(test)]
mod tests;
