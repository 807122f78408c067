//! `GET /events`, `GET /events/{request_id}`, `GET /events/{request_id}/request`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use portcullis_event_store::{Page, PageRequest, StoredEvent};
use portcullis_identity::Sites;
use portcullis_query::{Comparison, Field, Filter, Operator, Outcome, Value, parse};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::context::Context;
use crate::extract::{Parameter, Params};
use crate::problem::{Kind, Problem};
use crate::queries::{ask, ask_store};
use crate::routes::page::limit;

/// The page of events that is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Filter that events have to pass: `verdict = deny and client in 192.0.2.0/24`.
    filter: Option<String>,
    /// Events of the page, at most. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before; without it the newest events.
    #[param(pattern = "^[0-9]{1,18}-[0-9a-f]{1,1024}$")]
    before: Option<String>,
}

/// An event as it was recorded.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventItem {
    /// Its place among all events.
    cursor: String,
    /// Requests that it stands for.
    count: u64,
    /// Its request is kept: `GET /events/{request_id}/request`.
    has_request: bool,
    /// The node that recorded it; null: this one, or it is not known.
    node: Option<String>,
    /// `blocked`, `would_block`, `refused` (no acceptable HTTP), `control` (a list, limit, ban or overload)
    /// or `noted` (something was found that would not have stopped it), as the field `outcome` of filters;
    /// null for events about something else.
    outcome: Option<&'static str>,
    /// The event; its members are those of the event file.
    #[schema(value_type = Object)]
    event: Box<RawValue>,
}

/// Events, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventPage {
    /// The events.
    items: Vec<EventItem>,
    /// The cursor of the next page; null if there are no older events.
    next: Option<String>,
    /// False if the time for looking ran out before the page was full: there may be more behind `next`.
    complete: bool,
    /// Parts of the store that cannot be read, and why.
    skipped: Vec<String>,
}

/// Events that pass a filter, newest first.
#[utoipa::path(get, path = "/events", tag = "events", operation_id = "list_events", params(EventsQuery),
    responses((status = 200, body = EventPage, description = "A page of events."),
        (status = 502, body = Problem, content_type = "application/problem+json",
            description = "The database of events cannot be asked."),
        (status = 504, body = Problem, content_type = "application/problem+json",
            description = "The database of events has not answered in time.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<EventsQuery>,
) -> Result<axum::Json<EventPage>, Problem> {
    let filter = own(filter(&context, query.filter.as_deref())?, &principal.sites);
    let limit = limit(query.limit)?;
    let (before, patience) = (query.before, context.limits.query_time_max);
    let page = ask(&context, move |events| {
        events.page(&PageRequest { filter: &filter, before: before.as_deref(), limit, patience })
    });
    let page = page.await?.unwrap_or(Page { complete: true, ..Page::default() });
    let items = page.events.into_iter().map(item).collect::<Result<_, _>>()?;
    Ok(axum::Json(EventPage { items, next: page.next, complete: page.complete, skipped: page.skipped }))
}

/// The event of a request.
#[utoipa::path(get, path = "/events/{request_id}", tag = "events", operation_id = "get_event",
    params(("request_id" = String, Path, description = "The id that the client was shown.")),
    responses((status = 200, body = EventItem, description = "The event."),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is none."),
        (status = 502, body = Problem, content_type = "application/problem+json",
            description = "The database of events cannot be asked."),
        (status = 504, body = Problem, content_type = "application/problem+json",
            description = "The database of events has not answered in time.")))]
pub(crate) async fn one(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(id): Parameter<String>,
) -> Result<axum::Json<EventItem>, Problem> {
    Ok(axum::Json(item(find(&context, &principal.sites, id).await?)?))
}

/// The request that is kept with an event: head and body as of HTTP/1.1, without transfer and content
/// codings. Secrets are replaced by texts of the same shape. `X-Omitted-Bytes` says how much of the body is
/// missing.
#[utoipa::path(get, path = "/events/{request_id}/request", tag = "events", operation_id = "get_event_request",
    params(("request_id" = String, Path, description = "The id that the client was shown.")),
    responses((status = 200, body = Vec<u8>, content_type = "message/http", description = "The request.",
            headers(("X-Omitted-Bytes" = u64))),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such event, or no request is kept with it."),
        (status = 502, body = Problem, content_type = "application/problem+json",
            description = "The database of events cannot be asked."),
        (status = 504, body = Problem, content_type = "application/problem+json",
            description = "The database of events has not answered in time.")))]
