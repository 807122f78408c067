//! `reverse_proxy`: where requests go.

use super::Context;
use super::scope::{change, note, value_of};
use super::syntax::Directive;
use crate::model::{Endpoint, HeaderChanges, Upstream, upstream_name};
use crate::sources::absolute;
use crate::{text, units};

/// The upstream of a `reverse_proxy` with these addresses, and the headers that it changes.
pub(crate) fn read(
    item: &Directive,
    addresses: &[String],
    request: &mut HeaderChanges,
    response: &mut HeaderChanges,
    cx: &mut Context<'_>,
) -> Option<String> {
    let mut upstream = Upstream::default();
    let mut left = Vec::new();
    let inner_to = item.children().iter().filter(|inner| inner.name() == "to");
    let all: Vec<&String> = addresses.iter().chain(inner_to.flat_map(Directive::args)).collect();
    for address in all {
        if !endpoint(address, &mut upstream) {
            left.push(address.clone());
        }
    }
    let first = upstream.endpoints.first().and_then(|endpoint| endpoint.url.split_once("://"));
    let host = first.map(|(_, authority)| authority.to_owned());
    upstream.name = host.as_deref().map(upstream_name).unwrap_or_default();
    for inner in item.children() {
        option(inner, host.as_deref(), &mut upstream, request, response, cx);
    }
    if upstream.endpoints.is_empty() {
        cx.ledger
            .left(item.entry, "no address of it can be an endpoint: a host and a port, without placeholders");
        return None;
    }
    let tls = upstream.endpoints.iter().any(|endpoint| endpoint.url.starts_with("https"));
    if !tls {
        upstream.tls = Default::default();
    }
    let name = cx.model.upstream(upstream);
    match left.is_empty() {
        true => cx.ledger.taken(item.entry, format!("upstream `{name}`")),
        false => cx.ledger.changed(item.entry, format!("upstream `{name}`, without {}", left.join(" "))),
    }
    Some(name)
}

/// Adds an address; false if it cannot be an endpoint.
fn endpoint(address: &str, upstream: &mut Upstream) -> bool {
    let (scheme, authority) = match address.split_once("://") {
        Some(("http", rest)) => ("http", rest),
        Some(("https", rest)) => ("https", rest),
        Some(("h2c", rest)) => {
            upstream.protocol = Some("h2c");
            ("http", rest)
        }
        Some(_) => return false,
        None => ("http", address),
    };
    let authority = match authority.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None => authority.trim_end_matches('/').to_owned(),
    };
    let url = format!("{scheme}://{authority}");
    let mixed = upstream.endpoints.iter().any(|known| known.url.starts_with("https") != (scheme == "https"));
    if !text::is_authority(&authority) || mixed || upstream.endpoints.iter().any(|known| known.url == url) {
        return false;
    }
    upstream.endpoints.push(Endpoint { url, ..Endpoint::default() });
    true
}

fn option(
    item: &Directive,
    host: Option<&str>,
    upstream: &mut Upstream,
    request: &mut HeaderChanges,
    response: &mut HeaderChanges,
    cx: &mut Context<'_>,
) {
    let value = item.arg(0);
    match item.name() {
        "to" => cx.ledger.taken(item.entry, "endpoints"),
        "lb_policy" => policy(item, upstream, cx),
        "health_uri" if text::is_path(value) => {
            upstream.health_path = Some(value.to_owned());
            cx.ledger.taken(item.entry, "health.path");
        }
        "health_interval" => {
            upstream.health_interval = units::time(value);
            cx.ledger.taken(item.entry, "health.interval");
        }
        "fail_duration" => {
            upstream.ejection_time = units::time(value);
            cx.ledger.taken(item.entry, "ejection.time");
        }
        "max_fails" => {
            upstream.ejection_failures = value.parse().ok();
            cx.ledger.taken(item.entry, "ejection.failures");
        }
        "unhealthy_request_count" => {
            upstream.requests_max = value.parse().ok().filter(|number| *number > 0);
            cx.ledger.taken(item.entry, "limits.requests");
        }
        "header_up" => {
            let words: Vec<String> = item
                .args()
                .iter()
                .map(|word| {
                    word.replace("{upstream_hostport}", host.unwrap_or_default())
                        .replace("{http.reverse_proxy.upstream.hostport}", host.unwrap_or_default())
                })
                .collect();
            // `{host}` is what is sent anyway.
            let is_default = words.first().is_some_and(|name| name.eq_ignore_ascii_case("host"))
                && words.get(1).and_then(|value| value_of(value)).is_some_and(|value| value == "{host}");
            let settled = if is_default { Ok(true) } else { change(&words, true, request) };
            note(settled, item, "request_headers", cx);
        }
        "header_down" => {
            let settled = change(item.args(), false, response);
            note(settled, item, "response_headers", cx);
        }
        "transport" => transport(item, upstream, cx),
        "flush_interval" | "request_buffers" | "response_buffers" | "stream_timeout"
        | "stream_close_delay" | "trusted_proxies" | "buffer_requests" | "buffer_responses"
        | "verbose_logs" => {
            cx.ledger.left(item.entry, "bodies go on as they come, once they are inspected");
        }
        _ => cx.leave(item, "not known to the migration"),
    }
}

