//! Our own requests over HTTP and HTTPS, and the certificate authorities that we trust.
//!
//! Every request of the program goes through a [`Client`], of which there are two sorts: one asks peers that
//! the configuration names, directly and without following redirects; one downloads public files over HTTPS.
//! A [`Receiver`] is a client of one URL:
//!
//! ```text
//!  body ──> Receiver::send ──> Answer ──accepted──> body of the answer
//!                  │              └── not now, or never ──┐
//!                  └── not connected, broken, late ───────┴──> NotTaken
//! ```
//!
//! Receivers may be down, slow or hostile: collectors of traces and logs, databases, webhooks.
//!
//! - An answer is read up to a limit ([`ANSWER_BYTES_MAX`], or one of its own where it is what counts:
//!   [`Receiver::ask`]); connecting, sending and reading end after one time limit.
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

mod client;
mod receiver;
mod trust;

pub use client::{Body, Client, Connections, Error};
pub use receiver::{
    ANSWER_BYTES_MAX, Answer, NotTaken, Receiver, Settings, Validators, basic_login, is_retryable_in_otlp,
};
pub use trust::{Authorities, certificates, pem};
