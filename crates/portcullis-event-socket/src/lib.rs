//! Events of other processes of this machine, over a local socket, to the one that has the event store: nginx
//! workers with our libmodsecurity, `portcullis serve` beside a server.
//!
//! ```text
//!  worker ──> queue ──> thread ─┐  JSON lines
//!                       Forward ├──────────────> Listener, one thread ──> store, files, sinks
//!  serve  ──> queue ──> thread ─┘ <──────────────
//!                                  lines taken
//! ```
//!
//! A line is an event as [`Event::json_line`](portcullis_event::Event::json_line) writes it, with the
//! `integration` that it comes from, or a report of what the sender has lost: `{"lost":{"queue_full":3}}`.
//! When the listener has taken all lines that have arrived, it answers with their number since the connection
//! began, as a line. So both ends know what got lost in between.
//!
//! Neither end makes anything wait. The sender's queue is bounded and drops the newest; where nobody listens,
//! it connects again. The listener bounds connections, lines and the names that a peer may invent, and asks
//! the kernel which user a peer is. A peer that breaks these rules loses its own connection.
//!
//! The event store, and what an event means, are not known here.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod client;
mod connection;
mod forward;
mod line;
mod listener;
mod metrics;
mod open;

pub use forward::Forward;
pub use line::LINE_BYTES_MAX;
pub use listener::{CLIENTS_MAX, HasRoom, Listener, OnEvent, Settings};
pub use open::OpenError;

use std::sync::Arc;

/// Takes a line for the operator.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;
