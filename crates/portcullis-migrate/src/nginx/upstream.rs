//! `upstream` and `proxy_pass`: where requests go.

use super::Context;
use super::scope::Scope;
use super::syntax::Directive;
use crate::model::{Endpoint, Upstream, UpstreamTls};
use crate::report::Entry;
use crate::{model, text, units};

/// Where `proxy_pass` leads.
pub(crate) struct Target {
    /// Name of the upstream.
    pub upstream: String,
    /// The `Host` that nginx would send.
    pub host: String,
    /// The path in its URL.
    pub path: Option<String>,
}

/// The upstream of a `proxy_pass` or `grpc_pass`; `None` if there can be none, which is settled then.
pub(crate) fn target(item: &Directive, scope: &Scope, cx: &mut Context<'_>) -> Option<Target> {
    let (url, used) = scope.with_constants(item.arg(0));
    // The whole target of the request is what an upstream gets without a path, too.
    let url =
        ["$request_uri", "$uri$is_args$args"].iter().find_map(|rest| url.strip_suffix(rest)).unwrap_or(&url);
    let mut left = |why: &str| {
        cx.ledger.left(item.entry, why);
        None
    };
    let grpc = item.name == "grpc_pass";
    let (tls, rest) = match url.split_once("://") {
        Some(("http" | "grpc", rest)) => (false, rest),
        Some(("https" | "grpcs", rest)) => (true, rest),
        None if grpc => (false, url),
        _ => return left("endpoints are http:// and https:// URLs"),
    };
    if url.contains('$') {
        return left(
            "an upstream has fixed endpoints: a name is resolved again by itself, write it without variables",
        );
    }
    used.iter().for_each(|entry| cx.ledger.taken(*entry, "put in where it is used"));
    let mut left = |why: &str| {
        cx.ledger.left(item.entry, why);
        None
    };
    if rest.starts_with("unix:") {
        return left("endpoints have addresses, not Unix sockets: have the application listen on 127.0.0.1");
    }
    let (authority, path) = match rest.find('/') {
        Some(at) => (&rest[..at], Some(rest[at..].to_owned())),
        None => (rest, None),
    };
    if path.as_deref().is_some_and(|path| !text::is_path(path)) {
        return left("the path of this URL cannot be a `rewrite`");
    }
    let scheme = if tls { "https" } else { "http" };
    let mut upstream = Upstream {
        connect_timeout: scope.connect_timeout.clone(),
        read_timeout: scope.read_timeout.clone(),
        write_timeout: scope.write_timeout.clone(),
        protocol: grpc.then_some(if tls { "h2" } else { "h2c" }),
        tls: if tls { scope.upstream_tls.clone() } else { UpstreamTls::default() },
        ..Upstream::default()
    };
    if upstream.tls.cert.is_none() != upstream.tls.key.is_none() {
        (upstream.tls.cert, upstream.tls.key) = (None, None);
    }
    match cx.upstreams.get(authority).cloned() {
        Some(block) => {
            upstream.name = authority.to_owned();
            fill(&mut upstream, &block, scheme, cx);
            if upstream.endpoints.is_empty() {
                cx.ledger
                    .left(item.entry, format!("no server of the upstream `{authority}` can be an endpoint"));
                return None;
            }
        }
        None if text::is_authority(authority) => {
            upstream.name = model::upstream_name(authority);
            upstream
                .endpoints
                .push(Endpoint { url: format!("{scheme}://{authority}"), ..Endpoint::default() });
        }
        None => {
            cx.ledger.left(item.entry, "this is neither an upstream nor a host");
            return None;
        }
    }
    let upstream = cx.model.upstream(upstream);
    let note = format!("upstream `{upstream}`");
    match tls {
        true => cx
            .ledger
            .changed(item.entry, note + "; its certificate is verified, against tls.ca if you name one"),
        false => cx.ledger.taken(item.entry, note),
    }
    Some(Target { upstream, host: authority.to_owned(), path })
}

