//! `GET /exclusions`, `DELETE /exclusions/{id}`, `POST /exclusions/{id}/enforce`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use portcullis_metrics::{ExclusionTrial, ExclusionUse, TrialCount};
use portcullis_revisions::{Change, Edit, Listed, RevisionError, Scope, exclusions};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::changes::{self, Changed, Order, carry_out, tagged};
use crate::context::{Context, time};
use crate::extract::{Body, Parameter, Params};
use crate::if_match::{IfMatch, NotThatDocument};
use crate::problem::Problem;

/// The time without a use after which an exclusion is pointed out, in seconds: a week has all that is done
/// every week.
const UNUSED_AFTER: u64 = 7 * 24 * 3600;

/// An exclusion of the document, or of a profile that the document names.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExclusionItem {
    /// Its id: the same as long as it says the same at the same place.
    id: String,
    /// The site.
    site: Option<String>,
    /// The route, by its name or path; null: the site itself.
    route: Option<String>,
    /// The class of attacks, of an exclusion from the semantic detector.
    class: Option<String>,
    /// The kind of finding, of an exclusion from the semantic detector.
    kind: Option<String>,
    /// Place and name of the value, of an exclusion from the semantic detector.
    location: Option<String>,
    /// The rules, of an exclusion from rules; else empty.
    rules: Vec<u32>,
    /// The value that the rules look at, of an exclusion from rules; null: every value.
    target: Option<String>,
    /// The path of requests; null: every path.
    path: Option<String>,
    /// Its end: a day that still belongs to it, or a time.
    until: Option<String>,
    /// The directive, if it is one of `rules.directives`.
    directive: Option<String>,
    /// The document or a profile.
    origin: ExclusionOrigin,
    /// The profile, of one that comes from there: it goes with the name in `profiles` of the site.
    profile: Option<String>,
    /// Of one from a profile: the attacks that get through there.
    opens: Option<String>,
    /// Why it is there.
    reason: Option<String>,
    /// User who added it.
    author: Option<String>,
    /// Its use since the start of the program; null for a directive, which takes values from rules before
    /// they are tested.
    #[serde(rename = "use")]
    used: Option<ExclusionUsed>,
    /// The trial; null: it counts.
    trial: Option<ExclusionTrialState>,
}

/// The origin of an exclusion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExclusionOrigin {
    /// The document says it.
    Document,
    /// A profile that the document names.
    Profile,
}

/// An exclusion on trial: its results in this process since the trial began.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExclusionTrialState {
    /// From when on; null: the settings that serve do not have it.
    since: Option<String>,
    /// Requests that had its field, on its path.
    seen: u64,
    /// Stopped requests that would have passed, and had nothing else found in them. Their events have its id
    /// in `trials`.
    passes: u64,
    /// Stopped requests that would have passed, although something was found that no exclusion names.
    lost: u64,
    /// Stopped requests that name what it excludes and would have been stopped all the same.
    stopped: u64,
    /// Stopped requests that were not seen to their end.
    unknown: u64,
}

impl ExclusionTrialState {
    fn read(trial: &ExclusionTrial) -> ExclusionTrialState {
        ExclusionTrialState {
            since: trial.since().map(time),
            seen: trial.count(TrialCount::Seen),
            passes: trial.count(TrialCount::Passes),
            lost: trial.count(TrialCount::Lost),
            stopped: trial.count(TrialCount::Stopped),
            unknown: trial.count(TrialCount::Unknown),
        }
    }
}

/// The use of an exclusion since the start of the program.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExclusionUsed {
    /// Requests in which it took something away: a finding that would have counted, or a match of a rule.
    hits: u64,
    /// The time of the last one.
    last_hit: Option<String>,
    /// The time of the start.
    counted_since: String,
    /// Since when it has taken nothing away, if that is more than a week: it may not be needed any more.
    unused_since: Option<String>,
}

impl ExclusionUsed {
    /// At this time, for a program that started at `since`; in seconds since 1970.
    fn read(used: &ExclusionUse, since: u64, now: u64) -> ExclusionUsed {
        let (hits, last) = used.read();
        let idle_since = last.unwrap_or(since);
        ExclusionUsed {
            hits,
            last_hit: last.map(time),
            counted_since: time(since),
            unused_since: (now.saturating_sub(idle_since) > UNUSED_AFTER).then(|| time(idle_since)),
        }
    }
}

