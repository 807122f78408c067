//! `ProxyPass`, `ProxyPassMatch` and balancers: where requests go.

use super::Context;
use super::scope::Scope;
use super::syntax::Directive;
use crate::model::{Action, Endpoint, PathMatch, Route, Upstream, UpstreamTls, upstream_name};
use crate::{text, units};

/// Reads `<Proxy balancer://NAME>`.
pub(crate) fn balancer(item: &Directive, cx: &mut Context<'_>) {
    let address = item.arg(0).trim_matches(['"', '\'']);
    let Some(name) = address.strip_prefix("balancer://").map(|name| name.trim_end_matches('/')) else {
        return cx.taken(item, "what is in it, where it has a counterpart");
    };
    let mut upstream = Upstream { name: name.to_owned(), ..Upstream::default() };
    for inner in item.children() {
        match inner.name.as_str() {
            "balancermember" => member(inner, &mut upstream, cx),
            "proxyset" => {
                let missing: Vec<String> =
                    inner.args.iter().filter(|arg| !parameter(arg, &mut upstream)).cloned().collect();
                settle(inner, "upstream", &missing, cx);
            }
            _ => cx.left(inner, "a balancer has members and ProxySet"),
        }
    }
    cx.taken(item, "upstream");
    cx.balancers.insert(name.to_owned(), upstream);
}

fn settle(item: &Directive, note: &str, missing: &[String], cx: &mut Context<'_>) {
    match missing.is_empty() {
        true => cx.taken(item, note),
        false => cx.changed(item, format!("{note}, without {}", missing.join(", "))),
    }
}

fn member(item: &Directive, upstream: &mut Upstream, cx: &mut Context<'_>) {
    let url = item.arg(0).trim_end_matches('/');
    let Some((scheme, authority)) = scheme(url).filter(|(_, authority)| text::is_authority(authority)) else {
        return cx.left(item, "endpoints are http:// and https:// URLs of a host and a port");
    };
    let mut endpoint = Endpoint { url: format!("{scheme}://{authority}"), ..Endpoint::default() };
    let mut missing = Vec::new();
    for option in item.args.iter().skip(1) {
        match option.split_once('=') {
            Some(("loadfactor", value)) => {
                endpoint.weight = value.parse().ok().filter(|weight| (1..=1000).contains(weight));
            }
            Some(("status", "+H")) => endpoint.backup = true,
            Some(("status", "+D")) => return cx.left(item, "this member is marked as down"),
            Some(("route", _)) => {}
            _ if parameter(option, upstream) => {}
            _ => missing.push(option.clone()),
        }
    }
    let mixed = upstream.endpoints.iter().any(|known| known.url.starts_with("https") != (scheme == "https"));
    if mixed || upstream.endpoints.iter().any(|known| known.url == endpoint.url) {
        return cx.left(item, "the endpoints of an upstream have one scheme, and each stands once");
    }
    upstream.endpoints.push(endpoint);
    settle(item, "endpoint", &missing, cx);
}

/// A parameter `key=value` of an upstream; false if there is nothing like it.
fn parameter(text: &str, upstream: &mut Upstream) -> bool {
    let Some((key, value)) = text.split_once('=') else { return false };
    match key.to_ascii_lowercase().as_str() {
        "connectiontimeout" => upstream.connect_timeout = units::time(value),
        "timeout" => upstream.read_timeout = units::time(value),
        "max" => upstream.requests_max = value.parse().ok().filter(|number| *number > 0),
        "retry" => upstream.ejection_time = units::time(value),
        "lbmethod" => {
            upstream.balance = match value {
                "bybusyness" => Some("least_connections"),
                _ => None,
            };
            return ["byrequests", "bybusyness"].contains(&value);
        }
        "stickysession" => {
            let name = value.split('|').next().unwrap_or_default();
            if !text::is_field_name(name) {
                return false;
            }
            upstream.sticky_cookie = Some(name.to_owned());
        }
        "route" | "keepalive" | "nofailover" | "ping" | "flushpackets" | "enablereuse" | "disablereuse"
        | "acquire" | "ttl" | "smax" | "min" => {}
        _ => return false,
    }
    true
}

/// The scheme of endpoints, and what follows it.
fn scheme(url: &str) -> Option<(&'static str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = match scheme {
        "http" | "ws" | "h2c" => "http",
        "https" | "wss" | "h2" => "https",
        _ => return None,
    };
    Some((scheme, rest))
}

