//! Verdicts for other servers: what nginx, Caddy, Traefik, HAProxy and Envoy show of an exchange is inspected
//! as the proxy would, and they get the verdict.
//!
//! ```text
//!  nginx, Caddy, Traefik ── HTTP/1 subrequest ──> check ─┐
//!  HAProxy ─────────────── SPOP frames ─────────> spop  ─┼─> Conversation ──> verdict, event, metrics
//!  Envoy ───────────────── gRPC ────────────────> envoy ─┘    head in, body in, response in
//! ```
//!
//! A [`Service`] is what all connections share, and a [`Server`] accepts connections of trusted peers and
//! hands them to its threads. Each exchange is a conversation of `portcullis-exchange`, whose event names the
//! kind of integration and the parts of the exchange that were not shown.
//!
//! The crate forwards nothing and does not know SecLang. What it cannot read gets no verdict: the server that
//! asks gets an error, and decides; the shipped configurations refuse then.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod check;
mod envoy;
mod server;
mod service;
mod spop;

pub use check::HeaderFamily;
pub use server::{Protocol, Server};
pub use service::{Limits, Service};
