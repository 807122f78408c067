//! HTTP/2 to clients, and what upstreams and HTTP/3 share of it. Frames, header compression and flow control
//! are the `h2` crate's; what a request is, is ours.
//!
//! ```text
//! socket ── meter ── h2::server ──> serve: one task for each stream ──> exchange, as for HTTP/1
//!           counts frames,          head: the parts as a RequestHead     reads and writes a Pipe:
//!           ends floods             with the checks of HTTP/1            the bytes of the two bodies
//! ```
//!
//! A stream is a [`Pipe`]: the bytes of the request body one way, those of the answer the other. Heads and
//! trailers go beside it. So the exchange does not know what it runs on, but for the one place where answers
//! are framed (`sink.rs`).

mod bucket;
mod frames;
mod head;
mod meter;
mod pace;
mod permit;
mod pipe;
mod receiver;
mod sender;
mod serve;

pub(crate) use head::{fields, outgoing, response};
#[cfg(feature = "http3")]
pub(crate) use head::{request, websocket_key};
#[cfg(feature = "http3")]
pub(crate) use pace::Pace;
pub(crate) use permit::{SettingsAwaited, StreamPermit};
pub(crate) use pipe::Pipe;
#[cfg(feature = "http3")]
pub(crate) use serve::InFlight;
pub(crate) use serve::{Active, serve};

/// The preface of a client with prior knowledge.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn failed(error: h2::Error) -> std::io::Error {
    std::io::Error::other(error)
}
