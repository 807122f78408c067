//! Serving one request. The branches are here; each step's work is in a module of its own.
//!
//! ```text
//! head ──> route ──> phase 1 ──> body held ──> phase 2 ──> upstream ──> phases 3, 4 ──> client
//!            │          │            │            │            │             │
//!            └──────────┴────────────┴────────────┴────────────┴─────────────┴──> Answer ──> answer::send
//! ```

use std::sync::Arc;
use std::time::Instant;

use portcullis_event::{Action, ExceptionCause, ExceptionPolicy};
use portcullis_exchange::TOO_LARGE;
use portcullis_http::message::{BodyFraming, Refusal, RequestHead, TargetForm};
use portcullis_inspect::{ForeignCookie, Interruption, Origin, Step};
use portcullis_metrics::StreamedUpload;

use crate::access::{Address, Admission, Entry, Visitor};
use crate::answer::{self, Answer};
use crate::budget::NoMemory;
use crate::compress::Compression;
use crate::connection::Connection;
use crate::exchange::{Exchange, Next, RETRY_AFTER_SECONDS};
use crate::forward::{self, Destination, Fault};
use crate::generation::Generation;
use crate::header_changes::Changed;
use crate::request_body::{self, Body, Obstacle};
use crate::route::{Route, Target};
use crate::site::Routed;
use crate::template::{self, Source};
use crate::transaction::Transaction;
use crate::{agents, client, facts, path, report, response, rewrite};

/// Handles one request to its end. `refused` is why, and with which status, it is not acceptable HTTP.
pub(crate) async fn run(
    connection: &mut Connection,
    generation: &Arc<Generation>,
    mut head: Box<RequestHead>,
    refused: Option<(Refusal, u16)>,
) -> Next {
    let foreign = check_cookies(connection, generation, &mut head);
    let found = find(connection, generation, &head);
    let (mut exchange, admission) = admit(connection, generation, &head, found.route());
    if !foreign.is_empty() {
        exchange.transaction.life.call(|inspection| inspection.note_foreign_cookies(foreign));
    }
    let next = match serve(&mut exchange, found, admission, refused).await {
        Ok(next) => next,
        Err(answer) => answer::send(&mut exchange, answer).await,
    };
    report::close(&mut exchange).await;
    next
}

/// Takes the signatures off the cookies of a request before anybody looks at them; returns those that are not
/// the site's own, which are gone.
fn check_cookies(
    connection: &Connection,
    generation: &Generation,
    head: &mut RequestHead,
) -> Vec<ForeignCookie> {
    if !generation.signs_cookies {
        return Vec::new();
    }
    let site = generation.listeners[connection.listener].hosts.find(facts::host(head));
    let signing = site.and_then(|site| generation.sites[site].routes().first()?.signing.as_ref());
    signing.map(|signing| signing.check(head, connection.began.epoch_millis())).unwrap_or_default()
}

enum Found<'g> {
    Route(&'g Route),
    /// No route takes it; the text says why.
    Nowhere(&'g Route, &'static str),
    /// The connection was made for another site.
    Misdirected(&'g Route),
    /// With the route of the path as it is written.
    Ambiguous(Option<&'g Route>),
    /// An ACME authority looks whether we serve a name.
    Challenge(Arc<str>),
}

impl<'g> Found<'g> {
    fn route(&self) -> Option<&'g Route> {
        match self {
            Found::Route(route) | Found::Nowhere(route, _) | Found::Misdirected(route) => Some(route),
            Found::Ambiguous(route) => *route,
            Found::Challenge(_) => None,
        }
    }
}

fn find<'g>(connection: &Connection, generation: &'g Generation, head: &RequestHead) -> Found<'g> {
    if generation.acme.is_some()
        && !connection.tls
        && let Some(proof) = connection.worker.shared.challenges.proof(head)
    {
        return Found::Challenge(proof);
    }
    let host = facts::host(head);
    let hosts = &generation.listeners[connection.listener].hosts;
    let unserved = &generation.unserved[connection.listener];
    let Some(index) = hosts.find(host) else { return Found::Nowhere(unserved, NO_SITE) };
    if is_misdirected(connection, generation, host, index) {
        return Found::Misdirected(unserved);
    }
    let site = &generation.sites[index];
    match site.route(head) {
        Routed::To(index) => Found::Route(&site.routes()[index]),
        Routed::Nowhere => Found::Nowhere(unserved, NO_ROUTE),
        Routed::Ambiguous(index) => Found::Ambiguous(index.map(|index| &site.routes()[index])),
    }
}

