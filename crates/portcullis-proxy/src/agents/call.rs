//! A call of gRPC to an agent: messages of one stream of HTTP/2 each way, and the status at its end.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use portcullis_agent::GRPC_PATH;
use portcullis_config::Endpoint;
use portcullis_types::percent_decode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::failed::{Ended, Failed};
use crate::http2::Pipe;
use crate::upstream;
use portcullis_tls::UpstreamTls;

/// The name of this product, as sent to agents.
pub(super) const PRODUCT: &str = concat!("portcullis/", env!("CARGO_PKG_VERSION"));

/// Bytes of an agent's message on its status that are reported.
const MESSAGE_BYTES_MAX: usize = 200;

/// A call, on a connection of its own.
pub(super) struct Call {
    pipe: Pipe,
    connection: SendRequest<Bytes>,
    /// The head of the answer has come, and it is one of gRPC.
    answered: bool,
}

impl Call {
    /// Connects and begins the call. The agent need not answer before we have said something.
    pub(super) async fn open(endpoint: &Endpoint, tls: Option<&UpstreamTls>) -> Result<Call, Ended> {
        let connect = |why: &dyn std::fmt::Display| Ended {
            why: Failed::Connect,
            line: Some(format!("no connection to {endpoint}: {why}")),
        };
        let stream = upstream::dial(endpoint, tls, None).await.map_err(|failed| {
            if let portcullis_event::UpstreamError::Connect = failed.error {
                Failed::Connect.into()
            } else {
                connect(&failed)
            }
        })?;
        if tls.is_some() && !stream.is_http2_agreed() {
            return Err(connect(&"it does not agree to HTTP/2 (ALPN `h2`)"));
        }
        let scheme = if tls.is_some() { "https" } else { "http" };
        let request = Request::post(format!("{scheme}://{endpoint}{GRPC_PATH}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("user-agent", PRODUCT)
            .body(())
            .map_err(|error| connect(&error))?;
        let connection = upstream::alone(stream).await.map_err(|_| connect(&"HTTP/2 cannot begin"))?;
        let (mut pipe, mut request) = (Pipe::asking(connection.clone(), None), Some(request));
        // If it could not be sent, the answer is the error.
        poll_fn(|context| pipe.poll_request(context, &mut request, false)).await;
        Ok(Call { pipe, connection, answered: false })
    }

    /// The agent has not said that it goes (GOAWAY).
    pub(super) fn takes_more(&mut self) -> bool {
        !matches!(self.connection.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_)))
    }

    /// Writes as far as flow control allows. What fails is not told here: the end of the answer says why.
    pub(super) fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<usize> {
        match ready!(Pin::new(&mut self.pipe).poll_write(context, bytes)) {
            Ok(count) => Poll::Ready(count),
            Err(_) => Poll::Pending,
        }
    }

    /// Reads what has come; nothing at an end with the status OK.
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Ended>> {
        while !self.answered {
            let head = match ready!(self.pipe.poll_answer(context)) {
                Ok(head) => head,
                Err(error) => return Poll::Ready(Err(self.broken(&error))),
            };
            if head.status.is_informational() {
                continue;
            }
            // An answer may be its status alone.
            if let Some(ended) = status(&head.headers) {
                return Poll::Ready(ended);
            }
            if head.status != 200 || !is_grpc(&head.headers) {
                let line = format!("it answers HTTP {}, which is not gRPC", head.status.as_u16());
                return Poll::Ready(Err(Ended { why: Failed::Handshake, line: Some(line) }));
            }
            self.answered = true;
        }
        let before = into.filled().len();
        if let Err(error) = ready!(Pin::new(&mut self.pipe).poll_read(context, into)) {
            let error = error.get_ref().and_then(|error| error.downcast_ref());
            return Poll::Ready(Err(error.map_or(Failed::Closed.into(), |error| self.broken(error))));
        }
        if into.filled().len() > before {
            return Poll::Ready(Ok(()));
        }
        let no_status = || {
            let line = Some("it ended the call without a gRPC status".to_string());
            Err(Ended { why: Failed::Status, line })
        };
        Poll::Ready(self.pipe.trailers().and_then(status).unwrap_or_else(no_status))
    }

    /// Ends our side; true if the agent has yet to end its own.
    pub(super) fn finish(&mut self) -> bool {
        self.pipe.finish(None).is_ok() && !self.pipe.is_received()
    }

    fn broken(&self, error: &h2::Error) -> Ended {
        let why = if self.answered { Failed::Closed } else { Failed::Handshake };
        // A connection that is simply gone says no more than that.
        Ended { why, line: (!error.is_io()).then(|| format!("the call broke: {error}")) }
    }
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let media_type = headers.get("content-type").map_or(&b""[..], |value| value.as_bytes());
    let rest = media_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// The status of the call in words, if there is one.
fn status(fields: &HeaderMap) -> Option<Result<(), Ended>> {
    let status = fields.get("grpc-status")?.as_bytes();
    if status == b"0" {
        return Some(Ok(()));
    }
    let name = std::str::from_utf8(status)
        .ok()
        .and_then(|text| text.parse().ok())
        .and_then(|code: usize| NAMES.get(code.checked_sub(1)?).copied());
    let message = fields.get("grpc-message").map_or(&b""[..], |value| value.as_bytes());
    let message = percent_decode(&message[..message.len().min(MESSAGE_BYTES_MAX)], false);
    let mut line = format!("gRPC status {}", status.escape_ascii());
    if let Some(name) = name {
        line += &format!(" ({name})");
    }
    if !message.is_empty() {
        let message = String::from_utf8_lossy(&message);
        line += &format!(": {}", message.replace(char::is_control, " "));
    }
    Some(Err(Ended { why: Failed::Status, line: Some(line) }))
}

/// The names of statuses from 1 on, as gRPC's documentation has them.
const NAMES: [&str; 16] = [
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn line(fields: &[(&'static str, &'static str)]) -> Option<String> {
        let fields =
            fields.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
        match status(&HeaderMap::from_iter(fields)) {
            Some(Err(ended)) => ended.line,
            Some(Ok(())) => Some("ok".to_string()),
            None => None,
        }
    }

    #[test]
    fn what_a_status_says() {
        assert_eq!(line(&[]), None);
        assert_eq!(line(&[("grpc-status", "0"), ("grpc-message", "x")]).as_deref(), Some("ok"));
        let away = line(&[("grpc-status", "14"), ("grpc-message", "going%20away%0Aagent `x`: fine")]);
        assert_eq!(away.as_deref(), Some("gRPC status 14 (UNAVAILABLE): going away agent `x`: fine"));
        assert_eq!(line(&[("grpc-status", "99")]).as_deref(), Some("gRPC status 99"));
        assert_eq!(line(&[("grpc-status", "16")]).as_deref(), Some("gRPC status 16 (UNAUTHENTICATED)"));
        assert_eq!(line(&[("grpc-status", "-1")]).as_deref(), Some("gRPC status -1"));
    }

    #[test]
    fn answers_of_grpc() {
        let is = |value| {
            is_grpc(&HeaderMap::from_iter([(http::header::CONTENT_TYPE, HeaderValue::from_static(value))]))
        };
        assert!(is("application/grpc") && is("application/grpc+proto") && is("application/grpc; x=y"));
        assert!(!is("application/grpc-web") && !is("text/html") && !is_grpc(&HeaderMap::new()));
    }
}
