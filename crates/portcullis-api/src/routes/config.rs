//! `GET`, `PUT /config`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use portcullis_config::Format;
use portcullis_revisions::{Change, DOCUMENT_BYTES_MAX};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Principal;
use crate::changes::{self, Changed, Order, carry_out, tagged};
use crate::context::Context;
use crate::extract::DocumentBody;
use crate::if_match::{IfMatch, NotThatDocument};
use crate::problem::{Kind, Problem};

/// The document.
#[derive(Serialize, ToSchema)]
pub(crate) struct Document {
    /// Its file.
    path: String,
    /// `toml` or `yaml`.
    format: &'static str,
    /// Its text.
    text: String,
    /// The revision that it is.
    revision: i64,
    /// The program serves by it; false if the file was changed and not loaded since.
    is_live: bool,
    /// Changes are refused (`admin.read_only`).
    is_read_only: bool,
}

/// The document as it is in its file. It may contain secrets.
#[utoipa::path(get, path = "/config", tag = "configuration", operation_id = "get_config",
    responses((status = 200, body = Document, description = "The document.", headers(("ETag" = String)))))]
pub(crate) async fn show(State(context): State<Arc<Context>>) -> Result<Response, Problem> {
    let now = context.now_ms();
    let found = changes::with(&context, move |revisions| {
        let current = revisions.current(now)?;
        Ok((current, revisions.document().clone(), revisions.is_read_only()))
    });
    let (current, document, is_read_only) = found.await?;
    let format = match document.format() {
        Format::Toml => "toml",
        Format::Yaml => "yaml",
    };
    let etag = current.text.etag().to_owned();
    let shown = Document {
        path: document.name(),
        format,
        text: current.text.as_str().to_owned(),
        revision: current.revision.number,
        is_live: current.is_live,
        is_read_only,
    };
    Ok(tagged(&etag, axum::Json(shown)))
}

/// A text for the document.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentOrder {
    /// The whole text.
    #[schema(max_length = 1_048_576)]
    text: String,
    /// Why, for the list of revisions.
    #[schema(max_length = 1000)]
    reason: Option<String>,
    /// Only show what would change. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// Puts another text in place of the document. It is checked and loaded; if it has any mistake, nothing
/// changes.
#[utoipa::path(put, path = "/config", tag = "configuration", operation_id = "replace_config",
    request_body = DocumentOrder,
    params(IfMatch),
    responses((status = 200, body = Changed, description = "The new text serves, or would.",
            headers(("ETag" = String))),
        (status = 413, body = Problem, content_type = "application/problem+json",
            description = "The text is too long."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "The text has mistakes; the old one serves."),
        NotThatDocument))]
pub(crate) async fn replace(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    read: IfMatch,
    DocumentBody(order): DocumentBody<DocumentOrder>,
) -> Result<Response, Problem> {
    let DocumentOrder { text, reason, dry_run } = order;
    if text.len() > DOCUMENT_BYTES_MAX {
        let detail = format!(
            "a document has at most {DOCUMENT_BYTES_MAX} bytes, and this text has {}; put rules and lists of \
             clients into files of their own",
            text.len()
        );
        return Err(Problem::with(Kind::BodyTooLarge, detail));
    }
    let order = Order { change: Change::Text(text), reason, dry_run, summary: "another text".to_owned() };
    carry_out(&context, principal, read, order).await
}
