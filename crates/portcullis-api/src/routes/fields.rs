//! `GET /fields`, `/fields/sites`, `/fields/find`, `/fields/proposals`, `POST /fields/{order}`,
//! `/fields/proposals/{decision}`: what sites have learned of their fields, and what operators decide about
//! them.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use portcullis_identity::Role;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::context::{Context, blocking};
use crate::extract::{Body, Parameter, Params};
use crate::fields::{
    DecidedProposal, FieldOrder, FieldOrderError, FieldPlace, FieldProposal, FieldState, LearnedField,
    LearnedFields, LearningSite, OrderedField, ProposalDecision, ProposalState,
};
use crate::live::Keyed;
use crate::problem::{Kind, Problem};
use crate::routes::page::{limit, next};

/// Characters of a text to search for.
const SEARCH_MAX: usize = 200;

/// The sites that learn.
#[derive(Serialize, ToSchema)]
pub(crate) struct LearningSites {
    /// The sites, by name.
    items: Vec<LearningSite>,
}

/// The sites that learn what their fields carry.
#[utoipa::path(get, path = "/fields/sites", tag = "fields", operation_id = "list_learning_sites",
    responses((status = 200, body = LearningSites, description = "The sites that have the key `fields`.")))]
pub(crate) async fn sites(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<LearningSites>, Problem> {
    let mut items = look(&context, |fields| fields.sites()).await?;
    items.retain(|learning| principal.sites.admit(&learning.site));
    Ok(Json(LearningSites { items }))
}

/// The fields that are asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FieldsQuery {
    /// Only this site.
    site: Option<String>,
    /// Only fields of this state.
    #[param(inline)]
    state: Option<FieldState>,
    /// Only fields of this method.
    method: Option<String>,
    /// Only fields of exactly this path, as it is listed.
    path: Option<String>,
    /// Only fields with this text in name, path, method, or type, in any case.
    #[param(max_length = 200)]
    search: Option<String>,
    /// Items of the page, at most. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before; without it the first page.
    cursor: Option<String>,
}

/// Fields of sites.
#[derive(Serialize, ToSchema)]
pub(crate) struct FieldPage {
    /// Fields in all that pass the filters.
    total: usize,
    /// The fields, by site, path, method and name.
    items: Vec<LearnedField>,
    /// The cursor of the next page; null if this is the last.
    next: Option<String>,
}

/// Learned fields of sites.
#[utoipa::path(get, path = "/fields", tag = "fields", operation_id = "list_fields", params(FieldsQuery),
    responses((status = 200, body = FieldPage, description = "A page of fields, by site, path and name.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<FieldsQuery>,
) -> Result<Json<FieldPage>, Problem> {
    let limit = limit(query.limit)?;
    let search = query.search.as_deref().unwrap_or_default().to_lowercase();
    if search.chars().count() > SEARCH_MAX {
        let detail = format!("the query: search has at most {SEARCH_MAX} characters");
        return Err(Problem::with(Kind::Malformed, detail));
    }
    let listed = look(&context, move |fields| {
        let mut items = fields.fields(query.site.as_deref());
        items.retain(|field| principal.sites.admit(&field.site));
        items.retain(|field| {
            query.state.is_none_or(|state| field.state == state)
                && query.method.as_ref().is_none_or(|method| field.method == *method)
                && query.path.as_ref().is_none_or(|path| field.path == *path)
                && holds(field, &search)
        });
        let total = items.len();
        if let Some(cursor) = &query.cursor {
            items.retain(|field| field.key() > *cursor);
        }
        items.sort_by_cached_key(Keyed::key);
        let next = next(&mut items, limit, Keyed::key);
        FieldPage { total, items, next }
    });
    Ok(Json(listed.await?))
}

/// True if a text for a person has `search` in it.
fn holds(field: &LearnedField, search: &str) -> bool {
    let kind = field.closed_as.unwrap_or_default();
    let texts = [field.name.as_str(), &field.path, &field.method, kind];
    search.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(search))
}

/// State of a field.
#[derive(Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FieldAt {
    /// The site.
    site: String,
    /// The method.
    method: String,
    /// The path.
    path: String,
    /// `query`, `form` or `json`.
    place: String,
    /// The name.
    name: String,
}

