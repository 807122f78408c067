//! The upstream's answer: phases 3 and 4, then on to the client, streamed unless the rules need the body.

mod flow;
mod held;

use std::sync::Arc;

use portcullis_event::UpstreamError;
use portcullis_http::h1::{
    BodyDecoder, ClientConnection, ResponseRewrite, Trailers, client_framing, write_response,
};
use portcullis_http::message::{BodyFraming, ResponseHead, Version};
use portcullis_inspect::{BodyPlan, Step};

use crate::agents;
use crate::answer::Answer;
use crate::budget::NoMemory;
use crate::clock;
use crate::compress::{self, Coder};
use crate::cookies::flagged;
use crate::exchange::{Exchange, Next, RETRY_AFTER_SECONDS};
use crate::facts;
use crate::forward::Answered;
use crate::header_changes::fields;
use crate::https::Https;
use crate::pump::Pump;
use crate::rewrite::{Edited, STALE_RESPONSE_FIELDS};
use crate::sink::Sink;
use crate::stream::Stream;
use crate::upstream::{Fate, Group, UpstreamConnection};
use crate::{rewrite, tunnel, upstream, websocket};

use flow::stream;
pub(crate) use flow::{Cut, Flow};
pub(crate) use held::Held;
use held::{Bounds, Unheld, hold};

/// Passes the answer on, or blocks it; `pump` is the request body, if it is still on its way. What few
/// answers need is boxed, so that the others do not hold the room for it.
pub(crate) async fn pass_on(
    exchange: &mut Exchange<'_>,
    group: &Arc<Group>,
    mut answered: Answered<'_>,
    pump: Option<&Pump>,
) -> Result<Next, Answer> {
    let framing = answered.head.framing(exchange.head.method());
    let mut decoder = answered.upstream.body_decoder(framing);
    let mut held = inspect(exchange, group, &mut answered, &mut decoder, pump).await?;
    recognise(exchange, &answered, framing, &held);
    let Answered { mut upstream, mut lease, head, sent_whole, used_login, .. } = answered;
    let transaction = &mut exchange.transaction;
    transaction.life.outcome.status = Some(head.status());
    transaction.sticky_cookie = group.sticky_cookie(exchange.head, lease.endpoint, exchange.connection.tls);
    if used_login && asks_for_http1(exchange, &head) {
        return Ok(Next::Http1);
    }
    if head.status() == 101 {
        return Box::pin(switch(exchange, &head, *upstream)).await;
    }
    let whole = decoder.is_done();
    let edited = match rewrite::response(exchange, &head, framing, &mut held, whole) {
        Ok(edited) => edited,
        Err(NoMemory) => return Err(exchange.no_memory().reusable(sent_whole)),
    };
    let coder = compress(exchange, &head, framing, whole.then_some(&held));
    let version = exchange.head.version();
    // Behind a body of known length HTTP/1.1 has no room for trailers.
    let has_trailers = version == Version::Http11
        && framing == BodyFraming::Chunked
        && whole
        && upstream.trailers(&decoder, &mut Trailers::default()).is_ok_and(|trailers| trailers.len() > 0);
    let held_bytes = (whole && !has_trailers).then_some(held.bytes.len() as u64);
    let to_client = match coder {
        Some(_) => client_framing(BodyFraming::UntilClose, version),
        None => edited_framing(framing, version, held_bytes, &edited),
    };
    let keep = sent_whole
        && exchange.head.keep_alive()
        && to_client != BodyFraming::UntilClose
        && !exchange.connection.worker.draining.get();
    compose(exchange, &head, to_client, keep, edited.changed);
    exchange.transaction.life.outcome.own_body_bytes = edited.added();
    if !edited.before.is_empty() {
        let body = std::mem::replace(&mut held.bytes, edited.before.into());
        held.bytes.extend_from_slice(&body);
    }
    let mut append = edited.after;
    if whole {
        held.bytes.extend_from_slice(&append);
        append.clear();
    }
    let flow = Flow {
        sink: Sink::new(
            exchange.connection,
            exchange.generation.timeouts.write,
            to_client == BodyFraming::Chunked,
        ),
        upstream: &mut upstream,
        patience: group.settings.read_timeout,
        transaction: &mut exchange.transaction,
        decoder,
    };
    let streamed = match coder {
        Some(coder) => Box::pin(compress::stream(flow, held, &append, coder)).await,
        None => stream(flow, held, &append).await,
    };
    match streamed {
        Ok(()) if framing != BodyFraming::UntilClose && head.keep_alive() && sent_whole => {
            let fate = upstream::fate(&head, used_login, upstream.login.is_some());
            keep_upstream(exchange, group, lease.endpoint, upstream, fate);
        }
        Ok(()) => {}
        Err(cut) if matches!(cut, Cut::Client) || pump.is_some_and(Pump::is_client_gone) => {
            exchange.transaction.client_aborted = true;
            return Ok(Next::Gone);
        }
        Err(_) => {
            // The client has a head that promised more; closing without an end is the only truthful way to
            // say so.
            exchange.transaction.life.outcome.upstream_error = Some(UpstreamError::BodyTruncated);
            lease.failed(UpstreamError::BodyTruncated);
            return Ok(Next::Gone);
        }
    }
    Ok(if keep { Next::Request } else { Next::Close })
}

