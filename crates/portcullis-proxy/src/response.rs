//! The upstream's answer: phases 3 and 4, then on to the client, streamed unless the rules need the body.

mod held;

use std::sync::Arc;

use portcullis_event::UpstreamError;
use portcullis_http::h1::{
    BodyDecoder, ClientConnection, ResponseRewrite, Trailers, client_framing, write_response,
};
use portcullis_http::message::{BodyFraming, RequestHead, ResponseHead, Version};
use portcullis_inspect::{BodyPlan, Step};

use crate::abort::Aborted;
use crate::agents;
use crate::clock;
use crate::compress::{self, Coder};
use crate::connection::Connection;
use crate::exchange::{Next, gateway_error, no_memory};
use crate::forward::Answered;
use crate::generation::Generation;
use crate::https::Https;
use crate::lookups;
use crate::rewrite::{NoMemory, STALE_RESPONSE_FIELDS};
use crate::route::fields;
use crate::sink::Sink;
use crate::transaction::Transaction;
use crate::upload::SMALL_BYTES;
use crate::upstream::{Group, UpstreamConnection};
use crate::{answer, pause, rewrite, tunnel, websocket};

pub(crate) use held::Held;
use held::{Bounds, Unheld, hold};

/// Passes the answer on, or blocks it. What few answers need is boxed, so that the others do not hold the room for it.
pub(crate) async fn pass_on(
    connection: &mut Connection,
    generation: &Arc<Generation>,
    request: &RequestHead,
    transaction: &mut Transaction,
    group: &Arc<Group>,
    answered: Answered<'_>,
) -> Next {
    let Answered { mut upstream, mut lease, head, sent_whole, .. } = answered;
    if let Some(trace) = &mut transaction.trace {
        trace.answered(Some(head.status()));
    }
    let framing = head.framing(request.method());
    let mut decoder = upstream.body_decoder(framing);
    let step = transaction.inspection.response_head(&head);
    let mut step = lookups::settle(&connection.worker, generation, transaction, step).await;
    let mut held = Held::default();
    if let Step::Continue = step {
        let plan = match head.status() != 101 && !decoder.is_done() {
            true => transaction.inspection.response_body_plan(),
            false => BodyPlan::Skip,
        };
        let (plan, of_agents) = agents::response_plan(transaction, plan);
        if let BodyPlan::Hold { limit_bytes, over_limit } = plan {
            let wait_max = of_agents.or_else(|| transaction.inspection.response_wait_max());
            let bounds = Bounds { bytes: limit_bytes, over: over_limit, wait_max };
            let held_now = hold(connection, group, &mut upstream, transaction, &mut decoder, bounds).await;
            match held_now {
                Ok(got) => held = got,
                Err(Unheld::Client) => {
                    transaction.client_aborted = true;
                    return Next::Gone;
                }
                Err(Unheld::Upstream(error)) => {
                    lease.failed(error);
                    let answer =
                        gateway_error(connection, generation, request, transaction, error, sent_whole);
                    return Box::pin(answer).await;
                }
                Err(Unheld::Refused(status, text)) => {
                    transaction.reject(status, text);
                    let answer =
                        answer::error(connection, generation, request, transaction, status, text, sent_whole);
                    return Box::pin(answer).await;
                }
            }
        }
        let cut = held.truncated || !decoder.is_done();
        if let Some(what) = agents::response(transaction, &head, &held.bytes, cut).await {
            let answer = answer::interruption(connection, generation, request, transaction, what, sent_whole);
            return Box::pin(answer).await;
        }
        step = transaction.response_end(&connection.worker.shared, held.truncated).await;
        step = lookups::settle(&connection.worker, generation, transaction, step).await;
    }
    pause::rest(connection, generation, transaction).await;
    if let Step::Interrupt(what) = step {
        let answer = answer::interruption(connection, generation, request, transaction, what, sent_whole);
        return Box::pin(answer).await;
    }
    transaction.status = Some(head.status());
    transaction.sticky_cookie = group.sticky_cookie(request, lease.endpoint, connection.tls);
    if head.status() == 101 {
        return Box::pin(switch(connection, generation, request, transaction, &head, *upstream)).await;
    }
    let whole = decoder.is_done();
    let edited = match rewrite::response(transaction, request, &head, framing, &mut held, whole) {
        Ok(edited) => edited,
        Err(NoMemory) => {
            let answer = no_memory(connection, generation, request, transaction, sent_whole);
            return Box::pin(answer).await;
        }
    };
    let to_client = match framing {
        BodyFraming::None => BodyFraming::None,
        _ if whole && (edited.changed || !matches!(framing, BodyFraming::Length(_))) => {
            BodyFraming::Length(held.bytes.len() as u64 + edited.added())
        }
        BodyFraming::Length(length) => BodyFraming::Length(length + edited.added()),
        _ => client_framing(framing, request.version()),
    };
    let coder = compress(connection, transaction, request, &head, framing, whole.then_some(&held));
    let to_client = match coder {
        Some(_) => client_framing(BodyFraming::UntilClose, request.version()),
        None => to_client,
    };
    let keep = sent_whole
        && request.keep_alive()
        && to_client != BodyFraming::UntilClose
        && !connection.worker.draining.get();
    compose(connection, request, transaction, &head, to_client, keep, edited.changed);
    transaction.own_body_bytes = edited.added();
    held.bytes.splice(..0, edited.before);
    let mut append = edited.after;
    if whole {
        held.bytes.append(&mut append);
    }
    let patience = generation.timeouts.write;
    let sink = Sink::new(connection, patience, to_client == BodyFraming::Chunked);
    let streamed = match coder {
        Some(coder) => {
            let body = (decoder, held);
            Box::pin(compress::stream(sink, group, &mut upstream, transaction, body, &append, coder)).await
        }
        None => stream(sink, group, &mut upstream, transaction, decoder, held, &append).await,
    };
    match streamed {
        Ok(()) if framing != BodyFraming::UntilClose && head.keep_alive() && sent_whole => {
            // A stream of HTTP/2 is for one request.
            if upstream.input.unread().is_empty() && upstream.stream.tcp().is_some() {
                let mut pool = connection.worker.pool.borrow_mut();
                upstream.input.rest();
                pool.group(group).put(lease.endpoint, upstream, clock::coarse());
            }
        }
        Ok(()) => {}
        Err(Cut::Client) => {
            transaction.client_aborted = true;
            return Next::Gone;
        }
        Err(Cut::Upstream) => {
            // The client has a head that promised more; closing without an end is the only honest way to say so.
            transaction.upstream_error = Some(UpstreamError::BodyTruncated);
            lease.failed(UpstreamError::BodyTruncated);
            return Next::Gone;
        }
    }
    if keep { Next::Request } else { Next::Close }
}

