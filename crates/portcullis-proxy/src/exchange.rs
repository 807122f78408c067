//! One request and its response. The branches are here; each step's work is in a module of its own.
//!
//! ```text
//! head ──> route ──> phase 1 ──> body held ──> phase 2 ──> upstream ──> phases 3, 4 ──> client
//!            │          │            │            │            │             │
//!            └──────────┴────────────┴────────────┴────────────┴─────────────┴──> answer of our own
//! ```

use std::sync::Arc;
use std::time::Instant;

use portcullis_config::OpenOrClosed;
use portcullis_event::{ExceptionCause, ExceptionPolicy, UpstreamError};
use portcullis_http::message::{BodyFraming, Refusal, RequestHead, TargetForm};
use portcullis_inspect::{BodyPlan, CodingError, Interruption, Step};
use portcullis_metrics::StreamedUpload;

use crate::access::{Admission, Entry, Visitor};
use crate::budget::Full;
use crate::compress::Compression;
use crate::connection::Connection;
use crate::forward::{self, Fault};
use crate::generation::Generation;
use crate::lookups;
use crate::request_body::{self, Body, Obstacle};
use crate::response;
use crate::rewrite::NoMemory;
use crate::route::{Changed, Route, Target};
use crate::site::Routed;
use crate::template::{self, Source};
use crate::transaction::Transaction;
use crate::upstream::Group;
use crate::{access, agents, answer, client, divert, https, pause, rewrite};

/// What becomes of the client connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It may carry another request.
    Request,
    /// It is closed once the client has had time to read.
    Close,
    /// It is closed at once: broken, a tunnel that has ended, or dropped on purpose.
    Gone,
}

/// Handles one request to its end. `refused` is why, and with which status, it is not acceptable HTTP.
pub(crate) async fn run(
    connection: &mut Connection,
    generation: &Arc<Generation>,
    head: Box<RequestHead>,
    refused: Option<(Refusal, u16)>,
) -> Next {
    let found = find(connection, generation, &head);
    let route = match &found {
        Found::Route(route) => Some(*route),
        _ => None,
    };
    let client = client::address(&generation.client_address, connection.peer, &head);
    let place = generation.geo.find(client.ip());
    let shared = &connection.worker.shared;
    let account = shared.overload.key(shared.budget.network_of(client.ip()));
    let mut admission = match route.and_then(|route| route.access.as_deref()) {
        Some(access) => {
            let now = shared.clock(connection.began.instant);
            access.admit(Visitor { address: client.ip(), place }, &head, now)
        }
        None => Admission::default(),
    };
    if admission.entry == Entry::Inspected && shared.overload.is_overloaded() {
        let now = shared.clock(Instant::now());
        if shared.overload.is_too_much(account, now) {
            let (noted, denial) = shared.overload.refuse(RETRY_AFTER_SECONDS, now);
            admission.note(noted, Some(denial));
        }
    }
    let mut transaction =
        Transaction::begin(connection, generation, &head, route, (client, place), (admission.entry, account));
    transaction.noted = admission.noted;
    let next = match refused {
        _ if let Some(denial) = admission.denial => {
            let reusable = refused.is_none() && head.framing() == BodyFraming::None;
            access::deny(connection, generation, &head, &mut transaction, denial, reusable).await
        }
        Some((refusal, status)) => {
            refuse(connection, generation, &head, &mut transaction, refusal, status).await
        }
        None => match found {
            Found::Route(route) => serve(connection, generation, &head, &mut transaction, route).await,
            Found::NoSite => unserved(connection, generation, &head, &mut transaction, NO_SITE).await,
            Found::NoRoute => unserved(connection, generation, &head, &mut transaction, NO_ROUTE).await,
            Found::Ambiguous => unserved(connection, generation, &head, &mut transaction, AMBIGUOUS).await,
            Found::Challenge(proof) => {
                let proof = (proof.to_string(), "application/octet-stream".to_string());
                answer::fixed(connection, generation, &head, &mut transaction, 200, Some(&proof), true).await
            }
        },
    };
    transaction.finish(connection, generation, &head, route).await;
    next
}

