//! `POST /exclusions`, `POST /exclusions/batch`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use portcullis_revisions::{Change, Edit, Exclusion, RuleExclusion, Scope, SemanticExclusion};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::access::Principal;
use crate::changes::{Changed, Order, carry_out, cut};
use crate::context::Context;
use crate::extract::{Body, whole};
use crate::if_match::{IfMatch, NotThatDocument};
use crate::problem::{Kind, Problem};

/// Exclusions of one batch, at most.
const BATCH_MAX: usize = 100;
/// Characters of a part of an exclusion in the audit trail, such as its location.
const PART_MAX: usize = 60;
/// The same where there are several: an id fits, and most locations.
const BATCH_PART_MAX: usize = 20;

/// An exclusion: from the semantic detector by `class`, `kind`, `location` and `path`, or from a rule by
/// `rule_id`, `target` and `path`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewExclusion {
    /// The site.
    site: String,
    /// A route with a `semantic` of its own, by its name or path. Without it the site.
    route: Option<String>,
    /// The class of attacks: `sqli`, `xss`, ...
    class: Option<String>,
    /// The kind of finding as events show it: `sqli.union`. Others in the same value count.
    kind: Option<String>,
    /// Place and name of the value as events show them: `form:comment`.
    location: Option<String>,
    /// A prefix of the path; with `*`, which stands for any text, or `{id}`, which stands for one segment,
    /// the whole path.
    path: Option<String>,
    /// Its end, in UTC: a day that still belongs to it (`2026-12-31`), or a time (`2026-12-31T18:00:00Z`).
    until: Option<String>,
    /// A rule.
    #[serde(default, deserialize_with = "rule_id")]
    #[schema(minimum = 1, maximum = 4_294_967_295_u32)]
    rule_id: Option<u32>,
    /// The value as events show it (`matches.target`) in which matches of the rule do not count:
    /// `ARGS:comment`. Without it every value.
    target: Option<String>,
    /// Only try it: what it names counts, and requests that would have passed are pointed out. Default:
    /// false.
    #[serde(default)]
    trial: bool,
}

fn rule_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    // It fits: the range ends there.
    whole(deserializer, 1..=u32::MAX.into(), "rule_id").map(|id| id.map(|id| id as u32))
}

impl NewExclusion {
    /// A line for the audit trail. A long part does not push the others out of it: those behind it may be few
    /// and wide.
    fn summary(&self, part_max: usize) -> String {
        let NewExclusion { class, kind, location, target, path, .. } = self;
        let rule = self.rule_id.map(|rule| format!("rule {rule}"));
        let parts = [&rule, class, kind, location, target, path];
        let parts = parts.into_iter().filter_map(|part| Some(cut(part.as_deref()?, part_max)));
        let parts: Vec<String> = parts.collect();
        let how = if self.trial { "excluded on trial" } else { "excluded" };
        format!("{how} at {}: {}", cut(&self.site, part_max), parts.join(" "))
    }

    /// The number of parts that narrow it, and it counts before those on trial: the less, the more it lets
    /// through.
    fn narrowness(&self) -> (bool, usize) {
        let NewExclusion { class, kind, location, target, path, .. } = self;
        let narrows = |part: &&Option<String>| {
            part.as_deref().is_some_and(|part| !part.trim_matches(['*', '/', ':']).is_empty())
        };
        let parts = [class, kind, location, target, path].iter().filter(|part| narrows(part)).count();
        (self.trial, parts + usize::from(self.rule_id.is_some()))
    }

    /// The edit that adds it, in the name of a user.
    fn edit(self, reason: Option<String>, author: &str) -> Result<Edit, Problem> {
        let NewExclusion { site, route, class, kind, location, path, until, rule_id, target, trial } = self;
        let of_detector = [&class, &kind, &location].into_iter().any(Option::is_some);
        let says_something = of_detector || path.is_some() || until.is_some();
        let author = Some(author.to_owned());
        let exclusion = match rule_id {
            Some(rule_id) if !of_detector => {
                Exclusion::Rule(RuleExclusion { rule_id, target, path, until, reason, author, trial })
            }
            None if target.is_none() && says_something => {
                let exclusion =
                    SemanticExclusion { class, kind, location, path, until, reason, author, trial };
                Exclusion::Semantic(exclusion)
            }
            _ => {
                return Err(Problem::with(
                    Kind::Invalid,
                    "the body: either `rule_id`, with or without `target` and `path`; or `class`, `kind`, \
                     `location` and `path`, or some of them",
                ));
            }
        };
        Ok(Edit::AddExclusion(Scope { site: Some(site), route }, exclusion))
    }
}

