//! The routes, and the OpenAPI document that says the same: both come from one registration.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;
use portcullis_identity::Role;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    Components, Content, Info, License, OpenApi, OpenApiBuilder, Ref, RefOr, Response, ResponseBuilder,
};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use crate::access::{Access, COOKIE_NAME, Reach, gate};
use crate::context::Context;
use crate::counted::RequestCounts;
use crate::guard::{guard, no_method};
use crate::pages::page;
use crate::problem::{PROBLEM_JSON, Problem};
use crate::routes::{
    advise, audit, bans, check, clients, config, events, exclusion_orders, exclusions, explain, facets,
    fields, histogram, interfaces, live, login, oidc, reload, replay, revisions, rules, sessions, setup,
    sinks, site_settings, statistics, status, stream, teaching, tokens, totp, users, views,
};

/// Prefix of the paths of all routes.
pub(crate) const PREFIX: &str = "/api/v1";
/// Path of the OpenAPI document, below the prefix.
const DOCUMENT: &str = "/api/v1/openapi.json";

/// Registers routes with who may ask them.
struct Routes {
    context: Arc<Context>,
    router: OpenApiRouter<Arc<Context>>,
}

impl Routes {
    fn add(
        mut self,
        access: Access,
        (schemas, mut paths, methods): UtoipaMethodRouter<Arc<Context>>,
    ) -> Routes {
        paths.paths.values_mut().flat_map(operations).for_each(|operation| describe(operation, access));
        let methods = methods.route_layer(from_fn_with_state((Arc::clone(&self.context), access), gate));
        self.router = self.router.routes((schemas, paths, methods));
        self
    }
}

/// The service of all routes, and their document as JSON.
pub(crate) fn build(context: Arc<Context>) -> (Router, String) {
    let (viewer, analyst, admin) = (
        |reach| Access::Role(Role::Viewer, reach),
        |reach| Access::Role(Role::Analyst, reach),
        // An administrator has all sites.
        Access::Role(Role::Admin, Reach::AllSites),
    );
    let (no, own, all_sites) = (Reach::NoSite, Reach::OwnSites, Reach::AllSites);
    let all =
        Routes { context: Arc::clone(&context), router: OpenApiRouter::with_openapi(OpenApi::default()) }
            .add(Access::Public, routes!(status::health))
            .add(viewer(no), routes!(status::version))
            .add(viewer(own), routes!(events::list))
            .add(viewer(own), routes!(stream::stream))
            .add(viewer(own), routes!(facets::facets))
            .add(viewer(own), routes!(histogram::histogram))
            .add(viewer(own), routes!(events::one))
            .add(analyst(own), routes!(events::request))
            .add(viewer(own), routes!(statistics::statistics))
            .add(viewer(own), routes!(bans::list))
            .add(analyst(own), routes!(bans::add))
            .add(analyst(own), routes!(bans::lift))
            .add(viewer(own), routes!(live::upstreams))
            .add(viewer(own), routes!(live::limits))
            .add(viewer(own), routes!(live::lists))
            .add(viewer(own), routes!(live::certificates))
            .add(viewer(own), routes!(live::agents))
            .add(viewer(own), routes!(rules::list))
            .add(viewer(own), routes!(rules::one))
            .add(viewer(own), routes!(fields::sites))
            .add(viewer(own), routes!(fields::list))
            .add(viewer(own), routes!(fields::find))
            .add(viewer(own), routes!(fields::proposals))
            .add(analyst(own), routes!(fields::order))
            .add(analyst(own), routes!(fields::decide))
            .add(analyst(all_sites), routes!(teaching::list))
            .add(admin, routes!(teaching::start))
            .add(admin, routes!(teaching::order))
            .add(analyst(own), routes!(explain::explain))
            .add(analyst(own), routes!(advise::advise))
            .add(viewer(own), routes!(advise::groups))
            .add(viewer(own), routes!(exclusions::list))
            .add(analyst(own), routes!(exclusion_orders::add))
            .add(analyst(own), routes!(exclusion_orders::batch))
            .add(analyst(own), routes!(exclusions::remove))
            .add(analyst(own), routes!(exclusions::enforce))
            .add(analyst(own), routes!(clients::add, clients::remove))
            .add(viewer(own), routes!(live::sites))
            .add(viewer(own), routes!(live::site))
            .add(admin, routes!(site_settings::change))
            .add(viewer(own), routes!(interfaces::list))
            .add(viewer(own), routes!(interfaces::deviations))
            .add(viewer(own), routes!(interfaces::document))
            .add(viewer(own), routes!(interfaces::one))
            .add(admin, routes!(config::show, config::replace, config::change))
            .add(viewer(no), routes!(config::schema))
            .add(admin, routes!(check::check))
            .add(admin, routes!(sinks::test))
            .add(admin, routes!(replay::replay))
            .add(analyst(all_sites), routes!(revisions::list))
            .add(admin, routes!(revisions::one))
            .add(admin, routes!(revisions::restore))
            .add(admin, routes!(tokens::list, tokens::create))
            .add(admin, routes!(tokens::revoke))
            .add(admin, routes!(users::list, users::create))
            .add(admin, routes!(users::one, users::change, users::delete))
            .add(admin, routes!(sessions::list))
            .add(admin, routes!(sessions::end_one))
            .add(admin, routes!(sessions::end_of_user))
            .add(admin, routes!(audit::list))
            .add(admin, routes!(audit::export))
            .add(admin, routes!(reload::reload))
            .add(Access::Public, routes!(setup::setup))
            .add(Access::Public, routes!(login::login))
            .add(Access::Public, routes!(oidc::methods))
            .add(Access::Public, routes!(oidc::begin))
            .add(Access::Public, routes!(oidc::callback))
            .add(Access::Session, routes!(login::logout))
            .add(Access::Session, routes!(login::session))
            .add(Access::Session, routes!(login::password))
            .add(Access::Session, routes!(sessions::own, sessions::end_others))
            .add(Access::Session, routes!(sessions::end_own))
            .add(Access::Session, routes!(totp::offer, totp::confirm))
            .add(Access::Session, routes!(views::list, views::create))
            .add(Access::Session, routes!(views::change, views::delete));
    let head =
        OpenApiBuilder::new().info(info(context.supplies.version)).components(Some(components())).build();
    let (router, document) = OpenApiRouter::with_openapi(head).nest(PREFIX, all.router).split_for_parts();
    let text = serde_json::to_string(&document).unwrap_or_default();
    let routes = document.paths.paths.keys().cloned().chain([DOCUMENT.to_owned()]);
    let counts = Arc::new(RequestCounts::new(&context.supplies.registry, routes));
    let shown = text.clone();
    let show = move || async move { ([(CONTENT_TYPE, "application/json")], shown).into_response() };
    let router = router
        .route(DOCUMENT, axum::routing::get(show))
        .fallback(page)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state((Arc::clone(&context), counts), guard))
        .with_state(context);
    (router, text)
}

