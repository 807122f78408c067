//! `GET /revisions`, `GET /revisions/{number}`, `POST /revisions/{number}/restore`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use portcullis_event::Timestamp;
use portcullis_revisions::{Change, RevisionHead, diff};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Principal;
use crate::changes::{self, Changed, Order, carry_out};
use crate::context::Context;
use crate::extract::{Body, Parameter, Params};
use crate::if_match::{IfMatch, NotThatDocument};
use crate::problem::Problem;
use crate::routes::page::{PageQuery, next};

/// A text that the document had.
#[derive(Serialize, ToSchema)]
pub(crate) struct RevisionItem {
    number: i64,
    /// When it came to be (RFC 3339); of one from outside, when it was found.
    time: String,
    /// Author; null for one from outside.
    author: Option<String>,
    /// Why.
    reason: String,
    /// `change` and `restore`: through the API; `outside`: the file was written by another program.
    origin: &'static str,
    /// The entity tag of its text.
    etag: String,
    /// Size of its text.
    bytes: u64,
}

impl From<RevisionHead> for RevisionItem {
    fn from(head: RevisionHead) -> RevisionItem {
        RevisionItem {
            number: head.number,
            time: Timestamp::from_epoch_millis(head.time).rfc3339(),
            author: head.author,
            reason: head.reason,
            origin: head.origin.name(),
            etag: head.etag,
            bytes: head.bytes,
        }
    }
}

/// Revisions, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct RevisionPage {
    /// The revisions.
    items: Vec<RevisionItem>,
    /// The cursor of the next page; null if there are no older ones.
    next: Option<String>,
}

/// The revisions of the document, newest first.
#[utoipa::path(get, path = "/revisions", tag = "configuration", operation_id = "list_revisions",
    params(PageQuery), responses((status = 200, body = RevisionPage, description = "A page of revisions.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Params(query): Params<PageQuery>,
) -> Result<axum::Json<RevisionPage>, Problem> {
    let (limit, before, now) = (query.limit()?, query.number()?, context.now_ms());
    let found = changes::with(&context, move |revisions| {
        // Changes that another program made to the file are listed, too.
        revisions.current(now)?;
        revisions.list(before, limit + 1)
    });
    let mut heads = found.await?;
    let next = next(&mut heads, limit, |head| head.number.to_string());
    Ok(axum::Json(RevisionPage { items: heads.into_iter().map(RevisionItem::from).collect(), next }))
}

/// A revision with its text.
#[derive(Serialize, ToSchema)]
pub(crate) struct RevisionText {
    #[serde(flatten)]
    head: RevisionItem,
    /// Its text.
    text: String,
    /// The difference to the revision before, in the unified format; null if that is not kept any more.
    diff: Option<String>,
}

/// A revision of the document, with its text. It may contain secrets.
#[utoipa::path(get, path = "/revisions/{number}", tag = "configuration", operation_id = "get_revision",
    params(("number" = i64, Path, description = "Its number.")),
    responses((status = 200, body = RevisionText, description = "The revision."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such revision.")))]
pub(crate) async fn one(
    State(context): State<Arc<Context>>,
    Parameter(number): Parameter<i64>,
) -> Result<axum::Json<RevisionText>, Problem> {
    let found = changes::with(&context, move |revisions| {
        let found = revisions.get(number)?;
        let diff = found.before.as_deref().map(|before| diff(before, &found.text, 3));
        Ok((found, diff))
    });
    let (found, diff) = found.await?;
    Ok(axum::Json(RevisionText { head: found.head.into(), text: found.text, diff }))
}

/// The reason for a change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Restore {
    /// Why, for the list of revisions.
    #[schema(max_length = 1000)]
    reason: Option<String>,
    /// Only show what would change. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// Brings the text of an earlier revision back, as a new revision.
#[utoipa::path(post, path = "/revisions/{number}/restore", tag = "configuration", operation_id = "restore_revision",
    request_body = Restore,
    params(("number" = i64, Path, description = "The number of the revision."),
        IfMatch),
    responses((status = 200, body = Changed, description = "The text serves, or would.",
            headers(("ETag" = String))),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such revision."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "The text has mistakes by now; the present one serves."),
        NotThatDocument))]
pub(crate) async fn restore(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(number): Parameter<i64>,
    read: IfMatch,
    Body(order): Body<Restore>,
) -> Result<Response, Problem> {
    let Restore { reason, dry_run } = order;
    let summary = format!("back to revision {number}");
    let order = Order { change: Change::Restore(number), reason, dry_run, summary };
    carry_out(&context, principal, read, order).await
}
