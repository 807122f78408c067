//! Our own requests over HTTP and HTTPS, and the certificate authorities that we trust.
//!
//! ```text
//!  body ──> Receiver::send ──> Answer ──accepted──> body of the answer
//!                  │              └── not now, or never ──┐
//!                  └── not connected, broken, late ───────┴──> NotTaken
//! ```
//!
//! Receivers may be down, slow or hostile: collectors of traces and logs, databases, webhooks.
//!
//! - Redirects are not followed: an answer cannot send us, with what we carry, to another host.
//! - No proxy that the environment names is used: the receiver is the one that the configuration names.
//! - An answer is read up to [`ANSWER_BYTES_MAX`], or a limit of its own where it is what counts
//!   ([`Receiver::ask`]); connecting, sending and reading end after one time limit.
//! - No text of an error has the URL in it, which may be a secret (webhooks) or have one.
//!
//! ```
//! use std::time::Duration;
//! use portcullis_fetch::{NotTaken, Receiver, Settings};
//!
//! let settings = Settings {
//!     url: "http://127.0.0.1:1/secret".to_string(),
//!     ca: None,
//!     headers: vec![("Content-Type".to_string(), "application/json".to_string())],
//!     timeout: Duration::from_secs(1),
//! };
//! let Err(NotTaken::ForNow { why, .. }) = Receiver::new(settings, "ca").unwrap().send(b"{}") else {
//!     panic!("nothing listens there");
//! };
//! assert!(!why.contains("secret"), "{why}");
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod receiver;
mod trust;

pub use receiver::{
    ANSWER_BYTES_MAX, Answer, NotTaken, Receiver, Settings, basic_login, is_retryable_in_otlp,
};
pub use trust::{Authorities, certificates, pem};
