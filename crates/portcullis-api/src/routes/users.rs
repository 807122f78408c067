//! `GET /users`, `POST /users`, `GET`, `PATCH` and `DELETE /users/{name}`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{ETAG, IF_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use portcullis_identity::{Change, Edition, IdentityError, NewUser, Origin, User};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::access::Principal;
use crate::context::{Context, time};
use crate::extract::{Body, Parameter, Params};
use crate::problem::{Kind, Problem};
use crate::routes::login::password_permit;
use crate::routes::page::{PageQuery, next};
use crate::routes::tokens::{RoleName, limited};

/// A user.
#[derive(Serialize, ToSchema)]
pub(crate) struct UserItem {
    name: String,
    role: RoleName,
    /// The sites that they are limited to; null: all.
    sites: Option<Vec<String>>,
    /// RFC 3339.
    created: String,
    /// They cannot log in.
    disabled: bool,
    /// They log in with a one-time code, too.
    totp: bool,
    origin: OriginName,
    /// The provider where they log in, and their name there; null if they log in with a password.
    provider: Option<ProviderName>,
    /// As the `ETag` of the user, for `If-Match`.
    etag: String,
}

/// Authority for a user's login.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum OriginName {
    /// This instance: they log in with a password.
    Local,
    /// The OpenID Connect provider of `admin.oidc`.
    Oidc,
}

/// A user's name at a provider.
#[derive(Serialize, ToSchema)]
struct ProviderName {
    issuer: String,
    subject: String,
}

impl From<User> for UserItem {
    fn from(user: User) -> UserItem {
        let (origin, provider) = match user.origin.clone() {
            Origin::Local => (OriginName::Local, None),
            Origin::Oidc { issuer, subject } => (OriginName::Oidc, Some(ProviderName { issuer, subject })),
        };
        UserItem {
            origin,
            provider,
            etag: etag(&user),
            name: user.name,
            role: user.role.into(),
            sites: user.sites.names(),
            created: time(user.created),
            disabled: user.disabled,
            totp: user.totp,
        }
    }
}

/// Users in the order in which they were created.
#[derive(Serialize, ToSchema)]
pub(crate) struct UserPage {
    /// The users.
    items: Vec<UserItem>,
    /// The cursor of the next page; null if this is the last.
    next: Option<String>,
}

/// Lists users.
#[utoipa::path(get, path = "/users", tag = "users", operation_id = "list_users", params(PageQuery),
    responses((status = 200, body = UserPage, description = "A page of users.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Params(query): Params<PageQuery>,
) -> Result<axum::Json<UserPage>, Problem> {
    let (limit, after) = (query.limit()?, query.number()?);
    let mut users = context.identities(move |identities| identities.users(after, limit + 1)).await?;
    let next = next(&mut users, limit, |user| user.id.to_string());
    Ok(axum::Json(UserPage { items: users.into_iter().map(UserItem::from).collect(), next }))
}

/// A user to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserOrder {
    #[schema(pattern = "^[a-z0-9._@-]{1,64}$")]
    name: String,
    role: RoleName,
    /// Names of the sites that they are limited to; all, if null. An administrator has all.
    #[schema(min_items = 1, max_items = 100)]
    sites: Option<Vec<String>>,
    #[schema(min_length = 12, max_length = 1024, format = Password)]
    password: String,
}

