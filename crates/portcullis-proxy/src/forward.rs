//! The request to an upstream, up to the head of its answer.

mod http2;

use std::borrow::Cow;
use std::io::IoSlice;
use std::sync::Arc;

use portcullis_config::UpstreamProtocol;
use portcullis_event::UpstreamError;
use portcullis_http::h1::{ForwardedBy, RequestRewrite, write_request};
use portcullis_http::message::{BodyFraming, ResponseHead, Version};
use portcullis_inspect::Interruption;

use crate::abort::Aborted;
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::header_changes::{Changed, fields};
use crate::pump::Pump;
use crate::request_body::Body;
use crate::rewrite::STALE_REQUEST_FIELDS;
use crate::sink;
use crate::stream::Stream;
use crate::trailers::last_chunk;
use crate::upstream::{Group, Lease, Retried, Tries, UpstreamConnection};
use crate::{upload, upstream, websocket};

/// The destination of a request.
#[derive(Clone, Copy)]
pub(crate) struct Destination<'a> {
    pub(crate) group: &'a Arc<Group>,
    /// The request may be sent again, whatever its method.
    pub(crate) idempotent: bool,
    /// The request target there; as it came, unless a rule or the route says otherwise.
    pub(crate) target: Option<&'a [u8]>,
    /// The changes of headers by the route.
    pub(crate) headers: Option<&'a Changed>,
}

/// A request as it goes upstream.
struct Outgoing<'g> {
    /// The head, written as HTTP/1.
    head: Vec<u8>,
    framing: BodyFraming,
    group: &'g Group,
}

/// An answer that has begun.
pub(crate) struct Answered<'g> {
    pub(crate) upstream: Box<UpstreamConnection>,
    pub(crate) lease: Lease<'g>,
    pub(crate) head: ResponseHead,
    /// The whole request has been read from the client and sent.
    pub(crate) sent_whole: bool,
    /// The rest of the request is on its way.
    pub(crate) pump: Option<Pump>,
    /// The request used a scheme whose logins belong to the connection.
    pub(crate) used_login: bool,
}

/// Why there is no answer. The type says whose fault it is.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The client has gone.
    Client,
    /// The rest of the request body is late or not a body; the status and text to answer.
    RequestBody(u16, &'static str),
    /// The upstream.
    Upstream(UpstreamError),
    /// Something was found in an upload on its way.
    Verdict(Interruption),
}

