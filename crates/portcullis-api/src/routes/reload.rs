//! `POST /reload`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Principal;
use crate::context::Context;
use crate::problem::{Kind, Problem};

/// Result of a reload.
#[derive(Serialize, ToSchema)]
pub(crate) struct Reloaded {
    /// The settings that serve now.
    message: String,
}

/// Reads settings, rules and certificates again. If they have any mistake, the old ones stay in use.
#[utoipa::path(post, path = "/reload", tag = "configuration", operation_id = "reload",
    responses((status = 200, body = Reloaded, description = "The new settings serve."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "The new settings have mistakes; the old ones serve.")))]
pub(crate) async fn reload(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
) -> Result<axum::Json<Reloaded>, Problem> {
    let Some(reload) = context.supplies.reload.clone() else { return Err(Problem::of(Kind::NotSupported)) };
    // It goes on when the client leaves or the time of the request is over, and then stands in the audit
    // trail, too.
    let work = tokio::spawn(async move {
        let result = reload.reload().await;
        let (actor, now) = (principal.actor(), context.now());
        let detail = match &result {
            Some(Ok(text)) => text.clone(),
            Some(Err(text)) => format!("failed: {text}"),
            None => "the program ended".to_owned(),
        };
        context.identities(move |log| log.record(&actor, "reload", "configuration", &detail, now)).await?;
        match result {
            Some(Ok(message)) => Ok(axum::Json(Reloaded { message })),
            Some(Err(text)) => Err(Problem::with(Kind::ReloadFailed, text.trim_end())),
            None => Err(Problem::of(Kind::Draining)),
        }
    });
    work.await.map_err(|_| Problem::of(Kind::Internal))?
}
