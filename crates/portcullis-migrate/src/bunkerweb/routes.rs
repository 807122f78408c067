//! Where requests for a service go, and how often a client may ask.

use super::Context;
use super::service::yes;
use crate::model::{Action, Endpoint, PathMatch, RateLimit, Route, Settings, Site, Upstream, upstream_name};
use crate::report::Entry;
use crate::site::push;
use crate::{text, units};

/// A rate limit, the path that it is for, and who said so.
pub(crate) type Limit = (String, RateLimit, Entry);

/// `LIMIT_REQ_URL` and `LIMIT_REQ_RATE`, by path.
pub(crate) fn limits(service: &str, cx: &mut Context<'_>) -> Vec<Limit> {
    let mut limits = Vec::new();
    let on = yes(service, "USE_LIMIT_REQ", true, "rate_limits", cx);
    let urls = cx.variables.numbered(service, "LIMIT_REQ_URL");
    for (suffix, rate, entry) in cx.variables.numbered(service, "LIMIT_REQ_RATE") {
        let url = urls.iter().find(|(other, _, _)| *other == suffix);
        let path = url.map_or("/", |(_, path, _)| path).to_owned();
        let parsed = rate
            .split_once("r/")
            .and_then(|(number, per)| Some((number.parse::<u32>().ok()?, per.to_owned())));
        let per_minute = parsed.as_ref().is_some_and(|(_, per)| per == "m");
        let number =
            parsed.filter(|(number, per)| (1..=1_000_000).contains(number) && (per == "s" || per == "m"));
        let Some((rate, _)) = number.filter(|_| on) else {
            cx.ledger.left(entry, "a rate is a number of r/s or r/m, and rate limits have to be switched on");
            continue;
        };
        let name = format!("limit-req{}", suffix.replace('_', "-"));
        let limit = RateLimit {
            name,
            key: Some("client".to_owned()),
            rate,
            per_minute,
            burst: rate,
            status: Some(429),
            entries: [entry].into_iter().chain(url.map(|(_, _, entry)| *entry)).collect(),
        };
        cx.ledger.changed(entry, "rate_limits; so many may come at once");
        limit.entries.iter().for_each(|entry| cx.ledger.promise(*entry));
        limits.push((path, limit, url.map_or(entry, |(_, _, entry)| *entry)));
    }
    for (path, _, entry) in limits.iter().filter(|(path, _, _)| path == "/") {
        cx.ledger.changed(*entry, format!("rate_limits of the site, for {path}"));
    }
    limits
}

/// Gives each limit for a path that no route has a route of its own, to where these requests go anyway.
fn limited_paths(limits: &[Limit], site: &mut Site, cx: &mut Context<'_>) {
    for (text, limit, entry) in limits.iter().filter(|(path, _, _)| path != "/") {
        let is_of = |route: &Route| route.settings.rate_limits.iter().any(|own| own.entries == limit.entries);
        if site.routes.iter().any(is_of) {
            continue;
        }
        // Any of them is a pattern; one that is a plain path is meant as one.
        let pattern = || text::groups(text).map(|_| PathMatch::Pattern(text.clone()));
        let Some(path) = path_of(text).or_else(pattern) else {
            cx.ledger.left(*entry, "its LIMIT_REQ_URL cannot be the path of a route");
            continue;
        };
        // The longest prefix wins, as it would without the limit.
        let length = |path: &PathMatch| match path {
            PathMatch::Prefix(prefix) => prefix.len(),
            PathMatch::Exact(_) | PathMatch::Pattern(_) => 0,
        };
        let covers = |route: &&Route| match (&route.path, &path) {
            (PathMatch::Prefix(prefix), PathMatch::Prefix(path) | PathMatch::Exact(path)) => {
                path.starts_with(prefix.as_str())
            }
            (PathMatch::Prefix(prefix), PathMatch::Pattern(_)) => prefix == "/",
            _ => false,
        };
        let around = site.routes.iter().filter(covers).max_by_key(|route| length(&route.path)).cloned();
        let Some(Route { path: PathMatch::Prefix(prefix), action, mut settings, .. }) = around else {
            continue;
        };
        let action = match (action, &path) {
            (
                Action::Forward { upstream, rewrite: Some(to) },
                PathMatch::Prefix(own) | PathMatch::Exact(own),
            ) => Action::Forward { upstream, rewrite: Some(to + &own[prefix.len()..]) },
            (Action::Forward { rewrite: Some(_), .. }, PathMatch::Pattern(_)) => continue,
            (action, _) => action,
        };
        settings.rate_limits.push(limit.clone());
        if push(site, Route::new(path, action, settings)) {
            cx.ledger.changed(*entry, "rate_limits of a route of its own");
        }
    }
}