/// Sends the request to an endpoint of the group and waits for the head of the answer.
pub(crate) async fn run<'g>(
    exchange: &mut Exchange<'_>,
    to: Destination<'g>,
    mut body: Body,
) -> Result<Answered<'g>, Fault> {
    let (group, head, write_timeout) = (to.group, exchange.head, exchange.generation.timeouts.write);
    if let Some(changed) = to.headers {
        body.trailers.change(changed);
    }
    let framing = match (&body.rest, body.present) {
        (Some(_), _) => head.framing(),
        (None, true) if !body.trailers.is_empty() => BodyFraming::Chunked,
        (None, true) => BodyFraming::Length(body.held.len() as u64),
        (None, false) => BodyFraming::None,
    };
    let request = Outgoing { head: compose(exchange, framing, to, body.rewritten), framing, group };
    if body.rest.is_some() && head.expects_continue() && body.held.is_empty() {
        let sent = sink::send_continue(exchange.connection, write_timeout).await;
        sent.map_err(|_| Fault::Client)?;
    }
    let repeatable = (to.idempotent || is_idempotent(head.method())) && body.rest.is_none();
    let retry = &group.settings.retry;
    let client = exchange.transaction.client().ip();
    let mut tries = Tries::new(group, head, client);
    let used_login = upstream::is_used(head, to.headers);
    if used_login {
        tries.need_own_connection();
    }
    let mut bound = exchange.connection.logins.take(group, client, !repeatable);
    tries.bind(bound.as_ref().map(|(endpoint, _)| *endpoint));
    let mut lease = tries.first(exchange.connection).await.map_err(Fault::Upstream)?;
    let mut fresh_only = false;
    let mut was_refused = false;
    loop {
        exchange.transaction.asks(group, lease.endpoint);
        let opened = match bound.take() {
            Some((endpoint, connection)) if endpoint == lease.endpoint => Ok((connection, true)),
            _ => tries.open(exchange.connection, &lease, fresh_only, !repeatable).await,
        };
        let (mut upstream, reused) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                lease.failed(error);
                // Nothing has been sent, so nothing can happen twice.
                let next = tries.next(exchange.connection, lease.endpoint, Retried::Connect);
                lease = next.ok_or(Fault::Upstream(error))?;
                continue;
            }
        };
        let sent = send(exchange, &mut upstream, &request, &mut body).await;
        let Sent { whole: sent_whole, pump } = match sent {
            Ok(sent) => sent,
            Err(upload::Stopped::Client) => return Err(Fault::Client),
            Err(upload::Stopped::Verdict(what)) => return Err(Fault::Verdict(what)),
            Err(upload::Stopped::RequestBody(status, text)) => return Err(Fault::RequestBody(status, text)),
            // Many servers answer and close without reading a large body; their answer is what the client
            // should see.
            Err(upload::Stopped::Upstream) => Sent { whole: false, pump: None },
        };
        tries.arm(&exchange.connection.timer, group.settings.try_timeout);
        let came = response_head(exchange, &mut upstream, sent_whole).await;
        let (error, untouched, wants_http1) = match came {
            Ok(head) => {
                lease.answered(head.status());
                // Another endpoint does not know who is logged in here.
                if repeatable
                    && upstream.login.is_none()
                    && retry.statuses.contains(&head.status())
                    && let Some(next) = tries.next(exchange.connection, lease.endpoint, Retried::Status)
                {
                    (lease, fresh_only) = (next, false);
                    continue;
                }
                return Ok(Answered { upstream, lease, head, sent_whole, pump, used_login });
            }
            Err(Lost::Client) => return Err(Fault::Client),
            Err(Lost::Upstream { .. }) if pump.as_ref().is_some_and(Pump::is_client_gone) => {
                return Err(Fault::Client);
            }
            Err(Lost::Upstream { error, untouched, wants_http1 }) => (error, untouched, wants_http1),
        };
        if wants_http1
            && body.rest.is_none()
            && group.settings.protocol == UpstreamProtocol::Auto
            && tries.need_own_connection()
        {
            group.report.retried(Retried::Refused);
            continue;
        }
        if untouched && body.rest.is_none() && !std::mem::replace(&mut was_refused, true) {
            // The endpoint says that it has not looked at the request, so it may have it again, whatever its
            // method.
            upstream.leave();
            group.report.retried(Retried::Refused);
            fresh_only = true;
            continue;
        }
        if matches!(error, UpstreamError::ResponseTimeout) {
            // Of a shared connection that is dead nobody may hear; requests to come do not wait to find out.
            upstream.leave();
        }
        let is_closed = matches!(error, UpstreamError::Closed | UpstreamError::Write);
        if is_closed && reused && repeatable && upstream.input.unread().is_empty() {
            // The endpoint closed a kept connection as we began to use it.
            group.report.retried(Retried::Stale);
            fresh_only = true;
            continue;
        }
        // An endpoint may rightly hang up on a client that does not send what it promised.
        if sent_whole || body.rest.is_none() {
            lease.failed(error);
        }
        let why = match error {
            _ if is_closed && retry.on_closed => Retried::Closed,
            UpstreamError::ResponseTimeout if retry.on_timeout => Retried::Timeout,
            UpstreamError::InvalidResponse if retry.on_invalid => Retried::Invalid,
            UpstreamError::NoEndpoint
            | UpstreamError::Overloaded
            | UpstreamError::Dns
            | UpstreamError::Connect
            | UpstreamError::ConnectTimeout
            | UpstreamError::Tls
            | UpstreamError::Closed
            | UpstreamError::Write
            | UpstreamError::ResponseTimeout
            | UpstreamError::InvalidResponse
            | UpstreamError::BodyTruncated => return Err(Fault::Upstream(error)),
        };
        if !repeatable {
            return Err(Fault::Upstream(error));
        }
        let next = tries.next(exchange.connection, lease.endpoint, why);
        lease = next.ok_or(Fault::Upstream(error))?;
        fresh_only = false;
    }
}