impl From<FieldAt> for FieldPlace {
    fn from(at: FieldAt) -> FieldPlace {
        let FieldAt { site, method, path, place, name } = at;
        FieldPlace { site, method, path, place, name }
    }
}

fn no_field() -> Problem {
    Problem::with(Kind::NotFound, "the site has learned no such field")
}

/// The field that a request means, as its values are judged: by the nearest known path. The path is one of
/// a request or of the list.
#[utoipa::path(get, path = "/fields/find", tag = "fields", operation_id = "find_field", params(FieldAt),
    responses((status = 200, body = LearnedField, description = "The field."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "The site has learned no such field.")))]
pub(crate) async fn find(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(at): Params<FieldAt>,
) -> Result<Json<LearnedField>, Problem> {
    let at = FieldPlace::from(at);
    if !principal.sites.admit(&at.site) {
        return Err(no_field());
    }
    let found = look(&context, move |fields| fields.find(&at)).await?;
    found.map(Json).ok_or_else(no_field)
}

/// A decision about a field.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FieldOrdered {
    /// The site.
    site: String,
    /// The method, as it is listed.
    method: String,
    /// The path, as it is listed.
    path: String,
    /// `query`, `form` or `json`.
    place: String,
    /// The name, as it is listed.
    name: String,
    /// Why, for the audit trail.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Result of a decision.
#[derive(Serialize, ToSchema)]
pub(crate) struct FieldChanged {
    /// The field; null: it is forgotten.
    field: Option<LearnedField>,
    /// Why the decision ends with the process, if it does; null: it is kept.
    message: Option<String>,
}

/// Decides about a field. `keep-open`: it is learned, and never closed; `learn` takes that back, and opens
/// what was closed before its time. `close`: at once, whatever is missing; `forget`: all that is known of it.
/// The last two need the role `admin`.
#[utoipa::path(post, path = "/fields/{order}", tag = "fields", operation_id = "order_field",
    request_body = FieldOrdered,
    params(("order" = String, Path, description = "`keep-open`, `learn`, `close` or `forget`.")),
    responses((status = 200, body = FieldChanged, description = "It is decided."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such order, or the site has learned no such field."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "Its values are of no plain type: it cannot be closed.")))]
pub(crate) async fn order(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(order): Parameter<String>,
    Body(FieldOrdered { site, method, path, place, name, reason }): Body<FieldOrdered>,
) -> Result<Json<FieldChanged>, Problem> {
    let order = FieldOrder::ALL.into_iter().find(|each| each.name() == order);
    let order = order.ok_or_else(|| {
        Problem::with(Kind::NotFound, "the orders are `keep-open`, `learn`, `close` and `forget`")
    })?;
    // What is closed refuses requests of everybody, and what is forgotten took weeks to learn.
    if matches!(order, FieldOrder::Close | FieldOrder::Forget) && principal.role < Role::Admin {
        return Err(Problem::with(
            Kind::Forbidden,
            format!("`{}` decides for all clients of the site: it needs the role admin", order.name()),
        ));
    }
    if !principal.sites.admit(&site) {
        return Err(no_field());
    }
    let object = format!("site {site}: {method} {path} {place}:{name}");
    let at = FieldPlace { site, method, path, place, name };
    let done = look(&context, move |fields| fields.order(&at, order)).await?;
    let OrderedField { field, not_kept } = done.map_err(|error| match error {
        FieldOrderError::NoField => no_field(),
        FieldOrderError::NotPlain => Problem::with(
            Kind::Conflict,
            "the field has carried values of no plain type: there is nothing to close it as",
        ),
    })?;
    record(&context, &principal, format!("field.{}", order.name()), object, reason, &not_kept).await?;
    Ok(Json(FieldChanged { field, message: not_kept }))
}

/// The proposals that are asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ProposalsQuery {
    /// Only those of this site.
    site: Option<String>,
    /// Only those of this state. Default: all but `seen`.
    #[param(inline)]
    state: Option<ProposalState>,
    /// Items of the page, at most. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before; without it the first page.
    cursor: Option<String>,
}

/// Proposals of sites.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProposalPage {
    /// Proposals in all that pass the filters.
    total: usize,
    /// The proposals; those that wait for a person stand first.
    items: Vec<FieldProposal>,
    /// The cursor of the next page; null if this is the last.
    next: Option<String>,
}