enum Found<'g> {
    Route(&'g Route),
    NoSite,
    NoRoute,
    Ambiguous,
    /// An ACME authority looks whether we serve a name.
    Challenge(Arc<str>),
}

/// When a client may try again that was refused for what others, or itself, hold.
const RETRY_AFTER_SECONDS: u32 = 2;

/// ModSecurity 2 answers the same to both of its limits.
const TOO_LARGE: (u16, &str) = (413, "The request body is larger than this site accepts.");
const NO_SITE: (u16, &str) = (404, "No site is served under this host name.");
const NO_ROUTE: (u16, &str) = (404, "Nothing is served under this path.");
const AMBIGUOUS: (u16, &str) = (400, "The path can be read in two ways that lead to different places.");

fn find<'g>(connection: &Connection, generation: &'g Generation, head: &RequestHead) -> Found<'g> {
    if generation.acme.is_some()
        && !connection.tls
        && let Some(proof) = connection.worker.shared.challenges.proof(head)
    {
        return Found::Challenge(proof);
    }
    let host = template::host(head);
    let hosts = &generation.listeners[connection.listener].hosts;
    let Some(site) = hosts.find(host).map(|index| &generation.sites[index]) else { return Found::NoSite };
    match site.route(head) {
        Routed::To(index) => Found::Route(&site.routes[index]),
        Routed::Nowhere => Found::NoRoute,
        Routed::Ambiguous => Found::Ambiguous,
    }
}

/// The codec says no. Rules run over what could be read all the same, so that probes are seen and scored.
async fn refuse(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    refusal: Refusal,
    status: u16,
) -> Next {
    transaction.refusal = Some(refusal);
    let step = transaction.inspection.request_head(head, Some(refusal));
    let step = lookups::settle(&connection.worker, generation, transaction, step).await;
    pause::rest(connection, generation, transaction).await;
    if let Step::Interrupt(Interruption::Drop) = step {
        return answer::interruption(connection, generation, head, transaction, Interruption::Drop, false)
            .await;
    }
    answer::error(connection, generation, head, transaction, status, refusal.explanation(), false).await
}

/// A request that no route takes.
async fn unserved(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    (status, text): (u16, &str),
) -> Next {
    transaction.reject(status, text);
    let reusable = head.framing() == BodyFraming::None;
    answer::error(connection, generation, head, transaction, status, text, reusable).await
}