/// The head as it goes upstream.
fn compose(
    exchange: &mut Exchange<'_>,
    framing: BodyFraming,
    to: Destination<'_>,
    rewritten: bool,
) -> Vec<u8> {
    let Exchange { connection, generation, head, transaction, .. } = exchange;
    let mut remove: Vec<&str> = Vec::new();
    if rewritten {
        remove.extend(STALE_REQUEST_FIELDS);
    }
    if transaction.life.disables_compression() {
        remove.extend(["accept-encoding", "te"]);
    }
    let id = ("X-Request-Id", transaction.request_id.as_bytes());
    // Most routes change nothing.
    let own = [id];
    let (mut set, mut add) = (Vec::new(), Vec::new());
    let traceparent = transaction.trace.as_ref().map(|trace| trace.header());
    let mut host = head.host().is_empty().then_some(to.group.host.as_bytes());
    if let Some(changed) = to.headers {
        remove.extend(changed.remove.iter().map(String::as_str));
        set.push(id);
        set.extend(fields(&changed.set, "host"));
        add.extend(fields(&changed.add, ""));
        host = changed.value("host").or(host);
    }
    if let (Some(trace), Some(value)) = (&transaction.trace, &traceparent) {
        if set.is_empty() {
            set.push(id);
        }
        set.push(("traceparent", &value[..]));
        if trace.drops_state() {
            remove.push("tracestate");
        }
    }
    let mut output = std::mem::take(&mut connection.output);
    output.clear();
    let rewrite = RequestRewrite {
        framing,
        target: to.target,
        host,
        upgrade: websocket::is_asked_for(head),
        forwarded: Some(ForwardedBy {
            peer: connection.peer.ip(),
            proto: if connection.tls { "https" } else { "http" },
            trusted: generation.client_address.trusts(connection.peer.ip()),
            drops_identity: !generation.client_address.passes_identity_headers,
        }),
        set: if set.is_empty() { &own } else { &set },
        add: &add,
        remove: &remove,
        ..RequestRewrite::default()
    };
    write_request(head, &rewrite, &mut output);
    output
}

fn is_idempotent(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
}

/// The part of a request that has been sent.
struct Sent {
    /// All of it.
    whole: bool,
    /// The rest is on its way.
    pump: Option<Pump>,
}

/// Sends the request, and streams what is left of its body.
async fn send(
    exchange: &mut Exchange<'_>,
    upstream: &mut UpstreamConnection,
    request: &Outgoing<'_>,
    body: &mut Body,
) -> Result<Sent, upload::Stopped> {
    let chunked = request.framing == BodyFraming::Chunked && upstream.stream.tcp().is_some();
    if let Stream::Http2(_) = upstream.stream {
        // Boxed, so that requests over HTTP/1 do not hold the room for it.
        Box::pin(http2::start(exchange.connection, exchange.head, upstream, request, body)).await?;
    } else {
        send_start(exchange.connection, upstream, request, body, chunked).await?;
    }
    body.let_go();
    let Some(decoder) = &mut body.rest else { return Ok(Sent { whole: true, pump: None }) };
    if body.upload.is_none()
        && let Some(pump) = Pump::start(exchange.connection, upstream)
    {
        return Ok(Sent { whole: false, pump: Some(pump) });
    }
    let how = (&mut *decoder, chunked);
    let patience = request.group.settings.write_timeout;
    let done = upload::upload(exchange, upstream, patience, how, body.upload).await?;
    if body.upload.is_none() {
        exchange.transaction.life.outcome.request_body_bytes += done.bytes;
    }
    exchange.transaction.trailers_dropped = exchange.connection.trailers(decoder);
    Ok(Sent { whole: done.whole, pump: None })
}