/// What the block of an upstream says.
fn fill(upstream: &mut Upstream, block: &Directive, scheme: &str, cx: &mut Context<'_>) {
    cx.ledger.taken(block.entry, "upstream");
    for item in block.children() {
        match item.name.as_str() {
            "server" => server(upstream, item, scheme, cx),
            "least_conn" => {
                upstream.balance = Some("least_connections");
                cx.ledger.taken(item.entry, "balance = \"least_connections\"");
            }
            "random" => {
                upstream.balance = Some("power_of_two");
                cx.ledger.taken(item.entry, "balance = \"power_of_two\"");
            }
            "ip_hash" => {
                (upstream.balance, upstream.hash_by) = (Some("hash"), Some("client".to_owned()));
                cx.ledger.changed(item.entry, "balance = \"hash\" by the whole address of the client");
            }
            "hash" => hash(upstream, item, cx),
            "keepalive" => match item.arg(0).parse() {
                Ok(number) => {
                    upstream.idle_connections = Some(number);
                    cx.ledger.taken(item.entry, "idle_connections");
                }
                Err(_) => cx.ledger.left(item.entry, "this number cannot be read"),
            },
            "keepalive_timeout" => {
                upstream.idle_timeout = units::time(item.arg(0));
                match upstream.idle_timeout {
                    Some(_) => cx.ledger.taken(item.entry, "idle_timeout"),
                    None => cx.ledger.left(item.entry, "this time cannot be read"),
                }
            }
            "sticky" => sticky(upstream, item, cx),
            "zone" => cx.ledger.taken(item.entry, "all workers share the state of endpoints"),
            "keepalive_requests" | "keepalive_time" => {
                cx.ledger.left(item.entry, "connections are kept as long as both sides like")
            }
            "resolver" | "resolver_timeout" => {
                cx.ledger.left(item.entry, "write `lookups.resolvers` of the document")
            }
            _ => {}
        }
    }
}

fn server(upstream: &mut Upstream, item: &Directive, scheme: &str, cx: &mut Context<'_>) {
    let address = item.arg(0);
    if !text::is_authority(address) {
        return cx.ledger.left(item.entry, "an endpoint is a host with or without a port");
    }
    let url = format!("{scheme}://{address}");
    let mut endpoint = Endpoint { url, ..Endpoint::default() };
    let mut missing = Vec::new();
    for option in item.args.iter().skip(1) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "weight" => endpoint.weight = value.parse().ok().filter(|weight| (1..=1000).contains(weight)),
            "backup" => endpoint.backup = true,
            "down" => return cx.ledger.left(item.entry, "this server is marked as down"),
            "max_fails" => upstream.ejection_failures = value.parse().ok(),
            "fail_timeout" => upstream.ejection_time = units::time(value).or(upstream.ejection_time.take()),
            "max_conns" => upstream.requests_max = value.parse().ok().filter(|number| *number > 0),
            "slow_start" => upstream.slow_start = units::time(value).or(upstream.slow_start.take()),
            "resolve" => {}
            _ => missing.push(name.to_owned()),
        }
    }
    let same = |known: &Endpoint| key(&known.url) == key(&endpoint.url);
    if upstream.endpoints.iter().any(same) {
        return cx
            .ledger
            .left(item.entry, "an endpoint stands once in an upstream; `weight` gives it a larger share");
    }
    upstream.endpoints.push(endpoint);
    match missing.is_empty() {
        true => cx.ledger.taken(item.entry, "endpoint"),
        false => cx.ledger.changed(item.entry, format!("endpoint, without {}", missing.join(", "))),
    }
}

/// Endpoints are identified by host and port.
fn key(url: &str) -> String {
    let authority = url.split_once("://").map_or(url, |(_, authority)| authority);
    let default = if url.starts_with("https") { ":443" } else { ":80" };
    let has_port =
        authority.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    if has_port && !authority.ends_with(']') { authority.to_owned() } else { format!("{authority}{default}") }
}

fn hash(upstream: &mut Upstream, item: &Directive, cx: &mut Context<'_>) {
    let key = item.arg(0);
    let by = match key {
        "$remote_addr" | "$binary_remote_addr" => Some("client".to_owned()),
        _ => key
            .strip_prefix("$http_")
            .map(|name| format!("header:{}", name.replace('_', "-")))
            .or(key.strip_prefix("$cookie_").map(|name| format!("cookie:{name}"))),
    };
    let is_name = |by: &String| by.split_once(':').is_none_or(|(_, name)| text::is_field_name(name));
    match by.filter(is_name) {
        Some(by) => {
            (upstream.balance, upstream.hash_by) = (Some("hash"), Some(by));
            cx.ledger.taken(item.entry, "balance = \"hash\"");
        }
        None => cx.ledger.left(item.entry, "requests are spread by client address, a header or a cookie"),
    }
}

fn sticky(upstream: &mut Upstream, item: &Directive, cx: &mut Context<'_>) {
    match item.args.as_slice() {
        [kind, name, ..] if kind == "cookie" && text::is_field_name(name) => {
            upstream.sticky_cookie = Some(name.clone());
            cx.ledger.changed(item.entry, "sticky_cookie, a session cookie with a value of our own");
        }
        _ => cx.ledger.left(item.entry, "clients are kept at an endpoint by a cookie"),
    }
}

/// Settles upstreams that no location leads to.
pub(crate) fn unused(cx: &mut Context<'_>) {
    let blocks: Vec<Directive> = cx.upstreams.values().cloned().collect();
    for block in &blocks {
        let entries: Vec<Entry> =
            [block.entry].into_iter().chain(block.children().iter().map(|item| item.entry)).collect();
        for entry in entries {
            cx.ledger.left_if_unsettled(
                entry,
                "no location leads to this upstream, or it has a key we do not know",
            );
        }
    }
}
