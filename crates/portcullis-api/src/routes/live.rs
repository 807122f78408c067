//! `GET /sites`, `/sites/{name}`, `/upstreams`, `/limits`, `/lists`, `/certificates`, `/agents`: the settings
//! that serve now, and the state of their parts.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use portcullis_identity::Sites;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::context::{Context, blocking};
use crate::extract::{Parameter, Params};
use crate::live::{
    AccessList, Agent, Certificate, Keyed, LiveState, RateLimit, Site, Snapshot, Target, Upstream,
};
use crate::problem::{Kind, Problem};
use crate::routes::page::{limit, next};

/// A page of parts of the settings that serve now.
#[derive(Serialize, ToSchema)]
pub(crate) struct LivePage<T: ToSchema> {
    /// The number of the settings, from 1. A reload raises it.
    generation: u64,
    /// The parts.
    items: Vec<T>,
    /// The cursor of the next page; null if this is the last.
    next: Option<String>,
}

/// The page that is asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LiveQuery {
    /// Items of the page, at most. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before; without it the first page.
    cursor: Option<String>,
}

/// The sites.
#[utoipa::path(get, path = "/sites", tag = "settings", operation_id = "list_sites", params(LiveQuery),
    responses((status = 200, body = LivePage<Site>, description = "A page of sites, by name.")))]
pub(crate) async fn sites(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<LiveQuery>,
) -> Result<Json<LivePage<Site>>, Problem> {
    own_page(&context, query, principal.sites, |live| live.sites(), |site| &site.name).await
}

/// A site of the settings that serve now.
#[derive(Serialize, ToSchema)]
pub(crate) struct LiveSite {
    /// The number of the settings, from 1.
    generation: u64,
    /// The site.
    site: Site,
}

/// One site.
#[utoipa::path(get, path = "/sites/{name}", tag = "settings", operation_id = "get_site",
    params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, body = LiveSite, description = "The site."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such site.")))]
pub(crate) async fn site(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(name): Parameter<String>,
) -> Result<Json<LiveSite>, Problem> {
    let Snapshot { generation, items } = look(&context, |live| live.sites()).await?;
    let site = items.into_iter().find(|site| site.name == name && principal.sites.admit(&site.name));
    let site = site.ok_or_else(|| Problem::with(Kind::NotFound, "there is no site of this name"))?;
    Ok(Json(LiveSite { generation, site }))
}

/// The groups of endpoints, as the balancer sees them.
#[utoipa::path(get, path = "/upstreams", tag = "settings", operation_id = "list_upstreams", params(LiveQuery),
    responses((status = 200, body = LivePage<Upstream>, description = "A page of groups, by name.")))]
pub(crate) async fn upstreams(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<LiveQuery>,
) -> Result<Json<LivePage<Upstream>>, Problem> {
    let sites = principal.sites;
    let read = move |live: &dyn LiveState| {
        let mut found = live.upstreams();
        if !sites.is_all() {
            let used = forwarded_to(live, &sites);
            found.items.retain(|upstream| used.contains(&upstream.name));
        }
        found
    };
    page(&context, query, read).await
}

/// The rate limits with their counters.
#[utoipa::path(get, path = "/limits", tag = "settings", operation_id = "list_limits", params(LiveQuery),
    responses((status = 200, body = LivePage<RateLimit>,
        description = "A page of limits, by site and name.")))]
pub(crate) async fn limits(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<LiveQuery>,
) -> Result<Json<LivePage<RateLimit>>, Problem> {
    own_page(&context, query, principal.sites, |live| live.limits(), |limit| &limit.site).await
}

/// The access lists of routes.
#[utoipa::path(get, path = "/lists", tag = "settings", operation_id = "list_lists", params(LiveQuery),
    responses((status = 200, body = LivePage<AccessList>,
        description = "A page of lists, by site and route.")))]