fn policy(item: &Directive, upstream: &mut Upstream, cx: &mut Context<'_>) {
    let by = |prefix: &str| {
        item.args().get(1).filter(|name| text::is_field_name(name)).map(|name| format!("{prefix}{name}"))
    };
    let hash = match item.arg(0) {
        "least_conn" => {
            upstream.balance = Some("least_connections");
            return cx.ledger.taken(item.entry, "balance = \"least_connections\"");
        }
        "round_robin" => return cx.ledger.taken(item.entry, "the default"),
        "random_choose" => {
            upstream.balance = Some("power_of_two");
            return cx.ledger.taken(item.entry, "balance = \"power_of_two\"");
        }
        "cookie" => {
            upstream.sticky_cookie = Some(
                item.args()
                    .get(1)
                    .filter(|name| text::is_field_name(name))
                    .map_or("lb", |name| name)
                    .to_owned(),
            );
            return cx.ledger.changed(item.entry, "sticky_cookie, with a value of our own");
        }
        "first" => {
            for endpoint in upstream.endpoints.iter_mut().skip(1) {
                endpoint.backup = true;
            }
            return cx.ledger.changed(item.entry, "all endpoints but the first are backups of it");
        }
        "ip_hash" | "client_ip_hash" => Some("client".to_owned()),
        "header" => by("header:"),
        _ => None,
    };
    match hash {
        Some(hash) => {
            (upstream.balance, upstream.hash_by) = (Some("hash"), Some(hash));
            cx.ledger.taken(item.entry, "balance = \"hash\"");
        }
        None => cx.ledger.left(item.entry, "balance is round_robin, least_connections, power_of_two or hash"),
    }
}

fn transport(item: &Directive, upstream: &mut Upstream, cx: &mut Context<'_>) {
    if item.arg(0) != "http" {
        upstream.endpoints.clear();
        return cx.leave(item, "only HTTP is spoken to upstreams");
    }
    cx.ledger.taken(item.entry, "what is in it, where it has a counterpart");
    for inner in item.children() {
        let value = inner.arg(0);
        match inner.name() {
            "dial_timeout" => upstream.connect_timeout = units::time(value),
            "read_timeout" | "response_header_timeout" => upstream.read_timeout = units::time(value),
            "write_timeout" => upstream.write_timeout = units::time(value),
            "keepalive" => upstream.idle_timeout = units::time(value),
            "keepalive_idle_conns_per_host" | "keepalive_idle_conns" => {
                upstream.idle_connections = value.parse().ok()
            }
            "max_conns_per_host" => upstream.requests_max = value.parse().ok().filter(|number| *number > 0),
            "versions" if value == "h2c" => upstream.protocol = Some("h2c"),
            "tls" => {
                for endpoint in &mut upstream.endpoints {
                    endpoint.url = endpoint.url.replacen("http://", "https://", 1);
                }
            }
            "tls_server_name" if text::is_host(value) => upstream.tls.name = Some(value.to_owned()),
            "tls_trusted_ca_certs" => upstream.tls.ca = Some(absolute(&cx.folder, value)),
            "tls_insecure_skip_verify" => {
                for endpoint in &mut upstream.endpoints {
                    endpoint.url = endpoint.url.replacen("http://", "https://", 1);
                }
                cx.ledger.changed(
                    inner.entry,
                    "certificates of upstreams are always verified; name theirs in tls.ca",
                );
                continue;
            }
            _ => {
                cx.leave(inner, "not known to the migration");
                continue;
            }
        }
        cx.ledger.taken(inner.entry, "as its upstream says");
    }
}
