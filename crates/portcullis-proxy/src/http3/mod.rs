//! HTTP/3 to clients: QUIC by `quinn`, frames and header compression by `h3`. Above these it is as over
//! HTTP/2: a request becomes the head that its HTTP/1 twin would have, with the same checks, its bodies are a
//! [`Pipe`](crate::http2::Pipe), and the exchange does not know the difference.

mod checked;
mod frames;
mod serve;
mod stream;

pub(crate) use serve::{accept, code, endpoint};
pub(crate) use stream::{Incoming, Outgoing};