impl ExclusionItem {
    fn new(listed: Listed, context: &Context) -> ExclusionItem {
        let is_counted = listed.directive.is_none();
        let used = listed.scope.site.as_deref().filter(|_| is_counted).map(|site| {
            let used = ExclusionUse::of(&context.supplies.registry, site, &listed.id);
            ExclusionUsed::read(&used, context.started, context.now())
        });
        let registry = &context.supplies.registry;
        let site = listed.scope.site.as_deref().filter(|_| listed.trial);
        let trial = site.map(|site| ExclusionTrial::of(registry, site, &listed.id));
        let trial = trial.map(|trial| ExclusionTrialState::read(&trial));
        let Listed { id, scope, class, kind, location, rules, target, path, .. } = listed;
        let Listed { until, reason, author, directive, profile, opens, .. } = listed;
        let Scope { site, route } = scope;
        ExclusionItem {
            id,
            site,
            route,
            class,
            kind,
            location,
            rules,
            target,
            path,
            until,
            directive,
            origin: if profile.is_some() { ExclusionOrigin::Profile } else { ExclusionOrigin::Document },
            profile,
            opens,
            reason,
            author,
            used,
            trial,
        }
    }
}

/// All exclusions, in the order of the document.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExclusionList {
    /// The exclusions.
    items: Vec<ExclusionItem>,
}

/// The exclusions that the document has, with their use: those from the semantic detector, those from rules,
/// directives such as `SecRuleUpdateTargetById` in `rules.directives`, and those of the profiles that it
/// names. Rule files are not looked into.
#[utoipa::path(get, path = "/exclusions", tag = "exclusions", operation_id = "list_exclusions",
    responses((status = 200, body = ExclusionList, description = "The exclusions.", headers(("ETag" = String)))))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
) -> Result<Response, Problem> {
    let now = context.now_ms();
    let found = changes::with(&context, move |revisions| {
        let (text, document) = (revisions.current(now)?.text, revisions.document());
        let listed = exclusions(&text, document.format(), &document.name());
        Ok((listed.map_err(RevisionError::Invalid)?, text))
    });
    let (listed, text) = found.await?;
    // What counts everywhere counts at each of them, too.
    let own = |each: &Listed| each.scope.site.as_deref().is_none_or(|site| principal.sites.admit(site));
    let items = listed.into_iter().filter(own).map(|each| ExclusionItem::new(each, &context)).collect();
    Ok(tagged(text.etag(), axum::Json(ExclusionList { items })))
}

/// Why something is removed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemoveQuery {
    /// Why, for the list of revisions.
    #[param(max_length = 1000)]
    reason: Option<String>,
    /// Only show what would change. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// Removes an exclusion from the document. Of several with this id, which differ in their end, the one that
/// ends first goes.
#[utoipa::path(delete, path = "/exclusions/{id}", tag = "exclusions", operation_id = "remove_exclusion",
    params(("id" = String, Path, description = "Its id."), RemoveQuery,
        IfMatch),
    responses((status = 200, body = Changed, description = "It is gone, or would be.",
            headers(("ETag" = String))),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "The document has no such exclusion, or is in YAML."),
        NotThatDocument))]
pub(crate) async fn remove(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(id): Parameter<String>,
    Params(query): Params<RemoveQuery>,
    read: IfMatch,
) -> Result<Response, Problem> {
    let RemoveQuery { reason, dry_run } = query;
    let summary = format!("removed the exclusion {id}");
    let order = Order { change: Change::Edit(Edit::RemoveExclusion(id)), reason, dry_run, summary };
    carry_out(&context, principal, read, order).await
}

/// Why an exclusion counts from now on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnforceOrder {
    /// Why, for the list of revisions.
    #[schema(max_length = 1000)]
    reason: Option<String>,
    /// Only show what would change. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// Ends the trial of an exclusion: it counts from now on.
#[utoipa::path(post, path = "/exclusions/{id}/enforce", tag = "exclusions", operation_id = "enforce_exclusion",
    request_body = EnforceOrder,
    params(("id" = String, Path, description = "Its id."),
        IfMatch),
    responses((status = 200, body = Changed, description = "It counts, or would.", headers(("ETag" = String))),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "The document has no such exclusion on trial, or is in YAML."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed."),
        NotThatDocument))]
pub(crate) async fn enforce(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(id): Parameter<String>,
    read: IfMatch,
    Body(order): Body<EnforceOrder>,
) -> Result<Response, Problem> {
    let EnforceOrder { reason, dry_run } = order;
    let summary = format!("enforced the exclusion {id}");
    let change = Change::Edit(Edit::EnforceExclusion(id));
    carry_out(&context, principal, read, Order { change, reason, dry_run, summary }).await
}