/// An exclusion to add: from the semantic detector by `class`, `kind`, `location` and `path`, or from a rule
/// by `rule_id`, `target` and `path`.
// The fields of `NewExclusion` again: serde cannot flatten a struct and refuse unknown fields.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExclusionOrder {
    /// The site.
    site: String,
    /// A route with a `semantic` of its own, by its name or path. Without it the site.
    route: Option<String>,
    /// The class of attacks: `sqli`, `xss`, ...
    class: Option<String>,
    /// The kind of finding as events show it: `sqli.union`. Others in the same value count.
    kind: Option<String>,
    /// Place and name of the value as events show them: `form:comment`.
    location: Option<String>,
    /// A prefix of the path; with `*`, which stands for any text, or `{id}`, which stands for one segment,
    /// the whole path.
    path: Option<String>,
    /// Its end, in UTC: a day that still belongs to it (`2026-12-31`), or a time (`2026-12-31T18:00:00Z`).
    until: Option<String>,
    /// A rule.
    #[serde(default, deserialize_with = "rule_id")]
    #[schema(minimum = 1, maximum = 4_294_967_295_u32)]
    rule_id: Option<u32>,
    /// The value as events show it (`matches.target`) in which matches of the rule do not count:
    /// `ARGS:comment`. Without it every value.
    target: Option<String>,
    /// Why.
    #[schema(max_length = 1000)]
    reason: Option<String>,
    /// Only try it: what it names counts, and requests that would have passed are pointed out. Default:
    /// false.
    #[serde(default)]
    trial: bool,
    /// Only show what would change. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// Adds an exclusion to the document and has it serve.
#[utoipa::path(post, path = "/exclusions", tag = "exclusions", operation_id = "add_exclusion",
    request_body = ExclusionOrder,
    params(IfMatch),
    responses((status = 200, body = Changed, description = "It serves, or would.", headers(("ETag" = String))),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "It does not fit the document."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed."),
        NotThatDocument))]
pub(crate) async fn add(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    read: IfMatch,
    Body(order): Body<ExclusionOrder>,
) -> Result<Response, Problem> {
    let ExclusionOrder { site, route, class, kind, location, path, until, rule_id, target, .. } = order;
    principal.check_site(Some(&site))?;
    let (reason, dry_run, trial) = (order.reason, order.dry_run, order.trial);
    let new = NewExclusion { site, route, class, kind, location, path, until, rule_id, target, trial };
    let summary = new.summary(PART_MAX);
    let change = Change::Edit(new.edit(reason.clone(), &principal.actor().name)?);
    carry_out(&context, principal, read, Order { change, reason, dry_run, summary }).await
}

/// Exclusions to change together: those that are enforced, then those that go, then those that come.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExclusionBatch {
    /// Exclusions to add.
    #[serde(default)]
    add: Vec<NewExclusion>,
    /// Ids of exclusions whose trial ends: they count.
    #[serde(default)]
    enforce: Vec<String>,
    /// Ids of exclusions to remove.
    #[serde(default)]
    remove: Vec<String>,
    /// Why, for the list of revisions and for each exclusion that is added.
    #[schema(max_length = 1000)]
    reason: Option<String>,
    /// Only show what would change. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// Adds, enforces and removes exclusions in one change of the document: all of them or none, one revision,
/// one reload. 100 at most.
#[utoipa::path(post, path = "/exclusions/batch", tag = "exclusions", operation_id = "change_exclusions",
    request_body = ExclusionBatch,
    params(IfMatch),
    responses((status = 200, body = Changed, description = "All of it serves, or would.",
            headers(("ETag" = String))),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "One of them does not fit the document, or the document is in YAML."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed."),
        NotThatDocument))]
pub(crate) async fn batch(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    read: IfMatch,
    Body(batch): Body<ExclusionBatch>,
) -> Result<Response, Problem> {
    let ExclusionBatch { add, enforce, remove, reason, dry_run } = batch;
    let count = add.len() + enforce.len() + remove.len();
    if count == 0 || count > BATCH_MAX {
        let message =
            format!("the body: `add`, `enforce` and `remove` name {count} exclusions; 1 to {BATCH_MAX} fit");
        return Err(Problem::with(Kind::Invalid, message));
    }
    let summary = batch_summary(&add, &enforce, &remove);
    let author = principal.actor().name;
    let mut edits: Vec<Edit> = enforce.into_iter().map(Edit::EnforceExclusion).collect();
    edits.extend(remove.into_iter().map(Edit::RemoveExclusion));
    for new in add {
        principal.check_site(Some(&new.site))?;
        edits.push(new.edit(reason.clone(), &author)?);
    }
    let order = Order { change: Change::Edit(Edit::All(edits)), reason, dry_run, summary };
    carry_out(&context, principal, read, order).await
}

/// A batch in the audit trail, which has little room: the counts, then what was added, the widest first.
fn batch_summary(add: &[NewExclusion], enforce: &[String], remove: &[String]) -> String {
    let counts = [(add.len(), "added"), (enforce.len(), "enforced"), (remove.len(), "removed")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    let mut widest_first: Vec<&NewExclusion> = add.iter().collect();
    widest_first.sort_by_key(|new| new.narrowness());
    let mut items: Vec<String> = widest_first.iter().map(|new| new.summary(BATCH_PART_MAX)).collect();
    for (what, ids) in [("enforced", enforce), ("removed", remove)] {
        if !ids.is_empty() {
            let ids: Vec<String> = ids.iter().map(|id| cut(id, BATCH_PART_MAX)).collect();
            items.push(format!("{what} {}", ids.join(", ")));
        }
    }
    format!("{}: {}", counts.join(", "), items.join("; "))
}
