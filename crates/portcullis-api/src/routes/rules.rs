//! `GET /rules`, `GET /rules/{id}`: the rules of a route, what became of each, and its matches.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use portcullis_identity::Sites;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::context::Context;
use crate::extract::{Parameter, Params};
use crate::live::{Keyed, Rule, RuleState, Snapshot};
use crate::problem::{Kind, Problem};
use crate::routes::live::look;
use crate::routes::page::{limit, next};

/// Characters of a text to search for.
const SEARCH_MAX: usize = 200;

/// The rules that are asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RulesQuery {
    /// The site. Default: the first of the document with a route that is inspected.
    site: Option<String>,
    /// A route of the site. Default: its first that is inspected.
    route: Option<String>,
    /// Only rules of this state.
    #[param(inline)]
    state: Option<RuleState>,
    /// Only rules up to this paranoia level; those without one are always listed.
    #[param(minimum = 1, maximum = 4)]
    paranoia: Option<u8>,
    /// Only rules with this text in id, message, tags or file name, in any case.
    #[param(max_length = 200)]
    search: Option<String>,
    /// Only rules that matched a request since the start of the program.
    matched: Option<bool>,
    /// Items of the page, at most. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before; without it the first page.
    cursor: Option<String>,
}

/// Rules of a route.
#[derive(Serialize, ToSchema)]
pub(crate) struct RulePage {
    /// The number of the settings, from 1. A reload raises it.
    generation: u64,
    /// The site.
    site: String,
    /// The route.
    route: String,
    /// Rules in all that pass the filters.
    total: usize,
    /// The rules, by id; without texts.
    items: Vec<Rule>,
    /// The cursor of the next page; null if this is the last.
    next: Option<String>,
}

impl Keyed for Rule {
    fn key(&self) -> String {
        format!("{:010}", self.rule_id)
    }
}

/// The rules of a route.
#[utoipa::path(get, path = "/rules", tag = "rules", operation_id = "list_rules", params(RulesQuery),
    responses((status = 200, body = RulePage, description = "A page of rules, by id."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such site or route, or its requests are not inspected.")))]
pub(crate) async fn list(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<RulesQuery>,
) -> Result<Json<RulePage>, Problem> {
    let limit = limit(query.limit)?;
    if query.paranoia.is_some_and(|level| !(1..=4).contains(&level)) {
        return Err(Problem::with(Kind::Malformed, "the query: paranoia must be 1 to 4"));
    }
    let search = query.search.unwrap_or_default();
    if search.chars().count() > SEARCH_MAX {
        let detail = format!("the query: search has at most {SEARCH_MAX} characters");
        return Err(Problem::with(Kind::Malformed, detail));
    }
    let (site, route) = place(&context, &principal.sites, query.site, query.route).await?;
    let found = rules(&context, &site, &route, None).await?;
    let Snapshot { generation, mut items } = found;
    let search = search.to_lowercase();
    items.retain(|rule| {
        query.state.is_none_or(|state| rule.state == state)
            && query.paranoia.is_none_or(|level| rule.paranoia.is_none_or(|own| own <= level))
            && query.matched.is_none_or(|matched| (rule.matches > 0) == matched)
            && holds(rule, &search)
    });
    let total = items.len();
    items.sort_by_key(Keyed::key);
    if let Some(cursor) = query.cursor {
        items.retain(|rule| rule.key() > cursor);
    }
    let next = next(&mut items, limit, Keyed::key);
    Ok(Json(RulePage { generation, site, route, total, items, next }))
}

/// The place of a rule.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RuleQuery {
    /// The site. Default: the first of the document with a route that is inspected.
    site: Option<String>,
    /// A route of the site. Default: its first that is inspected.
    route: Option<String>,
}

/// One rule, with the text in its file.
#[utoipa::path(get, path = "/rules/{id}", tag = "rules", operation_id = "get_rule",
    params(RuleQuery, ("id" = u32, Path, description = "Its id.")),
    responses((status = 200, body = Rule, description = "The rule."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such rule, site or route.")))]
pub(crate) async fn one(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(id): Parameter<u32>,
    Params(query): Params<RuleQuery>,
) -> Result<Json<Rule>, Problem> {
    let (site, route) = place(&context, &principal.sites, query.site, query.route).await?;
    let found = rules(&context, &site, &route, Some(id)).await?;
    let rule = found.items.into_iter().find(|rule| rule.rule_id == id);
    rule.map(Json).ok_or_else(|| Problem::with(Kind::NotFound, format!("the route has no rule {id}")))
}

/// True if a text for a person has `search` in it.
fn holds(rule: &Rule, search: &str) -> bool {
    let file = rule.file.rsplit(['/', '\\']).next().unwrap_or_default();
    search.is_empty()
        || rule.rule_id.to_string().contains(search)
        || [rule.message.as_str(), file].iter().any(|text| text.to_lowercase().contains(search))
        || rule.tags.iter().any(|tag| tag.to_lowercase().contains(search))
}

/// The names of the route that is meant.
async fn place(
    context: &Context,
    own: &Sites,
    site: Option<String>,
    route: Option<String>,
) -> Result<(String, String), Problem> {
    let sites = look(context, |live| live.sites()).await?.items;
    let is_wanted = |name: &str| own.admit(name) && site.as_deref().is_none_or(|wanted| wanted == name);
    let mut routes = sites.iter().filter(|site| is_wanted(&site.name)).flat_map(|site| {
        let inspected = site.routes.iter().filter(|route| route.inspection.is_some());
        inspected.map(|route| (site.name.clone(), route.name.clone()))
    });
    let found = routes.find(|(_, name)| route.as_deref().is_none_or(|wanted| wanted == name));
    found.ok_or_else(|| {
        Problem::with(Kind::NotFound, "there is no such site or route, or its requests are not inspected")
    })
}

async fn rules(
    context: &Context,
    site: &str,
    route: &str,
    text: Option<u32>,
) -> Result<Snapshot<Rule>, Problem> {
    let (site, route) = (site.to_owned(), route.to_owned());
    let found = look(context, move |live| live.rules(&site, &route, text)).await?;
    // A reload came in between.
    found.ok_or_else(|| Problem::with(Kind::NotFound, "the route has gone"))
}
