//! `GET /fields/sessions`, `POST /fields/sessions/start`, `/fields/sessions/{order}`: what an administrator
//! does in the next minutes is benign, and teaches a site once it is confirmed.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use portcullis_config::Network;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Principal;
use crate::context::Context;
use crate::extract::{Body, Parameter};
use crate::fields::{DecidedSession, SessionError, SessionOrder, Teacher, TeachingSession};
use crate::problem::{Kind, Problem};
use crate::routes::fields::{look, record};

/// Minutes of a session that names none.
const MINUTES: u32 = 15;
/// Minutes of a session, at most.
const MINUTES_MAX: u32 = 60;
/// Bits of the prefix of a network whose clients teach, at least: of IPv4 and IPv6.
const PREFIX_BITS_MIN: (u8, u8) = (16, 32);

/// The sessions.
#[derive(Serialize, ToSchema)]
pub(crate) struct Sessions {
    /// Those that run or wait for a decision, by site.
    items: Vec<TeachingSession>,
    /// The address of who asks, as this listener sees it.
    address: String,
}

/// The sessions in which sites are taught by hand, with what accepting each would do.
#[utoipa::path(get, path = "/fields/sessions", tag = "fields", operation_id = "list_teaching_sessions",
    responses((status = 200, body = Sessions, description = "The sessions, by site.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<Sessions>, Problem> {
    let items = look(&context, |fields| fields.sessions()).await?;
    Ok(Json(Sessions { items, address: principal.peer.address.to_canonical().to_string() }))
}

/// A session to begin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionStart {
    /// The site.
    site: String,
    /// The clients whose requests teach: an address, or a network not wider than /16 (IPv6: /32).
    network: Option<String>,
    /// In place of them, the site's trusted sources.
    #[serde(default)]
    trusted: bool,
    /// Minutes; default: 15.
    #[schema(minimum = 1, maximum = 60)]
    minutes: Option<u32>,
    /// Why, for the audit trail.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Begins a session: what these clients do in its time, and is let through and answered well, is benign. It
/// is held apart, and counts once a user accepts it.
#[utoipa::path(post, path = "/fields/sessions/start", tag = "fields",
    operation_id = "start_teaching_session", request_body = SessionStart,
    responses((status = 200, body = TeachingSession, description = "It runs."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "The site does not learn."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "The site has a session already, or no trusted sources."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "Whose requests teach, or for how long, is not allowed.")))]
pub(crate) async fn start(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Body(SessionStart { site, network, trusted, minutes, reason }): Body<SessionStart>,
) -> Result<Json<TeachingSession>, Problem> {
    let teacher = teacher(network.as_deref(), trusted)?;
    let minutes = minutes.unwrap_or(MINUTES);
    if !(1..=MINUTES_MAX).contains(&minutes) {
        let detail = format!("minutes: a session lasts 1 to {MINUTES_MAX}");
        return Err(Problem::with(Kind::Invalid, detail));
    }
    let whose = network.unwrap_or_else(|| "trusted sources".to_owned());
    let object = format!("site {site}: {whose}, {minutes} minutes");
    let by = principal.actor().name;
    let begin =
        look(&context, move |fields| fields.start_session(&site, teacher, u64::from(minutes) * 60, &by));
    let session = begin.await?.map_err(problem)?;
    record(&context, &principal, "field.session.start".to_owned(), object, reason, &None).await?;
    Ok(Json(session))
}

fn teacher(network: Option<&str>, trusted: bool) -> Result<Teacher, Problem> {
    let invalid = |detail: String| Problem::with(Kind::Invalid, detail);
    match (network, trusted) {
        (None, true) => Ok(Teacher::Trusted),
        (Some(text), false) => {
            let network: Network = text.parse().map_err(|error| invalid(format!("network: {error}")))?;
            let (of_v4, of_v6) = PREFIX_BITS_MIN;
            let bits_min = if network.address().is_ipv4() { of_v4 } else { of_v6 };
            match network.prefix() >= bits_min {
                true => Ok(Teacher::Network(network.address(), network.prefix())),
                false => Err(invalid(format!(
                    "network: {text} has clients of many; name one that is not wider than /{bits_min}"
                ))),
            }
        }
        _ => Err(invalid("name whose requests teach: either `network` or `trusted`".to_owned())),
    }
}

/// A decision about a session.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionOrdered {
    /// The site.
    site: String,
    /// The number of requests that it had learned when it was shown. Needed to accept it: what came later was
    /// not looked at.
    requests: Option<u64>,
    /// Why, for the audit trail.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Result of a decision.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionChanged {
    /// The session: stopped, as it is; otherwise as it was.
    session: TeachingSession,
    /// Why the decision ends with the process, if it does; null: it is kept.
    message: Option<String>,
}

/// Decides about the session of a site. `stop`: it ends now, and waits for a decision. `accept`: what it has
/// learned counts; `dismiss`: that is dropped. Both end it.
#[utoipa::path(post, path = "/fields/sessions/{order}", tag = "fields",
    operation_id = "order_teaching_session", request_body = SessionOrdered,
    params(("order" = String, Path, description = "`stop`, `accept` or `dismiss`.")),
    responses((status = 200, body = SessionChanged, description = "It is decided."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such order, or the site has no session."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "It has learned more than was shown.")))]
pub(crate) async fn order(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(order): Parameter<String>,
    Body(SessionOrdered { site, requests, reason }): Body<SessionOrdered>,
) -> Result<Json<SessionChanged>, Problem> {
    let order = SessionOrder::ALL.into_iter().find(|each| each.name() == order);
    let order = order
        .ok_or_else(|| Problem::with(Kind::NotFound, "the orders are `stop`, `accept` and `dismiss`"))?;
    let decided = look(&context, move |fields| fields.order_session(&site, order, requests)).await?;
    let DecidedSession { session, not_kept } = decided.map_err(problem)?;
    let object =
        format!("site {}: {} requests, {} fields", session.site, session.requests, session.fields.len());
    let action = format!("field.session.{}", order.name());
    record(&context, &principal, action, object, reason, &not_kept).await?;
    Ok(Json(SessionChanged { session, message: not_kept }))
}

fn problem(error: SessionError) -> Problem {
    match error {
        SessionError::NoSite => Problem::with(Kind::NotFound, "the site does not learn its fields"),
        SessionError::NoSession => Problem::with(Kind::NotFound, "the site has no session"),
        SessionError::Exists => {
            Problem::with(Kind::Conflict, "the site has a session already: accept or dismiss it first")
        }
        SessionError::NoTrusted => Problem::with(
            Kind::Conflict,
            "the site has no trusted sources: name them in `fields.trusted`, or name a network here",
        ),
        SessionError::Changed => Problem::with(
            Kind::Conflict,
            "the session has learned more than was shown: stop it, look at it again, and accept that",
        ),
    }
}