/// True if the client connected to another of our sites, under a certificate that does not bear the name of
/// the one it asks for: what the handshake settled was not for this one. A proxy in front may well connect
/// under one name.
fn is_misdirected(connection: &Connection, generation: &Generation, host: &[u8], site: usize) -> bool {
    let listener = &generation.listeners[connection.listener];
    let (Some(sni), Some(tls)) = (&connection.sni, &listener.tls) else { return false };
    let name = facts::without_port(host);
    if name.eq_ignore_ascii_case(sni.as_bytes()) || generation.client_address.trusts(connection.peer.ip()) {
        return false;
    }
    let is_other = listener.hosts.named(sni.as_bytes()).is_some_and(|other| other != site);
    is_other && !std::str::from_utf8(name).is_ok_and(|name| tls.covers(sni, name))
}

/// Looks at the client before anything is inspected, and begins the account of the request.
fn admit<'a>(
    connection: &'a mut Connection,
    generation: &'a Arc<Generation>,
    head: &'a RequestHead,
    route: Option<&'a Route>,
) -> (Exchange<'a>, Admission) {
    let client = client::address(&generation.client_address, connection.peer, head);
    let place = generation.geo.find(client.ip());
    let shared = &connection.worker.shared;
    let account = shared.overload.key(shared.budget.network_of(client.ip()));
    let mut admission = match route.map(|route| &route.access) {
        Some(access) => {
            let now = shared.clock(connection.began.instant);
            access.admit(Visitor { address: client.ip(), place }, head, now)
        }
        None => Admission::default(),
    };
    if admission.entry == Entry::Inspected && shared.overload.is_overloaded() {
        let now = shared.clock(Instant::now());
        if shared.overload.is_too_much(account, now) {
            let (decision, denial) = shared.overload.refuse(RETRY_AFTER_SECONDS, now);
            admission.note(decision, Some(denial));
        }
    }
    let mut transaction =
        Transaction::begin(connection, generation, head, route, (client, place), (admission.entry, account));
    transaction.decision = admission.decision.take();
    (Exchange { connection, generation, head, route, transaction }, admission)
}

const NO_SITE: &str = "No site is served under this host name.";
const NO_ROUTE: &str = "Nothing is served under this path.";

/// Serves a request whose account has begun. An error is the answer of the proxy itself.
async fn serve(
    exchange: &mut Exchange<'_>,
    found: Found<'_>,
    admission: Admission,
    refused: Option<(Refusal, u16)>,
) -> Result<Next, Answer> {
    let bodiless = exchange.head.framing() == BodyFraming::None;
    if let Some(denial) = admission.denial {
        return Err(exchange.denied(denial, refused.is_none() && bodiless));
    }
    if let Some((refusal, status)) = refused {
        return Err(refuse(exchange, refusal, status).await);
    }
    let route = match found {
        Found::Route(route) => route,
        Found::Misdirected(_) => {
            let text = "This connection was made for another site; connect anew for this one.";
            return Err(Answer::rejected(421, text).reusable(bodiless));
        }
        Found::Nowhere(_, text) => return Err(unserved(exchange, text).await.reusable(bodiless)),
        Found::Ambiguous(_) => {
            let refusal = Refusal::AmbiguousPath;
            return Err(refuse(exchange, refusal, refusal.status()).await.reusable(bodiless));
        }
        Found::Challenge(proof) => {
            let proof = (proof.to_string(), "application/octet-stream".to_string());
            return Err(Answer::text(200, Some(proof)).reusable(true));
        }
    };
    let decided = decide(exchange, route).await;
    note_page(exchange, route);
    match decided? {
        Ready::Route(body) => arrive(exchange, route, body).await,
        Ready::Diverted(to, body) => Box::pin(divert(exchange, to, body)).await,
    }
}

/// Tells bans of the address, if something was found in the request.
fn note_page(exchange: &mut Exchange<'_>, route: &Route) {
    let jail = &route.access.jail;
    if jail.counts()
        && exchange.transaction.life.has_found()
        && let Some(address) = Address::asked(exchange.head)
    {
        let now = exchange.shared().clock(exchange.transaction.began.instant);
        jail.note(exchange.transaction.client().ip(), address, now);
    }
}

