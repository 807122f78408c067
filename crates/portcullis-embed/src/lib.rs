//! The engine as a library in an application: a [`Waf`] is a policy at work, and every exchange with a client
//! is shown to it.
//!
//! ```text
//! Builder (policy) or Builder::document (file) ──build──> Waf ──begin──> Exchange: head, bodies, response
//!                                                          ├──inspect──> Verdict on a whole request
//!                                                          └── reload, metrics;  events ──> the application's sink
//! ```
//!
//! ```
//! use portcullis_embed::{Builder, Client};
//!
//! let waf = Builder::semantic().on_event(|event| println!("{}", event.json_line())).build()?;
//!
//! let request = http::Request::get("/search?q=%27%20OR%20%271%27=%271%27%20--%20-").header("host", "shop.example");
//! let verdict = waf.inspect(&request.body("")?, Client::at([192, 0, 2, 7], 50123));
//!
//! let block = verdict.answer.expect("a block page");
//! assert_eq!(block.status(), 403);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The verdicts, block pages, events and limits are those of the proxy. What stands in front of the
//! application has cleaned up by the time the library sees a request: framing, bytes that an HTTP server
//! refuses or changes, and everything on the way to the client are not seen. Nothing here opens a socket;
//! `portcullis-tower` waits for bodies.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod answer;
mod builder;
mod error;
mod exchange;
mod waf;

pub use builder::Builder;
pub use error::BuildError;
pub use exchange::{Broken, Exchange, Passed};
pub use portcullis_config::{Body, Failure, Mode, OpenOrClosed, Policy};
pub use portcullis_event::{Action, Event};
pub use portcullis_exchange::Told;
pub use portcullis_http::h1::RequestParts;
pub use portcullis_http::message::{BodyFraming, Version};
pub use portcullis_types::Level;
pub use waf::{Client, Verdict, Waf};
