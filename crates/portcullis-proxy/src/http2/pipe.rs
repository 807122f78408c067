//! The bytes of one stream: those of the peer's body to read, those of our body to write. The peer is a
//! client whose request has come, or an endpoint that a request goes to.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::SendRequest;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response, response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::failed;
use super::pace::Pace;
use super::permit::StreamPermit;
use super::receiver::{Receive, Receiver};
use super::sender::{Send, Sender};
#[cfg(feature = "http3")]
use crate::http3;

/// One stream as a connection of its own. Its end is the end of the stream.
pub(crate) struct Pipe {
    receive: Receiver,
    send: Sender,
    /// The rate that a client must keep.
    pace: Option<Pace>,
    /// The stream's count on a connection to an endpoint.
    permit: Option<StreamPermit>,
    /// Ends with the QUIC connection that the stream belongs to.
    #[cfg(feature = "http3")]
    closed: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Pipe {
    /// The stream of a request whose head has come.
    pub(super) fn answering(receive: RecvStream, respond: SendResponse<Bytes>, pace: Pace) -> Self {
        let state = if receive.is_end_stream() { Receive::Ended } else { Receive::Body(receive) };
        Pipe {
            receive: Receiver::new(state),
            send: Sender::new(Send::Head(respond)),
            pace: Some(pace),
            permit: None,
            #[cfg(feature = "http3")]
            closed: None,
        }
    }

    /// The stream of a request whose head has come over HTTP/3; `ended`: it has no body.
    #[cfg(feature = "http3")]
    pub(crate) fn over_quic(
        incoming: http3::Incoming,
        outgoing: http3::Outgoing,
        ended: bool,
        pace: Pace,
        closed: impl Future<Output = ()> + 'static,
    ) -> Self {
        Pipe {
            receive: Receiver::new(if ended { Receive::Ended } else { Receive::Quic(incoming) }),
            send: Sender::new(Send::Quic(outgoing)),
            pace: Some(pace),
            permit: None,
            closed: Some(Box::pin(closed)),
        }
    }

    /// Waits until all that was written has gone to the transport.
    #[cfg(feature = "http3")]
    pub(crate) fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Send::Quic(outgoing) = &mut self.send.state {
            outgoing.poll_sent(context)
        } else {
            Poll::Ready(Ok(()))
        }
    }

    /// A stream for a request to an endpoint; without a permit if the connection is its own.
    pub(crate) fn asking(send: SendRequest<Bytes>, permit: Option<StreamPermit>) -> Self {
        Pipe {
            receive: Receiver::new(Receive::Nothing),
            send: Sender::new(Send::Request(send)),
            pace: None,
            permit,
            #[cfg(feature = "http3")]
            closed: None,
        }
    }

    /// Sends the head of a request; with `end` it has no body. Not before the connection has room for one
    /// more stream. If it cannot be sent, the answer says why.
    pub(crate) fn poll_request(
        &mut self,
        context: &mut Context<'_>,
        request: &mut Option<Request<()>>,
        end: bool,
    ) -> Poll<bool> {
        let Send::Request(send) = &mut self.send.state else { return Poll::Ready(false) };
        let sent = match (ready!(send.poll_ready(context)), request.take()) {
            (Ok(()), Some(request)) => send.send_request(request, end),
            (Ok(()), None) => return Poll::Ready(false),
            (Err(error), _) => Err(error),
        };
        match sent {
            Ok((answer, stream)) => {
                self.receive.state = Receive::Awaited(answer);
                self.send.state = if end { Send::Ended } else { Send::Body(stream) };
                Poll::Ready(true)
            }
            Err(error) => {
                self.receive.state = Receive::Failed(Some(error));
                self.send.state = Send::Ended;
                Poll::Ready(false)
            }
        }
    }

    /// True if a request on this stream may be an extended CONNECT. Waits until the endpoint has said so or
    /// not.
    pub(crate) async fn offers_websocket(&self) -> bool {
        let Send::Request(send) = &self.send.state else { return false };
        if let (false, Some(permit)) = (send.is_extended_connect_protocol_enabled(), &self.permit) {
            permit.heard().await;
        }
        send.is_extended_connect_protocol_enabled()
    }

