//! `POST /session/totp`, `PUT /session/totp`: a user's own one-time codes.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use http::StatusCode;
use portcullis_identity::{IdentityError, Origin};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Principal;
use crate::context::Context;
use crate::extract::Body;
use crate::problem::{Kind, Problem};

/// A secret for an authenticator app.
#[derive(Serialize, ToSchema)]
pub(crate) struct TotpOffer {
    /// As people type it.
    secret: String,
    /// As apps read it from a picture.
    url: String,
}

/// Offers a secret for one-time codes. It counts once a code confirms it.
#[utoipa::path(post, path = "/session/totp", tag = "session", operation_id = "offer_totp",
    responses((status = 200, body = TotpOffer, description = "The secret; it is shown only now."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "The user has one-time codes already, or logs in at a provider.")))]
pub(crate) async fn offer(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
) -> Result<axum::Json<TotpOffer>, Problem> {
    let name = principal.name.clone();
    let secret = context.identities(move |identities| {
        let user = identities.user(&name)?.ok_or(IdentityError::NotFound("user"))?;
        if user.origin != Origin::Local {
            return Err(IdentityError::Provided);
        }
        if user.totp {
            return Ok(None);
        }
        identities.offer_totp(user.id).map(Some)
    });
    let has_one =
        || Problem::with(Kind::Conflict, "you have one-time codes; an administrator can remove them");
    let secret = secret.await?.ok_or_else(has_one)?;
    Ok(axum::Json(TotpOffer { secret: secret.base32(), url: secret.url(&principal.name) }))
}

/// A one-time code.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TotpCode {
    /// Six digits.
    #[schema(pattern = "^[0-9]{6}$")]
    code: String,
}

/// Confirms the secret that was offered: logins need a code from now on.
#[utoipa::path(put, path = "/session/totp", tag = "session", operation_id = "confirm_totp", request_body = TotpCode,
    responses((status = 204, description = "Logins need a code."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "No secret was offered."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "The code is not right.")))]
pub(crate) async fn confirm(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Body(order): Body<TotpCode>,
) -> Result<StatusCode, Problem> {
    let (actor, now, name) = (principal.actor(), context.now(), principal.name.clone());
    let confirmed = context.identities(move |identities| {
        let user = identities.user(&name)?.ok_or(IdentityError::NotFound("user"))?;
        identities.confirm_totp(&user, &order.code, &actor, now)
    });
    confirmed.await?;
    Ok(StatusCode::NO_CONTENT)
}
