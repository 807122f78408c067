//! `POST /replay`: what another text for the document would decide on requests.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Principal;
use crate::changes;
use crate::context::Context;
use crate::extract::{self, DocumentBody};
use crate::message::{self, Given};
use crate::problem::{Kind, Problem};
use crate::routes::events;
use crate::stored::{self, CLIENT};
use crate::supplies::{self, ReplayError, ReplayRequest, Replayed};

/// Requests of a replay: of an order, and of the store.
const REQUESTS_MAX: usize = 1000;
/// Requests of the store, if the order does not say.
const STORED: u32 = 1000;
/// Changes that an answer tells.
const CHANGES_MAX: usize = 100;
/// For trying requests; what is left then is counted. Loading rules comes on top.
const PATIENCE: Duration = Duration::from_secs(15);
/// Whole numbers that JSON has exactly.
const REVISION_MAX: u64 = 1 << 53;

/// The text to try, and the requests: one of `text` and `revision`, one of `requests` and `filter`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayOrder {
    /// The whole text that is tried, in the format of the document.
    #[schema(max_length = 1_048_576)]
    text: Option<String>,
    /// The number of the revision that is tried.
    #[serde(default, deserialize_with = "revision")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 9_007_199_254_740_992_i64)]
    revision: Option<u64>,
    /// The number of the revision that it is compared with. Default: the document as it is.
    #[serde(default, deserialize_with = "against")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 9_007_199_254_740_992_i64)]
    against: Option<u64>,
    /// Requests.
    #[schema(max_items = 1000)]
    requests: Option<Vec<ReplayMessage>>,
    /// Filter of the events whose requests are taken, the newest first, and as many of the sample of requests
    /// that passed as pass it. An empty one takes all.
    filter: Option<String>,
    /// Stored requests at most. Default: 1000.
    #[serde(default, deserialize_with = "limit")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The site of requests of which it is not known; needed if the document has several.
    site: Option<String>,
}

/// A request: one of `request`, `request_base64` and `curl`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayMessage {
    /// A name for it in the answer. Default: its number, from 1.
    #[schema(max_length = 200)]
    id: Option<String>,
    /// The request as it would be sent: head, empty line, body. Line ends of the head may be LF.
    #[schema(max_length = 1_048_576)]
    request: Option<String>,
    /// The same in base64, for bodies that are no text.
    #[schema(max_length = 1_048_576)]
    request_base64: Option<String>,
    /// A command line of curl. Nothing is sent, and no file is read.
    #[schema(max_length = 1_048_576)]
    curl: Option<String>,
    /// The site.
    site: Option<String>,
    /// The route of the site. Default: the one that takes the request.
    route: Option<String>,
    /// The client's address. Default: 192.0.2.1.
    #[schema(value_type = Option<String>, format = "ip")]
    client: Option<IpAddr>,
}

fn revision<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    extract::whole(deserializer, 1..=REVISION_MAX, "revision")
}

fn against<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    extract::whole(deserializer, 1..=REVISION_MAX, "against")
}

fn limit<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = extract::whole(deserializer, 1..=REQUESTS_MAX as u64, "limit")?;
    Ok(number.and_then(|number| u32::try_from(number).ok()))
}

/// Requests on which a text would decide otherwise.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplayAnswer {
    /// Requests that were tried.
    requests: usize,
    /// Requests that it would stop.
    stopped: usize,
    /// Requests that are stopped now and would pass: attacks that it loses, or false positives that it ends.
    lost: usize,
    /// Requests that pass now and would be stopped.
    new: usize,
    /// Requests that no route which is inspected takes.
    not_inspected: usize,
    /// Requests of which the end of the body was not kept.
    incomplete: usize,
    /// Requests that were not tried, because there was no time or all together are too long.
    untried: usize,
    /// The first requests that it would decide otherwise, 100 at most.
    changes: Vec<ReplayChange>,
}

/// A request that would be decided otherwise.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplayChange {
    /// `lost`: it is stopped now and would pass; `new`: it passes now and would be stopped.
    change: &'static str,
    /// Its id.
    id: String,
    /// Its site; null if it is not known.
    site: Option<String>,
    /// The client's address.
    #[schema(value_type = String, format = "ip")]
    client: IpAddr,
    /// Its method and target.
    request: String,
    /// Why it is stopped now, or would be.
    reason: String,
}

