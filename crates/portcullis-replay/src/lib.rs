//! Messages through an inspection without a server: an explanation of one, and verdicts on many.
//!
//! ```text
//! text of a person --read_message / read_curl--> Message --explain--> Explanation
//!                                                        --Run-----> verdict
//! request --Field--> with another value --Trial--> event
//! ```
//!
//! Nothing here touches traffic: collections start empty, no audit record is made, and neither DNS nor a
//! virus scanner is asked.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod curl;
mod encode;
mod explain;
mod field;
mod har;
mod message;
mod run;
mod trial;

pub use curl::{CurlError, read_curl};
pub use explain::{Exchange, Explanation, explain};
pub use field::Field;
pub use har::{HarError, read_har};
pub use message::{Message, read_message};
pub use run::{Run, connection, parse, parse_response};
pub use trial::{Trial, Tried};
