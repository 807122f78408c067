//! `GET /audit`.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::{Context, time};
use crate::extract::Params;
use crate::problem::Problem;
use crate::routes::page::{PageQuery, next};

/// An entry of the audit trail.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditItem {
    number: i64,
    /// Time (RFC 3339).
    time: String,
    /// Who.
    actor: String,
    /// From which address; null if it was not over a connection.
    address: Option<String>,
    /// What: `token.create`, `user.change`, `login.failed`, ...
    action: String,
    /// To what.
    object: String,
    /// More about it.
    detail: String,
}

/// Entries of the audit trail, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditPage {
    /// The entries.
    items: Vec<AuditItem>,
    /// The cursor of the next page; null if there are no older entries.
    next: Option<String>,
}

/// Lists what was changed, by whom and from where, newest first.
#[utoipa::path(get, path = "/audit", tag = "audit", operation_id = "list_audit", params(PageQuery),
    responses((status = 200, body = AuditPage, description = "A page of entries.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Params(query): Params<PageQuery>,
) -> Result<axum::Json<AuditPage>, Problem> {
    let (limit, before) = (query.limit()?, query.number()?);
    let mut entries = context.identities(move |identities| identities.audit(before, limit + 1)).await?;
    let next = next(&mut entries, limit, |entry| entry.number.to_string());
    let items = entries.into_iter().map(|entry| AuditItem {
        number: entry.number,
        time: time(entry.time),
        actor: entry.actor,
        address: entry.address,
        action: entry.action,
        object: entry.object,
        detail: entry.detail,
    });
    Ok(axum::Json(AuditPage { items: items.collect(), next }))
}