/// Looks at what is there of an answer, if the application behind the site is not known yet.
fn recognise(exchange: &Exchange<'_>, answered: &Answered<'_>, framing: BodyFraming, held: &Held) {
    let recognition = exchange.route.and_then(|route| route.recognition.as_deref());
    let Some(recognition) = recognition.filter(|recognition| recognition.is_open()) else { return };
    let body = match held.bytes.is_empty() {
        false => &held.bytes[..],
        true => {
            let unread = answered.upstream.input.unread();
            // The line with the length of the first chunk is no part of the body.
            let line = unread.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            &unread[if framing == BodyFraming::Chunked { line } else { 0 }..]
        }
    };
    recognition.look(exchange.head, &answered.head, body);
}

/// Inspects an answer, and gives what of its body is held for that.
async fn inspect(
    exchange: &mut Exchange<'_>,
    group: &Group,
    answered: &mut Answered<'_>,
    decoder: &mut BodyDecoder,
    pump: Option<&Pump>,
) -> Result<Held, Answer> {
    let Answered { upstream, lease, head, sent_whole, .. } = answered;
    let sent_whole = *sent_whole;
    if let Some(trace) = &mut exchange.transaction.trace {
        trace.answered(Some(head.status()));
    }
    let elapsed = exchange.transaction.began.instant.elapsed();
    exchange.transaction.life.set_elapsed(elapsed);
    let step = exchange.transaction.life.response_head(head);
    let mut step = exchange.settle(step).await;
    let mut held = Held::default();
    if let Step::Continue = step {
        if let Some(bounds) = bounds(exchange, head, decoder, group) {
            let whole = hold(exchange, upstream, decoder, bounds).await;
            held = whole.map_err(|unheld| match unheld {
                Unheld::Upstream(_) if pump.is_some_and(Pump::is_client_gone) => Answer::client_gone(),
                Unheld::Upstream(error) => {
                    lease.failed(error);
                    Answer::upstream_failed(error).reusable(sent_whole)
                }
                Unheld::Client => Answer::client_gone(),
                Unheld::NoMemory => {
                    let answer = Answer::rejected(503, "Too many large responses at this moment.");
                    answer.retry_after(RETRY_AFTER_SECONDS).reusable(sent_whole)
                }
                Unheld::Refused(status, text) => Answer::rejected(status, text).reusable(sent_whole),
            })?;
        }
        let cut = held.truncated || !decoder.is_done();
        if let Some(what) = agents::response(&mut exchange.transaction, head, &held.bytes, cut).await {
            return Err(Answer::verdict(what).reusable(sent_whole));
        }
        let shared = &exchange.connection.worker.shared;
        step = exchange.transaction.response_end(shared, held.truncated).await;
        step = exchange.settle(step).await;
    }
    exchange.pause().await;
    if let Step::Interrupt(what) = step {
        return Err(Answer::verdict(what).reusable(sent_whole));
    }
    Ok(held)
}

/// How the body is framed for the client, of which all is held if its length is given, and to which `edited`
/// adds.
fn edited_framing(framing: BodyFraming, version: Version, held: Option<u64>, edited: &Edited) -> BodyFraming {
    match (framing, held) {
        (BodyFraming::None, _) => BodyFraming::None,
        (BodyFraming::Length(length), _) if held.is_none() || !edited.changed => {
            BodyFraming::Length(length + edited.added())
        }
        (_, Some(length)) => BodyFraming::Length(length + edited.added()),
        _ => client_framing(framing, version),
    }
}

/// Keeps a connection for the next request, if nothing unasked came on it.
fn keep_upstream(
    exchange: &mut Exchange<'_>,
    group: &Arc<Group>,
    endpoint: usize,
    mut upstream: Box<UpstreamConnection>,
    fate: Fate,
) {
    // A stream of HTTP/2 is for one request.
    if !upstream.input.unread().is_empty() || upstream.stream.tcp().is_none() {
        return;
    }
    upstream.input.rest();
    match fate {
        Fate::Shared => {
            let mut pool = exchange.connection.worker.pool.borrow_mut();
            pool.group(group).put(endpoint, upstream, clock::coarse());
        }
        Fate::Bound => {
            let client = exchange.transaction.client().ip();
            exchange.connection.logins.keep(group, endpoint, client, upstream);
        }
        Fate::Closed => {}
    }
}

