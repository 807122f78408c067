//! The bytes of one stream that go to the peer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use h2::client::SendRequest;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::HeaderMap;
use tokio::io::AsyncWrite;

use super::failed;
#[cfg(feature = "http3")]
use crate::http3;

/// Bytes handed to the library at a time.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// The sending half of the stream.
pub(crate) struct Sender {
    pub(super) state: Send,
    /// Bytes after which the stream ends, if that is known.
    pub(super) last: Option<usize>,
}

pub(super) enum Send {
    /// The head of the answer has not gone.
    Head(SendResponse<Bytes>),
    /// The head of the request has not gone.
    Request(SendRequest<Bytes>),
    Body(SendStream<Bytes>),
    /// An answer over HTTP/3, head and all.
    #[cfg(feature = "http3")]
    Quic(http3::Outgoing),
    Ended,
}

impl Sender {
    pub(super) fn new(state: Send) -> Self {
        Sender { state, last: None }
    }

    /// Gives the stream up, unless our side has ended: what was sent is not all of it.
    pub(crate) fn give_up(&mut self, reason: Reason) {
        match &mut self.state {
            Send::Head(respond) => respond.send_reset(reason),
            Send::Body(stream) => stream.send_reset(reason),
            #[cfg(feature = "http3")]
            Send::Quic(outgoing) => return outgoing.give_up(http3::code(reason)),
            Send::Request(_) | Send::Ended => {}
        }
        self.state = Send::Ended;
    }

    /// Ends it, if that has not been done.
    pub(crate) fn finish(&mut self, trailers: Option<HeaderMap>) -> io::Result<()> {
        let stream = match &mut self.state {
            Send::Body(stream) => stream,
            #[cfg(feature = "http3")]
            Send::Quic(outgoing) => return outgoing.finish(trailers),
            _ => return Ok(()),
        };
        let sent = match trailers {
            Some(trailers) => stream.send_trailers(trailers),
            None => stream.send_data(Bytes::new(), true),
        };
        self.state = Send::Ended;
        sent.map_err(failed)
    }
}

impl AsyncWrite for Sender {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sender = self.get_mut();
        let stream = match &mut sender.state {
            Send::Body(stream) => stream,
            // Its end is sent by itself; there is no frame that has both.
            #[cfg(feature = "http3")]
            Send::Quic(outgoing) => return outgoing.poll_write(context, slices),
            _ => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        };
        let wanted = slices.iter().map(|slice| slice.len()).sum::<usize>().min(WRITE_BYTES_MAX);
        if wanted == 0 {
            return Poll::Ready(Ok(0));
        }
        stream.reserve_capacity(wanted);
        while stream.capacity() == 0 {
            match ready!(stream.poll_capacity(context)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(failed(error))),
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
        let count = wanted.min(stream.capacity());
        let mut data = BytesMut::with_capacity(count);
        for slice in slices {
            data.extend_from_slice(&slice[..slice.len().min(count - data.len())]);
        }
        let end = sender.last == Some(count);
        if let Some(last) = &mut sender.last {
            *last = last.saturating_sub(count);
        }
        stream.send_data(data.freeze(), end).map_err(failed)?;
        if end {
            sender.state = Send::Ended;
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish(None))
    }
}
