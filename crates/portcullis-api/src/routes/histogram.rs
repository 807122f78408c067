//! `GET /events/histogram`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use portcullis_event_store::{Histogram, HistogramRequest, HistogramStep};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::context::Context;
use crate::extract::Params;
use crate::problem::{Kind, Problem};
use crate::queries::ask;
use crate::routes::events::{filter, own};

/// Steps, unless said otherwise.
const STEPS: u32 = 96;
/// Steps, at most.
const STEPS_MAX: u32 = 1000;

/// What is to be counted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistogramQuery {
    /// Filter that events have to pass. Its times are the edges.
    filter: Option<String>,
    /// Steps at most; their length follows from it. Default: 96.
    #[param(minimum = 2, maximum = 1000)]
    steps: Option<u32>,
}

/// Requests of events over time.
#[derive(Serialize, ToSchema)]
pub(crate) struct HistogramPage {
    /// The beginning of the first step, in seconds since 1970.
    from: u64,
    /// The end of the last.
    to: u64,
    /// Seconds of a step.
    step: u64,
    /// Requests that the events stand for.
    total: u64,
    /// The steps that have events, oldest first.
    items: Vec<HistogramItem>,
    /// False if the time for looking ran out: only the newest events are counted.
    complete: bool,
    /// Parts of the store that cannot be read, and why.
    skipped: Vec<String>,
}

/// Requests of a step, by the outcome of their events.
#[derive(Serialize, ToSchema)]
pub(crate) struct HistogramItem {
    /// Its beginning, in seconds since 1970.
    start: u64,
    blocked: u64,
    would_block: u64,
    refused: u64,
    control: u64,
    noted: u64,
    /// Of events without an outcome.
    others: u64,
}

impl From<HistogramStep> for HistogramItem {
    fn from(step: HistogramStep) -> HistogramItem {
        // In the order of the outcomes.
        let [blocked, would_block, refused, control, noted, others] = step.counts;
        HistogramItem { start: step.start_ms / 1000, blocked, would_block, refused, control, noted, others }
    }
}

/// Counts the events that pass a filter over time: the same events that `GET /events` lists.
#[utoipa::path(get, path = "/events/histogram", tag = "events", operation_id = "count_events_over_time",
    params(HistogramQuery),
    responses((status = 200, body = HistogramPage, description = "The counts."),
        (status = 502, body = Problem, content_type = "application/problem+json",
            description = "The database of events cannot be asked."),
        (status = 504, body = Problem, content_type = "application/problem+json",
            description = "The database of events has not answered in time.")))]
pub(crate) async fn histogram(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<HistogramQuery>,
) -> Result<axum::Json<HistogramPage>, Problem> {
    let filter = own(filter(&context, query.filter.as_deref())?, &principal.sites);
    let steps = match query.steps.unwrap_or(STEPS) {
        steps @ 2..=STEPS_MAX => steps as usize,
        _ => {
            return Err(Problem::with(Kind::Malformed, format!("the query: steps must be 2 to {STEPS_MAX}")));
        }
    };
    let (patience, now_ms) = (context.limits.query_time_max, context.now_ms());
    let found = ask(&context, move |events| {
        events.histogram(&HistogramRequest { filter: &filter, steps, now_ms, patience })
    });
    let found = found.await?.unwrap_or(Histogram { complete: true, ..Histogram::default() });
    let total = found.steps.iter().flat_map(|step| step.counts).fold(0, u64::saturating_add);
    Ok(axum::Json(HistogramPage {
        from: found.from_ms / 1000,
        to: found.to_ms / 1000,
        step: found.step_ms / 1000,
        total,
        items: found.steps.into_iter().map(HistogramItem::from).collect(),
        complete: found.complete,
        skipped: found.skipped,
    }))
}
