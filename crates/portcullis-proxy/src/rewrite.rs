//! Bodies that rules change on their way: what is sent instead, and what has to go as it is.
//!
//! A body in a content coding, a part of a body, and one that was not read to its end cannot be changed; it
//! goes as it is, and that is counted and in the event (`body_not_rewritten`).

use portcullis_event::{ExceptionCause, ExceptionPolicy};
use portcullis_http::message::{BodyFraming, ResponseHead};

use crate::budget::NoMemory;
use crate::exchange::Exchange;
use crate::request_body::Body;
use crate::response::Held;
use crate::transaction::Transaction;

/// Fields that describe a request body that is no more.
pub(crate) const STALE_REQUEST_FIELDS: &[&str] = &["content-md5", "digest", "content-digest", "repr-digest"];

/// Fields that describe a response body that is no more; ModSecurity 2 drops the first three.
pub(crate) const STALE_RESPONSE_FIELDS: &[&str] = &[
    "etag",
    "last-modified",
    "expires",
    "accept-ranges",
    "content-md5",
    "digest",
    "content-digest",
    "repr-digest",
];

/// Puts the body that rules made in the place of the one that came.
pub(crate) fn request(transaction: &mut Transaction, body: &mut Body) -> Result<(), NoMemory> {
    let Some(changed) = transaction.life.rewritten_request_body() else { return Ok(()) };
    if !body.is_read() || body.is_truncated() || transaction.life.is_request_coded() {
        not_rewritten(transaction);
        return Ok(());
    }
    if transaction.life.is_rewriting_incomplete() {
        not_rewritten(transaction);
    }
    body.replace(changed)
}

/// Additions before and behind a response body, and whether anything of it is not as it came.
#[derive(Default)]
pub(crate) struct Edited {
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
    pub(crate) changed: bool,
}

impl Edited {
    /// Bytes that come to the body's own.
    pub(crate) fn added(&self) -> u64 {
        (self.before.len() + self.after.len()) as u64
    }
}

/// Changes `held` as the rules say. `whole`: it is all of the body.
pub(crate) fn response(
    exchange: &mut Exchange<'_>,
    head: &ResponseHead,
    framing: BodyFraming,
    held: &mut Held,
    whole: bool,
) -> Result<Edited, NoMemory> {
    let Exchange { transaction, head: request, .. } = exchange;
    let edits = transaction.life.response_edits();
    if edits.is_empty() {
        return Ok(Edited::default());
    }
    if framing == BodyFraming::None {
        // The answer to HEAD describes a body that GET would not get.
        return Ok(Edited { changed: request.method() == b"HEAD", ..Edited::default() });
    }
    let is_part = head.status() == 206 || head.header("content-range").next().is_some();
    if is_part || head.header("content-encoding").any(is_coding) {
        not_rewritten(transaction);
        return Ok(Edited::default());
    }
    let mut incomplete = transaction.life.is_rewriting_incomplete();
    match edits.body {
        Some(body) if whole && !held.truncated => held.replace(body)?,
        Some(_) => incomplete = true,
        None => {}
    }
    if incomplete {
        not_rewritten(transaction);
    }
    Ok(Edited { before: edits.before, after: edits.after, changed: true })
}

fn is_coding(value: &[u8]) -> bool {
    !value.trim_ascii().is_empty() && !value.trim_ascii().eq_ignore_ascii_case(b"identity")
}

fn not_rewritten(transaction: &mut Transaction) {
    transaction.life.exception(ExceptionCause::BodyNotRewritten, ExceptionPolicy::Open);
}
