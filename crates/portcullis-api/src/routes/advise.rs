//! `POST /advise`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::changes;
use crate::context::Context;
use crate::extract::Body;
use crate::problem::{Kind, Problem};
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
    Body(order): Body<AdviseOrder>,
) -> Result<Json<AdviseAnswer>, Problem> {
    let kept = events::kept(&context, order.request_id.clone()).await?;
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

/// The newest kept requests of a site.
async fn others(context: &Arc<Context>, site: &str) -> Result<Vec<StoredRequest>, Problem> {
    let filter = events::filter(context, Some(OTHERS_OF))?;
    let (requests, _) = stored::requests(context, filter, OTHERS_MAX).await?;
    let of_site = requests.into_iter().filter(|other| other.site.as_deref() == Some(site));
    let other =
        |other: ReplayRequest| StoredRequest { id: other.id, request: other.request, client: other.client };
    Ok(of_site.map(other).collect())
}