    /// The head of an answer to that: an interim one, or the last.
    pub(crate) fn poll_answer(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<response::Parts, h2::Error>> {
        if let Some(head) = self.receive.head.take() {
            return Poll::Ready(Ok(head));
        }
        let answer = match &mut self.receive.state {
            Receive::Awaited(answer) => answer,
            Receive::Failed(error) => {
                return Poll::Ready(Err(error.take().unwrap_or(Reason::INTERNAL_ERROR.into())));
            }
            #[cfg(feature = "http3")]
            Receive::Quic(_) => return Poll::Ready(Err(Reason::INTERNAL_ERROR.into())),
            Receive::Nothing | Receive::Body(_) | Receive::Ended => {
                return Poll::Ready(Err(Reason::INTERNAL_ERROR.into()));
            }
        };
        if let Poll::Ready(Some(interim)) = answer.poll_informational(context) {
            return Poll::Ready(interim.map(|interim| interim.into_parts().0));
        }
        ready!(self.receive.poll_head(context))?;
        self.receive.head.take().map_or(Poll::Pending, |head| Poll::Ready(Ok(head)))
    }

    /// No new requests go on this stream's connection to an endpoint.
    pub(crate) fn leave_connection(&self) {
        if let Some(permit) = &self.permit {
            permit.leave();
        }
    }

    /// The peer has reset the stream, or its connection is gone.
    pub(crate) fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.send.state {
            Send::Head(respond) => respond.poll_reset(context).map(|_| ()),
            Send::Body(stream) => stream.poll_reset(context).map(|_| ()),
            #[cfg(feature = "http3")]
            Send::Quic(_) => match &mut self.closed {
                Some(closed) => closed.as_mut().poll(context),
                None => Poll::Pending,
            },
            Send::Request(_) | Send::Ended => Poll::Pending,
        }
    }

    /// All of the answer has come.
    pub(crate) fn is_received(&self) -> bool {
        self.receive.pending.is_empty() && matches!(self.receive.state, Receive::Ended)
    }

    /// The trailers.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        self.receive.trailers()
    }

    /// Takes the way from the peer away: another task reads.
    pub(crate) fn take_receiver(&mut self) -> Receiver {
        std::mem::replace(&mut self.receive, Receiver::new(Receive::Ended))
    }

    /// Takes the way to the peer away: another task writes.
    pub(crate) fn take_sender(&mut self) -> Sender {
        std::mem::replace(&mut self.send, Sender::new(Send::Ended))
    }

    /// Sends the head of an interim answer.
    pub(crate) fn inform(&mut self, head: Response<()>) -> io::Result<()> {
        match &mut self.send.state {
            Send::Head(respond) => respond.send_informational(head).map_err(failed),
            #[cfg(feature = "http3")]
            Send::Quic(outgoing) => outgoing.head(head, false),
            Send::Request(_) | Send::Body(_) | Send::Ended => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Sends the head of the answer; with `end` nothing follows.
    pub(crate) fn respond(&mut self, head: Response<()>, end: bool) -> io::Result<()> {
        let respond = match &mut self.send.state {
            Send::Head(respond) => respond,
            #[cfg(feature = "http3")]
            Send::Quic(outgoing) => return outgoing.head(head, end),
            _ => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        let stream = respond.send_response(head, end).map_err(failed)?;
        self.send.state = if end { Send::Ended } else { Send::Body(stream) };
        Ok(())
    }

    /// The stream ends with the next `count` bytes.
    pub(crate) fn ends_after(&mut self, count: usize) {
        self.send.last = Some(count);
    }

    /// Ends our side, if that has not been done.
    pub(crate) fn finish(&mut self, trailers: Option<HeaderMap>) -> io::Result<()> {
        self.send.finish(trailers)
    }

    /// Gives the stream up, unless our side has ended: what was sent is not all of it.
    pub(crate) fn give_up(&mut self, reason: Reason) {
        self.send.give_up(reason);
    }

    /// The peer has taken nothing for too long, or too little.
    pub(crate) fn stalled(&mut self) {
        if let Some(pace) = &self.pace {
            pace.count_stalled();
        }
        self.give_up(Reason::ENHANCE_YOUR_CALM);
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().receive).poll_read(context, into)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let pipe = self.get_mut();
        let written = Pin::new(&mut pipe.send).poll_write_vectored(context, slices);
        let Some(pace) = &mut pipe.pace else { return written };
        let Poll::Ready(Ok(count)) = &written else {
            if written.is_pending() {
                pace.waits();
            }
            return written;
        };
        if !pace.goes_on() {
            pipe.stalled();
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        pace.took(*count);
        written
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
