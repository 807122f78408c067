//! `GET`, `DELETE /session/sessions`, `DELETE /session/sessions/{number}`, `GET /sessions`,
//! `DELETE /sessions/{number}`, `DELETE /users/{name}/sessions`.
//!
//! A session that is ended is gone from the file at once: its next request is refused, and its streams end
//! within [`crate::Limits::stream_every`].

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::SET_COOKIE;
use portcullis_identity::{Ending, SessionEntry};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::{Credential, Principal};
use crate::context::{Context, time};
use crate::extract::{Parameter, Params};
use crate::problem::{Kind, Problem};
use crate::routes::login::ENDED;
use crate::routes::page::{limit, next};

/// Sessions of one user; there are never more.
const OWN_MAX: usize = 100;

/// A session that has not ended.
#[derive(Serialize, ToSchema)]
pub(crate) struct ListedSession {
    number: i64,
    /// The user's name.
    user: String,
    /// The session of this request.
    current: bool,
    /// Time of the login (RFC 3339), as the others.
    created: String,
    /// Last use, to a minute.
    last_used: String,
    /// When it ends if it is not used again.
    expires: String,
    /// The address of the login; null: not known.
    address: Option<String>,
    /// The address of the last use, to a minute; null: not known.
    last_address: Option<String>,
    /// The browser, as it named itself at the login.
    agent: String,
}

impl ListedSession {
    fn of(entry: SessionEntry, principal: &Principal) -> ListedSession {
        let current =
            matches!(principal.credential, Credential::Session { number, .. } if number == entry.number);
        ListedSession {
            number: entry.number,
            user: entry.user,
            current,
            created: time(entry.created),
            last_used: time(entry.last_used),
            expires: time(entry.expires),
            address: entry.address,
            last_address: entry.last_address,
            agent: entry.agent,
        }
    }
}

/// Sessions in the order of their logins.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionPage {
    /// The sessions.
    items: Vec<ListedSession>,
    /// The cursor of the next page; null if this is the last.
    next: Option<String>,
}

/// The page of sessions that is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionsQuery {
    /// Only sessions of the user of this name.
    user: Option<String>,
    /// Sessions of the page, at most. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before; without it the first page.
    #[param(pattern = "^[0-9]{1,18}$")]
    cursor: Option<String>,
}

/// The number of sessions that have ended.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndedSessions {
    ended: usize,
}

/// The user's own sessions.
#[utoipa::path(get, path = "/session/sessions", tag = "session", operation_id = "list_own_sessions",
    responses((status = 200, body = SessionPage, description = "All of them.")))]
pub(crate) async fn own(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
) -> Result<axum::Json<SessionPage>, Problem> {
    let (name, now) = (principal.name.clone(), context.now());
    let found = context.identities(move |identities| identities.sessions(Some(&name), None, OWN_MAX, now));
    let items = found.await?.into_iter().map(|entry| ListedSession::of(entry, &principal)).collect();
    Ok(axum::Json(SessionPage { items, next: None }))
}

/// Ends all of the user's own sessions but the one of this request.
#[utoipa::path(delete, path = "/session/sessions", tag = "session", operation_id = "end_other_sessions",
    responses((status = 200, body = EndedSessions, description = "They have ended.")))]
pub(crate) async fn end_others(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
) -> Result<axum::Json<EndedSessions>, Problem> {
    let Credential::Session { user, number, .. } = principal.credential else {
        return Err(Problem::of(Kind::Forbidden));
    };
    let ended = end(&context, &principal, Ending::Others { user, keep: number }).await?;
    Ok(axum::Json(EndedSessions { ended }))
}

/// Ends one of the user's own sessions.
#[utoipa::path(delete, path = "/session/sessions/{number}", tag = "session", operation_id = "end_own_session",
    params(("number" = i64, Path, description = "Its number.")),
    responses((status = 204, description = "It has ended."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "The user has no such session.")))]
pub(crate) async fn end_own(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(number): Parameter<i64>,
) -> Result<Response, Problem> {
    let Credential::Session { user, number: current, .. } = principal.credential else {
        return Err(Problem::of(Kind::Forbidden));
    };
    match end(&context, &principal, Ending::Own { user, number }).await? {
        0 => Err(Problem::of(Kind::NotFound)),
        _ if number == current => Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, ENDED)]).into_response()),
        _ => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// Lists the sessions of all users.
#[utoipa::path(get, path = "/sessions", tag = "users", operation_id = "list_sessions", params(SessionsQuery),
    responses((status = 200, body = SessionPage, description = "A page of sessions.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<SessionsQuery>,
) -> Result<axum::Json<SessionPage>, Problem> {
    let (limit, now) = (limit(query.limit)?, context.now());
    let parse = |text: &String| text.parse::<i64>().map_err(|_| Problem::of(Kind::Cursor));
    let after = query.cursor.as_ref().map(parse).transpose()?;
    let found = context
        .identities(move |identities| identities.sessions(query.user.as_deref(), after, limit + 1, now));
    let mut entries = found.await?;
    let next = next(&mut entries, limit, |entry| entry.number.to_string());
    let items = entries.into_iter().map(|entry| ListedSession::of(entry, &principal)).collect();
    Ok(axum::Json(SessionPage { items, next }))
}

/// Ends a session of any user.
#[utoipa::path(delete, path = "/sessions/{number}", tag = "users", operation_id = "end_session",
    params(("number" = i64, Path, description = "Its number.")),
    responses((status = 204, description = "It has ended."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such session.")))]
pub(crate) async fn end_one(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(number): Parameter<i64>,
) -> Result<StatusCode, Problem> {
    match end(&context, &principal, Ending::One(number)).await? {
        0 => Err(Problem::of(Kind::NotFound)),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

/// Ends all sessions of a user.
#[utoipa::path(delete, path = "/users/{name}/sessions", tag = "users", operation_id = "end_sessions_of_user",
    params(("name" = String, Path, description = "The user's name.")),
    responses((status = 200, body = EndedSessions, description = "They have ended."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such user.")))]
pub(crate) async fn end_of_user(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(name): Parameter<String>,
) -> Result<axum::Json<EndedSessions>, Problem> {
    let ended = end(&context, &principal, Ending::Of(name)).await?;
    Ok(axum::Json(EndedSessions { ended }))
}

async fn end(context: &Context, principal: &Principal, which: Ending) -> Result<usize, Problem> {
    let (actor, now) = (principal.actor(), context.now());
    context.identities(move |identities| identities.end_sessions(&which, &actor, now)).await
}
