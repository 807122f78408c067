//! `GET`, `POST /bans`, `DELETE /bans/{client}`.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use http::StatusCode;
use portcullis_admin::{BAN_SECONDS, NO_BAN};
use portcullis_event::Timestamp;
use portcullis_identity::Sites;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::context::{Context, blocking};
use crate::extract::{Body, Parameter, Params};
use crate::problem::{Kind, Problem};
use crate::routes::page::{limit, next};
use crate::supplies::Banned;

/// A banned client.
#[derive(Serialize, ToSchema)]
pub(crate) struct Ban {
    /// Scope of the ban: `all`, a site, or SITE/ROUTE.
    ban: String,
    /// Its address or network.
    client: String,
    /// Until when (RFC 3339).
    until: String,
    /// Number of its bans so far.
    count: u32,
}

/// Banned clients by place and address.
#[derive(Serialize, ToSchema)]
pub(crate) struct BanPage {
    /// The bans.
    items: Vec<Ban>,
    /// The cursor of the next page; null if this is the last.
    next: Option<String>,
}

/// The page of the bans that is asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BansQuery {
    /// Bans of the page, at most. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before; without it the first page.
    cursor: Option<String>,
}

/// The bans.
#[utoipa::path(get, path = "/bans", tag = "bans", operation_id = "list_bans", params(BansQuery),
    responses((status = 200, body = BanPage, description = "A page of bans.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<BansQuery>,
) -> Result<axum::Json<BanPage>, Problem> {
    let limit = limit(query.limit)?;
    let Some(bans) = context.supplies.bans.clone() else {
        return Ok(axum::Json(BanPage { items: Vec::new(), next: None }));
    };
    let sites = principal.sites;
    let listed = blocking(move || {
        let mut all = bans.list();
        all.retain(|banned| may_see(&sites, &banned.ban));
        if let Some(cursor) = &query.cursor {
            all.retain(|banned| key(banned) > *cursor);
        }
        all.sort_by_cached_key(key);
        all.truncate(limit + 1);
        all
    });
    let listed = &mut listed.await?;
    let next = next(listed, limit, key);
    Ok(axum::Json(BanPage { items: listed.drain(..).map(shown).collect(), next }))
}

fn shown(banned: Banned) -> Ban {
    let until = Timestamp::from_epoch_millis(banned.until).rfc3339();
    Ban { ban: banned.ban, client: banned.client, until, count: banned.count }
}

/// The place of a ban in the list. No address has a blank.
fn key(banned: &Banned) -> String {
    format!("{} {}", banned.client, banned.ban)
}

/// Scopes that sites share: that of the document, and that of bans by hand where there is none.
const SHARED: [&str; 2] = ["all", "by_hand"];

/// True if a ban of this scope counts only at these sites.
fn may_see(sites: &Sites, ban: &str) -> bool {
    let site = ban.split_once('/').map_or(ban, |(site, _)| site);
    sites.is_all() || !SHARED.contains(&ban) && sites.admit(site)
}

/// Refuses a ban that counts at other sites than those of the identity.
fn check_place(principal: &Principal, ban: Option<&str>) -> Result<(), Problem> {
    let sites = &principal.sites;
    if sites.is_all() || ban.is_some_and(|ban| may_see(sites, ban)) {
        return Ok(());
    }
    Err(Problem::with(
        Kind::Forbidden,
        format!("you are limited to {sites}: name a ban of one of them in `ban`, as `SITE` or `SITE/ROUTE`"),
    ))
}

/// A ban by hand.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BanOrder {
    /// An address; bans for networks count by network, as they are listed.
    client: String,
    /// For so long at least: a ban that ends later stays.
    #[schema(minimum = 1, maximum = 31_536_000)]
    seconds: u64,
    /// Only here: `all`, a site, or SITE/ROUTE; without it everywhere.
    ban: Option<String>,
    /// Why, for the audit trail.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The bans that were made or extended.
#[derive(Serialize, ToSchema)]
pub(crate) struct Imposed {
    /// The bans.
    items: Vec<Ban>,
}

/// Characters of a reason.
const REASON_CHARS_MAX: usize = 1000;

/// Bans a client whatever it did, for a time, on this node. The list `deny` is for networks and for ever.
#[utoipa::path(post, path = "/bans", tag = "bans", operation_id = "add_ban", request_body = BanOrder,
    responses((status = 200, body = Imposed, description = "The bans that refuse it now."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "No ban of the configuration would refuse this client."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed.")))]
pub(crate) async fn add(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Body(order): Body<BanOrder>,
) -> Result<axum::Json<Imposed>, Problem> {
    let BanOrder { client, seconds, ban, reason } = order;
    check_place(&principal, ban.as_deref())?;
    let wrong = |what: String| Problem::with(Kind::Invalid, what);
    let address: IpAddr = client
        .parse()
        .map_err(|_| wrong(format!("`{client}` is not an address; networks are for the list `deny`")))?;
    if !BAN_SECONDS.contains(&seconds) {
        return Err(wrong(format!("`seconds` is from {} to {}", BAN_SECONDS.start(), BAN_SECONDS.end())));
    }
    let reason = reason.unwrap_or_default();
    if reason.chars().count() > REASON_CHARS_MAX {
        return Err(wrong(format!("`reason` has more than {REASON_CHARS_MAX} characters")));
    }
    let Some(bans) = context.supplies.bans.clone() else { return Err(Problem::with(Kind::Conflict, NO_BAN)) };
    let length = Duration::from_secs(seconds);
    let imposed = blocking(move || bans.impose(ban.as_deref(), address, length)).await?;
    if imposed.is_empty() {
        return Err(Problem::with(Kind::Conflict, NO_BAN));
    }
    let (actor, now) = (principal.actor(), context.now());
    let places = imposed.iter().map(|banned| banned.ban.as_str()).collect::<Vec<_>>().join(", ");
    let detail = match reason.is_empty() {
        true => format!("{seconds} s at {places}"),
        false => format!("{seconds} s at {places}: {reason}"),
    };
    let object = format!("client {address}");
    context.identities(move |log| log.record(&actor, "ban.add", &object, &detail, now)).await?;
    Ok(axum::Json(Imposed { items: imposed.into_iter().map(shown).collect() }))
}

/// At which ban.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LiftQuery {
    /// Only here: `all`, a site, or SITE/ROUTE; without it everywhere.
    ban: Option<String>,
}

/// Lets a client in again, and forgets what it did.
#[utoipa::path(delete, path = "/bans/{client}", tag = "bans", operation_id = "lift_ban",
    params(("client" = String, Path, description = "An address, or a network as it is listed (`/` as `%2F`)."),
        LiftQuery),
    responses((status = 204, description = "The client is not banned any more."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "It is not banned.")))]
pub(crate) async fn lift(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(client): Parameter<String>,
    Params(query): Params<LiftQuery>,
) -> Result<StatusCode, Problem> {
    check_place(&principal, query.ban.as_deref())?;
    let not_banned = || Problem::with(Kind::NotFound, "this client is not banned");
    // A network as it is listed stands for its first address.
    let address = client.split('/').next().and_then(|text| text.parse::<IpAddr>().ok());
    let (Some(address), Some(bans)) = (address, context.supplies.bans.clone()) else {
        return Err(not_banned());
    };
    let ban = query.ban;
    let (lifted, ban) = blocking(move || (bans.lift(ban.as_deref(), address), ban)).await?;
    if lifted == 0 {
        return Err(not_banned());
    }
    let (actor, now) = (principal.actor(), context.now());
    let place = ban.unwrap_or_else(|| "everywhere".to_owned());
    context
        .identities(move |log| log.record(&actor, "ban.lift", &format!("client {client}"), &place, now))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
