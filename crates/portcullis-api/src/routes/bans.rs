//! `GET /bans`, `DELETE /bans/{client}`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use http::StatusCode;
use portcullis_event::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::context::{Context, blocking};
use crate::extract::{Parameter, Params};
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
    Params(query): Params<BansQuery>,
) -> Result<axum::Json<BanPage>, Problem> {
    let limit = limit(query.limit)?;
    let Some(bans) = context.supplies.bans.clone() else {
        return Ok(axum::Json(BanPage { items: Vec::new(), next: None }));
    };
    let listed = blocking(move || {
        let mut all = bans.list();
        if let Some(cursor) = &query.cursor {
            all.retain(|banned| key(banned) > *cursor);
        }
        all.sort_by_cached_key(key);
        all.truncate(limit + 1);
        all
    });
    let listed = &mut listed.await?;
    let next = next(listed, limit, key);
    let items = listed.drain(..).map(|banned| Ban {
        ban: banned.ban,
        client: banned.client,
        until: Timestamp::from_epoch_millis(banned.until).rfc3339(),
        count: banned.count,
    });
    Ok(axum::Json(BanPage { items: items.collect(), next }))
}

/// The place of a ban in the list. No address has a blank.
fn key(banned: &Banned) -> String {
    format!("{} {}", banned.client, banned.ban)
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
