//! `sites.routes`.

use std::ops::Range;

use portcullis_match::{Regex, RegexFlags};

use super::Checker;
use crate::access;
use crate::agents;
use crate::compression;
use crate::convert::{failure, in_mode, route_policy, site_mode};
use crate::fields;
use crate::mistakes::Mistakes;
use crate::raw;
use crate::route::{HeaderChanges, PathMatch, Route, RouteTarget};
use crate::semantic;
use crate::values::{is_token, number};

impl Checker<'_> {
    /// The routes of a site, in the order in which they are tried.
    pub(super) fn routes(&mut self, site: &raw::Site, limit_names: &mut Vec<String>) -> Vec<Route> {
        let base = self.policy(site);
        let own = site.access.as_ref().map(|raw| access::access(&mut self.mistakes, raw, self.available));
        let of_site = own.or_else(|| self.access.clone());
        let of_document = self.ban.clone();
        let ban = access::ban::check(&mut self.mistakes, site.ban.as_ref(), &site.name, of_document.as_ref());
        let of_document = self.compression.clone();
        let compression =
            compression::check(&mut self.mistakes, site.compression.as_ref(), of_document.as_ref());
        let agents = agents::uses(&mut self.mistakes, &self.agents, &site.agents);
        let upstream = site.upstream.as_ref().map(|name| self.upstream(name));
        let request_headers = fields::changes(&mut self.mistakes, &site.request_headers, true);
        let response_headers = fields::changes(&mut self.mistakes, &site.response_headers, false);
        let request_trailers = fields::trailers(&mut self.mistakes, &site.request_trailers);
        let mut routes: Vec<Route> = Vec::new();
        for route in &site.routes {
            let Some((path, groups, span)) = path(&mut self.mistakes, site, route) else { continue };
            let Some(target) = target(self, route, upstream, &path, groups, &span) else { continue };
            let semantic = route.semantic.as_ref().map(|raw| {
                let mut semantic = semantic::check(&mut self.mistakes, raw);
                let of_profiles = base.semantic.exclude.iter().filter(|each| each.profile.is_some());
                semantic.exclude.extend(of_profiles.cloned());
                semantic
            });
            let policy = self.intern(route_policy(route, site, &base, semantic));
            let own = |mistakes: &mut Mistakes<'_>, raw: &Option<raw::HeaderChanges>, of_site, is_request| {
                match raw {
                    Some(_) => fields::changes(mistakes, raw, is_request),
                    None => HeaderChanges::clone(of_site),
                }
            };
            let methods = methods(&mut self.mistakes, route);
            let headers = headers(&mut self.mistakes, route);
            let (PathMatch::Exact(text) | PathMatch::Pattern(text) | PathMatch::Prefix(text)) = &path;
            let name = match (&route.name, methods.as_slice()) {
                (Some(name), _) => name.value.clone(),
                (None, []) => text.clone(),
                (None, some) => format!("{} {text}", some.join(",")),
            };
            let same =
                |other: &Route| (&other.path, &other.methods, &other.headers) == (&path, &methods, &headers);
            if routes.iter().any(same) {
                self.mistakes.wrong(span, format!("there are two routes `{text}`"));
            }
            let own_access =
                route.access.as_ref().map(|raw| access::access(&mut self.mistakes, raw, self.available));
            routes.push(Route {
                access: own_access.or_else(|| of_site.clone()),
                ban: access::ban::check(
                    &mut self.mistakes,
                    route.ban.as_ref(),
                    &format!("{}/{name}", site.name.value),
                    ban.as_ref(),
                ),
                compression: compression::check(
                    &mut self.mistakes,
                    route.compression.as_ref(),
                    compression.as_ref(),
                ),
                rate_limits: access::rate_limits(
                    &mut self.mistakes,
                    &route.rate_limits,
                    limit_names,
                    self.available,
                ),
                name,
                methods,
                headers,
                target,
                request_headers: own(&mut self.mistakes, &route.request_headers, &request_headers, true),
                response_headers: own(&mut self.mistakes, &route.response_headers, &response_headers, false),
                request_trailers: match &route.request_trailers {
                    Some(own) => fields::trailers(&mut self.mistakes, own),
                    None => request_trailers.clone(),
                },
                policy,
                semantic_of: route.semantic.as_ref().map(|_| match &route.name {
                    Some(name) => name.value.clone(),
                    None => text.clone(),
                }),
                agents: match &route.agents {
                    Some(own) => agents::uses(&mut self.mistakes, &self.agents, own),
                    None => agents.clone(),
                },
                failure: failure(route.failure.as_ref().unwrap_or(&site.failure)),
                path,
            });
        }
        let is_root =
            |route: &Route| route.path == PathMatch::Prefix("/".to_string()) && route.conditions() == 0;
        match upstream {
            Some(upstream) if !routes.iter().any(is_root) => {
                let policy = self.intern(in_mode(site_mode(site), base));
                let root = Route::root(upstream, policy, failure(&site.failure));
                routes.push(Route {
                    request_headers,
                    response_headers,
                    request_trailers,
                    access: of_site,
                    ban,
                    compression,
                    agents,
                    ..root
                });
            }
            None if site.routes.is_empty() => self.mistakes.wrong_with_hint(
                site.name.span.clone(),
                format!("the site `{}` has neither an upstream nor a route", site.name.value),
                "add `upstream = \"NAME\"`, and `[upstreams.NAME]` with its endpoints".to_string(),
            ),
            _ => {}
        }
        routes.sort_by_key(Route::rank);
        routes
    }
}