async fn serve(
    connection: &mut Connection,
    generation: &Arc<Generation>,
    head: &RequestHead,
    transaction: &mut Transaction,
    route: &Route,
) -> Next {
    let bodiless = head.framing() == BodyFraming::None;
    let step = match transaction.request_head(connection, head).await {
        Ok(step) => step,
        Err(full) => {
            let (status, text) = no_room(connection, transaction, full);
            transaction.reject(status, text);
            return answer::error(connection, generation, head, transaction, status, text, bodiless).await;
        }
    };
    let step = lookups::settle(&connection.worker, generation, transaction, step).await;
    let refused = access::charge(connection, transaction, route, head);
    pause::rest(connection, generation, transaction).await;
    if let Some(denial) = refused.filter(|_| step == Step::Continue) {
        return access::deny(connection, generation, head, transaction, denial, bodiless).await;
    }
    match step {
        Step::Interrupt(Interruption::Proxy { origin, target }) => {
            let diverted = divert::run(connection, generation, head, transaction, (origin, target), None);
            return Box::pin(diverted).await;
        }
        Step::Interrupt(what) => {
            return answer::interruption(connection, generation, head, transaction, what, bodiless).await;
        }
        Step::Continue | Step::Ask => {}
    }
    if head.target_form() == TargetForm::Authority {
        // Only the Apache profile lets CONNECT come this far. It is answered as Apache does, and no tunnel is opened.
        return answer::error(connection, generation, head, transaction, 200, "No tunnel is opened.", false)
            .await;
    }
    if !bodiless && let Some((status, text)) = undecodable(transaction, route, false) {
        transaction.reject(status, text);
        return answer::error(connection, generation, head, transaction, status, text, false).await;
    }
    agents::begin(&connection.worker, transaction, route, head, connection.tls).await;
    let mut body =
        match request_body::take(connection, generation, head, transaction, &route.request_trailers).await {
            Ok(body) => body,
            Err(obstacle) => return obstructed(connection, generation, head, transaction, obstacle).await,
        };
    let refused = if body.present { undecodable(transaction, route, !body.is_truncated()) } else { None };
    if let Some(what) = agents::verdict(transaction, body.is_truncated()).await {
        let read = body.is_read();
        return answer::interruption(connection, generation, head, transaction, what, read).await;
    }
    transaction.inspection.request_trailers(&body.trailers);
    let step = match transaction.request_end(&connection.worker.shared, body.is_truncated()).await {
        Ok(step) => step,
        Err(full) => {
            let (status, text) = no_room(connection, transaction, full);
            transaction.reject(status, text);
            let read = body.is_read();
            return answer::error(connection, generation, head, transaction, status, text, read).await;
        }
    };
    let step = lookups::settle(&connection.worker, generation, transaction, step).await;
    transaction.recharge();
    let step = match step {
        Step::Continue => body.inspect_upload(transaction, &connection.worker.shared).await,
        step => step,
    };
    let too_many = access::charge(connection, transaction, route, head);
    pause::rest(connection, generation, transaction).await;
    if let Some(denial) = too_many.filter(|_| step == Step::Continue) {
        let read = body.is_read();
        return access::deny(connection, generation, head, transaction, denial, read).await;
    }
    if transaction.inspection.refuses_request_body() {
        transaction.exception(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Closed);
        return refuse_body(connection, generation, head, transaction, step, TOO_LARGE).await;
    }
    if let Err(NoMemory) = rewrite::request(transaction, &mut body) {
        return no_memory(connection, generation, head, transaction, body.is_read()).await;
    }
    match step {
        Step::Interrupt(Interruption::Proxy { origin, target }) => {
            let to = (origin, target);
            Box::pin(divert::run(connection, generation, head, transaction, to, Some(body))).await
        }
        Step::Interrupt(what) => {
            let read = body.is_read();
            answer::interruption(connection, generation, head, transaction, what, read).await
        }
        Step::Continue | Step::Ask => {
            if let Some((status, text)) = refused.or_else(|| exhausted(transaction, route)) {
                transaction.reject(status, text);
                let read = body.is_read();
                return answer::error(connection, generation, head, transaction, status, text, read).await;
            }
            arrive(connection, generation, head, transaction, route, body).await
        }
    }
}

/// Does what the route says with a request that was let through.
async fn arrive(
    connection: &mut Connection,
    generation: &Arc<Generation>,
    head: &RequestHead,
    transaction: &mut Transaction,
    route: &Route,
    body: Body,
) -> Next {
    let groups = route.matcher.groups(head);
    let source = Source { head, transaction, groups: &groups };
    if let Some((to, counter)) = &route.https.redirect
        && !https::is_secure(connection, &generation.client_address, head)
    {
        counter.inc();
        let (to, read) = (template::fill(to, &source), body.is_read());
        return answer::redirect(connection, generation, head, transaction, 308, &to, read).await;
    }
    let mut response_headers = Changed::new(&route.response_headers, &source);
    match &route.target {
        Target::Forward { slot, rewrite, idempotent } => {
            let group = &slot.group();
            let mut request_headers = Changed::new(&route.request_headers, &source);
            let target = rewrite.as_ref().map(|rewrite| route.matcher.rewritten(rewrite, head, transaction));
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
            send(connection, generation, head, transaction, to, body).await
        }
        Target::Redirect { status, to } => {
            let mut to = template::fill(to, &source);
            // `//host` is another host to browsers, and what comes after the first slash may be the client's choice.
            while to.starts_with(b"//") || to.starts_with(b"/\\") {
                to.remove(1);
            }
            transaction.response_headers = response_headers;
            let read = body.is_read();
            answer::redirect(connection, generation, head, transaction, *status, &to, read).await
        }
        Target::Respond { status, body: text } => {
            transaction.response_headers = response_headers;
            let read = body.is_read();
            answer::fixed(connection, generation, head, transaction, *status, text.as_ref(), read).await
        }
    }
}

