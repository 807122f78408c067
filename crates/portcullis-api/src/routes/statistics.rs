//! `GET /statistics`: all requests, counted, from the roll-ups of the event store.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use portcullis_event_store::{Dimension, Latency, Rollup, Rollups, SiteRollup};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::context::Context;
use crate::extract::Params;
use crate::problem::{Kind, Problem};
use crate::queries::ask_store;

const DAY: u64 = 86_400;
/// The longest range that is answered by minutes.
const MINUTES_RANGE_MAX: u64 = 2 * DAY;
/// The longest range at all: that of roll-ups that are kept unless told otherwise, and some more.
const RANGE_MAX: u64 = 500 * DAY;
/// The last second of the year 9999, as in RFC 3339.
const TIME_MAX: u64 = 253_402_300_799;
/// Items of an answer, at most.
const ITEMS_MAX: usize = 20_000;
/// Labels of a property, unless said otherwise.
const TOP: u32 = 10;

/// The requests to count.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatisticsQuery {
    /// The first second, since 1970. Default: a day before `to`.
    #[param(minimum = 0, maximum = 253_402_300_799u64)]
    from: Option<u64>,
    /// The second after the last, since 1970. Default: the end of this minute.
    #[param(minimum = 0, maximum = 253_402_300_799u64)]
    to: Option<u64>,
    /// Only this site.
    site: Option<String>,
    /// An item for each minute or hour that begins in the range; without it one for the range.
    step: Option<Step>,
    /// Labels of each property, the most frequent first. Default: 10.
    #[param(minimum = 0, maximum = 256)]
    top: Option<u32>,
}

/// The length of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Step {
    Minute,
    Hour,
}

/// Requests of sites in a range.
#[derive(Serialize, ToSchema)]
pub(crate) struct Statistics {
    /// The first second, since 1970.
    from: u64,
    /// The second after the last.
    to: u64,
    /// Oldest first, then by site.
    items: Vec<SiteStatistics>,
    /// Parts of the store that cannot be read, and why: their requests are missing.
    skipped: Vec<String>,
}

/// Counts of the requests of a site in a stretch of time. A request counts when it ends.
#[derive(Serialize, ToSchema)]
pub(crate) struct SiteStatistics {
    /// The first second, since 1970.
    start: u64,
    /// The site; empty for requests that no site serves.
    site: String,
    /// Requests, with and without an event.
    requests: u64,
    /// Events, coalesced ones each.
    events: u64,
    /// Bytes of request bodies.
    request_bytes: u64,
    /// Bytes of response bodies.
    response_bytes: u64,
    /// Bytes that were inspected.
    bytes_inspected: u64,
    /// Bytes that were not.
    bytes_not_inspected: u64,
    /// From first byte to last, in microseconds.
    duration_us: Quantiles,
    /// The part of it that inspection took, of requests that were inspected.
    inspection_us: Quantiles,
    /// The most frequent labels of each property: `verdict`, `status`, `route`, `class`, `rule`, `country`,
    /// `upstream`, `control`, `not_inspected` (bytes), `client`, `path`, `outcome` (that of events).
    by: BTreeMap<&'static str, Vec<Label>>,
}

/// Durations that so many of a hundred requests did not exceed, to within a quarter; null without requests.
#[derive(Serialize, ToSchema)]
pub(crate) struct Quantiles {
    p50: Option<u64>,
    p95: Option<u64>,
    p99: Option<u64>,
}

/// A label and how often it was met.
#[derive(Serialize, ToSchema)]
pub(crate) struct Label {
    label: String,
    count: u64,
    /// The count is too high by this at most; 0: it is exact.
    error: u64,
}

/// Counts of all requests by site: in total, or by minute or hour.
#[utoipa::path(get, path = "/statistics", tag = "events", operation_id = "get_statistics",
    params(StatisticsQuery),
    responses((status = 200, body = Statistics, description = "The counts.")))]
pub(crate) async fn statistics(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<StatisticsQuery>,
) -> Result<axum::Json<Statistics>, Problem> {
    let this_minute = context.now() / 60 * 60;
    let to = query.to.unwrap_or(this_minute + 60);
    let from = query.from.unwrap_or(to.saturating_sub(DAY));
    let wrong = |text: &str| Err(Problem::with(Kind::Malformed, format!("the query: {text}")));
    let top = match query.top.unwrap_or(TOP) {
        top @ 0..=256 => top as usize,
        _ => return wrong("top must be 0 to 256"),
    };
    if from.max(to) > TIME_MAX {
        return wrong("`from` and `to` must be seconds since 1970, up to the year 9999");
    }
    match (query.step, to.checked_sub(from)) {
        (_, None) => return wrong("`from` must not be after `to`"),
        (Some(Step::Minute), Some(range)) if range > MINUTES_RANGE_MAX => {
            return wrong("a range by minutes must be two days at most; ask by hours, or for less");
        }
        (_, Some(range)) if range > RANGE_MAX => return wrong("the range must be 500 days at most"),
        _ => {}
    }
    let site = query.site;
    let found = ask_store(&context, move |store| match query.step {
        None => store.overview(from..to, site.as_deref()),
        Some(Step::Minute) => store.minutes(from..to, site.as_deref()),
        Some(Step::Hour) => store.hours(from..to, site.as_deref()),
    });
    let Rollups { mut items, skipped } = found.await?.unwrap_or_default();
    // A limited identity sees neither other sites nor requests that no site serves.
    items.retain(|item| principal.sites.admit(&item.site));
    if items.len() > ITEMS_MAX {
        return wrong("that are more than 20,000 items; name a site, or ask for less");
    }
    let items = items.into_iter().map(|item| shown(item, top)).collect();
    Ok(axum::Json(Statistics { from, to, items, skipped }))
}

fn shown(SiteRollup { start, site, rollup }: SiteRollup, top: usize) -> SiteStatistics {
    let quantiles =
        |of: &Latency| Quantiles { p50: of.quantile(0.5), p95: of.quantile(0.95), p99: of.quantile(0.99) };
    SiteStatistics {
        start,
        site,
        requests: rollup.requests,
        events: rollup.events,
        request_bytes: rollup.request_bytes,
        response_bytes: rollup.response_bytes,
        bytes_inspected: rollup.bytes_inspected,
        bytes_not_inspected: rollup.bytes_not_inspected(),
        duration_us: quantiles(&rollup.latency),
        inspection_us: quantiles(&rollup.inspection),
        by: Dimension::ALL
            .iter()
            .map(|&dimension| (dimension.name(), labels(&rollup, dimension, top)))
            .collect(),
    }
}

fn labels(rollup: &Rollup, dimension: Dimension, top: usize) -> Vec<Label> {
    let sorted = rollup.by(dimension).sorted().into_iter().take(top);
    sorted
        .map(|entry| Label { label: entry.label.to_string(), count: entry.count, error: entry.error })
        .collect()
}
