//! Changes of the document: one way for every route that makes one.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::ETAG;
use portcullis_identity::{AUDIT_TEXT_MAX, Identities, NewEntry, Role, Sites};
use portcullis_revisions::{
    Applied, Author, Change, Document, Listed, Proposal, RevisionError, Revisions, Text, added_exclusions,
    diff,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::access::Principal;
use crate::context::Context;
use crate::if_match::IfMatch;
use crate::live::LiveState;
use crate::problem::{Kind, Problem, of_revision};

/// Lines around each change in a difference that an administrator sees. Who may not read the document sees
/// only the lines that change.
const CONTEXT_LINES: usize = 3;

/// Characters of a reason.
const REASON_MAX: usize = 1000;

/// Exclusions that one who is no administrator adds within [`DAY_MS`]. Each alone may answer a false
/// positive; very many of them end protection.
const EXCLUSIONS_A_DAY: usize = 50;
/// One of all fields of a path counts as so many of one field.
const PATH_COUNTS: usize = 5;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Characters of an error or a reason in the audit trail; the revision has the whole reason.
const AUDIT_END_MAX: usize = 150;

/// Effect of a change on the configuration file, done or tried.
#[derive(Serialize, ToSchema)]
pub(crate) struct Changed {
    /// The revision that the document is now; null if the change was only tried.
    revision: Option<i64>,
    /// The entity tag of the new text.
    etag: String,
    /// The difference in the unified format; empty if the change changes nothing.
    diff: String,
    /// The whole new text, if the change was only tried by an administrator: for `POST /replay`, say.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The settings in effect, and keys that need a restart; null if nothing was loaded.
    message: Option<String>,
}

/// A change that a user asks for.
pub(crate) struct Order {
    pub(crate) change: Change,
    /// Why.
    pub(crate) reason: Option<String>,
    /// Only show what it would do.
    pub(crate) dry_run: bool,
    /// Summary for the audit trail, the most important first.
    pub(crate) summary: String,
}

/// The revisions, or the reason why there are none.
pub(crate) fn revisions(context: &Context) -> Result<Arc<Revisions>, Problem> {
    context.supplies.revisions.clone().ok_or_else(|| {
        Problem::with(
            Kind::NoDocument,
            "the settings come from the command line: start with `--config FILE` to have a document",
        )
    })
}

/// Looks at the revisions, on a thread that may block.
pub(crate) async fn with<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&Revisions) -> Result<T, RevisionError> + Send + 'static,
) -> Result<T, Problem> {
    let revisions = revisions(context)?;
    let result = context.on_document(move || work(&revisions)).await?;
    result.map_err(|error| of_revision(error, &*context.supplies.say))
}

/// Makes or tries a change, on a thread that may block.
async fn change_with<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&Revisions) -> Result<T, RevisionError> + Send + 'static,
) -> Result<T, Problem> {
    let revisions = revisions(context)?;
    let result = context.on_change(move || work(&revisions)).await?;
    result.map_err(|error| of_revision(error, &*context.supplies.say))
}