/// A body that rules made is larger than what may be held at present.
pub(crate) async fn no_memory(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    reusable: bool,
) -> Next {
    let (status, text) = (503, "Too many large bodies at this moment.");
    transaction.exception(ExceptionCause::BudgetSpent, ExceptionPolicy::Closed);
    transaction.retry_after = Some(RETRY_AFTER_SECONDS);
    transaction.reject(status, text);
    answer::error(connection, generation, head, transaction, status, text, reusable).await
}

/// Where a request goes.
#[derive(Clone, Copy)]
pub(crate) struct Destination<'a> {
    pub(crate) group: &'a Arc<Group>,
    /// The request may be sent again, whatever its method.
    pub(crate) idempotent: bool,
    /// The request target there; as it came, unless a rule or the route says otherwise.
    pub(crate) target: Option<&'a [u8]>,
    /// What the route changes of the headers.
    pub(crate) headers: Option<&'a Changed>,
}

/// Forwards the request and passes the answer on.
pub(crate) async fn send(
    connection: &mut Connection,
    generation: &Arc<Generation>,
    head: &RequestHead,
    transaction: &mut Transaction,
    to: Destination<'_>,
    body: Body,
) -> Next {
    let (read, is_upload) = (body.is_read(), body.upload.is_some());
    let result = forward::run(connection, generation, head, transaction, to, body).await;
    if is_upload {
        let is_broken = matches!(result, Err(Fault::Verdict(_) | Fault::RequestBody(..)));
        let what = if is_broken { StreamedUpload::BrokenOff } else { StreamedUpload::Passed };
        connection.worker.shared.services.metrics.streamed_uploads.inc(what as usize);
    }
    match result {
        Ok(mut answered) => {
            let pump = answered.pump.take();
            let next = response::pass_on(connection, generation, head, transaction, to.group, answered).await;
            if let Some(pump) = pump {
                transaction.request_body_bytes += pump.bytes();
                transaction.trailers_dropped = pump.trailers();
            }
            next
        }
        Err(Fault::Client) => {
            transaction.client_aborted = true;
            Next::Gone
        }
        Err(Fault::RequestBody(status, text)) => {
            transaction.reject(status, text);
            answer::error(connection, generation, head, transaction, status, text, false).await
        }
        Err(Fault::Verdict(what)) => {
            answer::interruption(connection, generation, head, transaction, what, false).await
        }
        Err(Fault::Upstream(error)) => {
            gateway_error(connection, generation, head, transaction, error, read).await
        }
    }
}

/// A content coding hides the body from the rules, as far as it has come: the status and text to refuse it with, if that
/// is the policy. `complete`: the whole body has come.
fn undecodable(transaction: &mut Transaction, route: &Route, complete: bool) -> Option<(u16, &'static str)> {
    if transaction.inspection.request_body_plan() == BodyPlan::Skip {
        return None;
    }
    let error = transaction.inspection.request_coding_error(complete)?;
    let blocking = transaction.inspection.is_blocking();
    let policy = match route.failure.undecodable {
        OpenOrClosed::Open => ExceptionPolicy::Open,
        OpenOrClosed::Closed if blocking => ExceptionPolicy::Closed,
        OpenOrClosed::Closed => ExceptionPolicy::DetectOnly,
    };
    transaction.exception_once(ExceptionCause::UndecodableBody, policy);
    (policy == ExceptionPolicy::Closed).then_some(match error {
        CodingError::Unsupported => (415, "The content coding of the request body is not supported."),
        CodingError::Malformed | CodingError::Truncated => {
            (400, "The request body is not in its content coding.")
        }
        CodingError::TooLarge => TOO_LARGE,
        CodingError::Bomb => {
            (413, "The request body grows more when it is decoded than this site accepts (request_body.decoded_ratio).")
        }
    })
}

