//! `GET` and `POST /session/views`, `PUT` and `DELETE /session/views/{id}`: views that a user has saved.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use http::StatusCode;
use portcullis_identity::{Identities, IdentityError, View};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Principal;
use crate::context::{Context, time};
use crate::extract::{Body, Parameter};
use crate::problem::Problem;

/// A view that was saved.
#[derive(Serialize, ToSchema)]
pub(crate) struct ViewItem {
    id: i64,
    name: String,
    /// The fragment of the console's URL.
    place: String,
    /// When it was saved or changed (RFC 3339).
    saved: String,
}

impl From<View> for ViewItem {
    fn from(view: View) -> ViewItem {
        ViewItem { id: view.id, name: view.name, place: view.place, saved: time(view.saved) }
    }
}

/// The views of a user, by name: all of them, 100 at most.
#[derive(Serialize, ToSchema)]
pub(crate) struct ViewList {
    items: Vec<ViewItem>,
}

/// A view to save.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ViewOrder {
    /// Its name, which no other view of the user has.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// The fragment of the console's URL: `#/events?filter=...`.
    #[schema(max_length = 4096, pattern = "^#/[!-~]*$")]
    place: String,
}

/// The user of this session.
fn user(identities: &Identities, name: &str) -> Result<i64, IdentityError> {
    Ok(identities.user(name)?.ok_or(IdentityError::NotFound("user"))?.id)
}

/// Lists the views that the user has saved.
#[utoipa::path(get, path = "/session/views", tag = "session", operation_id = "list_views",
    responses((status = 200, body = ViewList, description = "The views.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
) -> Result<axum::Json<ViewList>, Problem> {
    let name = principal.name;
    let views = context.identities(move |identities| identities.views(user(identities, &name)?)).await?;
    Ok(axum::Json(ViewList { items: views.into_iter().map(ViewItem::from).collect() }))
}

/// Saves a view.
#[utoipa::path(post, path = "/session/views", tag = "session", operation_id = "create_view", request_body = ViewOrder,
    responses((status = 201, body = ViewItem, description = "The view."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "The user has a view of this name."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed, or the user has 100 views.")))]
pub(crate) async fn create(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Body(order): Body<ViewOrder>,
) -> Result<(StatusCode, axum::Json<ViewItem>), Problem> {
    Ok((StatusCode::CREATED, axum::Json(save(&context, principal, None, order).await?)))
}

/// Changes the name or the place of a view.
#[utoipa::path(put, path = "/session/views/{id}", tag = "session", operation_id = "change_view",
    request_body = ViewOrder, params(("id" = i64, Path, description = "The view's number.")),
    responses((status = 200, body = ViewItem, description = "The view as it is now."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "The user has no such view."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "Another view of the user has this name."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed.")))]
pub(crate) async fn change(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(id): Parameter<i64>,
    Body(order): Body<ViewOrder>,
) -> Result<axum::Json<ViewItem>, Problem> {
    Ok(axum::Json(save(&context, principal, Some(id), order).await?))
}

async fn save(
    context: &Context,
    principal: Principal,
    id: Option<i64>,
    order: ViewOrder,
) -> Result<ViewItem, Problem> {
    let now = context.now();
    let saved = context.identities(move |identities| {
        identities.save_view(user(identities, &principal.name)?, id, &order.name, &order.place, now)
    });
    Ok(saved.await?.into())
}

/// Deletes a view.
#[utoipa::path(delete, path = "/session/views/{id}", tag = "session", operation_id = "delete_view",
    params(("id" = i64, Path, description = "The view's number.")),
    responses((status = 204, description = "It is gone."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "The user has no such view.")))]
pub(crate) async fn delete(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(id): Parameter<i64>,
) -> Result<StatusCode, Problem> {
    let deleted =
        context.identities(move |identities| identities.delete_view(user(identities, &principal.name)?, id));
    deleted.await?;
    Ok(StatusCode::NO_CONTENT)
}
