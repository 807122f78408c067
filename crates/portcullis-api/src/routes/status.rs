//! `GET /health`, `GET /version`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Context;
use crate::problem::{Kind, Problem};
use crate::supplies::Health;

#[derive(Serialize, ToSchema)]
pub(crate) struct HealthStatus {
    /// `ready`.
    status: &'static str,
}

/// Health of the program.
#[utoipa::path(get, path = "/health", tag = "status",
    responses((status = 200, body = HealthStatus, description = "It serves.")))]
pub(crate) async fn health(State(context): State<Arc<Context>>) -> Response {
    match (context.supplies.health)() {
        Health::Ready => (StatusCode::OK, axum::Json(HealthStatus { status: "ready" })).into_response(),
        Health::Draining => Problem::of(Kind::Draining).into_response(),
    }
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Version {
    /// The program's version.
    version: &'static str,
    /// The version of events' members.
    event_schema: u32,
}

/// Version of the program.
#[utoipa::path(get, path = "/version", tag = "status",
    responses((status = 200, body = Version, description = "The version.")))]
pub(crate) async fn version(State(context): State<Arc<Context>>) -> axum::Json<Version> {
    axum::Json(Version { version: context.supplies.version, event_schema: portcullis_event::SCHEMA_VERSION })
}
