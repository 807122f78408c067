//! `GET /events/facets`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use portcullis_event_store::{FacetRequest, Facets};
use portcullis_query::Field;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::context::Context;
use crate::extract::Params;
use crate::problem::{Kind, Problem};
use crate::queries::ask;
use crate::routes::events::{filter, own};

/// Values of each field, unless said otherwise.
const TOP: u32 = 10;
/// Values of each field, at most.
const TOP_MAX: u32 = 1000;
/// Fields unless said otherwise.
const FIELDS: &str = "verdict,site,class,rule,client,path";

/// The fields to count.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FacetsQuery {
    /// Filter that events have to pass.
    filter: Option<String>,
    /// Fields of filters, with commas between them; all but `time`, `id`, `duration_us`, `count` and `text`.
    /// Default: `verdict,site,class,rule,client,path`.
    fields: Option<String>,
    /// The most frequent values of each field, so many. Default: 10.
    #[param(minimum = 1, maximum = 1000)]
    top: Option<u32>,
}

/// Counts of values of fields.
#[derive(Serialize, ToSchema)]
pub(crate) struct FacetPage {
    /// Requests that the events stand for.
    total: u64,
    /// By field.
    fields: BTreeMap<&'static str, FacetItem>,
    /// False if the time for looking ran out: only the newest events are counted.
    complete: bool,
    /// Parts of the store that cannot be read, and why.
    skipped: Vec<String>,
}

/// The values of a field.
#[derive(Serialize, ToSchema)]
pub(crate) struct FacetItem {
    /// The most frequent, the most frequent first.
    values: Vec<FacetValue>,
    /// Requests with other values.
    others: u64,
    /// Requests without a value.
    without: u64,
}

/// A value and the requests that have it.
#[derive(Serialize, ToSchema)]
pub(crate) struct FacetValue {
    value: String,
    count: u64,
}

/// Counts the values of fields among the events that pass a filter. An event with several values of a field
/// counts for each of them.
#[utoipa::path(get, path = "/events/facets", tag = "events", operation_id = "count_events", params(FacetsQuery),
    responses((status = 200, body = FacetPage, description = "The counts."),
        (status = 502, body = Problem, content_type = "application/problem+json",
            description = "The database of events cannot be asked."),
        (status = 504, body = Problem, content_type = "application/problem+json",
            description = "The database of events has not answered in time.")))]
pub(crate) async fn facets(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<FacetsQuery>,
) -> Result<axum::Json<FacetPage>, Problem> {
    let filter = own(filter(&context, query.filter.as_deref())?, &principal.sites);
    let top = match query.top.unwrap_or(TOP) {
        top @ 1..=TOP_MAX => top as usize,
        _ => return Err(Problem::with(Kind::Malformed, format!("the query: top must be 1 to {TOP_MAX}"))),
    };
    let fields = fields(query.fields.as_deref().unwrap_or(FIELDS))?;
    let patience = context.limits.query_time_max;
    let found = ask(&context, move |events| {
        events.facets(&FacetRequest { filter: &filter, fields: &fields, top, patience })
    });
    let found = found.await?.unwrap_or(Facets { complete: true, ..Facets::default() });
    let item = |facet: portcullis_event_store::Facet| {
        let values = facet.values.into_iter().map(|(value, count)| FacetValue { value, count });
        let (values, others, without) = (values.collect(), facet.others, facet.without);
        (facet.field.name(), FacetItem { values, others, without })
    };
    Ok(axum::Json(FacetPage {
        total: found.total,
        fields: found.fields.into_iter().map(item).collect(),
        complete: found.complete,
        skipped: found.skipped,
    }))
}

/// The fields of these names, each once.
fn fields(names: &str) -> Result<Vec<Field>, Problem> {
    let mut fields = Vec::new();
    for name in names.split(',').map(str::trim) {
        let Some(field) = Field::named(name).filter(|field| Facets::has(*field)) else {
            let known: Vec<&str> =
                Field::ALL.iter().filter(|field| Facets::has(**field)).map(|field| field.name()).collect();
            let message = format!("the query: `{name}` cannot be counted; fields are {}", known.join(", "));
            return Err(Problem::with(Kind::Malformed, message));
        };
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    Ok(fields)
}
