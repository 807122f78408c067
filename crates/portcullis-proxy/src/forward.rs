//! The request to an upstream, up to the head of its answer.

use std::io::IoSlice;

use portcullis_event::UpstreamError;
use portcullis_http::h1::{ForwardedBy, RequestRewrite, write_request};
use portcullis_http::message::{BodyFraming, RequestHead, ResponseHead};

use crate::connection::Connection;
use crate::exchange::Destination;
use crate::request_body::Body;
use crate::rewrite::STALE_REQUEST_FIELDS;
use crate::route::fields;
use crate::state::Generation;
use crate::timer::Timer;
use crate::transaction::Transaction;
use crate::upload::{self, upload};
use crate::upstream::{Group, Lease, Retried, Tries, UpstreamConnection};

/// An answer that has begun.
pub(crate) struct Answered<'g> {
    pub(crate) upstream: UpstreamConnection,
    pub(crate) lease: Lease<'g>,
    pub(crate) head: ResponseHead,
    /// The whole request has been read from the client and sent.
    pub(crate) sent_whole: bool,
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
}

/// Sends the request to an endpoint of the group and waits for the head of the answer.
pub(crate) async fn run<'g>(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    to: Destination<'g>,
    mut body: Body,
) -> Result<Answered<'g>, Fault> {
    let group = to.group;
    let framing = match (&body.rest, body.present) {
        (Some(_), _) => head.framing(),
        (None, true) => BodyFraming::Length(body.held.len() as u64),
        (None, false) => BodyFraming::None,
    };
    let request = compose(connection, generation, head, transaction, framing, to, body.rewritten);
    if body.rest.is_some() && head.expects_continue() && body.held.is_empty() {
        let sent = crate::request_body::send_continue(connection, generation).await;
        sent.map_err(|_| Fault::Client)?;
    }
    let repeatable = (to.idempotent || is_idempotent(head.method())) && body.rest.is_none();
    let retry = &group.settings.retry;
    let mut tries = Tries::new(group, head, transaction.client().ip());
    let mut lease = tries.first(connection).await.map_err(Fault::Upstream)?;
    let mut fresh_only = false;
    loop {
        let (mut upstream, reused) = match tries.open(connection, &lease, fresh_only, !repeatable).await {
            Ok(opened) => opened,
            Err(error) => {
                lease.failed(error);
                // Nothing has been sent, so nothing can happen twice.
                let next = tries.next(connection, lease.endpoint, Retried::Connect);
                lease = next.ok_or(Fault::Upstream(error))?;
                continue;
            }
        };
        let chunked = framing == BodyFraming::Chunked;
        let sending = async {
            send_start(connection, &mut upstream, group, &request, &body.held, chunked).await?;
            let Some(decoder) = &mut body.rest else { return Ok(true) };
            let rest = upload(connection, generation, &mut upstream, group, decoder, chunked).await;
            rest.map(|done| {
                transaction.request_body_bytes += done.bytes;
                done.whole
            })
        };
        let sent: Result<bool, upload::Stopped> = sending.await;
        let sent_whole = match sent {
            Ok(whole) => whole,
            Err(upload::Stopped::Client) => return Err(Fault::Client),
            Err(upload::Stopped::RequestBody(status, text)) => return Err(Fault::RequestBody(status, text)),
            // Many servers answer and close without reading a large body; their answer is what the client should see.
            Err(upload::Stopped::Upstream) => false,
        };
        tries.arm(&connection.timer, group.settings.try_timeout);
        let error = match response_head(&connection.timer, &mut upstream, sent_whole).await {
            Ok(head) => {
                lease.answered(head.status());
                if repeatable
                    && retry.statuses.contains(&head.status())
                    && let Some(next) = tries.next(connection, lease.endpoint, Retried::Status)
                {
                    (lease, fresh_only) = (next, false);
                    continue;
                }
                return Ok(Answered { upstream, lease, head, sent_whole });
            }
            Err(error) => error,
        };
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
            _ => return Err(Fault::Upstream(error)),
        };
        if !repeatable {
            return Err(Fault::Upstream(error));
        }
        let next = tries.next(connection, lease.endpoint, why);
        lease = next.ok_or(Fault::Upstream(error))?;
        fresh_only = false;
    }
}

