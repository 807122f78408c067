//! `GET /events/stream`: events as they are recorded by this process, as server-sent events.
//!
//! Every event has an id. A client that comes back with the last one in `Last-Event-ID` misses nothing and
//! gets nothing twice: `after:` names the event itself, `from:` a place where no event that passes the filter
//! has been seen yet.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis_event_store::StoredEvent;
use portcullis_query::Filter;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use utoipa::IntoParams;

use crate::access::Principal;
use crate::context::Context;
use crate::extract::Params;
use crate::problem::{Kind, Problem};
use crate::queries::ask_store_with;
use crate::routes::events::{filter, item, own};
use crate::seat::{Channel, Seat};

/// Events that are read from the store at a time.
const BATCH: usize = 100;
/// Silence after which a line says that the stream is alive.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// A stream goes on from a place of this age at most, in milliseconds; it does not search the whole store.
const AGE_MS_MAX: u64 = 2 * 86_400_000;
/// Bytes of a `Last-Event-ID`.
const LAST_ID_MAX: usize = 512;

/// The events to stream.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamQuery {
    /// Filter that events have to pass.
    filter: Option<String>,
}

/// Events of this node that pass a filter, as they are recorded, as server-sent events named `event`.
#[utoipa::path(get, path = "/events/stream", tag = "events", operation_id = "stream_events",
    params(StreamQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was received.")),
    responses((status = 200, body = String, content_type = "text/event-stream", description = "The stream.")))]
pub(crate) async fn stream(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
    Params(query): Params<StreamQuery>,
) -> Result<Response, Problem> {
    let filter = own(filter(&context, query.filter.as_deref())?, &principal.sites);
    let last = headers.get("last-event-id").map(LastId::parse).transpose()?;
    let place = Place::begin(&context, last).await?;
    let seat = Seat::take(&context, &principal)?;
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(follow(Arc::clone(&context), principal, filter, place, sender, seat));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        // Proxies in between must not gather it.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, axum::body::Body::new(Channel(receiver))).into_response())
}

/// A parsed `Last-Event-ID`.
struct LastId {
    cursor: String,
    /// The event at the cursor was received.
    is_event: bool,
}

impl LastId {
    fn parse(value: &HeaderValue) -> Result<LastId, Problem> {
        let text = value.to_str().ok().filter(|text| text.len() <= LAST_ID_MAX);
        let parts = text.and_then(|text| text.split_once(':'));
        match parts {
            Some(("after", cursor)) => Ok(LastId { cursor: cursor.to_owned(), is_event: true }),
            Some(("from", cursor)) => Ok(LastId { cursor: cursor.to_owned(), is_event: false }),
            _ => Err(Problem::with(Kind::Cursor, "`Last-Event-ID` is not one of this stream")),
        }
    }
}

/// The place up to which a stream has looked.
struct Place {
    cursor: Option<String>,
    /// The event at the cursor, if the client has it.
    seen: Option<String>,
}

impl Place {
    async fn begin(context: &Context, last: Option<LastId>) -> Result<Place, Problem> {
        // The newest segment of a cursor begins with the time at which it was begun.
        let begun = |last: &LastId| last.cursor.rsplit('.').next()?.split('-').next()?.parse::<u64>().ok();
        let is_old = |begun: u64| begun < context.now_ms().saturating_sub(AGE_MS_MAX);
        if last.as_ref().and_then(begun).is_some_and(is_old) {
            return Err(Problem::with(
                Kind::Cursor,
                "`Last-Event-ID` is too old; list the events in between",
            ));
        }
        let asked = last.as_ref().map(|last| last.cursor.clone());
        // Looks for nothing: a cursor that is none is found here, and without one the newest place.
        let found = ask_store_with(context, &context.looks, move |store| {
            store.after(&Filter::everything(), asked.as_deref(), 1)
        })
        .await?;
        match last {
            Some(LastId { cursor, is_event }) => {
                Ok(Place { seen: is_event.then(|| cursor.clone()), cursor: Some(cursor) })
            }
            None => Ok(Place { cursor: found.and_then(|found| found.place), seen: None }),
        }
    }

    /// Events since the place, which moves behind them.
    async fn advance(&mut self, context: &Context, filter: &Filter) -> Result<Vec<StoredEvent>, Problem> {
        let (filter, cursor) = (filter.clone(), self.cursor.clone());
        let found = ask_store_with(context, &context.looks, move |store| {
            // A store without an event had no newest place; then all that there are now are new.
            store.after(&filter, cursor.as_deref().or(Some("0-0")), BATCH)
        });
        let Some(found) = found.await? else { return Ok(Vec::new()) };
        let mut events = found.events;
        if let Some(seen) = self.seen.take() {
            events.retain(|event| event.cursor != seen);
        }
        self.cursor = found.place.or(self.cursor.take());
        Ok(events)
    }
}

/// Sends events until the client leaves, its identity ends, or the time is over.
async fn follow(
    context: Arc<Context>,
    principal: Principal,
    filter: Filter,
    mut place: Place,
    sender: mpsc::Sender<io::Result<Bytes>>,
    seat: Seat,
) {
    let _seat = seat;
    let end = Instant::now() + context.limits.stream_time_max;
    let mut silent_since = Instant::now();
    // The head of the response is sent with the first bytes of its body.
    let mut out = String::from(":\n\n");
    while Instant::now() < end && principal.is_valid(&context).await {
        let Ok(events) = place.advance(&context, &filter).await else { break };
        let is_full = events.len() + 1 >= BATCH;
        for event in events {
            write(&mut out, event);
        }
        if out.is_empty() && silent_since.elapsed() >= ALIVE_EVERY {
            match &place.cursor {
                Some(cursor) => out.push_str(&format!("id: from:{cursor}\n\n")),
                None => out.push_str(":\n\n"),
            }
        }
        if !out.is_empty() {
            silent_since = Instant::now();
            let sent = sender.send(Ok(Bytes::from(std::mem::take(&mut out))));
            match tokio::time::timeout(context.limits.write_time_max, sent).await {
                Ok(Ok(())) => {}
                _ => break,
            }
        }
        if !is_full {
            tokio::select! {
                () = sleep(context.limits.stream_every) => {}
                () = sender.closed() => break,
            }
        }
    }
}

fn write(out: &mut String, event: StoredEvent) {
    let id = event.cursor.clone();
    // What is stored is one line of JSON; a line break would end the field, and with it the event.
    let Some(data) = item(event).ok().and_then(|item| serde_json::to_string(&item).ok()) else { return };
    if !data.contains(['\n', '\r']) {
        out.push_str(&format!("event: event\nid: after:{id}\ndata: {data}\n\n"));
    }
}