/// The codec says no. Rules run over what could be read all the same, so that probes are seen and scored.
async fn refuse(exchange: &mut Exchange<'_>, refusal: Refusal, status: u16) -> Answer {
    exchange.transaction.life.refusal = Some(refusal);
    let step = exchange.transaction.life.request_head(exchange.head, Some(refusal));
    let step = exchange.settle(step).await;
    exchange.pause().await;
    unless_dropped(step, Answer::protocol(status, refusal.explanation()))
}

/// The answer to a request that no route takes. Where its head is an attack the verdict is the answer, which
/// counts towards a ban.
async fn unserved(exchange: &mut Exchange<'_>, text: &'static str) -> Answer {
    let not_found = Answer::rejected(404, text);
    let step = match exchange.transaction.request_head(exchange.connection, exchange.head).await {
        Ok(step) => exchange.settle(step).await,
        Err(full) => return exchange.no_room(full),
    };
    let step = match step {
        Step::Continue => {
            // A body is not waited for.
            let has_body = exchange.head.framing() != BodyFraming::None;
            let step = exchange.transaction.life.request_end(has_body);
            exchange.settle(step).await
        }
        step @ (Step::Ask | Step::Interrupt(_)) => step,
    };
    exchange.pause().await;
    match step {
        Step::Continue | Step::Ask | Step::Interrupt(Interruption::Proxy { .. }) => not_found,
        Step::Interrupt(what) => Answer::verdict(what),
    }
}

/// `answer`, unless rules want the connection dropped: their verdict cannot make a refusal milder.
fn unless_dropped(step: Step, answer: Answer) -> Answer {
    if let Step::Interrupt(Interruption::Drop) = step { Answer::verdict(Interruption::Drop) } else { answer }
}

/// The server to which a rule sends a request, and the target there.
type Diversion = (Arc<Origin>, Vec<u8>);

/// A request that may go on.
enum Ready {
    /// As its route says.
    Route(Body),
    /// As a rule says; phase 1 decides before anything of the body has been taken.
    Diverted(Diversion, Option<Body>),
}

/// Inspects the request, head and body: phases 1 and 2, and whatever else has a say.
async fn decide(exchange: &mut Exchange<'_>, route: &Route) -> Result<Ready, Answer> {
    let bodiless = exchange.head.framing() == BodyFraming::None;
    let step = match exchange.transaction.request_head(exchange.connection, exchange.head).await {
        Ok(step) => exchange.settle(step).await,
        Err(full) => return Err(exchange.no_room(full).reusable(bodiless)),
    };
    count(exchange, route, &step, bodiless).await?;
    if let Some(to) = diverted(step, bodiless)? {
        return Ok(Ready::Diverted(to, None));
    }
    if exchange.head.target_form() == TargetForm::Authority {
        // Only the Apache profile lets CONNECT come this far. It is answered as Apache does, and no tunnel is
        // opened.
        return Err(Answer::protocol(200, "No tunnel is opened."));
    }
    if !bodiless && let Some((status, text)) = exchange.transaction.life.undecodable(false) {
        return Err(Answer::rejected(status, text));
    }
    agents::begin(exchange, route).await;
    let mut body = match request_body::take(exchange, &route.request_trailers).await {
        Ok(body) => body,
        Err(obstacle) => return Err(obstructed(exchange, obstacle).await),
    };
    let read = body.is_read();
    let hidden = match body.present {
        true => exchange.transaction.life.undecodable(!body.is_truncated()),
        false => None,
    };
    if let Some(what) = agents::verdict(&mut exchange.transaction, body.is_truncated()).await {
        return Err(Answer::verdict(what).reusable(read));
    }
    if !body.trailers.is_empty() {
        exchange.transaction.life.request_trailers(body.trailers.fields());
    }
    let shared = Arc::clone(exchange.shared());
    let step = match exchange.transaction.request_end(&shared, body.is_truncated(), body.charged()).await {
        Ok(step) => exchange.settle(step).await,
        Err(full) => return Err(exchange.no_room(full).reusable(read)),
    };
    exchange.transaction.recharge();
    let step = match step {
        Step::Continue => body.inspect_upload(&mut exchange.transaction, &shared).await,
        step @ (Step::Ask | Step::Interrupt(_)) => step,
    };
    count(exchange, route, &step, read).await?;
    if let Some((status, text)) = exchange.transaction.life.oversized() {
        return Err(unless_dropped(step, Answer::rejected(status, text)));
    }
    if let Err(NoMemory) = rewrite::request(&mut exchange.transaction, &mut body) {
        return Err(exchange.no_memory().reusable(read));
    }
    if let Some(to) = diverted(step, read)? {
        return Ok(Ready::Diverted(to, Some(body)));
    }
    match hidden.or_else(|| exchange.transaction.life.exhausted()) {
        Some((status, text)) => Err(Answer::rejected(status, text).reusable(read)),
        None => Ok(Ready::Route(body)),
    }
}