pub(crate) async fn request(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(id): Parameter<String>,
) -> Result<Response, Problem> {
    let none = || Problem::with(Kind::NotFound, "no request is kept with this event");
    let kept = find(&context, &principal.sites, id).await?.request.ok_or_else(none)?;
    let fields = [
        (CONTENT_TYPE, HeaderValue::from_static("message/http")),
        (CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"request.http\"")),
        (HeaderName::from_static("x-omitted-bytes"), HeaderValue::from(kept.omitted)),
    ];
    Ok((fields, kept.bytes).into_response())
}

/// A request that is kept with its event, and where it came.
pub(crate) struct Kept {
    pub(crate) bytes: Vec<u8>,
    pub(crate) omitted_bytes: u64,
    pub(crate) site: Option<String>,
    pub(crate) route: Option<String>,
    pub(crate) client: Option<IpAddr>,
}

/// The request that is kept with the event of this id.
pub(crate) async fn kept(context: &Context, sites: &Sites, id: String) -> Result<Kept, Problem> {
    let none = || Problem::with(Kind::NotFound, "no request is kept with this event");
    let found = find(context, sites, id).await?;
    let kept = found.request.ok_or_else(none)?;
    let event: serde_json::Value =
        serde_json::from_str(&found.json).map_err(|_| Problem::of(Kind::Internal))?;
    let text = |path: &str| event.pointer(path).and_then(serde_json::Value::as_str).map(str::to_owned);
    Ok(Kept {
        bytes: kept.bytes,
        omitted_bytes: kept.omitted,
        site: text("/site"),
        route: text("/route"),
        client: text("/client/addr").and_then(|address| address.parse().ok()),
    })
}

/// Parses a filter; without a text every event passes.
pub(crate) fn filter(context: &Context, text: Option<&str>) -> Result<Filter, Problem> {
    parse(text.unwrap_or(""), context.now_ms())
        .map_err(|mistake| Problem::with(Kind::Filter, mistake.message.clone()).at(mistake.column))
}

pub(crate) fn item(stored: StoredEvent) -> Result<EventItem, Problem> {
    // One that cannot be read is shown as it is.
    let outcome = serde_json::from_str(&stored.json).ok().and_then(|event| Outcome::of(&event));
    let outcome = outcome.map(Outcome::name);
    let event = RawValue::from_string(stored.json).map_err(|_| Problem::of(Kind::Internal))?;
    let StoredEvent { cursor, count, node, request, .. } = stored;
    Ok(EventItem { cursor, count, has_request: request.is_some(), node, outcome, event })
}

/// A filter that only events of these sites pass.
pub(crate) fn own(filter: Filter, sites: &Sites) -> Filter {
    let Some(names) = sites.names() else { return filter };
    let values = names.into_iter().map(Value::Text).collect();
    Filter::All(vec![filter, Filter::Is(Comparison { field: Field::Site, operator: Operator::In, values })])
}

/// The event of a request of these sites; one of another site is as if there were none.
async fn find(context: &Context, sites: &Sites, id: String) -> Result<StoredEvent, Problem> {
    let found = find_of_all(context, id).await;
    let is_own = |event: &StoredEvent| {
        let event: Option<serde_json::Value> = serde_json::from_str(&event.json).ok();
        event.as_ref().and_then(|event| event["site"].as_str()).is_some_and(|site| sites.admit(site))
    };
    found.and_then(|event| if sites.is_all() || is_own(&event) { Ok(event) } else { Err(no_event()) })
}

fn no_event() -> Problem {
    Problem::with(Kind::NotFound, "there is no event of this request, or it was dropped for its age")
}

async fn find_of_all(context: &Context, id: String) -> Result<StoredEvent, Problem> {
    let asked = id.clone();
    let found = ask(context, move |events| events.event(&asked)).await?.flatten();
    if context.supplies.database.is_none() || found.as_ref().is_some_and(|event| event.request.is_some()) {
        return found.ok_or_else(no_event);
    }
    // A database has no requests, and gets events later than the store of this process.
    let own = ask_store(context, move |store| store.event(&id)).await?.flatten();
    match (found, own) {
        (Some(found), own) => Ok(StoredEvent { request: own.and_then(|event| event.request), ..found }),
        (None, own) => own.ok_or_else(no_event),
    }
}