/// True if the client has to retry over HTTP/1.1: the answer continues a login that belongs to a
/// connection, and requests on streams of HTTP/2 and 3 have no connection of their own, nor an order.
/// Browsers and curl do so by themselves when the stream is reset for that reason (RFC 9113, section 7).
fn asks_for_http1(exchange: &Exchange<'_>, head: &ResponseHead) -> bool {
    let is_asked = matches!(head.status(), 401 | 407) && upstream::is_continued(head);
    is_asked && matches!(exchange.connection.stream, Stream::Http2(_))
}

/// The limits within which the body is held for inspection; none if it is not held.
fn bounds(
    exchange: &mut Exchange<'_>,
    head: &ResponseHead,
    decoder: &BodyDecoder,
    group: &Group,
) -> Option<Bounds> {
    let transaction = &mut exchange.transaction;
    let plan = match head.status() != 101 && !decoder.is_done() {
        true => transaction.life.response_body_plan(),
        false => BodyPlan::Skip,
    };
    let (plan, of_agents) = agents::response_plan(transaction, plan);
    let BodyPlan::Hold { limit_bytes, over_limit } = plan else { return None };
    let wait_max = of_agents.or_else(|| transaction.life.response_wait_max());
    let patience = group.settings.read_timeout;
    Some(Bounds { bytes: limit_bytes, over: over_limit, wait_max, patience })
}

/// Writes the head of the answer into the connection's scratch buffer.
fn compose(exchange: &mut Exchange<'_>, head: &ResponseHead, framing: BodyFraming, keep: bool, edited: bool) {
    let Exchange { connection, transaction, head: request, generation, route, .. } = exchange;
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
    let (tls, peer, now) = (connection.tls, connection.peer.ip(), transaction.began.epoch_millis());
    let is_kept =
        || !transaction.response_headers.as_ref().is_some_and(|changed| changed.replaces("set-cookie"));
    let changes = route.map(|route| (route.signing.as_deref(), route.cookie_flags.as_deref()));
    let changes = changes.filter(|(signing, flags)| (signing.is_some() || flags.is_some()) && is_kept());
    let cookies: Vec<Vec<u8>> = changes.map_or_else(Vec::new, |(signing, flags)| {
        let is_secure = facts::is_secure(tls, peer, &generation.client_address, request);
        let change = |field: &[u8]| {
            let signed = signing.and_then(|signing| signing.sign(field, now));
            let field = signed.unwrap_or_else(|| field.to_vec());
            flags.and_then(|flags| flagged(flags, &field, is_secure)).unwrap_or(field)
        };
        head.header("set-cookie").map(change).collect()
    });
    if !cookies.is_empty() {
        remove.push("set-cookie");
        add.extend(cookies.iter().map(|field| ("Set-Cookie", &field[..])));
    }
    // RFC 9110, section 6.6.1: of what has no `Date` the time at which it came.
    let changes_date = transaction.response_headers.as_ref().is_some_and(|changed| changed.replaces("date"));
    let has_date = head.header("date").next().is_some() || changes_date || upgrade;
    let date = (!has_date).then(clock::http_date);
    add.extend(date.iter().map(|date| ("Date", date.as_bytes())));
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
    exchange: &mut Exchange<'_>,
    head: &ResponseHead,
    framing: BodyFraming,
    whole: Option<&Held>,
) -> Option<Coder> {
    let Exchange { connection, transaction, head: request, .. } = exchange;
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

/// 101: from here on bytes pass in both directions as they are.
async fn switch(
    exchange: &mut Exchange<'_>,
    head: &ResponseHead,
    mut upstream: UpstreamConnection,
) -> Result<Next, Answer> {
    if !websocket::is_accepted(exchange.head, head) {
        // Nobody asked to switch, or not to this.
        return Err(Answer::upstream_failed(UpstreamError::InvalidResponse));
    }
    compose(exchange, head, BodyFraming::None, true, false);
    let patience = exchange.generation.timeouts.write;
    if Sink::new(exchange.connection, patience, false).send([b"", b"", b""], None).await.is_err() {
        return Ok(Next::Gone);
    }
    let (up, down) = tunnel::run(exchange.connection, &mut upstream).await;
    exchange.transaction.life.outcome.upgraded_bytes = up + down;
    Ok(Next::Gone)
}