/// Counts the request where the rules of a phase want it counted, and waits as long as they want. The answer,
/// if it comes too early and the rules would let it pass.
async fn count(
    exchange: &mut Exchange<'_>,
    route: &Route,
    step: &Step,
    reusable: bool,
) -> Result<(), Answer> {
    let mut denial = None;
    let charges = exchange.transaction.life.take_charges();
    if !charges.is_empty() {
        let access = &route.access;
        let now = exchange.shared().clock(exchange.connection.began.instant);
        let transaction = &mut exchange.transaction;
        if let Some((decision, refused)) = access.charge(transaction.visitor(), exchange.head, charges, now) {
            transaction.decision = Some(decision);
            denial = refused.filter(|_| transaction.life.is_blocking());
        }
    }
    exchange.pause().await;
    match denial.filter(|_| *step == Step::Continue) {
        Some(denial) => Err(exchange.denied(denial, reusable)),
        None => Ok(()),
    }
}

/// The diversion, if a rule of the phase asks for one; an error if the phase has the request answered.
fn diverted(step: Step, reusable: bool) -> Result<Option<Diversion>, Answer> {
    match step {
        Step::Continue | Step::Ask => Ok(None),
        Step::Interrupt(Interruption::Proxy { origin, target }) => Ok(Some((origin, target))),
        Step::Interrupt(what) => Err(Answer::verdict(what).reusable(reusable)),
    }
}

/// Does what the route says with a request that was let through.
async fn arrive(exchange: &mut Exchange<'_>, route: &Route, body: Body) -> Result<Next, Answer> {
    let Exchange { connection, generation, head, transaction, .. } = &mut *exchange;
    let facts = transaction.facts(head);
    let groups = route.matcher.groups(head);
    let source = Source { facts: &facts, groups: &groups };
    if let Some((to, counter)) = &route.https.redirect
        && !facts::is_secure(connection.tls, connection.peer.ip(), &generation.client_address, head)
    {
        counter.inc();
        return Err(Answer::redirect(308, template::fill(to, &source)).reusable(body.is_read()));
    }
    let mut response_headers = Changed::new(&route.response_headers, &source);
    match &route.target {
        Target::Forward { slot, rewrite, idempotent } => {
            let group = &slot.group();
            let mut request_headers = Changed::new(&route.request_headers, &source);
            let target = rewrite.as_ref().map(|rewrite| route.matcher.rewritten(rewrite, &facts));
            if transaction.compression.is_some()
                && let Some(tags) = Compression::if_match(head)
            {
                request_headers.get_or_insert_default().set.push(("if-match".to_owned(), tags));
            }
            transaction.agent_headers.change_request(&mut request_headers);
            transaction.agent_headers.change_response(&mut response_headers);
            transaction.response_headers = response_headers;
            let (headers, idempotent) = (request_headers.as_deref(), *idempotent);
            let to = Destination { group, idempotent, target: target.as_deref(), headers };
            send(exchange, to, body).await
        }
        Target::Redirect { status, to } => {
            let mut to = template::fill(to, &source);
            // `//host` is another host to browsers, and what comes after the first slash may be the client's
            // choice.
            while to.starts_with(b"//") || to.starts_with(b"/\\") {
                to.remove(1);
            }
            transaction.response_headers = response_headers;
            Err(Answer::redirect(*status, to).reusable(body.is_read()))
        }
        Target::Respond { status, body: text } => {
            transaction.response_headers = response_headers;
            Err(Answer::text(*status, text.clone()).reusable(body.is_read()))
        }
    }
}