/// Makes a change, or tries it.
pub(crate) async fn carry_out(
    context: &Arc<Context>,
    principal: Principal,
    read: IfMatch,
    order: Order,
) -> Result<Response, Problem> {
    let expected = read.etag;
    let is_long = |reason: &String| reason.chars().count() > REASON_MAX;
    if order.reason.as_ref().is_some_and(is_long) {
        let message = format!("a reason has at most {REASON_MAX} characters");
        return Err(Problem::with(Kind::Invalid, message));
    }
    let context_lines = if principal.role == Role::Admin { CONTEXT_LINES } else { 0 };
    let now = context.now_ms();
    let live = Arc::clone(&context.supplies.live);
    let (role, who) = (principal.role, principal.clone());
    if order.dry_run {
        let proposal = change_with(context, move |revisions| {
            let etag = etag_of(revisions, expected, now)?;
            let proposal = revisions.propose(&order.change, &etag, now)?;
            check_rights(&who, &*live, revisions, &proposal, now)?;
            Ok(proposal)
        });
        let proposal = proposal.await?;
        if proposal.before != proposal.after {
            check(context, proposal.after.as_str().to_owned()).await?;
        }
        let shown = diff(proposal.before.as_str(), proposal.after.as_str(), context_lines);
        let etag = proposal.after.etag().to_owned();
        let text = (role == Role::Admin).then(|| proposal.after.as_str().to_owned());
        let changed = Changed { revision: None, etag, diff: shown, text, message: None };
        return Ok(axum::Json(changed).into_response());
    }
    // It goes on when the client leaves or the time of the request is over, and then stands in the audit
    // trail, too. So what waits has a bound of its own.
    let place = context.place_for_change()?;
    let context = Arc::clone(context);
    let work = tokio::spawn(async move {
        let _place = place;
        let author = Author { name: who.actor().name, reason: order.reason.unwrap_or_default() };
        let reason = author.reason.clone();
        let result = change_with(&context, move |revisions| {
            let etag = etag_of(revisions, expected, now)?;
            // The entity tag stands for one text: what is looked at here is what the change makes of it.
            let proposal = revisions.propose(&order.change, &etag, now)?;
            check_rights(&who, &*live, revisions, &proposal, now)?;
            revisions.apply(&order.change, &etag, &author, now)
        });
        let result = result.await;
        let (object, error) = match &result {
            Ok(applied) => (format!("revision {}", applied.revision.number), None),
            Err(problem) => ("refused".to_owned(), Some(problem.summary())),
        };
        let detail = detail(&order.summary, error, &reason);
        let change = match &result {
            // Of its lines only those that change, so that the trail has few of what the document says.
            Ok(Applied { proposal, .. }) => diff(proposal.before.as_str(), proposal.after.as_str(), 0),
            Err(_) => String::new(),
        };
        let (actor, now) = (principal.actor(), context.now());
        let record = move |log: &Identities| {
            let (object, detail, change) = (object.as_str(), detail.as_str(), change.as_str());
            log.record_entry(&actor, &NewEntry { action: "config.change", object, detail, change }, now)
        };
        context.identities(record).await?;
        Ok(answer(&result?, context_lines))
    });
    work.await.map_err(|_| Problem::of(Kind::Internal))?
}

/// Refuses a change that reaches beyond the sites of the user who makes it; and exclusions that only an
/// administrator may have, in whatever way a change brings them: new, enforced after a trial, or on trial;
/// and more of them than one needs.
fn check_rights(
    who: &Principal,
    live: &dyn LiveState,
    revisions: &Revisions,
    proposal: &Proposal,
    now: u64,
) -> Result<(), RevisionError> {
    check_sites(&who.sites, revisions.document(), proposal)?;
    let (role, name) = (who.role, who.actor().name);
    if role == Role::Admin {
        return Ok(());
    }
    let document = revisions.document();
    let added = added_exclusions(&proposal.before, &proposal.after, document.format(), &document.name());
    let added = added.map_err(RevisionError::Invalid)?;
    let wide = added.iter().find_map(|each| Some((each, each.width(|rule| live.decides(rule))?)));
    if let Some((each, width)) = wide {
        return Err(RevisionError::Forbidden(format!(
            "an exclusion at {} needs the role admin, and yours is {role}: {width}",
            each.scope
        )));
    }
    if added.is_empty() {
        return Ok(());
    }
    // A text that could not be read had no exclusions.
    let then = revisions.text_at(now.saturating_sub(DAY_MS))?;
    let earlier = then
        .and_then(|then| added_exclusions(&then, &proposal.before, document.format(), &document.name()).ok());
    let own = earlier.iter().flatten().filter(|each| each.author.as_deref() == Some(&*name));
    let count = |each: &Listed| if each.is_of_field() { 1 } else { PATH_COUNTS };
    match own.chain(&added).map(count).sum::<usize>() {
        0..=EXCLUSIONS_A_DAY => Ok(()),
        total => Err(RevisionError::Forbidden(format!(
            "so many exclusions within a day need the role admin, and yours is {role}: with this change they \
             would count {total}, and may count {EXCLUSIONS_A_DAY} (one of a field counts 1, one of a path {PATH_COUNTS})"
        ))),
    }
}

