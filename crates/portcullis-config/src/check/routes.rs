//! `sites.routes`.

use std::ops::Range;

use portcullis_match::{Regex, RegexFlags};

use super::Checker;
use crate::access::{self, Access, Ban};
use crate::agents::{self, AgentUse};
use crate::checked::Policy;
use crate::compression::{self, Compression};
use crate::convert::{failure, in_mode, route_policy, site_mode};
use crate::declared;
use crate::fields;
use crate::mistakes::Mistakes;
use crate::raw;
use crate::route::{HeaderChanges, PathMatch, Route, RouteTarget};
use crate::semantic;
use crate::values::{is_token, number};

/// What the routes of a site have where they do not say otherwise.
struct OfSite {
    policy: Policy,
    access: Option<Access>,
    ban: Option<Ban>,
    compression: Option<Compression>,
    agents: Vec<AgentUse>,
    upstream: Option<usize>,
    request_headers: HeaderChanges,
    response_headers: HeaderChanges,
    request_trailers: Vec<String>,
}

impl Checker<'_> {
    /// The routes of a site, in the order in which they are tried.
    pub(super) fn routes(&mut self, site: &raw::Site, limit_names: &mut Vec<String>) -> Vec<Route> {
        let of_site = self.of_site(site);
        let mut routes: Vec<Route> = Vec::new();
        for raw in &site.routes {
            let Some((route, span)) = self.route(site, raw, &of_site, limit_names) else { continue };
            let same = |other: &Route| {
                (&other.path, &other.methods, &other.headers) == (&route.path, &route.methods, &route.headers)
            };
            if routes.iter().any(same) {
                self.mistakes.wrong(span, format!("there are two routes `{}`", route.path.text()));
            }
            routes.push(route);
        }
        let is_root =
            |route: &Route| route.path == PathMatch::Prefix("/".to_string()) && route.conditions() == 0;
        match of_site.upstream {
            Some(upstream) if !routes.iter().any(is_root) => {
                let policy = self.intern(in_mode(site_mode(site), of_site.policy));
                routes.push(Route {
                    request_headers: of_site.request_headers,
                    response_headers: of_site.response_headers,
                    request_trailers: of_site.request_trailers,
                    access: of_site.access,
                    ban: of_site.ban,
                    compression: of_site.compression,
                    agents: of_site.agents,
                    ..Route::root(upstream, policy, failure(&site.failure))
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

    fn of_site(&mut self, site: &raw::Site) -> OfSite {
        let policy = self.policy(site);
        let own = site.access.as_ref().map(|raw| access::access(&mut self.mistakes, raw, &self.available));
        OfSite {
            policy,
            access: own.or_else(|| self.access.clone()),
            ban: access::ban::check(&mut self.mistakes, site.ban.as_ref(), &site.name, self.ban.as_ref()),
            compression: compression::check(
                &mut self.mistakes,
                site.compression.as_ref(),
                self.compression.as_ref(),
            ),
            agents: agents::uses(&mut self.mistakes, &self.agents, &site.agents),
            upstream: site.upstream.as_ref().map(|name| self.upstream(name)),
            request_headers: fields::changes(&mut self.mistakes, &site.request_headers, true),
            response_headers: fields::changes(&mut self.mistakes, &site.response_headers, false),
            request_trailers: fields::trailers(&mut self.mistakes, &site.request_trailers),
        }
    }

    /// A route, and where its path stands; none if it has no path or nothing to do.
    fn route(
        &mut self,
        site: &raw::Site,
        raw: &raw::Route,
        of_site: &OfSite,
        limit_names: &mut Vec<String>,
    ) -> Option<(Route, Range<usize>)> {
        let (path, groups, span) = path(&mut self.mistakes, site, raw)?;
        let target = target(self, raw, of_site.upstream, &path, groups, &span)?;
        let semantic = raw.semantic.as_ref().map(|raw| {
            let mut semantic = semantic::check(&mut self.mistakes, raw);
            let of_profiles = of_site.policy.semantic.exclude.iter().filter(|each| each.profile.is_some());
            semantic.exclude.extend(of_profiles.cloned());
            semantic
        });
        let api = raw.api.as_ref();
        let api = api.and_then(|raw| declared::check(&mut self.mistakes, raw, of_site.policy.api.as_ref()));
        let policy = self.intern(route_policy(raw, site, &of_site.policy, semantic, api));
        let methods = methods(&mut self.mistakes, raw);
        let headers = headers(&mut self.mistakes, raw);
        let text = path.text();
        let name = match (&raw.name, methods.as_slice()) {
            (Some(name), _) => name.value.clone(),
            (None, []) => text.to_owned(),
            (None, some) => format!("{} {text}", some.join(",")),
        };
        let access = raw.access.as_ref().map(|raw| access::access(&mut self.mistakes, raw, &self.available));
        let banned_by = format!("{}/{name}", site.name.value);
        let route = Route {
            access: access.or_else(|| of_site.access.clone()),
            ban: access::ban::check(&mut self.mistakes, raw.ban.as_ref(), &banned_by, of_site.ban.as_ref()),
            compression: compression::check(
                &mut self.mistakes,
                raw.compression.as_ref(),
                of_site.compression.as_ref(),
            ),
            rate_limits: access::rate_limits(
                &mut self.mistakes,
                &raw.rate_limits,
                limit_names,
                &self.available,
            ),
            semantic_of: raw.semantic.as_ref().map(|_| match &raw.name {
                Some(name) => name.value.clone(),
                None => text.to_owned(),
            }),
            name,
            methods,
            headers,
            target,
            request_headers: match &raw.request_headers {
                own @ Some(_) => fields::changes(&mut self.mistakes, own, true),
                None => of_site.request_headers.clone(),
            },
            response_headers: match &raw.response_headers {
                own @ Some(_) => fields::changes(&mut self.mistakes, own, false),
                None => of_site.response_headers.clone(),
            },
            request_trailers: match &raw.request_trailers {
                Some(own) => fields::trailers(&mut self.mistakes, own),
                None => of_site.request_trailers.clone(),
            },
            policy,
            agents: match &raw.agents {
                Some(own) => agents::uses(&mut self.mistakes, &self.agents, own),
                None => of_site.agents.clone(),
            },
            failure: failure(raw.failure.as_ref().unwrap_or(&site.failure)),
            path,
        };
        Some((route, span))
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
