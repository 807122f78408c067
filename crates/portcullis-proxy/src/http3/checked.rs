//! The streams of a connection as the library gets them, each read through its [`Frames`].

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{
    self, ConnectionErrorIncoming, RecvStream as _, SendStream as _, StreamErrorIncoming, StreamId, WriteBuf,
};
use portcullis_metrics::{EnumCounters, Http2Limit};
use quinn::VarInt;

use super::frames::{Broken, Frames, Unfinished};

/// Length of a field section on the wire in proportion to `header_list`: Huffman code may be longer than the
/// text.
const HEAD_FACTOR: u64 = 2;
/// Field sections of that length that a connection may have unfinished.
const UNFINISHED_HEADS: u64 = 4;

/// Limits that the streams of a connection share.
pub(super) struct Bounds {
    connection: quinn::Connection,
    head_bytes_max: u64,
    unfinished: Arc<Unfinished>,
    limits: EnumCounters,
}

/// A connection whose frames are checked.
pub(super) struct Checked {
    inner: h3_quinn::Connection,
    bounds: Arc<Bounds>,
}

impl Checked {
    /// Heads may have `header_list_bytes_max`, decoded.
    pub(super) fn new(
        connection: quinn::Connection,
        header_list_bytes_max: u64,
        limits: EnumCounters,
    ) -> Self {
        let head_bytes_max = header_list_bytes_max.saturating_mul(HEAD_FACTOR);
        let unfinished = Unfinished::new(head_bytes_max.saturating_mul(UNFINISHED_HEADS));
        let inner = h3_quinn::Connection::new(connection.clone());
        Checked { inner, bounds: Arc::new(Bounds { connection, head_bytes_max, unfinished, limits }) }
    }
}

impl quic::Connection<Bytes> for Checked {
    type RecvStream = Receive;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Receive, ConnectionErrorIncoming>> {
        let inner = ready!(quic::Connection::<Bytes>::poll_accept_recv(&mut self.inner, context))?;
        let frames = Frames::one_way(&self.bounds.unfinished);
        Poll::Ready(Ok(Receive { inner, frames, bounds: Arc::clone(&self.bounds), broken: None }))
    }

    fn poll_accept_bidi(&mut self, context: &mut Context<'_>) -> Poll<Result<Both, ConnectionErrorIncoming>> {
        let inner = ready!(quic::Connection::<Bytes>::poll_accept_bidi(&mut self.inner, context))?;
        Poll::Ready(Ok(Both::new(inner, &self.bounds)))
    }

    fn opener(&self) -> Opener {
        let inner = quic::Connection::<Bytes>::opener(&self.inner);
        Opener { inner, bounds: Arc::clone(&self.bounds) }
    }
}

impl quic::OpenStreams<Bytes> for Checked {
    type BidiStream = Both;
    type SendStream = SendHalf;

    fn poll_open_bidi(&mut self, context: &mut Context<'_>) -> Poll<Result<Both, StreamErrorIncoming>> {
        let inner = ready!(self.inner.poll_open_bidi(context))?;
        Poll::Ready(Ok(Both::new(inner, &self.bounds)))
    }

    fn poll_open_send(&mut self, context: &mut Context<'_>) -> Poll<Result<SendHalf, StreamErrorIncoming>> {
        self.inner.poll_open_send(context)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<Bytes>::close(&mut self.inner, code, reason);
    }
}

/// Opens our own streams.
pub(super) struct Opener {
    inner: h3_quinn::OpenStreams,
    bounds: Arc<Bounds>,
}

impl quic::OpenStreams<Bytes> for Opener {
    type BidiStream = Both;
    type SendStream = SendHalf;

    fn poll_open_bidi(&mut self, context: &mut Context<'_>) -> Poll<Result<Both, StreamErrorIncoming>> {
        let inner = ready!(self.inner.poll_open_bidi(context))?;
        Poll::Ready(Ok(Both::new(inner, &self.bounds)))
    }

    fn poll_open_send(&mut self, context: &mut Context<'_>) -> Poll<Result<SendHalf, StreamErrorIncoming>> {
        self.inner.poll_open_send(context)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<Bytes>::close(&mut self.inner, code, reason);
    }
}

/// Our own data needs no check.
pub(super) type SendHalf = h3_quinn::SendStream<Bytes>;

/// The stream of a request.
pub(super) struct Both {
    send: SendHalf,
    receive: Receive,
}

impl Both {
    fn new(inner: h3_quinn::BidiStream<Bytes>, bounds: &Arc<Bounds>) -> Both {
        let (send, inner) = quic::BidiStream::split(inner);
        let frames = Frames::request(bounds.head_bytes_max, &bounds.unfinished);
        Both { send, receive: Receive { inner, frames, bounds: Arc::clone(bounds), broken: None } }
    }
}

impl quic::BidiStream<Bytes> for Both {
    type SendStream = SendHalf;
    type RecvStream = Receive;

    fn split(self) -> (SendHalf, Receive) {
        (self.send, self.receive)
    }
}

impl quic::RecvStream for Both {
    type Buf = Bytes;

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let data = ready!(self.receive.poll_data(context));
        if let Some(code) = self.receive.broken {
            self.send.reset(code);
        }
        Poll::Ready(data)
    }

    fn stop_sending(&mut self, code: u64) {
        self.receive.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl quic::SendStream<Bytes> for Both {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(context)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(context)
    }

    fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

/// The receiving side of a stream.
pub(super) struct Receive {
    inner: h3_quinn::RecvStream,
    frames: Frames,
    bounds: Arc<Bounds>,
    /// The code with which it was given up.
    broken: Option<u64>,
}

impl Receive {
    /// Gives up the stream, or the connection where the client is no client of HTTP/3 or wants more than its
    /// share.
    fn break_off(&mut self, broken: Broken) -> StreamErrorIncoming {
        let (code, closes) = match broken {
            Broken::TooLong => (Code::H3_EXCESSIVE_LOAD, Some("a frame is too long")),
            Broken::CutOff => (Code::H3_FRAME_ERROR, Some("a frame is cut off")),
            Broken::Malformed => (Code::H3_MESSAGE_ERROR, None),
        };
        let error_code = code.value();
        self.broken = Some(error_code);
        self.inner.stop_sending(error_code);
        if broken == Broken::TooLong {
            self.bounds.limits.inc(Http2Limit::HeaderList as usize);
        }
        if let Some(reason) = closes {
            let code = VarInt::from_u64(error_code).unwrap_or(VarInt::MAX);
            self.bounds.connection.close(code, reason.as_bytes());
        }
        StreamErrorIncoming::StreamTerminated { error_code }
    }
}

impl quic::RecvStream for Receive {
    type Buf = Bytes;

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        if let Some(error_code) = self.broken {
            return Poll::Ready(Err(StreamErrorIncoming::StreamTerminated { error_code }));
        }
        loop {
            match self.frames.next() {
                Ok(Some(piece)) => return Poll::Ready(Ok(Some(piece))),
                Ok(None) => {}
                Err(broken) => return Poll::Ready(Err(self.break_off(broken))),
            }
            match ready!(self.inner.poll_data(context))? {
                Some(data) => self.frames.push(data),
                None => {
                    let ended = self.frames.end().map(|()| None);
                    return Poll::Ready(ended.map_err(|broken| self.break_off(broken)));
                }
            }
        }
    }

    fn stop_sending(&mut self, code: u64) {
        self.inner.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.inner.recv_id()
    }
}
