//! The request to an upstream on a stream of HTTP/2.

use std::future::poll_fn;
use std::io::IoSlice;

use portcullis_event::UpstreamError;
use portcullis_http::h1::{Limits, assemble_response, assemble_websocket};
use portcullis_http::message::{RequestHead, ResponseHead};

use super::{Lost, Outgoing};
use crate::abort::Aborted;
use crate::connection::Connection;
use crate::request_body::Body;
use crate::stream::Stream;
use crate::upload::{self, Stopped};
use crate::upstream::UpstreamConnection;
use crate::{http2, websocket};

/// Sends the head, and what was held of the body.
pub(super) async fn start(
    connection: &Connection,
    head: &RequestHead,
    upstream: &mut UpstreamConnection,
    request: &Outgoing<'_>,
    body: &Body,
) -> Result<(), Stopped> {
    let (held, whole, has_trailers) = (&body.held[..], body.rest.is_none(), !body.trailers.is_empty());
    let Stream::Http2(pipe) = &mut upstream.stream else { return Err(Stopped::Upstream) };
    let patience = request.group.settings.write_timeout;
    connection.timer.arm(patience);
    let websocket = websocket::is_asked_for(head);
    if websocket {
        let offered = connection.timer.run(Box::pin(pipe.offers_websocket())).await;
        let refused = match (websocket::answer_to(head), offered) {
            (Some(_), Ok(true)) => None,
            (None, _) => Some((400, "A WebSocket is asked for without a key.")),
            (_, Ok(false)) => Some((501, "The application does not take WebSockets over HTTP/2.")),
            (_, Err(_)) => return Err(Stopped::Upstream),
        };
        if let Some((status, text)) = refused {
            return Err(Stopped::RequestBody(status, text));
        }
    }
    let trailers = head.header("te").any(|value| value.eq_ignore_ascii_case(b"trailers"));
    let mut request = http2::outgoing(&request.head, request.group.tls.is_some(), trailers, websocket);
    if request.is_none() {
        let text = "The target of this request cannot be passed on over HTTP/2.";
        return Err(Stopped::RequestBody(400, text));
    }
    let end = whole && held.is_empty() && !websocket && !has_trailers;
    let sent = poll_fn(|context| pipe.poll_request(context, &mut request, end));
    if !matches!(connection.timer.run(sent).await, Ok(true)) {
        return Err(Stopped::Upstream);
    }
    if whole && !websocket && !has_trailers {
        pipe.ends_after(held.len());
    }
    upload::write(upstream, &connection.timer, patience, &mut [IoSlice::new(held)]).await?;
    if let Stream::Http2(pipe) = &mut upstream.stream
        && has_trailers
    {
        pipe.finish(body.trailers.map()).map_err(|_| Stopped::Upstream)
    } else {
        Ok(())
    }
}

/// The next head, interim ones too, of an answer.
pub(super) async fn head(
    connection: &mut Connection,
    request: &RequestHead,
    upstream: &mut UpstreamConnection,
) -> Result<ResponseHead, Lost> {
    let Stream::Http2(pipe) = &mut upstream.stream else { return Err(UpstreamError::Closed.into()) };
    let (mut client, timer) = connection.client();
    let came = timer.run(client.unless_gone(poll_fn(|context| pipe.poll_answer(context)))).await;
    let came = came.map_err(|_| UpstreamError::ResponseTimeout)?;
    let parts = came.map_err(|Aborted| Lost::Client)??;
    let fields = parts.headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    let fields: Vec<(&[u8], &[u8])> = fields.collect();
    let ended = pipe.is_received();
    let head = match websocket::answer_to(request).filter(|_| websocket::is_asked_for(request)) {
        Some(answer) if parts.status.is_success() => assemble_websocket(&fields, &answer, &Limits::default()),
        _ => assemble_response(parts.status.as_u16(), &fields, ended, &Limits::default()),
    };
    head.map_err(|_| UpstreamError::InvalidResponse.into())
}
