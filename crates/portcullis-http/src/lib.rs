//! HTTP as an attacker sends it: message model, HTTP/1 codec, body parsers. Sans-IO.
//!
//! ```text
//! bytes from the client                                                    bytes to the upstream
//!    |                                                                            ^
//!    v                                                                            |
//! proxy_protocol > h1::RequestParser > message::RequestHead ─────────────> h1::write_request
//!                                        |        | cookie::…, forwarded::…   (framing made anew)
//!                  h1::BodyDecoder <─────┘        v
//!                        | decoded slices    rules, phase 1
//!                        v
//!                  body::… parsers > arguments, files, parts > rules, phase 2
//! ```
//!
//! Three ideas:
//! - **Evidence.** A [`message::RequestHead`] owns the bytes as they were received. Nothing is dropped,
//!   lower-cased or decoded before rules see it, and a head that is refused still shows what it held.
//! - **One reading.** What servers are known to read differently is refused ([`message::Refusal`]) or noted
//!   ([`message::Oddity`]) and written anew in the one form that has one reading.
//! - **No waiting.** Parsers are fed slices and say whether they need more. However the input is cut, the
//!   outcome is the same.
//!
//! ```
//! use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser};
//!
//! let request = b"GET /search?q=%3Cscript%3E HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked, x\r\n\r\n";
//! match RequestParser::new(Limits::default(), Compat::Strict).parse(request) {
//!     Parsed::Refused { partial, refusal } => {
//!         assert_eq!(refusal.status(), 400);
//!         assert_eq!(partial.path(), b"/search"); // rules run over it before 400 is answered
//!     }
//!     other => panic!("{other:?}"),
//! }
//! ```
//!
//! It refuses to do I/O, to know rules, and to guess: where a body's end is in doubt there is no body, only a
//! refusal.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod body;
pub mod coding;
pub mod cookie;
pub mod forwarded;
pub mod h1;
pub mod message;
mod own_name;
pub mod proxy_protocol;

pub use own_name::is_own_name;
