//! `POST /setup`: the first administrator, with the code that the first start printed.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use http::StatusCode;
use portcullis_identity::Actor;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::context::Context;
use crate::extract::Body;
use crate::problem::{Kind, Problem};
use crate::routes::login::{SETUP, log_failure, password_permit};
use crate::routes::users::UserItem;
use crate::settings::Peer;

/// The first administrator.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setup {
    /// The code that the program printed at its first start; valid for an hour.
    code: String,
    #[schema(pattern = "^[a-z0-9._@-]{1,64}$")]
    name: String,
    #[schema(min_length = 12, max_length = 1024, format = Password)]
    password: String,
}

/// Creates the first administrator. Works once, while there is no user.
#[utoipa::path(post, path = "/setup", tag = "session", operation_id = "setup", request_body = Setup,
    responses((status = 201, body = UserItem, description = "The administrator, who can log in now."),
        (status = 403, body = Problem, content_type = "application/problem+json",
            description = "The code is not valid."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "There is a user already."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed.")))]
pub(crate) async fn setup(
    State(context): State<Arc<Context>>,
    Extension(peer): Extension<Peer>,
    Body(order): Body<Setup>,
) -> Result<(StatusCode, axum::Json<UserItem>), Problem> {
    let now = context.now();
    let is_right = context.supplies.setup.as_ref().is_some_and(|setup| setup.is(&order.code, now));
    if !is_right {
        context.login_failures.inc(SETUP);
        log_failure(&context, peer, "setup.failed", String::new(), "").await?;
        return Err(Problem::of(Kind::SetupCode));
    }
    let permit = password_permit(&context).await?;
    let actor = Actor { name: "set-up code".to_owned(), address: Some(peer.address.to_string()) };
    let user = context.identities(move |identities| {
        let _permit = permit;
        identities.create_first_admin(&order.name, &order.password, &actor, now)
    });
    Ok((StatusCode::CREATED, axum::Json(user.await?.into())))
}
