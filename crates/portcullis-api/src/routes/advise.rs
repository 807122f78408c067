//! `POST /advise`, `GET /advise/groups`.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use portcullis_advise::{Cluster, clusters};
use portcullis_event_store::{PageRequest, StoredEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::changes;
use crate::context::Context;
use crate::extract::{Body, Params};
use crate::problem::{Kind, Problem};
use crate::queries;
use crate::routes::events;
use crate::stored::{self, CLIENT};
use crate::supplies::{AdviceOrder, ReplayRequest, StoredRequest};

/// Stored requests that candidates are tried on, of the last week.
const OTHERS_MAX: usize = 1000;
/// The events that they are looked for in.
const OTHERS_OF: &str = "time >= -7d";

/// A request that was stopped wrongly.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdviseOrder {
    /// The id of a request that is kept with its event.
    request_id: String,
}

/// The exclusions that come into question, measured.
#[derive(Serialize, ToSchema)]
pub(crate) struct AdviseAnswer {
    /// The site.
    site: String,
    /// The route.
    route: String,
    /// Candidates from the narrowest to the widest, each with `exclusions` as `POST /exclusions` takes them,
    /// `clears`, `recommended`, `stored` and `probed`; its members are those of `portcullis advise --json`.
    #[schema(value_type = Object)]
    advice: Box<RawValue>,
}

/// Measures the exclusions that would let a request pass: each is tried on the request, on stored requests
/// of its site, and on attacks put into the same fields.
#[utoipa::path(post, path = "/advise", tag = "exclusions", operation_id = "advise", request_body = AdviseOrder,
    responses((status = 200, body = AdviseAnswer, description = "The candidates."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such event, or no request is kept with it."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "There is nothing to exclude, or no document to add an exclusion to.")))]
pub(crate) async fn advise(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Body(order): Body<AdviseOrder>,
) -> Result<Json<AdviseAnswer>, Problem> {
    let kept = events::kept(&context, &principal.sites, order.request_id.clone()).await?;
    let (site, route) = (kept.site.unwrap_or_default(), kept.route.unwrap_or_default());
    let client = kept.client.unwrap_or(CLIENT);
    let request = StoredRequest { id: order.request_id, request: kept.bytes, client };
    let others = others(&context, &site).await?;
    let now = context.now_ms();
    let document = changes::with(&context, move |revisions| {
        let (text, document) = (revisions.current(now)?.text, revisions.document());
        Ok((text, document.format(), document.name()))
    });
    let (text, format, file) = document.await?;
    let text = text.as_str().to_owned();
    let order = AdviceOrder { text, format, file, site: site.clone(), route: route.clone(), request, others };
    let advice = context.trial(move |trials| trials.advise(order)).await?;
    let advice = advice.map_err(|none| Problem::with(Kind::Conflict, none))?;
    let advice = RawValue::from_string(advice).map_err(|_| Problem::of(Kind::Internal))?;
    Ok(Json(AdviseAnswer { site, route, advice }))
}

/// Events that groups are made of: the newest, of a week.
const GROUPED_MAX: usize = 5000;
/// Groups unless said otherwise.
const GROUPS: usize = 20;
const GROUPS_MAX: u32 = 1000;

/// Which groups are asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct GroupsQuery {
    /// Filter that events have to pass. Default: `time >= -7d`.
    filter: Option<String>,
    /// Groups at most. Default: 20.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Events with the same objection to the same field on the same path.
#[derive(Serialize, ToSchema)]
pub(crate) struct Group {
    /// The site.
    site: String,
    /// A class of attacks, or `rule` and its number.
    objection: String,
    /// Place and name of the value.
    location: String,
    /// The path, ids as `{id}`; empty where servers may take it for another one.
    path: String,
    /// Requests.
    requests: u64,
    /// Clients.
    clients: usize,
    /// Clients of which there are no events but these: those of false positives, mostly.
    clients_with_nothing_else: usize,
    /// The newest event with a kept request; null: there is none.
    newest: Option<String>,
}

/// Groups of events.
#[derive(Serialize, ToSchema)]
pub(crate) struct Groups {
    /// Those of the most clients with nothing else come first.
    items: Vec<Group>,
    /// False if the time for looking ran out, or there are more events than are looked at.
    complete: bool,
}

/// The newest 5,000 events in groups, those first that look most like false positives.
#[utoipa::path(get, path = "/advise/groups", tag = "exclusions", operation_id = "list_groups", params(GroupsQuery),
    responses((status = 200, body = Groups, description = "The groups."),
        (status = 400, body = Problem, content_type = "application/problem+json",
            description = "The filter has a mistake.")))]
pub(crate) async fn groups(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<GroupsQuery>,
) -> Result<Json<Groups>, Problem> {
    let filter = events::filter(&context, Some(query.filter.as_deref().unwrap_or(OTHERS_OF)))?;
    let filter = events::own(filter, &principal.sites);
    let limit = query.limit.map_or(GROUPS, |limit| limit.clamp(1, GROUPS_MAX) as usize);
    let patience = context.limits.query_time_max;
    let found = queries::ask(&context, move |events| {
        let page =
            events.page(&PageRequest { filter: &filter, before: None, limit: GROUPED_MAX, patience })?;
        let read = |event: &StoredEvent| serde_json::from_str::<Value>(&event.json).ok();
        let values: Vec<_> = page.events.iter().filter_map(|event| Some((read(event)?, event))).collect();
        let each = values.iter().map(|(value, event)| (value, event.count, event.request.is_some()));
        let mut found = clusters(each);
        found.truncate(limit);
        Ok((found, page.complete && page.next.is_none()))
    });
    let (found, complete) = found.await?.unwrap_or_default();
    let group = |cluster: Cluster| {
        let Cluster { site, objection, location, path, events, clients, clients_with_nothing_else, newest } =
            cluster;
        let newest = Some(newest).filter(|id| !id.is_empty());
        Group {
            site,
            objection,
            location,
            path,
            requests: events,
            clients,
            clients_with_nothing_else,
            newest,
        }
    };
    Ok(Json(Groups { items: found.into_iter().map(group).collect(), complete }))
}

/// The newest kept requests of a site.
async fn others(context: &Arc<Context>, site: &str) -> Result<Vec<StoredRequest>, Problem> {
    let filter = events::filter(context, Some(OTHERS_OF))?;
    let (requests, _) = stored::requests(context, filter, OTHERS_MAX).await?;
    let of_site = requests.into_iter().filter(|other| other.site.as_deref() == Some(site));
    let other =
        |other: ReplayRequest| StoredRequest { id: other.id, request: other.request, client: other.client };
    Ok(of_site.map(other).collect())
}