/// Writes the head of the answer into the connection's scratch buffer.
fn compose(
    connection: &mut Connection,
    request: &RequestHead,
    transaction: &Transaction,
    head: &ResponseHead,
    framing: BodyFraming,
    keep: bool,
    edited: bool,
) {
    connection.output.clear();
    if request.version() == Version::Http09 {
        return;
    }
    let upgrade = head.status() == 101;
    let id = ("X-Request-Id", transaction.request_id.as_bytes());
    let signature = transaction.server_signature();
    let mut remove = if edited { STALE_RESPONSE_FIELDS.to_vec() } else { Vec::new() };
    if signature.is_some_and(<[u8]>::is_empty) {
        remove.push("server");
    }
    let signed = [id, ("Server", signature.unwrap_or_default())];
    let own = if signature.is_some_and(|text| !text.is_empty()) { &signed[..] } else { &signed[..1] };
    let mut set = Vec::new();
    let cookie = transaction.sticky_cookie.as_ref().map(|cookie| ("Set-Cookie", cookie.as_bytes()));
    let mut add: Vec<(&str, &[u8])> = cookie.into_iter().collect();
    transaction.recoded.change(&mut remove, &mut add);
    let hsts = transaction.hsts.as_deref().and_then(Https::field);
    let alt_svc = transaction.alt_svc.as_ref().map(|value| ("Alt-Svc", value.as_bytes()));
    if hsts.is_some() || alt_svc.is_some() || transaction.response_headers.is_some() {
        set.extend_from_slice(own);
        set.extend(hsts.into_iter().chain(alt_svc));
    }
    if let Some(changed) = &transaction.response_headers {
        remove.extend(changed.remove.iter().map(String::as_str));
        set.extend(fields(&changed.set, ""));
        add.extend(fields(&changed.add, ""));
    }
    let rewrite = ResponseRewrite {
        add: &add,
        framing,
        describes_length: framing == BodyFraming::None && !edited && !transaction.recoded.is_coded(),
        connection: match upgrade {
            true => ClientConnection::Upgrade,
            false => ClientConnection::of(request.version(), keep),
        },
        set: if set.is_empty() { own } else { &set },
        remove: &remove,
    };
    write_response(head, &rewrite, &mut connection.output);
}