/// The routes of `REVERSE_PROXY_HOST` and what belongs to it.
pub(crate) fn read(
    service: &str,
    settings: &Settings,
    limits: &[Limit],
    site: &mut Site,
    cx: &mut Context<'_>,
) {
    let hosts = cx.variables.numbered(service, "REVERSE_PROXY_HOST");
    let on = yes(service, "USE_REVERSE_PROXY", false, "routes", cx);
    let get = |name: &str, suffix: &str, cx: &Context<'_>| {
        cx.variables
            .numbered(service, name)
            .into_iter()
            .find(|(other, _, _)| other == suffix)
            .map(|(_, value, entry)| (value, entry))
    };
    for (suffix, url, entry) in hosts {
        let path = get("REVERSE_PROXY_URL", &suffix, cx);
        let text = path.as_ref().map_or("/", |(path, _)| path).to_owned();
        if !on || url.is_empty() {
            cx.ledger.left(entry, "USE_REVERSE_PROXY is not `yes`");
            continue;
        }
        let Some(path_match) = path_of(&text) else {
            cx.ledger.left(entry, "its REVERSE_PROXY_URL cannot be the path of a route");
            continue;
        };
        let Some((mut upstream, target)) = upstream(&url) else {
            cx.ledger.left(entry, "endpoints are http:// and https:// URLs, without variables");
            site.lost.push(entry);
            continue;
        };
        let mut own = settings.clone();
        for (name, to) in [
            ("REVERSE_PROXY_CONNECT_TIMEOUT", &mut upstream.connect_timeout),
            ("REVERSE_PROXY_READ_TIMEOUT", &mut upstream.read_timeout),
            ("REVERSE_PROXY_SEND_TIMEOUT", &mut upstream.write_timeout),
        ] {
            if let Some((value, entry)) = get(name, &suffix, cx) {
                *to = units::time(&value);
                cx.ledger.taken(entry, "time limits of the upstream");
            }
        }
        if let Some((value, entry)) = get("REVERSE_PROXY_HEADERS", &suffix, cx) {
            request_headers(&value, entry, &mut own, cx);
        }
        for name in ["REVERSE_PROXY_WS", "REVERSE_PROXY_KEEPALIVE"] {
            if let Some((_, entry)) = get(name, &suffix, cx) {
                cx.ledger.taken(entry, "WebSocket passes as it is, and connections are kept");
            }
        }
        for (_, limit, entry) in limits.iter().filter(|(path, _, _)| *path == text && path != "/") {
            own.rate_limits.push(limit.clone());
            cx.ledger.taken(*entry, "rate_limits of the route");
        }
        if let Some((_, entry)) = get("REVERSE_PROXY_AUTH_REQUEST", &suffix, cx) {
            own.closed.push(entry);
        }
        let is_tls = upstream.endpoints.iter().any(|endpoint| endpoint.url.starts_with("https"));
        let name = cx.model.upstream(upstream);
        let rewrite = target.filter(|target| path_match != PathMatch::Prefix(target.clone()));
        let rewrite = rewrite.filter(|_| !matches!(path_match, PathMatch::Pattern(_)));
        let action = Action::Forward { upstream: name.clone(), rewrite };
        if !push(site, Route::new(path_match, action, own)) {
            cx.ledger.left(entry, "another route of this site has the same path");
            continue;
        }
        if let Some((_, entry)) = path {
            cx.ledger.taken(entry, "path of the route");
        }
        match is_tls {
            true => cx.ledger.changed(
                entry,
                format!("upstream `{name}`; its certificate is verified, against tls.ca if you name one"),
            ),
            false => cx.ledger.taken(entry, format!("upstream `{name}`")),
        }
    }
    limited_paths(limits, site, cx);
}

fn path_of(text: &str) -> Option<PathMatch> {
    match text.strip_prefix("~*").or(text.strip_prefix('~')) {
        Some(pattern) => {
            let pattern = if text.starts_with("~*") {
                format!("(?i){}", pattern.trim())
            } else {
                pattern.trim().to_owned()
            };
            text::groups(&pattern).map(|_| PathMatch::Pattern(pattern))
        }
        None => match text.strip_prefix("= ") {
            Some(path) => text::is_path(path).then(|| PathMatch::Exact(path.to_owned())),
            None => text::is_path(text).then(|| PathMatch::Prefix(text.to_owned())),
        },
    }
}

/// An upstream and the path of its URL.
fn upstream(url: &str) -> Option<(Upstream, Option<String>)> {
    let (scheme, rest) = url.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme))?;
    let (authority, path) = match rest.find('/') {
        Some(at) => (&rest[..at], Some(rest[at..].to_owned())),
        None => (rest, None),
    };
    let fits = text::is_authority(authority) && path.as_deref().is_none_or(text::is_path);
    let endpoint = Endpoint { url: format!("{scheme}://{authority}"), ..Endpoint::default() };
    fits.then(|| {
        (Upstream { name: upstream_name(authority), endpoints: vec![endpoint], ..Upstream::default() }, path)
    })
}

/// `NAME value;NAME value`.
fn request_headers(text: &str, entry: Entry, settings: &mut Settings, cx: &mut Context<'_>) {
    let mut left = Vec::new();
    for field in text.split(';').map(str::trim).filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once(' ').unwrap_or((field, ""));
        let name = name.to_ascii_lowercase();
        let value = text::template(value.trim(), |name| match name {
            "host" | "http_host" => Some("{host}".to_owned()),
            "remote_addr" => Some("{client}".to_owned()),
            "request_id" => Some("{request_id}".to_owned()),
            _ => None,
        });
        match value {
            Some(value) if text::is_field_name(&name) && !text::is_ours(&name) && name != "host" => {
                settings.request_headers.set.insert(name, value);
            }
            _ => left.push(name),
        }
    }
    match left.is_empty() {
        true => cx.ledger.taken(entry, "request_headers.set"),
        false => cx.ledger.changed(entry, format!("request_headers.set, without {}", left.join(" "))),
    }
}
