//! `GET /tokens`, `POST /tokens`, `DELETE /tokens/{id}`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use http::StatusCode;
use portcullis_identity::{NewToken, Role, Sites, Token};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::access::Principal;
use crate::context::{Context, time};
use crate::extract::{Body, Parameter, Params, whole};
use crate::problem::{Kind, Problem};
use crate::routes::page::{PageQuery, next};

/// Seconds after which a token expires at the latest, if it does: ten years.
const EXPIRES_S_MAX: u64 = 10 * 365 * 86_400;

/// Role of an identity.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoleName {
    Viewer,
    Analyst,
    Admin,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Role {
        match name {
            RoleName::Viewer => Role::Viewer,
            RoleName::Analyst => Role::Analyst,
            RoleName::Admin => Role::Admin,
        }
    }
}

impl From<Role> for RoleName {
    fn from(role: Role) -> RoleName {
        match role {
            Role::Viewer => RoleName::Viewer,
            Role::Analyst => RoleName::Analyst,
            Role::Admin => RoleName::Admin,
        }
    }
}

/// A token, without its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenItem {
    id: i64,
    /// Its purpose.
    name: String,
    role: RoleName,
    /// The sites that it is limited to; null: all.
    sites: Option<Vec<String>>,
    /// RFC 3339, as the others.
    created: String,
    /// Expiry; null: none.
    expires: Option<String>,
    /// Last use, to a minute; null: none.
    last_used: Option<String>,
    /// The address of the last use; null: not known.
    last_address: Option<String>,
    /// Time of revocation; null: it was not.
    revoked: Option<String>,
}

impl From<Token> for TokenItem {
    fn from(token: Token) -> TokenItem {
        TokenItem {
            id: token.id,
            name: token.name,
            role: token.role.into(),
            sites: token.sites.names(),
            created: time(token.created),
            expires: token.expires.map(time),
            last_used: token.last_used.map(time),
            last_address: token.last_address,
            revoked: token.revoked.map(time),
        }
    }
}

/// Tokens in the order in which they were created, revoked ones too.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenPage {
    /// The tokens.
    items: Vec<TokenItem>,
    /// The cursor of the next page; null if this is the last.
    next: Option<String>,
}

/// Lists tokens.
#[utoipa::path(get, path = "/tokens", tag = "tokens", operation_id = "list_tokens", params(PageQuery),
    responses((status = 200, body = TokenPage, description = "A page of tokens.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Params(query): Params<PageQuery>,
) -> Result<axum::Json<TokenPage>, Problem> {
    let (limit, after) = (query.limit()?, query.number()?);
    let mut tokens = context.identities(move |identities| identities.tokens(after, limit + 1)).await?;
    let next = next(&mut tokens, limit, |token| token.id.to_string());
    Ok(axum::Json(TokenPage { items: tokens.into_iter().map(TokenItem::from).collect(), next }))
}

/// A token to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenOrder {
    /// Its purpose.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    role: RoleName,
    /// Names of the sites that it is limited to; all, if null. An administrator has all.
    #[schema(min_items = 1, max_items = 100)]
    sites: Option<Vec<String>>,
    /// Seconds after which it stops working; never, if null.
    #[schema(minimum = 1, maximum = 315_360_000)]
    #[serde(default, deserialize_with = "seconds")]
    expires_in_seconds: Option<u64>,
}

/// The sites of these names, or all.
pub(crate) fn limited(names: Option<Vec<String>>) -> Result<Sites, Problem> {
    let named = names.map(Sites::named).transpose();
    named.map(Option::unwrap_or_default).map_err(|error| Problem::with(Kind::Invalid, error.to_string()))
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    whole(deserializer, 1..=EXPIRES_S_MAX, "expires_in_seconds")
}

/// A new token.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewTokenItem {
    /// The secret; it is shown only now.
    token: String,
    #[serde(flatten)]
    item: TokenItem,
}

/// Creates a token.
#[utoipa::path(post, path = "/tokens", tag = "tokens", operation_id = "create_token", request_body = TokenOrder,
    responses((status = 201, body = NewTokenItem, description = "The token with its secret."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed.")))]
pub(crate) async fn create(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Body(order): Body<TokenOrder>,
) -> Result<(StatusCode, axum::Json<NewTokenItem>), Problem> {
    let (actor, now) = (principal.actor(), context.now());
    let expires = order.expires_in_seconds.map(|seconds| now.saturating_add(seconds));
    let new = NewToken { name: order.name, role: order.role.into(), sites: limited(order.sites)?, expires };
    let (token, secret) =
        context.identities(move |identities| identities.create_token(&new, &actor, now)).await?;
    Ok((StatusCode::CREATED, axum::Json(NewTokenItem { token: secret, item: token.into() })))
}

/// Revokes a token, for good.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "tokens", operation_id = "revoke_token",
    params(("id" = i64, Path, description = "The token's number.")),
    responses((status = 204, description = "It does not work any more."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such token.")))]
pub(crate) async fn revoke(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(id): Parameter<i64>,
) -> Result<StatusCode, Problem> {
    let (actor, now) = (principal.actor(), context.now());
    context.identities(move |identities| identities.revoke_token(id, &actor, now)).await?;
    Ok(StatusCode::NO_CONTENT)
}
