//! HTTP/1 codec, sans-IO: bytes in, heads and body slices out. It never waits, reads or writes anything by
//! itself.
//!
//! ```text
//! client bytes > RequestParser > RequestHead > BodyDecoder > decoded slices        (in)
//!                                    |
//!            write_request <─────────┘ the same spans, framing made anew           (out, to the upstream)
//!
//! upstream bytes > ResponseParser > ResponseHead > BodyDecoder > decoded slices
//!                                       |
//!            write_response <───────────┘                                          (out, to the client)
//! ```
//!
//! Strict by default. Heads that readers are known to disagree about are refused ([`Refusal`]) or rewritten
//! to the one form that has one reading ([`Oddity`]); the writer makes `Content-Length`, `Transfer-Encoding`
//! and `Connection` anew for every message. The target goes upstream byte for byte as it was received and
//! inspected, including bytes that a URI ought to percent-encode (`<`, `>`, `"`, `{`, `}`, `|`, `^`, the
//! backtick, 0x80 and up): to encode them would show the application something else than the rules saw.

mod assemble;
mod body;
mod bytes;
mod chunked;
mod field;
mod hop;
mod identity;
mod limits;
mod lines;
mod request;
mod request_line;
mod response;
mod semantics;
mod shown;
mod write;
mod write_request;
mod write_response;

pub use assemble::{RequestParts, Trailers, assemble_request, assemble_response, assemble_websocket};
pub use body::{BodyDecoder, BodyError, Decoded};
pub use hop::{is_framing, is_hop_by_hop};
pub use limits::Limits;
pub use request::{Parsed, RequestParser};
pub use response::ResponseParser;
pub use semantics::reads_as;
pub use shown::shown_response;
pub use write::{CHUNK_END, CONTINUE, LAST_CHUNK, write_chunk_size};
pub use write_request::{ForwardedBy, RequestRewrite, write_request};
pub use write_response::{ClientConnection, ResponseRewrite, client_framing, write_answer, write_response};

#[doc(no_inline)]
pub use crate::message::{
    BodyFraming, Field, Oddity, Refusal, RequestHead, ResponseError, ResponseHead, Version,
};

/// The server whose behaviour the request parser follows where servers differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compat {
    /// Refuse what has two readings. The default, and the only one meant for production.
    #[default]
    Strict,
    /// Apache httpd 2.4, whose leniency is meant for running test suites written against it
    /// (`http.compat = "apache"`): `CONNECT host:port`; Content-Length beside `chunked` (the length is
    /// dropped, the connection closes); folded header lines (joined with a space); headers of the same name
    /// (joined with a comma); HTTP/0.9 requests; versions such as HTTP/4.0 (treated as 1.1).
    Apache,
}
