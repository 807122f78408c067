//! `GET /audit`, `GET /audit/export`.

use std::io;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use portcullis_identity::{AuditEntry, AuditFilter, AuditLook};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::context::{Context, time};
use crate::extract::Params;
use crate::problem::{Kind, Problem};
use crate::routes::page::{limit, next};
use crate::seat::{Channel, Seat};

/// Bytes of a text that is looked for.
const TEXT_BYTES_MAX: usize = 500;
/// Entries of an export.
const EXPORT_MAX: usize = 100_000;
/// Entries that are read and sent at a time.
const BATCH: usize = 500;

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
    /// The lines of the configuration that changed, in the unified format; null for everything else.
    change: Option<String>,
}

impl From<AuditEntry> for AuditItem {
    fn from(entry: AuditEntry) -> AuditItem {
        AuditItem {
            number: entry.number,
            time: time(entry.time),
            actor: entry.actor,
            address: entry.address,
            action: entry.action,
            object: entry.object,
            detail: entry.detail,
            change: Some(entry.change).filter(|change| !change.is_empty()),
        }
    }
}

/// Entries of the audit trail, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditPage {
    /// The entries.
    items: Vec<AuditItem>,
    /// The cursor of the next page; null if there are no older entries.
    next: Option<String>,
    /// False if the time for looking ran out before the page was full: there may be more behind `next`.
    complete: bool,
}

/// Entries that are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Only those of authors with this text in their names, in any case.
    #[param(max_length = 500)]
    actor: Option<String>,
    /// Only this action, or with a dot at its end all that begin with it: `user.`.
    #[param(max_length = 500)]
    action: Option<String>,
    /// Only those of objects with this text, in any case.
    #[param(max_length = 500)]
    object: Option<String>,
    /// Not before this second since 1970.
    from: Option<u64>,
    /// Before this second since 1970.
    to: Option<u64>,
    /// Entries of the page, at most. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before; without it the first page.
    #[param(pattern = "^[0-9]{1,18}$")]
    cursor: Option<String>,
}

/// Entries to export.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// `csv` or `jsonl` (one object a line).
    #[param(inline)]
    format: ExportFormat,
    /// Only those of authors with this text in their names, in any case.
    #[param(max_length = 500)]
    actor: Option<String>,
    /// Only this action, or with a dot at its end all that begin with it: `user.`.
    #[param(max_length = 500)]
    action: Option<String>,
    /// Only those of objects with this text, in any case.
    #[param(max_length = 500)]
    object: Option<String>,
    /// Not before this second since 1970.
    from: Option<u64>,
    /// Before this second since 1970.
    to: Option<u64>,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ExportFormat {
    Csv,
    Jsonl,
}

fn checked(filter: AuditFilter) -> Result<AuditFilter, Problem> {
    let texts = [&filter.actor, &filter.action, &filter.object];
    if texts.into_iter().flatten().any(|text| text.len() > TEXT_BYTES_MAX) {
        let message = format!("the query: a text must be no longer than {TEXT_BYTES_MAX} bytes");
        return Err(Problem::with(Kind::Malformed, message));
    }
    Ok(filter)
}