/// Creates a user.
#[utoipa::path(post, path = "/users", tag = "users", operation_id = "create_user", request_body = UserOrder,
    responses((status = 201, body = UserItem, description = "The user.", headers(("ETag" = String))),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "There is a user of this name."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed.")))]
pub(crate) async fn create(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Body(order): Body<UserOrder>,
) -> Result<Response, Problem> {
    let permit = password_permit(&context).await?;
    let (actor, now) = (principal.actor(), context.now());
    let (role, sites) = (order.role.into(), limited(order.sites)?);
    let new = NewUser { name: order.name, role, sites, password: order.password };
    let created = context.identities(move |identities| {
        let _permit = permit;
        identities.create_user(&new, &actor, now)
    });
    Ok((StatusCode::CREATED, shown(created.await?)).into_response())
}

/// The user of a name.
#[utoipa::path(get, path = "/users/{name}", tag = "users", operation_id = "get_user",
    params(("name" = String, Path, description = "The user's name.")),
    responses((status = 200, body = UserItem, description = "The user.", headers(("ETag" = String))),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such user.")))]
pub(crate) async fn one(
    State(context): State<Arc<Context>>,
    Parameter(name): Parameter<String>,
) -> Result<Response, Problem> {
    let find = |identities: &portcullis_identity::Identities, name: &str| {
        identities.user(name)?.ok_or(IdentityError::NotFound("user"))
    };
    Ok(shown(context.identities(move |identities| find(identities, &name)).await?))
}

/// Changes to a user; members that are absent stay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserChange {
    role: Option<RoleName>,
    /// Names of the sites that they are limited to; null: all. An administrator has all.
    #[serde(default, deserialize_with = "there")]
    #[schema(value_type = Option<Vec<String>>, min_items = 1, max_items = 100)]
    sites: Option<Option<Vec<String>>>,
    /// Ends the user's sessions.
    #[schema(min_length = 12, max_length = 1024, format = Password)]
    password: Option<String>,
    /// Ends the user's sessions.
    disabled: Option<bool>,
    /// They log in without a one-time code from now on. Only users themselves add one.
    remove_totp: Option<bool>,
}

/// A member that is there, null or not.
fn there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Vec<String>>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Changes a user.
#[utoipa::path(patch, path = "/users/{name}", tag = "users", operation_id = "change_user", request_body = UserChange,
    params(("name" = String, Path, description = "The user's name."),
        ("If-Match" = String, Header, pattern = r#"^(\*|"[0-9]{1,18}-[0-9]{1,18}")$"#,
            description = "The `ETag` of the user as it was read, or `*`.")),
    responses((status = 200, body = UserItem, description = "The user as it is now.", headers(("ETag" = String))),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such user."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "It is the last administrator with a password, or role or password of a user of a provider."),
        (status = 412, body = Problem, content_type = "application/problem+json",
            description = "The user was changed since it was read."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed."),
        (status = 428, body = Problem, content_type = "application/problem+json",
            description = "`If-Match` is missing.")))]
pub(crate) async fn change(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(name): Parameter<String>,
    headers: HeaderMap,
    Body(asked): Body<UserChange>,
) -> Result<Response, Problem> {
    let edition = edition(&headers)?;
    let change = Change {
        role: asked.role.map(Into::into),
        sites: asked.sites.map(limited).transpose()?,
        password: asked.password,
        disabled: asked.disabled,
        remove_totp: asked.remove_totp == Some(true),
    };
    let permit = match change.password {
        Some(_) => Some(password_permit(&context).await?),
        None => None,
    };
    let (actor, now) = (principal.actor(), context.now());
    let changed = context.identities(move |identities| {
        let _permit = permit;
        identities.change_user(&name, edition, &change, &actor, now)
    });
    Ok(shown(changed.await?))
}

/// Deletes a user with their sessions.
#[utoipa::path(delete, path = "/users/{name}", tag = "users", operation_id = "delete_user",
    params(("name" = String, Path, description = "The user's name."),
        ("If-Match" = String, Header, pattern = r#"^(\*|"[0-9]{1,18}-[0-9]{1,18}")$"#,
            description = "The `ETag` of the user as it was read, or `*`.")),
    responses((status = 204, description = "The user is deleted."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such user."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "It is the last administrator."),
        (status = 412, body = Problem, content_type = "application/problem+json",
            description = "The user was changed since it was read."),
        (status = 428, body = Problem, content_type = "application/problem+json",
            description = "`If-Match` is missing.")))]
pub(crate) async fn delete(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(name): Parameter<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let edition = edition(&headers)?;
    let (actor, now) = (principal.actor(), context.now());
    context.identities(move |identities| identities.delete_user(&name, edition, false, &actor, now)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn shown(user: User) -> Response {
    let tag = HeaderValue::try_from(etag(&user)).unwrap_or(HeaderValue::from_static("\"\""));
    ([(ETAG, tag)], axum::Json(UserItem::from(user))).into_response()
}

/// The number, so that a user who is created anew under a name is another one, and the version.
fn etag(user: &User) -> String {
    format!("\"{}-{}\"", user.id, user.version)
}

/// Edition that `If-Match` names; none for `*`.
fn edition(headers: &HeaderMap) -> Result<Option<Edition>, Problem> {
    let Some(value) = headers.get(IF_MATCH) else {
        return Err(Problem::with(Kind::PreconditionRequired, "send the `ETag` of the user in `If-Match`"));
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let tag = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let parts = tag.and_then(|tag| tag.split_once('-'));
    let edition = parts
        .and_then(|(id, version)| Some(Edition { id: id.parse().ok()?, version: version.parse().ok()? }));
    edition.map(Some).ok_or_else(|| Problem::with(Kind::Malformed, "`If-Match` is no `ETag` of a user"))
}