/// The path of a route, the number of groups if it is a pattern, and where it stands.
fn path(
    mistakes: &mut Mistakes<'_>,
    site: &raw::Site,
    route: &raw::Route,
) -> Option<(PathMatch, Option<usize>, Range<usize>)> {
    let given = [&route.path, &route.path_exact, &route.path_pattern];
    let mut spans = given.into_iter().flatten().map(|text| text.span.clone());
    let Some(span) = spans.next() else {
        let at = route.name.as_ref().unwrap_or(&site.name).span.clone();
        let hint = "add `path = \"/\"`, `path_exact` or `path_pattern`".to_string();
        mistakes.wrong_with_hint(at, "a route without a path".to_string(), hint);
        return None;
    };
    if let Some(second) = spans.next() {
        mistakes.wrong(
            second,
            "a route must have only one of `path`, `path_exact` and `path_pattern`".to_string(),
        );
        return None;
    }
    if let Some(pattern) = &route.path_pattern {
        return match Regex::new(pattern.value.as_bytes(), RegexFlags::default()) {
            Ok(regex) => Some((PathMatch::Pattern(pattern.value.clone()), Some(regex.group_count()), span)),
            Err(error) => {
                mistakes.wrong(span, format!("this pattern cannot be used: {error}"));
                None
            }
        };
    }
    let (text, path) = match (&route.path, &route.path_exact) {
        (Some(text), _) => (text, PathMatch::Prefix(text.value.clone())),
        (None, Some(text)) => (text, PathMatch::Exact(text.value.clone())),
        (None, None) => return None,
    };
    if !text.starts_with('/') {
        mistakes.wrong(span.clone(), "a path must begin with `/`".to_string());
    }
    Some((path, None, span))
}

