//! Calls of gRPC over HTTP/2: one connection carries many at a time.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use portcullis_agent::{Frames, Framing, Unreadable, frame};
use prost::Message;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, timeout};

use crate::service::Service;
use portcullis_exchange::Unanswered;

/// Calls of one connection at a time.
const CALLS_MAX: u32 = 1024;
/// Bytes on their way of one call, and of a connection.
const CALL_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// Bytes of the headers of a call.
const HEADER_BYTES_MAX: u32 = 16 << 10;
/// The interval of a timer of each connection, which does nothing: see `serve`.
const TICK: Duration = Duration::from_secs(1);
/// Bytes of one message: a body that Envoy has buffered, with the request's head.
pub(super) const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The status codes of gRPC that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Ok = 0,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unimplemented = 12,
}

/// The end of a call: its code, and a sentence for Envoy's log.
pub(super) type End = (Code, &'static str);

/// Serves the calls of one connection, each by `work`.
pub(super) async fn serve<W, F>(
    stream: TcpStream,
    service: &Arc<Service>,
    mut stopped: watch::Receiver<bool>,
    work: W,
) where
    W: Fn(Call) -> F,
    F: Future<Output = ()> + 'static,
{
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(CALLS_MAX).max_header_list_size(HEADER_BYTES_MAX);
    builder.initial_window_size(CALL_WINDOW_BYTES).initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    let handshake = timeout(service.limits.message_timeout, builder.handshake::<_, Bytes>(stream)).await;
    let Ok(Ok(mut connection)) = handshake else {
        return service.unanswered(Unanswered::Malformed);
    };
    let mut calls = JoinSet::new();
    let mut is_ending = false;
    // A timer that is due before all others wakes the runtime by a system call when it is made. With this one
    // there, those of calls, which are made for each message, are not.
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            accepted = connection.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    if let Some(call) = Call::begin(service, request, respond) {
                        calls.spawn_local(work(call));
                    }
                }
                Some(Err(_)) | None => break,
            },
            Some(_) = calls.join_next() => {}
            _ = tick.tick() => {}
            _ = stopped.wait_for(|stopped| *stopped), if !is_ending => {
                is_ending = true;
                connection.graceful_shutdown();
            }
        }
    }
}

/// One call: messages in, messages out.
pub(super) struct Call {
    pub(super) service: Arc<Service>,
    /// The path: service and method.
    pub(super) path: String,
    incoming: RecvStream,
    outgoing: Outgoing,
    frames: Frames,
    /// Bytes that `frames` holds, which count for the memory of bodies.
    held_bytes: usize,
}

/// The head of the answer goes out with its first message: alone it would be a packet of its own, for which
/// Envoy wakes up.
enum Outgoing {
    Waiting(SendResponse<Bytes>),
    Begun(SendStream<Bytes>),
    Failed,
}

impl Outgoing {
    /// None if nobody takes the answer.
    fn stream(&mut self) -> Option<&mut SendStream<Bytes>> {
        if let Outgoing::Waiting(respond) = self {
            let mut response = Response::new(());
            response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
            let begun = respond.send_response(response, false);
            *self = begun.map_or(Outgoing::Failed, Outgoing::Begun);
        }
        match self {
            Outgoing::Begun(stream) => Some(stream),
            Outgoing::Waiting(_) | Outgoing::Failed => None,
        }
    }
}

impl Call {
    /// None if it is no call of gRPC.
    fn begin(
        service: &Arc<Service>,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> Option<Call> {
        let is_grpc = request.headers().get("content-type").is_some_and(|value| {
            let value = value.as_bytes();
            value == b"application/grpc" || value.starts_with(b"application/grpc+proto")
        });
        if request.method() != Method::POST || !is_grpc {
            service.unanswered(Unanswered::Malformed);
            let mut response = Response::new(());
            *response.status_mut() = http::StatusCode::UNSUPPORTED_MEDIA_TYPE;
            let _ = respond.send_response(response, true);
            return None;
        }
        let (parts, incoming) = request.into_parts();
        Some(Call {
            service: Arc::clone(service),
            path: parts.uri.path().to_owned(),
            incoming,
            outgoing: Outgoing::Waiting(respond),
            frames: Frames::new(Framing::Grpc),
            held_bytes: 0,
        })
    }

    /// The next message; none at the end of them.
    pub(super) async fn next<M: Message + Default>(&mut self) -> Result<Option<M>, End> {
        loop {
            match self.frames.next(MESSAGE_BYTES_MAX) {
                Ok(Some(bytes)) => {
                    let length = bytes.len() + 5;
                    let message = M::decode(bytes);
                    let rest = self.held_bytes.saturating_sub(length);
                    self.service.hold(self.held_bytes, rest);
                    self.held_bytes = rest;
                    return message.map(Some).map_err(|_| self.fail(Unanswered::Malformed));
                }
                Ok(None) => {}
                Err(Unreadable::TooLong(_)) => return Err(self.fail(Unanswered::TooLarge)),
                Err(Unreadable::Compressed(_)) => return Err(self.fail(Unanswered::Malformed)),
            }
            let wait = match self.held_bytes {
                0 => self.service.limits.idle_timeout,
                _ => self.service.limits.message_timeout,
            };
            let data = match timeout(wait, self.incoming.data()).await {
                Ok(Some(Ok(data))) => data,
                Ok(Some(Err(_)) | None) => return Ok(None),
                Err(_) => return Err(self.fail(Unanswered::Timeout)),
            };
            let _ = self.incoming.flow_control().release_capacity(data.len());
            let held = self.held_bytes + data.len();
            if !self.service.hold(self.held_bytes, held) {
                return Err(self.fail(Unanswered::Memory));
            }
            self.held_bytes = held;
            self.frames.feed(&data);
        }
    }

    fn fail(&self, why: Unanswered) -> End {
        self.service.unanswered(why);
        match why {
            Unanswered::TooLarge => (Code::ResourceExhausted, "the message is larger than 16 MiB"),
            Unanswered::Memory => (Code::ResourceExhausted, "too many large bodies at this moment"),
            Unanswered::Timeout => (Code::DeadlineExceeded, "the next message did not come in time"),
            Unanswered::UntrustedPeer
            | Unanswered::Connections
            | Unanswered::Malformed
            | Unanswered::NoExchange => (Code::InvalidArgument, "the message cannot be read"),
        }
    }

    /// Sends a message; false if nobody takes it.
    pub(super) async fn send(&mut self, message: &impl Message) -> bool {
        let mut rest = Bytes::from(frame(Framing::Grpc, message));
        let Some(outgoing) = self.outgoing.stream() else { return false };
        while !rest.is_empty() {
            outgoing.reserve_capacity(rest.len());
            let capacity = poll_fn(|context| outgoing.poll_capacity(context));
            let room = match timeout(self.service.limits.message_timeout, capacity).await {
                Ok(Some(Ok(room))) => room.min(rest.len()),
                _ => return false,
            };
            if outgoing.send_data(rest.split_to(room), false).is_err() {
                return false;
            }
        }
        true
    }

    /// Ends the call.
    pub(super) fn end(&mut self, (code, text): End) {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from(code as u16));
        if code != Code::Ok {
            trailers.insert("grpc-message", HeaderValue::from_static(text));
        }
        let Some(outgoing) = self.outgoing.stream() else { return };
        if outgoing.send_trailers(trailers).is_err() {
            outgoing.send_reset(Reason::CANCEL);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.service.hold(self.held_bytes, 0);
    }
}