/// The kinds of findings that fields carry for many, so that they may count for nothing there.
#[utoipa::path(get, path = "/fields/proposals", tag = "fields", operation_id = "list_field_proposals",
    params(ProposalsQuery),
    responses((status = 200, body = ProposalPage, description = "A page of proposals, the open ones first.")))]
pub(crate) async fn proposals(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<ProposalsQuery>,
) -> Result<Json<ProposalPage>, Problem> {
    let limit = limit(query.limit)?;
    let listed = look(&context, move |fields| {
        let mut items = fields.proposals(query.site.as_deref());
        items.retain(|proposal| principal.sites.admit(&proposal.site));
        items.retain(|proposal| match query.state {
            Some(state) => proposal.state == state,
            None => proposal.state != ProposalState::Seen,
        });
        let total = items.len();
        if let Some(cursor) = &query.cursor {
            items.retain(|proposal| proposal.key() > *cursor);
        }
        items.sort_by_cached_key(Keyed::key);
        let next = next(&mut items, limit, Keyed::key);
        ProposalPage { total, items, next }
    });
    Ok(Json(listed.await?))
}

/// A decision about a proposal.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProposalOrdered {
    /// The site.
    site: String,
    /// The id of the proposal.
    id: String,
    /// Why, for the audit trail.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Result of a decision.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProposalChanged {
    /// The proposal as it is now.
    proposal: FieldProposal,
    /// Why the decision ends with the process, if it does; null: it is kept.
    message: Option<String>,
}

/// Decides about a proposal. `accept`: the kind counts for nothing in the field; `trial`: it counts, and
/// stopped requests tell what would have become of them; `dismiss`: it counts, and is proposed no more.
#[utoipa::path(post, path = "/fields/proposals/{decision}", tag = "fields",
    operation_id = "decide_field_proposal", request_body = ProposalOrdered,
    params(("decision" = String, Path, description = "`accept`, `trial` or `dismiss`.")),
    responses((status = 200, body = ProposalChanged, description = "It is decided."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such decision or proposal.")))]
pub(crate) async fn decide(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(decision): Parameter<String>,
    Body(ProposalOrdered { site, id, reason }): Body<ProposalOrdered>,
) -> Result<Json<ProposalChanged>, Problem> {
    let decision = ProposalDecision::ALL.into_iter().find(|each| each.name() == decision);
    let decision = decision
        .ok_or_else(|| Problem::with(Kind::NotFound, "the decisions are `accept`, `trial` and `dismiss`"))?;
    let none = || Problem::with(Kind::NotFound, "the site has no such proposal");
    if !principal.sites.admit(&site) {
        return Err(none());
    }
    let decided = look(&context, move |fields| fields.decide(&site, &id, decision)).await?;
    let DecidedProposal { proposal, not_kept } = decided.ok_or_else(none)?;
    let FieldProposal { site, method, path, place, name, kind, .. } = &proposal;
    let object = format!("site {site}: {kind} in {method} {path} {place}:{name}");
    let action = format!("field.proposal.{}", decision.name());
    record(&context, &principal, action, object, reason, &not_kept).await?;
    Ok(Json(ProposalChanged { proposal, message: not_kept }))
}

/// Writes a decision into the audit trail.
pub(super) async fn record(
    context: &Context,
    principal: &Principal,
    action: String,
    object: String,
    reason: Option<String>,
    not_kept: &Option<String>,
) -> Result<(), Problem> {
    let (actor, now) = (principal.actor(), context.now());
    let detail = [reason.filter(|reason| !reason.is_empty()), not_kept.clone()];
    let detail = detail.into_iter().flatten().collect::<Vec<_>>().join("; ");
    context.identities(move |log| log.record(&actor, &action, &object, &detail, now)).await
}

/// Looks at what was learned on a thread that may block, as few at a time as queries of events.
pub(super) async fn look<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&dyn LearnedFields) -> T + Send + 'static,
) -> Result<T, Problem> {
    let fields = Arc::clone(&context.supplies.fields);
    let permit = Arc::clone(&context.queries).acquire_owned().await;
    let permit = permit.map_err(|_| Problem::of(Kind::Draining))?;
    let work = move || {
        // Held until the work ends, even if the client has gone.
        let _permit = permit;
        work(&*fields)
    };
    blocking(work).await
}
