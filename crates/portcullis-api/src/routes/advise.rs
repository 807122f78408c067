//! `POST /advise`.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use portcullis_event_store::{Page, PageRequest, StoredEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::changes;
use crate::context::Context;
use crate::extract::Body;
use crate::problem::{Kind, Problem};
use crate::queries::ask_store;
use crate::routes::events;
use crate::supplies::{AdviceOrder, StoredRequest};

/// Stored requests that candidates are tried on, of the last week.
const OTHERS_MAX: usize = 1000;
/// Bytes of all of them.
const OTHERS_BYTES_MAX: usize = 16 << 20;
/// The events that they are looked for in.
const OTHERS_OF: &str = "time >= -7d";
/// The client of a request that names none: an address for documentation (RFC 5737).
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

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
    Body(order): Body<AdviseOrder>,
) -> Result<Json<AdviseAnswer>, Problem> {
    let kept = events::kept(&context, order.request_id.clone()).await?;
    let (site, route) = (kept.site.unwrap_or_default(), kept.route.unwrap_or_default());
    let client = kept.client.unwrap_or(CLIENT);
    let request = StoredRequest { id: order.request_id, request: kept.bytes, client };
    let others = others(&context, site.clone()).await?;
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

/// The newest kept requests of a site.
async fn others(context: &Arc<Context>, site: String) -> Result<Vec<StoredRequest>, Problem> {
    let filter = events::filter(context, Some(OTHERS_OF))?;
    let patience = context.limits.query_time_max;
    let page = ask_store(context, move |store| {
        store.page(&PageRequest { filter: &filter, before: None, limit: OTHERS_MAX, patience })
    });
    let page: Page = page.await?.unwrap_or_default();
    let mut bytes = 0;
    let fits = |other: &StoredRequest| {
        bytes += other.request.len();
        bytes <= OTHERS_BYTES_MAX
    };
    Ok(page.events.into_iter().filter_map(|event| of_site(event, &site)).take_while(fits).collect())
}

/// The request that is kept with an event, if it is one of the site.
fn of_site(event: StoredEvent, site: &str) -> Option<StoredRequest> {
    let request = event.request?.bytes;
    let event: Value = serde_json::from_str(&event.json).ok()?;
    let text = |path: &str| event.pointer(path).and_then(Value::as_str);
    let client = text("/client/addr").and_then(|address| address.parse().ok()).unwrap_or(CLIENT);
    (text("/site") == Some(site)).then(|| StoredRequest {
        id: text("/request_id").unwrap_or_default().to_owned(),
        request,
        client,
    })
}
