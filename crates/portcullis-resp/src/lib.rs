//! A connection to Redis or Valkey that believes nothing: answers have an end, and so has each exchange.
//!
//! ```text
//! commands ──one write──> server ──> answers, read value by value; more bytes, values or time than allowed are an error
//! ```
//!
//! A store that has gone wrong, or that an attacker has taken over, must cost the process neither memory nor
//! a thread. So the reader counts what it keeps while it reads, and the deadline is that of the whole
//! exchange, however many bytes drip in. After an error the connection is not used any more. It speaks RESP2
//! as servers do unless asked otherwise: no pushes, no attributes.
//!
//! ```
//! use portcullis_resp::Client;
//!
//! assert!(Client::new("redis://:secret@192.0.2.1:6379/3").is_ok());
//! let wrong = Client::new("redis://192.0.2.1/three").unwrap_err();
//! assert_eq!(wrong, "the database is a number, not `three`");
//! ```

#![warn(clippy::wildcard_enum_match_arm)]

mod address;
mod command;
mod reply;
mod timed;

pub use address::Client;
pub use command::Command;
pub use reply::{Limits, Reply};
pub use timed::Connection;