pub(crate) async fn lists(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<LiveQuery>,
) -> Result<Json<LivePage<AccessList>>, Problem> {
    own_page(&context, query, principal.sites, |live| live.lists(), |list| &list.site).await
}

/// The certificates of listeners.
#[utoipa::path(get, path = "/certificates", tag = "settings", operation_id = "list_certificates",
    params(LiveQuery),
    responses((status = 200, body = LivePage<Certificate>,
        description = "A page of certificates, by listener and file.")))]
pub(crate) async fn certificates(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<LiveQuery>,
) -> Result<Json<LivePage<Certificate>>, Problem> {
    // Sites share them: a limited identity has none of its own.
    let is_shown = principal.sites.is_all();
    let read = move |live: &dyn LiveState| {
        let mut found = live.certificates();
        found.items.retain(|_| is_shown);
        found
    };
    page(&context, query, read).await
}

/// The inspection agents.
#[utoipa::path(get, path = "/agents", tag = "settings", operation_id = "list_agents", params(LiveQuery),
    responses((status = 200, body = LivePage<Agent>, description = "A page of agents, by name.")))]
pub(crate) async fn agents(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<LiveQuery>,
) -> Result<Json<LivePage<Agent>>, Problem> {
    // Sites share them: a limited identity has none of its own.
    let is_shown = principal.sites.is_all();
    let read = move |live: &dyn LiveState| {
        let mut found = live.agents();
        found.items.retain(|_| is_shown);
        found
    };
    page(&context, query, read).await
}

/// Looks at the running program on a thread that may block, as few at a time as queries of events: large
/// settings take a while to copy.
pub(crate) async fn look<T: Send + 'static>(
    context: &Context,
    read: impl FnOnce(&dyn LiveState) -> T + Send + 'static,
) -> Result<T, Problem> {
    let live = Arc::clone(&context.supplies.live);
    let permit = Arc::clone(&context.queries).acquire_owned().await;
    let permit = permit.map_err(|_| Problem::of(Kind::Draining))?;
    let work = move || {
        // Held until the work ends, even if the client has gone.
        let _permit = permit;
        read(&*live)
    };
    blocking(work).await
}

/// The upstreams that routes of these sites forward to.
fn forwarded_to(live: &dyn LiveState, sites: &Sites) -> HashSet<String> {
    let own = live.sites().items.into_iter().filter(|site| sites.admit(&site.name));
    let targets = own.flat_map(|site| site.routes).map(|route| route.target);
    let upstream = |target| match target {
        Target::Forward { upstream } => Some(upstream),
        Target::Redirect { .. } | Target::Respond { .. } => None,
    };
    targets.filter_map(upstream).collect()
}

/// A page of what belongs to these sites.
async fn own_page<T: Keyed + ToSchema + Send + 'static>(
    context: &Context,
    query: LiveQuery,
    sites: Sites,
    read: impl FnOnce(&dyn LiveState) -> Snapshot<T> + Send + 'static,
    site: impl Fn(&T) -> &str + Send + 'static,
) -> Result<Json<LivePage<T>>, Problem> {
    let read = move |live: &dyn LiveState| {
        let mut found = read(live);
        found.items.retain(|item| sites.admit(site(item)));
        found
    };
    page(context, query, read).await
}

async fn page<T: Keyed + ToSchema + Send + 'static>(
    context: &Context,
    query: LiveQuery,
    read: impl FnOnce(&dyn LiveState) -> Snapshot<T> + Send + 'static,
) -> Result<Json<LivePage<T>>, Problem> {
    let limit = limit(query.limit)?;
    let Snapshot { generation, mut items } = look(context, read).await?;
    if let Some(cursor) = &query.cursor {
        items.retain(|item| item.key() > *cursor);
    }
    items.sort_by_cached_key(Keyed::key);
    let next = next(&mut items, limit, Keyed::key);
    Ok(Json(LivePage { generation, items, next }))
}