/// The upstream of a URL and the path in it; `None` if there can be none, which is settled then.
pub(super) fn upstream(
    item: &Directive,
    url: &str,
    scope: &Scope,
    cx: &mut Context<'_>,
) -> Option<(Upstream, String, String)> {
    let tls =
        |upstream: &Upstream| match upstream.endpoints.iter().any(|known| known.url.starts_with("https")) {
            true => scope.upstream_tls.clone(),
            false => UpstreamTls::default(),
        };
    if let Some(rest) = url.strip_prefix("balancer://") {
        let (name, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let Some(known) = cx.balancers.get(name).filter(|known| !known.endpoints.is_empty()) else {
            cx.left(item, format!("no member of the balancer `{name}` can be an endpoint"));
            return None;
        };
        let mut upstream = known.clone();
        upstream.tls = tls(&upstream);
        return Some((upstream, name.to_owned(), path.to_owned()));
    }
    let found = scheme(url).map(|(scheme, rest)| {
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        (scheme, authority, path)
    });
    let Some((scheme, authority, path)) = found.filter(|(_, authority, _)| text::is_authority(authority))
    else {
        cx.left(item, "only HTTP is spoken to upstreams: endpoints are http:// and https:// URLs");
        return None;
    };
    let protocol = match url.split(':').next() {
        Some("h2c") => Some("h2c"),
        Some("h2") => Some("h2"),
        _ => None,
    };
    let endpoint = Endpoint { url: format!("{scheme}://{authority}"), ..Endpoint::default() };
    let mut upstream = Upstream {
        name: upstream_name(authority),
        endpoints: vec![endpoint],
        protocol,
        ..Upstream::default()
    };
    upstream.tls = tls(&upstream);
    Some((upstream, authority.to_owned(), path.to_owned()))
}

/// The routes of a `ProxyPass`, whose first argument is the URL if it stands in the location `place`.
pub(crate) fn pass(
    item: &Directive,
    place: Option<&PathMatch>,
    scope: &Scope,
    cx: &mut Context<'_>,
) -> Vec<Route> {
    let (path, url, options) = match (place, item.args.as_slice()) {
        (Some(place), [url, options @ ..]) => (place.clone(), url, options),
        (None, [path, url, options @ ..]) if item.name == "proxypassmatch" => {
            (PathMatch::Pattern(path.clone()), url, options)
        }
        (None, [path, url, options @ ..]) => (PathMatch::Prefix(path.clone()), url, options),
        _ => {
            cx.left(item, "a ProxyPass has a path and a URL");
            return Vec::new();
        }
    };
    if !is_usable(&path) {
        cx.left(item, "this path or pattern cannot be one of a route");
        return Vec::new();
    }
    if url == "!" {
        cx.changed(item, "not forwarded: a route answers 404, since there are no files here");
        let action = Action::Respond { status: 404, body: None };
        return paths(&path).into_iter().map(|(path, _)| route(path, action.clone(), scope, None)).collect();
    }
    let Some((mut upstream, host, target)) = upstream(item, url, scope, cx) else { return Vec::new() };
    if upstream.read_timeout.is_none() {
        upstream.read_timeout.clone_from(&scope.read_timeout);
    }
    let missing: Vec<String> =
        options.iter().filter(|option| !parameter(option, &mut upstream)).cloned().collect();
    let Some(rewrites) = rewrites(&path, &target) else {
        cx.left(item, "the path of this URL cannot be a `rewrite`");
        return Vec::new();
    };
    let name = cx.model.upstream(upstream);
    settle(item, &format!("upstream `{name}`"), &missing, cx);
    let forward = |(path, rewrite)| {
        route(path, Action::Forward { upstream: name.clone(), rewrite }, scope, Some(&host))
    };
    rewrites.into_iter().map(forward).collect()
}

pub(super) fn route(path: PathMatch, action: Action, scope: &Scope, host: Option<&str>) -> Route {
    if scope.denied {
        let action = Action::Respond { status: 403, body: None };
        return Route::new(path, action, scope.settings(None));
    }
    Route::new(path, action, scope.settings(host))
}

fn is_usable(path: &PathMatch) -> bool {
    match path {
        PathMatch::Prefix(path) | PathMatch::Exact(path) => text::is_path(path),
        PathMatch::Pattern(pattern) => text::groups(pattern).is_some(),
    }
}

/// Paths of a location: Apache's `/a` is `/a` and what is below `/a/`, not `/ab`. True for what is below.
pub(crate) fn paths(path: &PathMatch) -> Vec<(PathMatch, bool)> {
    match path {
        PathMatch::Prefix(prefix) if !prefix.ends_with('/') => {
            vec![(PathMatch::Exact(prefix.clone()), false), (PathMatch::Prefix(format!("{prefix}/")), true)]
        }
        other @ (PathMatch::Prefix(_) | PathMatch::Exact(_) | PathMatch::Pattern(_)) => {
            vec![(other.clone(), false)]
        }
    }
}

/// The paths of routes, and what the upstream gets in their place.
fn rewrites(path: &PathMatch, target: &str) -> Option<Vec<(PathMatch, Option<String>)>> {
    let (PathMatch::Prefix(own) | PathMatch::Exact(own)) = path else {
        let PathMatch::Pattern(pattern) = path else { return None };
        let groups = text::groups(pattern)?;
        let in_range = |at: usize| {
            target[at + 1..].starts_with(|c: char| c.to_digit(10).is_some_and(|n| n as usize <= groups))
        };
        let usable = target.match_indices('$').all(|(at, _)| in_range(at)) && !target.contains('{');
        let rewrite = match target {
            "" => None,
            target if target.contains('$') && usable && text::is_path(target) => Some(target.to_owned()),
            target if target.contains('$') => return None,
            _ => None,
        };
        return Some(vec![(path.clone(), rewrite)]);
    };
    let target = if target.is_empty() { "/" } else { target };
    if !text::is_path(target) {
        return None;
    }
    let same =
        own == target || (own.trim_end_matches('/') == target.trim_end_matches('/') && !own.is_empty());
    let rewrite = |path: String| (!same).then_some(path);
    Some(
        if let PathMatch::Prefix(prefix) = path
            && !prefix.ends_with('/')
        {
            vec![
                (PathMatch::Exact(prefix.clone()), rewrite(target.to_owned())),
                (
                    PathMatch::Prefix(format!("{prefix}/")),
                    rewrite(format!("{}/", target.trim_end_matches('/'))),
                ),
            ]
        } else {
            vec![(path.clone(), rewrite(target.to_owned()))]
        },
    )
}