/// Tells what another text for the document would decide on requests: those of the order, or those that are
/// stored. Nothing is changed, sent or counted; collections start empty.
#[utoipa::path(post, path = "/replay", tag = "configuration", operation_id = "replay",
    request_body = ReplayOrder,
    responses((status = 200, body = ReplayAnswer, description = "What would change."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such revision."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "The settings come from the command line."),
        (status = 413, body = Problem, content_type = "application/problem+json",
            description = "A text or a message is too long."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A text has mistakes, or a message cannot be read.")))]
pub(crate) async fn replay(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    DocumentBody(order): DocumentBody<ReplayOrder>,
) -> Result<Json<ReplayAnswer>, Problem> {
    let what = match (&order.text, order.revision) {
        (Some(text), None) if text.len() > portcullis_revisions::DOCUMENT_BYTES_MAX => {
            let most = portcullis_revisions::DOCUMENT_BYTES_MAX;
            return Err(Problem::with(Kind::BodyTooLarge, format!("a document has at most {most} bytes")));
        }
        (Some(_), None) => "a text".to_owned(),
        (None, Some(number)) => format!("revision {number}"),
        _ => return Err(Problem::with(Kind::Invalid, "give one of text and revision")),
    };
    let (requests, left_out) = match (order.requests, &order.filter) {
        (Some(messages), None) => (given(messages)?, 0),
        (None, Some(filter)) => {
            let filter = events::filter(&context, Some(filter))?;
            stored::requests(&context, filter, order.limit.unwrap_or(STORED) as usize).await?
        }
        _ => return Err(Problem::with(Kind::Invalid, "give one of requests and filter")),
    };
    let now = context.now_ms();
    let texts = changes::with(&context, move |revisions| {
        let text_of = |number: u64| revisions.get(i64::try_from(number).unwrap_or(i64::MAX));
        let against = match order.against {
            Some(number) => text_of(number)?.text,
            None => revisions.current(now)?.text.as_str().to_owned(),
        };
        let text = match (order.text, order.revision) {
            (Some(text), _) => text,
            (None, Some(number)) => text_of(number)?.text,
            (None, None) => String::new(),
        };
        let document = revisions.document();
        let (format, file) = (document.format(), document.name());
        let (site, changes_max, patience) = (order.site, CHANGES_MAX, PATIENCE);
        Ok(supplies::ReplayOrder { text, against, format, file, site, requests, changes_max, patience })
    });
    let texts = texts.await?;
    let replayed = context.trial(move |trials| trials.replay(texts)).await?.map_err(problem)?;
    let detail = format!(
        "{} requests: {} stopped, {} lost, {} new",
        replayed.requests, replayed.stopped, replayed.lost, replayed.new
    );
    let (actor, now) = (principal.actor(), context.now());
    context.identities(move |log| log.record(&actor, "replay", &what, &detail, now)).await?;
    Ok(Json(answer(replayed, left_out)))
}

/// The requests of an order.
fn given(messages: Vec<ReplayMessage>) -> Result<Vec<ReplayRequest>, Problem> {
    if messages.len() > REQUESTS_MAX {
        let detail = format!("requests: there are at most {REQUESTS_MAX}");
        return Err(Problem::with(Kind::Invalid, detail));
    }
    let numbered = messages.into_iter().enumerate();
    numbered
        .map(|(at, message)| {
            let ReplayMessage { id, request, request_base64, curl, site, route, client } = message;
            message::bound([&request, &request_base64, &curl].into_iter().flatten())?;
            let read = Given { request, request_base64, curl }.read();
            let message = read.map_err(|problem| problem.within(&format!("requests[{at}]")))?;
            let id = id.unwrap_or_else(|| (at + 1).to_string()).chars().take(200).collect();
            let client = client.unwrap_or(CLIENT);
            Ok(ReplayRequest { id, request: message.bytes, omitted: 0, site, route, client })
        })
        .collect()
}

fn answer(replayed: Replayed, left_out: usize) -> ReplayAnswer {
    let Replayed { requests, stopped, lost, new, not_inspected, incomplete, untried, changes } = replayed;
    let change = |change: supplies::ReplayChange| ReplayChange {
        change: if change.is_lost { "lost" } else { "new" },
        id: change.id,
        site: change.site,
        client: change.client,
        request: change.line,
        reason: change.reason,
    };
    let (untried, changes) = (untried + left_out, changes.into_iter().map(change).collect());
    ReplayAnswer { requests, stopped, lost, new, not_inspected, incomplete, untried, changes }
}

fn problem(error: ReplayError) -> Problem {
    match error {
        ReplayError::Document(mistakes) => {
            let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            Problem::with(Kind::Document, lines.join("\n\n")).about(&mistakes)
        }
        ReplayError::Unfit(why) => Problem::with(Kind::ReloadFailed, why),
    }
}
