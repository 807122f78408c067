//! `PATCH /sites/{name}`: what is inspected at a site, and how.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use portcullis_revisions::{Change, Edit, Scope, SiteSettings};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::access::Principal;
use crate::changes::{Changed, Order, carry_out};
use crate::context::Context;
use crate::extract::{Body, Parameter, whole};
use crate::if_match::{IfMatch, NotThatDocument};
use crate::problem::Problem;

/// Settings of a site or a route of it; members that are absent stay, null goes back to the default.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsOrder {
    /// A route of the site, by its name or path.
    route: Option<String>,
    /// `semantic`, `crs`, `both` or `off`.
    #[serde(default, deserialize_with = "given")]
    mode: Option<Option<String>>,
    /// `blocking` or `detection_only`.
    #[serde(default, deserialize_with = "given")]
    engine: Option<Option<String>>,
    /// `balanced` or `strict`.
    #[serde(default, deserialize_with = "given")]
    level: Option<Option<String>>,
    /// The paranoia level of the CRS; of sites only.
    #[serde(default, deserialize_with = "given_paranoia")]
    #[schema(minimum = 1, maximum = 4)]
    paranoia: Option<Option<u8>>,
    /// Why, for the list of revisions.
    #[schema(max_length = 1000)]
    reason: Option<String>,
    /// Only show what would change. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// A member that is null is given, one that is absent is not.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

fn given_paranoia<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u8>>, D::Error> {
    // It fits: the range ends before.
    whole(deserializer, 1..=4, "paranoia").map(|level| Some(level.map(|level| level as u8)))
}

/// Changes what is inspected at a site, and how, in the document.
#[utoipa::path(patch, path = "/sites/{name}", tag = "sites", operation_id = "change_site",
    request_body = SettingsOrder,
    params(("name" = String, Path, description = "The site's name."),
        IfMatch),
    responses((status = 200, body = Changed, description = "It serves, or would.", headers(("ETag" = String))),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "It does not fit the document."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed."),
        NotThatDocument))]
pub(crate) async fn change(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(name): Parameter<String>,
    read: IfMatch,
    Body(order): Body<SettingsOrder>,
) -> Result<Response, Problem> {
    let SettingsOrder { route, mode, engine, level, paranoia, reason, dry_run } = order;
    let place = route.as_ref().map_or_else(String::new, |route| format!(" route {route}"));
    let summary = format!("settings of {name}{place}");
    let settings = SiteSettings { mode, engine, level, paranoia };
    let change = Change::Edit(Edit::Settings(Scope { site: Some(name), route }, settings));
    carry_out(&context, principal, read, Order { change, reason, dry_run, summary }).await
}
