//! The two directions of one request's stream, polled as those of HTTP/2 are.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use h3::error::{Code, StreamError};
use h3::server::RequestStream;
use http::{HeaderMap, Response};

use super::checked;

/// Bytes handed to the library at a time.
const WRITE_BYTES_MAX: usize = 64 * 1024;

pub(super) type SendHalf = RequestStream<checked::SendHalf, Bytes>;
pub(super) type ReceiveHalf = RequestStream<checked::Receive, Bytes>;

/// The body that the client sends.
pub(crate) struct Incoming {
    /// Boxed, as it brings the reader of its frames.
    stream: Box<ReceiveHalf>,
    /// Bytes that came while we looked whether there is a body.
    first: Option<Bytes>,
    /// Bytes that the head has promised and that have not come. The library does not compare them (RFC 9114,
    /// 4.1.2).
    promised: Option<u64>,
    ended: bool,
}

impl Incoming {
    pub(super) fn new(stream: ReceiveHalf, promised: Option<u64>) -> Self {
        Incoming { stream: Box::new(stream), first: None, promised, ended: false }
    }

    /// The body is known to be empty: its end came with the head.
    pub(super) fn is_empty(&mut self, context: &mut Context<'_>) -> bool {
        match self.poll_data(context) {
            Poll::Ready(Some(Ok(data))) => {
                self.first = Some(data);
                false
            }
            // Reported again to every reader.
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
            Poll::Ready(None) => true,
        }
    }

    /// The next bytes; none at the end.
    pub(crate) fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let data = match ready!(self.stream.poll_recv_data(context)) {
            Ok(Some(mut data)) => data.copy_to_bytes(data.remaining()),
            Ok(None) if self.promised.is_none_or(|left| left == 0) => {
                self.ended = true;
                return Poll::Ready(None);
            }
            Ok(None) => return Poll::Ready(Some(Err(self.malformed()))),
            Err(error) => return Poll::Ready(Some(Err(failed(error)))),
        };
        let count = data.len() as u64;
        match &mut self.promised {
            Some(left) if *left < count => Poll::Ready(Some(Err(self.malformed()))),
            Some(left) => {
                *left -= count;
                Poll::Ready(Some(Ok(data)))
            }
            None => Poll::Ready(Some(Ok(data))),
        }
    }

    pub(crate) fn poll_trailers(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<HeaderMap>>> {
        self.stream.poll_recv_trailers(context).map_err(failed)
    }

    /// The body has another length than its head says.
    fn malformed(&mut self) -> io::Error {
        self.stream.stop_sending(Code::H3_MESSAGE_ERROR);
        io::Error::new(io::ErrorKind::InvalidData, "the body is not as long as Content-Length says")
    }
}

/// The answer on its way to the client.
pub(crate) struct Outgoing {
    state: State,
    /// The next piece to be sent; at most one piece of a body.
    queue: VecDeque<Piece>,
    /// Nothing may be added.
    finished: bool,
}

/// The stream again, and whether it took what it was given.
type Sent = (Box<SendHalf>, Result<(), StreamError>);

enum State {
    Idle(Box<SendHalf>),
    Sending(Pin<Box<dyn Future<Output = Sent>>>),
    Failed,
}

enum Piece {
    Head(Response<()>),
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

impl Outgoing {
    pub(super) fn new(stream: SendHalf) -> Self {
        Outgoing { state: State::Idle(Box::new(stream)), queue: VecDeque::new(), finished: false }
    }

    /// Sends a head: an interim one, or with `end` the whole answer.
    pub(crate) fn head(&mut self, head: Response<()>, end: bool) -> io::Result<()> {
        self.push(Piece::Head(head))?;
        if end { self.finish(None) } else { Ok(()) }
    }

    /// Ends the answer, if that has not been done.
    pub(crate) fn finish(&mut self, trailers: Option<HeaderMap>) -> io::Result<()> {
        if self.finished {
            return Ok(());
        }
        if let Some(trailers) = trailers {
            self.push(Piece::Trailers(trailers))?;
        }
        self.push(Piece::End)?;
        self.finished = true;
        Ok(())
    }

    /// Takes as much as is sent at a time, once what was taken before has gone.
    pub(crate) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_sent(context))?;
        let wanted = slices.iter().map(|slice| slice.len()).sum::<usize>().min(WRITE_BYTES_MAX);
        let mut data = BytesMut::with_capacity(wanted);
        for slice in slices {
            data.extend_from_slice(&slice[..slice.len().min(wanted - data.len())]);
        }
        if wanted > 0 {
            self.push(Piece::Data(data.freeze()))?;
            // It may go at once; if not, the next call waits for it.
            if let Poll::Ready(Err(error)) = self.poll_sent(context) {
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(wanted))
    }

    /// Waits until the library has taken all that was given.
    pub(crate) fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            self.state = match std::mem::replace(&mut self.state, State::Failed) {
                State::Failed => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                State::Idle(stream) => match self.queue.pop_front() {
                    Some(piece) => State::Sending(Box::pin(send(stream, piece))),
                    None => {
                        self.state = State::Idle(stream);
                        return Poll::Ready(Ok(()));
                    }
                },
                State::Sending(mut sending) => match sending.as_mut().poll(context) {
                    Poll::Ready((stream, Ok(()))) => State::Idle(stream),
                    Poll::Ready((_, Err(error))) => return Poll::Ready(Err(failed(error))),
                    Poll::Pending => {
                        self.state = State::Sending(sending);
                        return Poll::Pending;
                    }
                },
            };
        }
    }

    /// Gives the stream up, unless all of the answer has been given to it.
    pub(crate) fn give_up(&mut self, code: Code) {
        if self.finished {
            return;
        }
        // What is being sent is cut off: dropping its future drops the stream, which resets it.
        if let State::Idle(mut stream) = std::mem::replace(&mut self.state, State::Failed) {
            stream.stop_stream(code);
        }
        self.finished = true;
    }

    fn push(&mut self, piece: Piece) -> io::Result<()> {
        match (&self.state, self.finished) {
            (State::Failed, _) | (_, true) => Err(io::ErrorKind::BrokenPipe.into()),
            _ => {
                self.queue.push_back(piece);
                Ok(())
            }
        }
    }
}

async fn send(mut stream: Box<SendHalf>, piece: Piece) -> Sent {
    let sent = match piece {
        Piece::Head(head) => stream.send_response(head).await,
        Piece::Data(data) => stream.send_data(data).await,
        Piece::Trailers(trailers) => stream.send_trailers(trailers).await,
        Piece::End => stream.finish().await,
    };
    (stream, sent)
}

fn failed(error: StreamError) -> io::Error {
    io::Error::other(error)
}