/// Lists what was changed, by whom and from where, newest first.
#[utoipa::path(get, path = "/audit", tag = "audit", operation_id = "list_audit", params(AuditQuery),
    responses((status = 200, body = AuditPage, description = "A page of entries.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Params(query): Params<AuditQuery>,
) -> Result<axum::Json<AuditPage>, Problem> {
    let AuditQuery { actor, action, object, from, to, limit: asked, cursor } = query;
    let (filter, limit) = (checked(AuditFilter { actor, action, object, from, to })?, limit(asked)?);
    let parse = |text: &String| text.parse::<i64>().map_err(|_| Problem::of(Kind::Cursor));
    let mut before = cursor.as_ref().map(parse).transpose()?;
    let end = Instant::now() + context.limits.query_time_max;
    let mut entries = Vec::new();
    // Each look has the lock for a moment: logins need it, too.
    let rest = loop {
        let wanted = limit + 1 - entries.len();
        let found = look(&context, &filter, before, wanted).await?;
        entries.extend(found.entries);
        before = found.rest;
        if before.is_none() || entries.len() > limit || Instant::now() >= end {
            break before;
        }
    };
    let complete = rest.is_none() || entries.len() > limit;
    let behind = next(&mut entries, limit, |entry| entry.number.to_string());
    let next = behind.or_else(|| rest.filter(|_| !complete).map(|number| number.to_string()));
    Ok(axum::Json(AuditPage { items: entries.into_iter().map(AuditItem::from).collect(), next, complete }))
}

async fn look(
    context: &Context,
    filter: &AuditFilter,
    before: Option<i64>,
    limit: usize,
) -> Result<AuditLook, Problem> {
    let filter = filter.clone();
    context.identities(move |identities| identities.look_at_audit(&filter, before, limit)).await
}

/// The newest 100,000 entries that fit, newest first, as a file. The trail has an entry about it.
#[utoipa::path(get, path = "/audit/export", tag = "audit", operation_id = "export_audit", params(ExportQuery),
    responses((status = 200, body = String, content_type = "text/csv",
        description = "The entries, as CSV or as JSON lines (`application/x-ndjson`).")))]
pub(crate) async fn export(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<ExportQuery>,
) -> Result<Response, Problem> {
    let ExportQuery { format, actor, action, object, from, to } = query;
    let filter = checked(AuditFilter { actor, action, object, from, to })?;
    let seat = Seat::take(&context, &principal)?;
    let (by, now) = (principal.actor(), context.now());
    context.identities(move |log| log.record(&by, "audit.export", "audit trail", "", now)).await?;
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(send(Arc::clone(&context), principal, (filter, format), sender, seat));
    let (kind, name) = match format {
        ExportFormat::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"audit.csv\""),
        ExportFormat::Jsonl => ("application/x-ndjson", "attachment; filename=\"audit.jsonl\""),
    };
    let headers = [(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, name)];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    Ok((headers, axum::body::Body::new(Channel(receiver))).into_response())
}

/// Sends the entries until there are no more. If the identity ends in between, or the trail cannot be read,
/// the connection does, too.
async fn send(
    context: Arc<Context>,
    principal: Principal,
    (filter, format): (AuditFilter, ExportFormat),
    sender: mpsc::Sender<io::Result<Bytes>>,
    seat: Seat,
) {
    let _seat = seat;
    let (mut before, mut left) = (None, EXPORT_MAX);
    let mut out = match format {
        ExportFormat::Csv => "number,time,actor,address,action,object,detail,change\r\n".to_owned(),
        ExportFormat::Jsonl => String::new(),
    };
    loop {
        let found = match principal.is_valid(&context).await {
            true => look(&context, &filter, before, BATCH.min(left)).await.ok(),
            false => None,
        };
        let Some(found) = found else {
            let _ = sender.send(Err(io::Error::other("the export is not complete"))).await;
            return;
        };
        left = left.saturating_sub(found.entries.len());
        for entry in found.entries {
            write(&mut out, entry.into(), format);
        }
        if !out.is_empty() {
            let piece = Bytes::from(std::mem::take(&mut out));
            match timeout(context.limits.write_time_max, sender.send(Ok(piece))).await {
                Ok(Ok(())) => {}
                _ => return,
            }
        }
        before = found.rest;
        if before.is_none() || left == 0 {
            return;
        }
    }
}

fn write(out: &mut String, item: AuditItem, format: ExportFormat) {
    match format {
        ExportFormat::Jsonl => {
            out.push_str(&serde_json::to_string(&item).unwrap_or_default());
            out.push('\n');
        }
        ExportFormat::Csv => {
            let AuditItem { number, time, actor, address, action, object, detail, change } = item;
            let (address, change) = (address.unwrap_or_default(), change.unwrap_or_default());
            let cells = [&number.to_string(), &time, &actor, &address, &action, &object, &detail, &change];
            let cells: Vec<String> = cells.into_iter().map(|text| cell(text)).collect();
            out.push_str(&cells.join(","));
            out.push_str("\r\n");
        }
    }
}

/// A cell of a table. One that a spreadsheet would compute gets an apostrophe in front: names and reasons are
/// chosen by others.
fn cell(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}
