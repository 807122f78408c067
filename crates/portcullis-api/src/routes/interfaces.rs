//! `GET /interfaces`, `/interfaces/{id}`, `/interfaces/openapi`: the endpoints that were discovered;
//! `/interfaces/deviations`: those that deviate from a declared API.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::context::{Context, blocking};
use crate::extract::{Parameter, Params};
use crate::interfaces::{Interface, InterfaceDeviation, InterfaceItem, InterfaceSite, Interfaces};
use crate::live::Keyed;
use crate::problem::{Kind, Problem};
use crate::routes::page::{limit, next};

/// Bytes of a text that is looked for.
const TEXT_BYTES_MAX: usize = 256;

/// The endpoints that are asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct InterfaceQuery {
    /// Only those of this site.
    site: Option<String>,
    /// Only those whose method and path have this text in them, whatever its case.
    #[param(max_length = 256)]
    q: Option<String>,
    /// Items of the page, at most. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before; without it the first page.
    cursor: Option<String>,
}

/// A page of endpoints.
#[derive(Serialize, ToSchema)]
pub(crate) struct InterfacePage {
    /// The endpoints, by site and path.
    items: Vec<InterfaceItem>,
    /// The cursor of the next page; null if this is the last.
    next: Option<String>,
    /// Endpoints that fit, on all pages.
    total: usize,
    /// The sites whose interfaces are discovered.
    sites: Vec<InterfaceSite>,
}

/// The endpoints that sites have answered.
#[utoipa::path(get, path = "/interfaces", tag = "interfaces", operation_id = "list_interfaces",
    params(InterfaceQuery),
    responses((status = 200, body = InterfacePage, description = "A page of endpoints, by site and path.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<InterfaceQuery>,
) -> Result<Json<InterfacePage>, Problem> {
    let (limit, text) = (limit(query.limit)?, query.q.unwrap_or_default());
    if text.len() > TEXT_BYTES_MAX {
        return Err(Problem::with(
            Kind::Malformed,
            format!("the query: q must be no longer than {TEXT_BYTES_MAX} bytes"),
        ));
    }
    let found = look(&context, move |interfaces| interfaces.list(query.site.as_deref(), &text)).await?;
    let Some(mut found) = found else {
        return Ok(Json(InterfacePage { items: Vec::new(), next: None, total: 0, sites: Vec::new() }));
    };
    found.items.retain(|item| principal.sites.admit(&item.site));
    found.sites.retain(|site| principal.sites.admit(&site.site));
    let total = found.items.len();
    if let Some(cursor) = &query.cursor {
        found.items.retain(|item| item.key() > *cursor);
    }
    found.items.sort_by_cached_key(Keyed::key);
    let next = next(&mut found.items, limit, Keyed::key);
    Ok(Json(InterfacePage { items: found.items, next, total, sites: found.sites }))
}

/// One endpoint.
#[utoipa::path(get, path = "/interfaces/{id}", tag = "interfaces", operation_id = "get_interface",
    params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, body = Interface, description = "The endpoint with its parameters."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such endpoint.")))]
pub(crate) async fn one(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(id): Parameter<String>,
) -> Result<Json<Interface>, Problem> {
    let found = look(&context, move |interfaces| interfaces.one(&id)).await?.flatten();
    let found = found.filter(|found| principal.sites.admit(&found.endpoint.site));
    found.map(Json).ok_or_else(|| Problem::with(Kind::NotFound, "there is no endpoint of this id"))
}

/// The deviations that are asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeviationQuery {
    /// Only those of this site.
    site: Option<String>,
    /// Only those of this kind.
    #[param(inline)]
    kind: Option<DeviationKind>,
    /// Items of the page, at most. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before; without it the first page.
    cursor: Option<String>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeviationKind {
    Shadow,
    Drifted,
    Zombie,
    Unseen,
}

impl DeviationKind {
    fn name(self) -> &'static str {
        match self {
            DeviationKind::Shadow => "shadow",
            DeviationKind::Drifted => "drifted",
            DeviationKind::Zombie => "zombie",
            DeviationKind::Unseen => "unseen",
        }
    }
}

/// A page of deviations.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeviationPage {
    /// The endpoints, by site and path.
    items: Vec<InterfaceDeviation>,
    /// The cursor of the next page; null if this is the last.
    next: Option<String>,
    /// Those that fit, on all pages.
    total: usize,
}

/// The endpoints that deviate from declared APIs, as of the last minute.
#[utoipa::path(get, path = "/interfaces/deviations", tag = "interfaces", operation_id = "list_deviations",
    params(DeviationQuery),
    responses((status = 200, body = DeviationPage, description = "A page of deviations, by site and path.")))]
pub(crate) async fn deviations(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<DeviationQuery>,
) -> Result<Json<DeviationPage>, Problem> {
    let limit = limit(query.limit)?;
    let found = look(&context, move |interfaces| interfaces.deviations(query.site.as_deref())).await?;
    let mut items = found.unwrap_or_default();
    items.retain(|item| {
        principal.sites.admit(&item.site) && query.kind.is_none_or(|kind| kind.name() == item.kind)
    });
    let total = items.len();
    if let Some(cursor) = &query.cursor {
        items.retain(|item| item.key() > *cursor);
    }
    items.sort_by_cached_key(Keyed::key);
    let next = next(&mut items, limit, Keyed::key);
    Ok(Json(DeviationPage { items, next, total }))
}

/// The site whose document is asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SiteQuery {
    /// The site.
    site: String,
}

/// The endpoints of a site as an OpenAPI document.
#[utoipa::path(get, path = "/interfaces/openapi", tag = "interfaces", operation_id = "export_interfaces",
    params(SiteQuery),
    responses((status = 200, body = serde_json::Value, description = "A document of OpenAPI 3.1."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "Nothing is discovered at a site of this name.")))]
pub(crate) async fn document(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<SiteQuery>,
) -> Result<Response, Problem> {
    let none = || Problem::with(Kind::NotFound, "nothing is discovered at a site of this name");
    if !principal.sites.admit(&query.site) {
        return Err(none());
    }
    let found = look(&context, move |interfaces| interfaces.document(&query.site)).await?.flatten();
    let text = found.ok_or_else(none)?;
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

/// Looks on a thread that may block, as few at a time as queries of events. None: nothing is discovered.
async fn look<T: Send + 'static>(
    context: &Context,
    read: impl FnOnce(&dyn Interfaces) -> T + Send + 'static,
) -> Result<Option<T>, Problem> {
    let Some(interfaces) = context.supplies.interfaces.clone() else { return Ok(None) };
    let permit = Arc::clone(&context.queries).acquire_owned().await;
    let permit = permit.map_err(|_| Problem::of(Kind::Draining))?;
    let work = move || {
        // Held until the work ends, even if the client has gone.
        let _permit = permit;
        Some(read(&*interfaces))
    };
    blocking(work).await
}