/// The request body cannot be had, or not be held.
pub(crate) async fn obstructed(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    obstacle: Obstacle,
) -> Next {
    let (status, text) = match obstacle {
        Obstacle::Gone => {
            transaction.client_aborted = true;
            return Next::Gone;
        }
        Obstacle::OverLimit => {
            transaction.exception(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Closed);
            TOO_LARGE
        }
        Obstacle::NoMemory(full) => no_room(connection, transaction, full),
        Obstacle::Late => (408, "The request body did not come in time."),
        Obstacle::Malformed(error) => (error.status(), error.explanation()),
    };
    let step = transaction.inspection.request_end(true);
    let step = lookups::settle(&connection.worker, generation, transaction, step).await;
    pause::rest(connection, generation, transaction).await;
    refuse_body(connection, generation, head, transaction, step, (status, text)).await
}

/// Counts a request whose body finds no room; the status and text to answer.
fn no_room(connection: &Connection, transaction: &mut Transaction, full: Full) -> (u16, &'static str) {
    transaction.exception(ExceptionCause::BudgetSpent, ExceptionPolicy::Closed);
    connection.worker.shared.budget.count_refused(full);
    transaction.retry_after = Some(RETRY_AFTER_SECONDS);
    full.answer()
}

/// A pattern used up its steps, so that nobody knows whether a rule matches: the status and text to refuse the request with, if that
/// is the policy (rule 200005 of the recommended ModSecurity configuration).
fn exhausted(transaction: &mut Transaction, route: &Route) -> Option<(u16, &'static str)> {
    if !transaction.inspection.is_pattern_exhausted() {
        return None;
    }
    let policy = match route.failure.pattern_limit {
        OpenOrClosed::Open => ExceptionPolicy::Open,
        OpenOrClosed::Closed if transaction.inspection.is_blocking() => ExceptionPolicy::Closed,
        OpenOrClosed::Closed => ExceptionPolicy::DetectOnly,
    };
    transaction.exception_once(ExceptionCause::BudgetSpent, policy);
    let text = "The request takes more steps to inspect than this site allows (failure.pattern_limit).";
    (policy == ExceptionPolicy::Closed).then_some((403, text))
}

/// Refuses a request for its body. Rules have seen what there is; their verdict cannot make the answer milder.
async fn refuse_body(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    step: Step,
    (status, text): (u16, &'static str),
) -> Next {
    if let Step::Interrupt(Interruption::Drop) = step {
        return answer::interruption(connection, generation, head, transaction, Interruption::Drop, false)
            .await;
    }
    transaction.reject(status, text);
    answer::error(connection, generation, head, transaction, status, text, false).await
}

/// The upstream failed before anything of its answer was passed on.
pub(crate) async fn gateway_error(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    error: UpstreamError,
    reusable: bool,
) -> Next {
    transaction.upstream_error = Some(error);
    let (status, text) = match error {
        UpstreamError::ConnectTimeout | UpstreamError::ResponseTimeout => {
            (504, "The application did not answer in time.")
        }
        UpstreamError::InvalidResponse => (502, "The application's answer is not valid."),
        UpstreamError::Overloaded => (503, "The application has too many requests at this moment."),
        UpstreamError::NoEndpoint => (503, "No server of the application is available."),
        _ => (502, "The application cannot be reached."),
    };
    answer::error(connection, generation, head, transaction, status, text, reusable).await
}

impl Body {
    /// Everything of it has been read from the client.
    pub(crate) fn is_read(&self) -> bool {
        self.rest.is_none()
    }
}
