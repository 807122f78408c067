//! `GET`, `PUT`, `PATCH /config`, `GET /config/schema`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use portcullis_config::Format;
use portcullis_revisions::{Change, DOCUMENT_BYTES_MAX, Edit, ValueEdit};
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
    /// Its values, as JSON; null if the text is neither TOML nor YAML.
    values: Option<serde_json::Value>,
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
        values: portcullis_config::json_value(current.text.as_str(), document.format(), &document.name())
            .ok(),
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

/// The JSON schema of the document: every key with its description, type, range and allowed values.
#[utoipa::path(get, path = "/config/schema", tag = "configuration", operation_id = "get_config_schema",
    responses((status = 200, body = serde_json::Value, description = "The schema.")))]
pub(crate) async fn schema() -> Response {
    ([(CONTENT_TYPE, "application/json")], portcullis_config::json_schema()).into_response()
}

/// Another value at a place of the document.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValueOrder {
    /// The place, a JSON Pointer (RFC 6901): `/sites/0/mode`; `-` stands for the place behind the last one of
    /// a list. Tables that are missing on the way are made.
    #[schema(max_length = 1000)]
    path: String,
    /// The value: what is equal in it stays as it is written, comments included; members that are missing in
    /// it are removed. Null, or nothing, removes the value that is there.
    #[serde(default)]
    value: Option<serde_json::Value>,
}

/// Other values for the document.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValuesOrder {
    /// Changes in order; all are made, or none.
    #[schema(min_items = 1, max_items = 100)]
    changes: Vec<ValueOrder>,
    /// Why, for the list of revisions.
    #[schema(max_length = 1000)]
    reason: Option<String>,
    /// Only show what would change. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// Changes of one request.
const CHANGES_MAX: usize = 100;

/// Changes values of the document, and nothing else in it: comments, order and spelling stay. It is checked
/// and loaded; if it has any mistake, nothing changes.
#[utoipa::path(patch, path = "/config", tag = "configuration", operation_id = "change_config",
    request_body = ValuesOrder,
    params(IfMatch),
    responses((status = 200, body = Changed, description = "The new values serve, or would.",
            headers(("ETag" = String))),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "There is no such place, or the document is in YAML."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed: `diagnostics` says which."),
        NotThatDocument))]
pub(crate) async fn change(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    read: IfMatch,
    DocumentBody(order): DocumentBody<ValuesOrder>,
) -> Result<Response, Problem> {
    let ValuesOrder { changes, reason, dry_run } = order;
    if changes.is_empty() || changes.len() > CHANGES_MAX {
        return Err(Problem::with(Kind::Invalid, format!("`changes` has 1 to {CHANGES_MAX} entries")));
    }
    let places: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let summary = format!("values of {}", places.join(", "));
    let edits = changes.into_iter().map(|ValueOrder { path, value }| {
        let value = value.filter(|value| !value.is_null());
        Edit::Value(ValueEdit { pointer: path, value })
    });
    let change = Change::Edit(Edit::All(edits.collect()));
    carry_out(&context, principal, read, Order { change, reason, dry_run, summary }).await
}
