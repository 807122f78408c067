//! The bytes of one stream that come from the peer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::RecvStream;
use h2::client::ResponseFuture;
use http::{HeaderMap, response};
use tokio::io::{AsyncRead, ReadBuf};

use super::failed;
#[cfg(feature = "http3")]
use crate::http3;

/// The receiving half of the stream.
pub(crate) struct Receiver {
    pub(super) state: Receive,
    pub(super) pending: Bytes,
    /// The head of an endpoint's answer, until it is asked for.
    pub(super) head: Option<response::Parts>,
    trailers: Option<HeaderMap>,
}

pub(super) enum Receive {
    /// The request has not gone.
    Nothing,
    /// The head of the answer has not come.
    Awaited(ResponseFuture),
    /// The request could not be sent.
    Failed(Option<h2::Error>),
    Body(RecvStream),
    /// The body of a request over HTTP/3.
    #[cfg(feature = "http3")]
    Quic(http3::Incoming),
    Ended,
}

impl Receiver {
    /// The trailers.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    pub(super) fn new(state: Receive) -> Self {
        Receiver { state, pending: Bytes::new(), head: None, trailers: None }
    }

    /// Waits for the head of an answer.
    pub(super) fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        let Receive::Awaited(answer) = &mut self.state else { return Poll::Ready(Ok(())) };
        let (head, body) = ready!(Pin::new(answer).poll(context))?.into_parts();
        self.head = Some(head);
        self.state = if body.is_end_stream() { Receive::Ended } else { Receive::Body(body) };
        Poll::Ready(Ok(()))
    }

    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if !self.pending.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match &mut self.state {
                Receive::Nothing | Receive::Failed(_) => return Poll::Pending,
                Receive::Ended => return Poll::Ready(Ok(())),
                Receive::Awaited(_) => ready!(self.poll_head(context)).map_err(failed)?,
                Receive::Body(receive) => match ready!(receive.poll_data(context)) {
                    Some(Ok(data)) => self.pending = data,
                    Some(Err(error)) => return Poll::Ready(Err(failed(error))),
                    None => {
                        self.trailers = ready!(receive.poll_trailers(context)).map_err(failed)?;
                        self.state = Receive::Ended;
                    }
                },
                #[cfg(feature = "http3")]
                Receive::Quic(incoming) => match ready!(incoming.poll_data(context)) {
                    Some(data) => self.pending = data?,
                    None => {
                        self.trailers = ready!(incoming.poll_trailers(context))?;
                        self.state = Receive::Ended;
                    }
                },
            }
        }
    }
}

impl AsyncRead for Receiver {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let receiver = self.get_mut();
        ready!(receiver.poll_more(context))?;
        let count = receiver.pending.len().min(into.remaining());
        if count > 0 {
            into.put_slice(&receiver.pending[..count]);
            receiver.pending.advance(count);
            if let Receive::Body(receive) = &mut receiver.state {
                // The peer may send as much more as has been read.
                receive.flow_control().release_capacity(count).map_err(failed)?;
            }
        }
        Poll::Ready(Ok(()))
    }
}