fn target(
    checker: &mut Checker<'_>,
    route: &raw::Route,
    of_site: Option<usize>,
    path: &PathMatch,
    groups: Option<usize>,
    span: &Range<usize>,
) -> Option<RouteTarget> {
    let answers = [
        route.redirect.as_ref().map(|redirect| ("redirect", redirect.span.clone())),
        route.respond.as_ref().map(|respond| ("respond", respond.span.clone())),
    ];
    let mut answers = answers.into_iter().flatten();
    if let Some((name, _)) = answers.next() {
        let others = [
            answers.next().map(|(_, span)| span),
            route.upstream.as_ref().map(|upstream| upstream.span.clone()),
            route.rewrite.as_ref().map(|rewrite| rewrite.span.clone()),
        ];
        for span in others.into_iter().flatten() {
            checker.mistakes.wrong(
                span,
                format!("a route with `{name}` cannot also have an upstream or another response"),
            );
        }
    }
    if let Some(redirect) = &route.redirect {
        let to = &redirect.to;
        if !["https://", "http://", "/"].iter().any(|start| to.starts_with(start)) {
            let hint = "write a target that begins with `https://`, `http://` or `/`".to_string();
            checker.mistakes.wrong_with_hint(
                to.span.clone(),
                format!("`{}` is not a redirect target", to.value),
                hint,
            );
        }
        let status = redirect.status.as_ref().map_or(302, |status| status.value);
        if let (false, Some(at)) = (matches!(status, 301 | 302 | 303 | 307 | 308), &redirect.status) {
            checker.mistakes.wrong(
                at.span.clone(),
                "a redirect must have the status 301, 302, 303, 307 or 308".to_string(),
            );
        }
        return Some(RouteTarget::Redirect {
            status,
            to: fields::template(&mut checker.mistakes, to, groups),
        });
    }
    if let Some(respond) = &route.respond {
        let status = number(&mut checker.mistakes, respond.status.clone(), 200..=599, "status", 200);
        let media_type = respond.content_type.as_ref();
        if let (None, Some(given)) = (&respond.body, media_type) {
            checker.mistakes.wrong(given.span.clone(), "`content_type` requires a `body`".to_string());
        }
        let media_type = media_type.map_or("text/plain; charset=utf-8", |given| given.value.as_str());
        let body = respond.body.clone().map(|body| (body, media_type.to_string()));
        return Some(RouteTarget::Respond { status, body });
    }
    let own = route.upstream.as_ref().map(|name| checker.upstream(name));
    let Some(upstream) = own.or(of_site) else {
        checker.mistakes.wrong(span.clone(), "neither the route nor its site names an upstream".to_string());
        return None;
    };
    let rewrite = route.rewrite.as_ref().map(|rewrite| {
        if !rewrite.starts_with('/') {
            checker.mistakes.wrong(rewrite.span.clone(), "a path must begin with `/`".to_string());
        }
        if rewrite.contains(['?', '#']) || !rewrite.bytes().all(|byte| byte.is_ascii_graphic()) {
            checker.mistakes.wrong(rewrite.span.clone(), format!("`{}` is not a path", rewrite.value));
        }
        debug_assert_eq!(groups.is_some(), matches!(path, PathMatch::Pattern(_)));
        fields::template(&mut checker.mistakes, rewrite, groups)
    });
    Some(RouteTarget::Forward { upstream, rewrite, idempotent: route.idempotent.unwrap_or(false) })
}

fn methods(mistakes: &mut Mistakes<'_>, route: &raw::Route) -> Vec<String> {
    let mut methods = Vec::new();
    for method in &route.methods {
        if !is_token(method) || method.bytes().any(|byte| byte.is_ascii_lowercase()) {
            let hint = "write methods in upper case, for example `POST`".to_string();
            mistakes.wrong_with_hint(
                method.span.clone(),
                format!("`{}` is not a method", method.value),
                hint,
            );
        }
        methods.push(method.value.clone());
    }
    methods
}

fn headers(mistakes: &mut Mistakes<'_>, route: &raw::Route) -> Vec<(String, Option<String>)> {
    let mut headers = Vec::new();
    for (name, value) in &route.headers {
        if !is_token(name) {
            mistakes.wrong(value.span.clone(), format!("`{name}` is not the name of a header"));
        }
        let any = value.value == "*";
        headers.push((name.to_ascii_lowercase(), (!any).then(|| value.value.clone())));
    }
    headers
}