/// The head as it goes upstream.
fn compose(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    framing: BodyFraming,
    to: Destination<'_>,
    rewritten: bool,
) -> Vec<u8> {
    let mut remove: Vec<&str> = Vec::new();
    if rewritten {
        remove.extend(STALE_REQUEST_FIELDS);
    }
    if transaction.inspection.disables_compression() {
        remove.extend(["accept-encoding", "te"]);
    }
    let id = ("X-Request-Id", transaction.request_id.as_bytes());
    // Most routes change nothing.
    let own = [id];
    let (mut set, mut add) = (Vec::new(), Vec::new());
    let mut host = head.host().is_empty().then_some(to.group.host.as_bytes());
    if let Some(changed) = to.headers {
        remove.extend(changed.remove.iter().map(String::as_str));
        set.push(id);
        set.extend(fields(&changed.set, "host"));
        add.extend(fields(&changed.add, ""));
        host = changed.value("host").or(host);
    }
    let mut output = std::mem::take(&mut connection.output);
    output.clear();
    let rewrite = RequestRewrite {
        framing,
        target: to.target,
        host,
        upgrade: asks_for_websocket(head),
        forwarded: Some(ForwardedBy {
            peer: connection.peer.ip(),
            proto: if connection.tls { "https" } else { "http" },
            trusted: generation.client_address.trusts(connection.peer.ip()),
        }),
        set: if set.is_empty() { &own } else { &set },
        add: &add,
        remove: &remove,
        ..RequestRewrite::default()
    };
    write_request(head, &rewrite, &mut output);
    output
}

/// WebSocket is the only upgrade that is passed on. Behind any other, HTTP/2 in clear text above all, a client could send
/// requests that nobody inspects.
pub(crate) fn asks_for_websocket(head: &RequestHead) -> bool {
    head.upgrade().is_some_and(|protocols| protocols.eq_ignore_ascii_case(b"websocket"))
}

fn is_idempotent(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
}

/// Sends the head and what was held of the body.
async fn send_start(
    connection: &Connection,
    upstream: &mut UpstreamConnection,
    group: &Group,
    request: &[u8],
    held: &[u8],
    chunked: bool,
) -> Result<(), upload::Stopped> {
    let mut size = Vec::new();
    let end: &[u8] = if chunked && !held.is_empty() {
        portcullis_http::h1::write_chunk_size(held.len(), &mut size);
        portcullis_http::h1::CHUNK_END
    } else {
        b""
    };
    let slices = &mut [IoSlice::new(request), IoSlice::new(&size), IoSlice::new(held), IoSlice::new(end)];
    upload::write(upstream, &connection.timer, group.settings.write_timeout, slices).await
}

/// Waits for the head of the final answer, as long as the timer is armed for. Interim answers are not passed on: we have sent our own 100 if one was due.
async fn response_head(
    timer: &Timer,
    upstream: &mut UpstreamConnection,
    sent_whole: bool,
) -> Result<ResponseHead, UpstreamError> {
    let mut looked = false;
    loop {
        if !upstream.input.unread().is_empty() {
            match upstream.parser.parse(upstream.input.unread()) {
                Err(_) => return Err(UpstreamError::InvalidResponse),
                Ok(None) => {}
                Ok(Some(head)) => {
                    upstream.input.consume(head.received_len());
                    if head.is_interim() {
                        continue;
                    }
                    return Ok(head);
                }
            }
        }
        let UpstreamConnection { stream, input, .. } = upstream;
        match timer.run(input.fill(stream)).await {
            Err(_) => return Err(UpstreamError::ResponseTimeout),
            Ok(Ok(count)) if count > 0 => looked = true,
            // Where the request could not be sent either, that came first.
            Ok(_) if !sent_whole && !looked => return Err(UpstreamError::Write),
            Ok(_) => return Err(UpstreamError::Closed),
        }
    }
}