/// An encoder for the body, if it is to have one. `whole`: it is all here.
fn compress(
    connection: &mut Connection,
    transaction: &mut Transaction,
    request: &RequestHead,
    head: &ResponseHead,
    framing: BodyFraming,
    whole: Option<&Held>,
) -> Option<Coder> {
    let compression = transaction.compression.as_ref()?;
    if framing == BodyFraming::None {
        let changed = transaction.response_headers.as_deref();
        transaction.recoded = compression.without_body(request, head, changed);
        return None;
    }
    let length = compress::known_length(framing, whole.map(|held| held.bytes.len()));
    let changed = transaction.response_headers.as_deref();
    let share = connection.memory(transaction.client().ip());
    let (recoded, coder) = compression.begin(request, head, changed, length, share);
    transaction.recoded = recoded;
    coder
}

/// Whose end broke within the body.
pub(crate) enum Cut {
    Client,
    Upstream,
}

/// Sends the composed head, what was held, and the rest as it comes; `append` comes behind the upstream's body.
async fn stream(
    mut sink: Sink<'_>,
    group: &Group,
    upstream: &mut UpstreamConnection,
    transaction: &mut Transaction,
    mut decoder: BodyDecoder,
    held: Held,
    append: &[u8],
) -> Result<(), Cut> {
    transaction.passed_body_bytes = held.came;
    let mut small = Vec::new();
    let mut room = Trailers::default();
    let mut ended = false;
    if !held.bytes.is_empty() {
        ended = decoder.is_done();
        let (rest, end) = match ended {
            true => (append, Some(upstream.trailers(&decoder, &mut room).map_err(|_| Cut::Upstream)?)),
            false => (&b""[..], None),
        };
        sink.send([&held.bytes, rest, b""], end).await.map_err(|_| Cut::Client)?;
    }
    drop(held);
    loop {
        // Everything that is here goes in one write: the head with the first data, the last data with the end.
        while !decoder.is_done() && !upstream.input.unread().is_empty() {
            let step = decoder.decode(upstream.input.unread()).map_err(|_| Cut::Upstream)?;
            let consumed = step.consumed;
            transaction.passed_body_bytes += step.data.len() as u64;
            let more = !step.done && consumed < upstream.input.unread().len();
            if more && small.len() + step.data.len() < SMALL_BYTES {
                small.extend_from_slice(step.data);
                upstream.input.consume(consumed);
                continue;
            }
            // Over HTTP/2 trailers may follow, which the end below waits for.
            ended = step.done && upstream.stream.tcp().is_some();
            let (rest, end) = if ended { (append, Some(decoder.trailers())) } else { (&b""[..], None) };
            sink.send([&small, step.data, rest], end).await.map_err(|_| Cut::Client)?;
            small.clear();
            upstream.input.consume(consumed);
        }
        if decoder.is_done() {
            if !ended {
                let end = Some(upstream.trailers(&decoder, &mut room).map_err(|_| Cut::Upstream)?);
                sink.send([append, b"", b""], end).await.map_err(|_| Cut::Client)?;
            }
            return Ok(());
        }
        if sink.has_head() {
            // The head does not wait for the body: the client of an event stream wants to know that it is there.
            sink.send([b"", b"", b""], None).await.map_err(|_| Cut::Client)?;
        }
        let UpstreamConnection { stream: from, input, .. } = &mut *upstream;
        match sink.wait(group.settings.read_timeout, input.fill(from)).await {
            Ok(Err(Aborted)) => return Err(Cut::Client),
            Ok(Ok(Ok(count))) if count > 0 => {}
            Ok(Ok(Ok(_))) if decoder.end().is_ok() => {
                let end = Some(upstream.trailers(&decoder, &mut room).map_err(|_| Cut::Upstream)?);
                return sink.send([append, b"", b""], end).await.map_err(|_| Cut::Client);
            }
            _ => return Err(Cut::Upstream),
        }
    }
}

/// 101: from here on bytes pass in both directions as they are.
async fn switch(
    connection: &mut Connection,
    generation: &Generation,
    request: &RequestHead,
    transaction: &mut Transaction,
    head: &ResponseHead,
    mut upstream: UpstreamConnection,
) -> Next {
    if !websocket::is_accepted(request, head) {
        // Nobody asked to switch, or not to this.
        let error = UpstreamError::InvalidResponse;
        return gateway_error(connection, generation, request, transaction, error, false).await;
    }
    compose(connection, request, transaction, head, BodyFraming::None, true, false);
    if Sink::new(connection, generation.timeouts.write, false).send([b"", b"", b""], None).await.is_err() {
        return Next::Gone;
    }
    let (up, down) = tunnel::run(connection, &mut upstream).await;
    transaction.upgraded_bytes = up + down;
    Next::Gone
}