fn info(version: &str) -> Info {
    let mut info = Info::new("Portcullis", version);
    info.description = Some(
        "The admin API of Portcullis. Every error is a problem document (RFC 9457). Lists come in pages: `next` of one \
         is the cursor for the one behind it."
            .to_owned(),
    );
    let mut license = License::new("Apache-2.0");
    license.identifier = Some("Apache-2.0".to_owned());
    info.license = Some(license);
    info
}

fn components() -> Components {
    let mut components = Components::new();
    let mut token = Http::new(HttpAuthScheme::Bearer);
    token.description = Some("A token of `portcullis token create` or `POST /tokens`.".to_owned());
    components.add_security_scheme("token", SecurityScheme::Http(token));
    let cookie = ApiKeyValue::with_description(
        COOKIE_NAME,
        "The session of a user who logged in. Changes need `X-CSRF-Token` and `Origin`, too.",
    );
    components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    let problem =
        (<Problem as utoipa::ToSchema>::name().into_owned(), <Problem as utoipa::PartialSchema>::schema());
    components.schemas.extend([problem]);
    components
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, options, head, patch, trace, .. } = item;
    [get, put, post, delete, options, head, patch, trace].into_iter().flatten()
}

/// Says in the document what holds for every operation of this access.
fn describe(operation: &mut Operation, access: Access) {
    let needs = |scheme: &str| SecurityRequirement::new(scheme, Vec::<String>::new());
    let (security, role, reach) = match access {
        Access::Public => (Vec::new(), "none", Reach::NoSite),
        Access::Role(role, reach) => (vec![needs("token"), needs("session")], role.name(), reach),
        Access::Session => (vec![needs("session")], "session", Reach::NoSite),
    };
    operation.security = Some(security);
    operation.extensions =
        Some(Extensions::builder().add("x-role", role).add("x-sites", reach.name()).build());
    let mut problems = vec![("default", "The request is refused or has failed.")];
    if access != Access::Public {
        problems.push(("401", "Authentication is needed."));
        problems.push(("403", "The role does not suffice, or the request comes from elsewhere."));
    }
    for (status, description) in problems {
        let response = RefOr::T(problem_response(description));
        operation.responses.responses.entry(status.to_owned()).or_insert(response);
    }
}

fn problem_response(description: &str) -> Response {
    let schema = Ref::from_schema_name(<Problem as utoipa::ToSchema>::name());
    let content = Content::new(Some(RefOr::Ref(schema)));
    ResponseBuilder::new().description(description).content(PROBLEM_JSON, content).build()
}