/// Sends the head and what was held of the body.
async fn send_start(
    connection: &Connection,
    upstream: &mut UpstreamConnection,
    request: &Outgoing<'_>,
    body: &Body,
    chunked: bool,
) -> Result<(), upload::Stopped> {
    let (mut size, mut end, mut last) = (Vec::new(), &b""[..], Cow::default());
    if chunked && !body.held.is_empty() {
        portcullis_http::h1::write_chunk_size(body.held.len(), &mut size);
        end = portcullis_http::h1::CHUNK_END;
    }
    if chunked && body.rest.is_none() {
        last = last_chunk(body.trailers.fields());
    }
    let slices = &mut [&request.head, &size, &body.held[..], end, &last].map(IoSlice::new);
    upload::write(upstream, &connection.timer, request.group.settings.write_timeout, slices).await
}

/// Why there is no head.
enum Lost {
    /// Nobody waits for it any longer.
    Client,
    Upstream {
        error: UpstreamError,
        /// The endpoint says that it has not looked at the request.
        untouched: bool,
        /// The endpoint takes the request over HTTP/1.1 only, as servers do that ask for NTLM.
        wants_http1: bool,
    },
}

impl From<UpstreamError> for Lost {
    fn from(error: UpstreamError) -> Self {
        Lost::Upstream { error, untouched: false, wants_http1: false }
    }
}

impl From<h2::Error> for Lost {
    fn from(error: h2::Error) -> Self {
        // A stream fails with GOAWAY only if it is above the last one that the endpoint has taken up.
        let refused = error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM);
        Lost::Upstream {
            error: match error.is_library() {
                true => UpstreamError::InvalidResponse,
                false => UpstreamError::Closed,
            },
            untouched: error.is_remote() && refused,
            wants_http1: error.is_remote() && error.reason() == Some(h2::Reason::HTTP_1_1_REQUIRED),
        }
    }
}

/// Waits for the head of the final answer, as long as the timer is armed for. Of interim answers early hints
/// are passed on: we have sent our own 100 if one was due.
async fn response_head(
    exchange: &mut Exchange<'_>,
    upstream: &mut UpstreamConnection,
    sent_whole: bool,
) -> Result<ResponseHead, Lost> {
    let mut looked = false;
    let mut hints_left = HINTS_MAX;
    loop {
        if let Stream::Http2(_) = upstream.stream {
            let head = Box::pin(http2::head(exchange.connection, exchange.head, upstream)).await?;
            if !head.is_interim() {
                return Ok(head);
            }
            pass_hints(exchange, &head, &mut hints_left).await;
            continue;
        }
        if !upstream.input.unread().is_empty() {
            match upstream.parser.parse(upstream.input.unread()) {
                Err(_) => return Err(UpstreamError::InvalidResponse.into()),
                Ok(None) => {}
                Ok(Some(head)) => {
                    upstream.input.consume(head.received_len());
                    if head.is_interim() {
                        pass_hints(exchange, &head, &mut hints_left).await;
                        continue;
                    }
                    return Ok(head);
                }
            }
        }
        let UpstreamConnection { stream, input, .. } = upstream;
        let (mut client, timer) = exchange.connection.client();
        match timer.run(client.unless_gone(input.fill(stream))).await {
            Err(_) => return Err(UpstreamError::ResponseTimeout.into()),
            Ok(Err(Aborted)) => return Err(Lost::Client),
            Ok(Ok(Ok(count))) if count > 0 => looked = true,
            // Where the request could not be sent either, that came first.
            Ok(_) if !sent_whole && !looked => return Err(UpstreamError::Write.into()),
            Ok(_) => return Err(UpstreamError::Closed.into()),
        }
    }
}

/// Early hints that are passed on for one request.
const HINTS_MAX: usize = 4;

/// Passes early hints on to a client that knows interim answers. If they cannot be sent, neither can the
/// answer.
async fn pass_hints(exchange: &mut Exchange<'_>, head: &ResponseHead, left: &mut usize) {
    let has_links = head.status() == 103 && head.header("link").next().is_some();
    if has_links && *left > 0 && exchange.head.version() >= Version::Http11 {
        *left -= 1;
        let patience = exchange.generation.timeouts.write;
        let _ = sink::send_hints(exchange.connection, patience, head).await;
    }
}