/// Sends the request where a rule says. `body` is what has been taken of it, nothing in phase 1.
async fn divert(
    exchange: &mut Exchange<'_>,
    (origin, target): Diversion,
    body: Option<Body>,
) -> Result<Next, Answer> {
    let group = exchange.generation.diverted.get(&*origin);
    let Some(group) = group.filter(|_| exchange.head.target_form() != TargetForm::Authority) else {
        // No tunnel goes there, and nothing that was not looked up when the settings were loaded.
        return Err(Answer::verdict(Interruption::Deny { status: 500 }));
    };
    exchange.transaction.life.action = Action::Proxy;
    let body = match body {
        Some(body) => body,
        None => match request_body::take(exchange, &[]).await {
            Ok(body) => body,
            Err(obstacle) => return Err(obstructed(exchange, obstacle).await),
        },
    };
    let to = Destination { group: &group.group(), idempotent: false, target: Some(&target), headers: None };
    send(exchange, to, body).await
}

/// Forwards the request and passes the answer on.
async fn send(exchange: &mut Exchange<'_>, to: Destination<'_>, body: Body) -> Result<Next, Answer> {
    let (read, is_upload) = (body.is_read(), body.upload.is_some());
    if let Some(refusal) = parent(exchange.head, to.target) {
        exchange.transaction.life.refusal = Some(refusal);
        let (status, text) = (refusal.status(), refusal.explanation());
        exchange.transaction.life.reject(status, text, Action::Refuse);
        return Err(Answer::protocol(status, text).reusable(read));
    }
    let result = forward::run(exchange, to, body).await;
    if is_upload {
        let is_broken = matches!(result, Err(Fault::Verdict(_) | Fault::RequestBody(..)));
        let what = if is_broken { StreamedUpload::BrokenOff } else { StreamedUpload::Passed };
        exchange.shared().services.metrics.streamed_uploads.inc(what as usize);
    }
    match result {
        Ok(mut answered) => {
            let pump = answered.pump.take();
            let next = response::pass_on(exchange, to.group, answered, pump.as_ref()).await;
            if let Some(pump) = pump {
                exchange.transaction.life.outcome.request_body_bytes += pump.bytes();
                exchange.transaction.trailers_dropped = pump.trailers();
            }
            next
        }
        Err(Fault::Client) => Err(Answer::client_gone()),
        Err(Fault::RequestBody(status, text)) => Err(Answer::rejected(status, text)),
        Err(Fault::Verdict(what)) => Err(Answer::verdict(what)),
        Err(Fault::Upstream(error)) => Err(Answer::upstream_failed(error).reusable(read)),
    }
}

/// Why the request is not forwarded to `target`, or as it came: segments that stand for a parent are resolved
/// by servers, each in its own way, so another path would be served than the one that was inspected and
/// routed.
fn parent(head: &RequestHead, target: Option<&[u8]>) -> Option<Refusal> {
    let climbs = match target {
        // What a route or rule made of a path; the client must not get out of what they put before it.
        Some(target) => path::has_parent_segment(target) || path::climbs(head.path()),
        None => path::has_parent_segment(head.path()),
    };
    climbs.then_some(Refusal::ParentSegment)
}

/// The request body cannot be had, or not be held. Rules see what there is of it.
async fn obstructed(exchange: &mut Exchange<'_>, obstacle: Obstacle) -> Answer {
    let is_short = matches!(obstacle, Obstacle::NoMemory(_));
    let answer = match obstacle {
        Obstacle::Gone => return Answer::client_gone(),
        Obstacle::OverLimit => {
            exchange
                .transaction
                .life
                .exception(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Closed);
            Answer::rejected(TOO_LARGE.0, TOO_LARGE.1)
        }
        Obstacle::NoMemory(full) => exchange.no_room(full),
        Obstacle::Late => Answer::rejected(408, "The request body did not come in time."),
        Obstacle::Malformed(error) => Answer::rejected(error.status(), error.explanation()),
    };
    if is_short {
        // Taking it apart would need more memory than it has.
        exchange.transaction.life.forget_request_body();
    }
    let shared = Arc::clone(exchange.shared());
    let step = match exchange.transaction.request_end(&shared, true, 0).await {
        Ok(step) => exchange.settle(step).await,
        // It is refused anyway.
        Err(full) => {
            shared.budget.count_refused(full);
            Step::Continue
        }
    };
    exchange.transaction.recharge();
    exchange.pause().await;
    unless_dropped(step, answer)
}