/// Refuses a change of anything but the tables of these sites, whatever it was asked as: what is left of the
/// two texts without these tables must be the same.
fn check_sites(sites: &Sites, document: &Document, proposal: &Proposal) -> Result<(), RevisionError> {
    if sites.is_all() {
        return Ok(());
    }
    let others = |text: &Text| -> Result<Value, RevisionError> {
        let read = portcullis_config::json_value(text.as_str(), document.format(), &document.name());
        let mut values = read.map_err(RevisionError::Invalid)?;
        let tables = values.get_mut("sites").and_then(Value::as_array_mut);
        for table in tables.into_iter().flatten() {
            if table["name"].as_str().is_some_and(|name| sites.admit(name)) {
                *table = Value::Null;
            }
        }
        Ok(values)
    };
    match others(&proposal.before)? == others(&proposal.after)? {
        true => Ok(()),
        false => Err(RevisionError::Forbidden(format!(
            "this would change more than {sites}, to which you are limited; a user of all sites can make this change"
        ))),
    }
}

/// Entry of the audit trail for a change. If that is too long, the end of the summary is cut: nobody hides
/// the result or the reason behind a long list.
fn detail(summary: &str, error: Option<&str>, reason: &str) -> String {
    let mut end = error.map_or_else(String::new, |error| format!(": {}", cut(error, AUDIT_END_MAX)));
    if !reason.is_empty() {
        end.push_str(&format!(" ({})", cut(reason, AUDIT_END_MAX)));
    }
    let room = AUDIT_TEXT_MAX.saturating_sub(end.chars().count());
    format!("{}{end}", cut(summary, room))
}

/// A text of so many characters at most; the last one says that it was longer.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect()
}

/// Refuses a text by which the program would not serve: its rules may have mistakes that the document does
/// not show.
async fn check(context: &Context, text: String) -> Result<(), Problem> {
    let revisions = revisions(context)?;
    let (format, file) = (revisions.document().format(), revisions.document().name());
    let checked = context.trial(move |trials| trials.check(text, format, file)).await?;
    if !checked.mistakes.is_empty() {
        let lines: Vec<String> = checked.mistakes.iter().map(ToString::to_string).collect();
        return Err(Problem::with(Kind::Document, lines.join("\n\n")).about(&checked.mistakes));
    }
    let errors: Vec<String> = checked.rules.into_iter().flat_map(|set| set.errors).collect();
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Problem::with(Kind::ReloadFailed, errors.join("\n\n"))),
    }
}

fn answer(applied: &Applied, context_lines: usize) -> Response {
    let Applied { proposal, revision, message } = applied;
    let diff = diff(proposal.before.as_str(), proposal.after.as_str(), context_lines);
    let etag = proposal.after.etag().to_owned();
    let revision = Some(revision.number);
    let changed = Changed { revision, etag, diff, text: None, message: message.clone() };
    tagged(proposal.after.etag(), axum::Json(changed))
}

/// An answer with the entity tag of the document.
pub(crate) fn tagged(etag: &str, answer: impl IntoResponse) -> Response {
    let tag = HeaderValue::try_from(format!("\"{etag}\"")).unwrap_or(HeaderValue::from_static("\"\""));
    ([(ETAG, tag)], answer).into_response()
}

fn etag_of(revisions: &Revisions, expected: Option<String>, now: u64) -> Result<String, RevisionError> {
    match expected {
        Some(etag) => Ok(etag),
        None => Ok(revisions.current(now)?.text.etag().to_owned()),
    }
}
