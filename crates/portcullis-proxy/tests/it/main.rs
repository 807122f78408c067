//! The integration tests of the crate: one program, a module for each subject.

mod aborts;
mod access;
mod bans;
mod bodies;
mod body_table;
mod bounds;
mod coalescing;
mod codings;
mod common;
mod compression;
mod cookies;
#[path = "../../../portcullis-http/tests/it/framing/mod.rs"]
mod framing;
mod geo;
mod http;
mod http2;
mod http2_limits;
mod http2_upstreams;
mod http2_websockets;
mod lifecycle;
mod limits;
mod logins;
mod names;
mod network;
mod rate_limits;
mod routes;
mod rule_limits;
mod shared_limits;
mod smuggling;
mod tls;
mod trailers;
mod upstreams;
