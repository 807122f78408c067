//! nginx, with or without the module of ModSecurity.

mod include;
mod left;
mod listen;
mod location;
mod redirect;
mod scope;
mod server;
pub(crate) mod syntax;
mod upstream;
mod variables;

use std::collections::BTreeMap;

use crate::error::Error;
use crate::model::{Model, RateLimit};
use crate::report::{Entry, Ledger};
use crate::rules::Reading;
use crate::sources::{Sources, folder};
use crate::text;
use scope::Scope;
use syntax::Directive;

/// What the readers of blocks share.
pub(crate) struct Context<'a> {
    pub ledger: &'a mut Ledger,
    pub model: &'a mut Model,
    /// Relative names of files start here.
    pub folder: &'a str,
    /// `limit_req_zone` by name.
    pub zones: BTreeMap<String, RateLimit>,
    /// `upstream` by name.
    pub upstreams: BTreeMap<String, Directive>,
    pub reading: Reading<'a>,
    /// Addresses whose listeners want the PROXY protocol, and who said so.
    pub proxy_protocol: Vec<(String, Entry)>,
}

/// Reads `nginx.conf`, or files with servers, into the model.
pub(crate) fn read(
    names: &[String],
    sources: &mut Sources,
    ledger: &mut Ledger,
    model: &mut Model,
    reading: Reading<'_>,
) -> Result<(), Error> {
    let base = names.first().map_or("/", |name| folder(name)).to_owned();
    let mut includes = include::Includes::new(sources, ledger, &base);
    let mut items = Vec::new();
    for name in names {
        items.extend(includes.file(name, &mut Vec::new())?);
    }
    let mut cx = Context {
        ledger,
        model,
        folder: &base,
        zones: BTreeMap::new(),
        upstreams: BTreeMap::new(),
        reading,
        proxy_protocol: Vec::new(),
    };
    main(&items, &mut cx);
    Ok(())
}

/// The outermost block. Files of servers alone are as if `http` were around them.
fn main(items: &[Directive], cx: &mut Context<'_>) {
    let mut outside = Vec::new();
    for item in items {
        match item.name.as_str() {
            "http" => {
                cx.ledger.taken(item.entry, "read");
                http(item.children(), cx);
            }
            "events" | "types" => {
                cx.ledger.left(item.entry, left::inherited("events").unwrap_or_default());
                leave(item.children(), left::inherited("events").unwrap_or_default(), cx);
            }
            "stream" | "mail" => {
                let why = "only HTTP is served: TCP, UDP and mail are not";
                cx.ledger.left(item.entry, why);
                leave(item.children(), why, cx);
            }
            _ => outside.push(item.clone()),
        }
    }
    if outside.iter().any(|item| matches!(item.name.as_str(), "server" | "upstream")) {
        return http(&outside, cx);
    }
    for item in &outside {
        if let Some(why) = left::inherited(&item.name) {
            cx.ledger.left(item.entry, why);
        }
    }
}

/// Leaves directives and what is in their blocks.
fn leave(items: &[Directive], why: &str, cx: &mut Context<'_>) {
    for item in items {
        cx.ledger.left(item.entry, why);
        leave(item.children(), why, cx);
    }
}

fn http(items: &[Directive], cx: &mut Context<'_>) {
    let scope = Scope::default().enter(items, cx);
    for item in items {
        match item.name.as_str() {
            "upstream" => {
                cx.upstreams.insert(item.arg(0).to_owned(), item.clone());
            }
            "limit_req_zone" => zone(item, cx),
            "map" => map(item, cx),
            "geo" | "split_clients" => cx.ledger.left(item.entry, "variables of one's own are not known"),
            "resolver" => resolvers(item, cx),
            "set_real_ip_from" => real_ip(item, cx),
            "real_ip_header" => real_ip_header(item, cx),
            _ => {}
        }
    }
    server::all(items, &scope, cx);
    upstream::unused(cx);
}

fn zone(item: &Directive, cx: &mut Context<'_>) {
    let option = |name: &str| item.args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
    let name = option("zone").and_then(|zone| zone.split(':').next()).unwrap_or_default();
    let rate = option("rate").unwrap_or_default();
    let (number, per_minute) = match (rate.strip_suffix("r/s"), rate.strip_suffix("r/m")) {
        (Some(number), _) => (number, false),
        (_, Some(number)) => (number, true),
        _ => ("", false),
    };
    let key = match item.arg(0) {
        "$binary_remote_addr" | "$remote_addr" => Some(Some("client".to_owned())),
        "$server_name" | "$host" => Some(None),
        key => key
            .strip_prefix("$http_")
            .map(|name| format!("header:{}", name.replace('_', "-")))
            .or(key.strip_prefix("$cookie_").map(|name| format!("cookie:{name}")))
            .filter(|key| key.split_once(':').is_some_and(|(_, name)| text::is_field_name(name)))
            .map(Some),
    };
    match (key, number.parse::<u32>()) {
        (Some(key), Ok(rate @ 1..=1_000_000)) => {
            let limit = RateLimit {
                name: crate::model::name(name),
                key,
                rate,
                per_minute,
                burst: 1,
                status: None,
                entries: Vec::new(),
            };
            cx.zones.insert(name.to_owned(), limit);
            cx.ledger.taken(item.entry, "rate and key of rate_limits");
        }
        _ => cx.ledger.left(
            item.entry,
            "rate limits count by client address, a header or a cookie, at a rate of r/s or r/m",
        ),
    }
}

fn map(item: &Directive, cx: &mut Context<'_>) {
    match item.arg(0) {
        "$http_upgrade" => cx.ledger.taken(item.entry, "WebSocket passes as it is"),
        _ => cx.ledger.left(item.entry, "variables of one's own are not known"),
    }
}

fn resolvers(item: &Directive, cx: &mut Context<'_>) {
    let servers = item.args.iter().filter(|arg| !arg.contains('='));
    let is_server = |server: &&String| {
        server.parse::<std::net::IpAddr>().is_ok() || server.parse::<std::net::SocketAddr>().is_ok()
    };
    let servers: Vec<String> = servers.filter(is_server).cloned().collect();
    if servers.is_empty() {
        return cx.ledger.left(item.entry, "lookups.resolvers takes addresses");
    }
    for server in servers {
        if !cx.model.resolvers.contains(&server) {
            cx.model.resolvers.push(server);
        }
    }
    cx.ledger.taken(item.entry, "lookups.resolvers");
}

fn real_ip(item: &Directive, cx: &mut Context<'_>) {
    let network = item.arg(0);
    if !text::is_network(network) {
        return cx.ledger.left(item.entry, "trusted proxies are addresses and networks");
    }
    if !cx.model.trusted_proxies.iter().any(|known| known == network) {
        cx.model.trusted_proxies.push(network.to_owned());
    }
    cx.ledger.taken(item.entry, "client_address.trusted_proxies");
}

fn real_ip_header(item: &Directive, cx: &mut Context<'_>) {
    let header = item.arg(0).to_ascii_lowercase();
    match header.as_str() {
        "x-forwarded-for" => {
            cx.model.client_header = Some("x-forwarded-for");
            cx.ledger.taken(item.entry, "client_address.header");
        }
        "forwarded" => {
            cx.model.client_header = Some("forwarded");
            cx.ledger.taken(item.entry, "client_address.header");
        }
        "proxy_protocol" => cx.ledger.taken(item.entry, "proxy_protocol of the listener"),
        _ => cx.ledger.left(
            item.entry,
            "the client's address comes from X-Forwarded-For, Forwarded or the PROXY protocol: have the proxy in \
             front send one of them",
        ),
    }
}
