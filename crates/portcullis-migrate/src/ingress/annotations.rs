//! The annotations of an Ingress: what holds for its paths.

use super::config_map::Global;
use super::objects::Ingress;
use super::{Context, left};
use crate::inline;
use crate::model::{Access, Engine, RateLimit, RuleKind, RuleSource, Settings, Upstream};
use crate::nginx::syntax::unquoted;
use crate::report::Entry;
use crate::{text, units};

/// What an Ingress says of its paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    pub settings: Settings,
    /// What its upstreams have beside their endpoints.
    pub upstream: Upstream,
    pub https: bool,
    /// The upstream speaks something else than HTTP.
    pub unspoken: bool,
    pub rewrite: Option<(String, Entry)>,
    pub regex: bool,
    pub redirect: Option<(String, u16)>,
    pub app_root: Option<String>,
    pub aliases: Vec<String>,
    pub ssl_redirect: Option<bool>,
    pub force_ssl_redirect: bool,
    /// Only a share of the requests is for it.
    pub canary: bool,
}

/// Reads the annotations of an Ingress; all are settled.
pub(crate) fn read(ingress: &Ingress, global: &Global, cx: &mut Context<'_>) -> Said {
    let mut said = Said {
        upstream: Upstream {
            connect_timeout: global.connect_timeout.clone(),
            read_timeout: global.read_timeout.clone(),
            write_timeout: global.send_timeout.clone(),
            ..Upstream::default()
        },
        ..Said::default()
    };
    said.settings.response_headers.remove.clone_from(&global.hidden);
    said.settings.compression.clone_from(&global.compression);
    said.settings.body_limit = global.body_limit.as_deref().and_then(units::body_limit);
    rules(ingress, global, &mut said, cx);
    limits(ingress, global, &mut said, cx);
    networks(ingress, &mut said, cx);
    let exempt = ingress.annotations.get("enable-global-auth").is_some_and(|(value, _)| value == "false");
    said.settings.closed.extend(global.guard.filter(|_| !exempt));
    for (name, (value, entry)) in &ingress.annotations {
        // Rules are settled where it is known which requests they are for.
        let later = ["modsecurity-snippet", "enable-owasp-core-rules", "enable-owasp-modsecurity-crs"];
        if left::guards(name, value) {
            said.settings.closed.push(*entry);
        }
        if !later.contains(&name.as_str()) && !setting(name, value, *entry, &mut said, cx) {
            cx.ledger.left_if_unsettled(*entry, left::annotation(name));
        }
    }
    said
}

/// One annotation; false if there is nothing like it.
fn setting(name: &str, value: &str, entry: Entry, said: &mut Said, cx: &mut Context<'_>) -> bool {
    let on = value == "true";
    let ledger = &mut *cx.ledger;
    match name {
        "ssl-redirect" => said.ssl_redirect = Some(on),
        "force-ssl-redirect" => said.force_ssl_redirect = on,
        "use-regex" => said.regex = on,
        "rewrite-target" => said.rewrite = Some((value.to_owned(), entry)),
        "app-root" if text::is_path(value) => said.app_root = Some(value.to_owned()),
        "permanent-redirect" | "temporal-redirect" => return redirect(name, value, entry, said, cx),
        "permanent-redirect-code" | "temporal-redirect-code" => {
            let code = value.parse().ok().filter(|code| [301, 302, 303, 307, 308].contains(code));
            if let (Some((_, status)), Some(code)) = (&mut said.redirect, code) {
                *status = code;
            }
        }
        "server-alias" => {
            said.aliases.extend(value.split(',').map(|name| name.trim().to_ascii_lowercase()));
        }
        "backend-protocol" => match value {
            "HTTP" | "AUTO_HTTP" => {}
            "HTTPS" => {
                said.https = true;
                ledger.changed(entry, "endpoints with https://; their certificates are verified, against tls.ca if you name one");
                return true;
            }
            "GRPC" => said.upstream.protocol = Some("h2c"),
            "GRPCS" => {
                said.https = true;
                said.upstream.protocol = Some("h2");
                ledger.changed(
                    entry,
                    "protocol = \"h2\"; certificates are verified, against tls.ca if you name one",
                );
                return true;
            }
            _ => {
                said.unspoken = true;
                ledger.left(entry, "only HTTP is spoken to upstreams: its paths are answered 404");
                return true;
            }
        },
        "proxy-body-size" => {
            said.settings.body_limit = units::body_limit(value);
            if said.settings.body_limit.is_none() {
                ledger.changed(entry, units::LONGER_BODIES);
                return true;
            }
        }
        "proxy-connect-timeout" => said.upstream.connect_timeout = units::time(value),
        "proxy-read-timeout" => said.upstream.read_timeout = units::time(value),
        "proxy-send-timeout" => said.upstream.write_timeout = units::time(value),
        "affinity" if value == "cookie" => {
            said.upstream.sticky_cookie.get_or_insert_with(|| "INGRESSCOOKIE".to_owned());
            ledger
                .changed(entry, "sticky_cookie, for the addresses that the name of the service resolves to");
            return true;
        }
        "session-cookie-name" if text::is_field_name(value) => {
            said.upstream.sticky_cookie = Some(value.to_owned())
        }
        "load-balance" if value == "round_robin" => {}
        "load-balance" => {
            said.upstream.balance = Some("least_connections");
            ledger.changed(entry, "balance = \"least_connections\"");
            return true;
        }
        "upstream-hash-by" => {
            if !hash(value, said) {
                return false;
            }
        }
        "upstream-vhost" if !value.contains('$') && text::is_authority(value) => {
            said.settings.request_headers.set.insert("host".to_owned(), value.to_owned());
        }
        "proxy-ssl-name" if text::is_host(value) => said.upstream.tls.name = Some(value.to_owned()),
        "x-forwarded-prefix" if value.starts_with('/') && !value.contains('{') => {
            said.settings.request_headers.set.insert("x-forwarded-prefix".to_owned(), value.to_owned());
        }
        "service-upstream"
        | "enable-access-log"
        | "proxy-buffering"
        | "proxy-request-buffering"
        | "proxy-http-version" => {}
        "canary" if on => {
            said.canary = true;
            return false;
        }
        _ => return false,
    }
    ledger.taken(entry, "as its routes and upstreams say");
    true
}

fn redirect(name: &str, value: &str, entry: Entry, said: &mut Said, cx: &mut Context<'_>) -> bool {
    let target = text::template(value, |name| match name {
        "host" | "http_host" => Some("{host}".to_owned()),
        "request_uri" => Some("{uri}".to_owned()),
        "uri" => Some("{path}".to_owned()),
        _ => None,
    });
    let is_target =
        |to: &String| to.starts_with("http://") || to.starts_with("https://") || to.starts_with('/');
    let Some(to) = target.filter(is_target) else {
        cx.ledger.left(entry, "this redirect cannot be one of a route");
        return true;
    };
    said.redirect = Some((to, if name == "permanent-redirect" { 301 } else { 302 }));
    cx.ledger.taken(entry, "redirect");
    true
}

fn hash(value: &str, said: &mut Said) -> bool {
    let value = value.trim_matches('"');
    let by = match value {
        "$remote_addr" | "$binary_remote_addr" => Some("client".to_owned()),
        _ => value
            .strip_prefix("$http_")
            .map(|name| format!("header:{}", name.replace('_', "-")))
            .or(value.strip_prefix("$cookie_").map(|name| format!("cookie:{name}"))),
    };
    let by = by.filter(|by| by.split_once(':').is_none_or(|(_, name)| text::is_field_name(name)));
    let known = by.is_some();
    if known {
        (said.upstream.balance, said.upstream.hash_by) = (Some("hash"), by);
    }
    known
}

/// Whether requests are inspected, and by what: the snippet comes before the CRS, as the controller has it.
fn rules(ingress: &Ingress, global: &Global, said: &mut Said, cx: &mut Context<'_>) {
    let get = |name: &str| ingress.annotations.get(name);
    let own = get("enable-modsecurity");
    let waf = &mut said.settings.waf;
    waf.on = own.map_or(global.modsecurity, |(value, _)| value == "true");
    if let Some((_, entry)) = own {
        cx.ledger.taken(*entry, if waf.on { "inspection" } else { "mode = \"off\"" });
    }
    let snippet = get("modsecurity-snippet");
    let crs = get("enable-owasp-core-rules").or(get("enable-owasp-modsecurity-crs"));
    if let Some((_, entry)) = crs.filter(|(value, _)| value != "true") {
        cx.ledger.taken(*entry, "without the CRS");
    }
    if !waf.on {
        for (_, entry) in snippet.into_iter().chain(crs) {
            cx.ledger.left_if_unsettled(*entry, "requests of this Ingress are not inspected");
        }
        return;
    }
    if global.modsecurity {
        waf.rules.clone_from(&global.rules);
        waf.engine = global.engine;
    }
    if let Some((value, entry)) = snippet {
        // The controller writes it between quotes into nginx's configuration.
        waf.rules.extend(inline::split(&unquoted(value), *entry, left::built_in));
        // Where it has nothing but what is built in.
        cx.ledger.taken(*entry, "rules of the site");
    }
    if let Some((_, entry)) = crs.filter(|(value, _)| value == "true") {
        let source = RuleSource { kind: RuleKind::Crs, entry: *entry };
        match waf.rules.contains(&source) {
            true => cx.ledger.taken(*entry, "the CRS, which is there already"),
            false => waf.rules.push(source),
        }
    }
    let says_engine = |source: &RuleSource| {
        if let RuleKind::Inline(text) = &source.kind {
            text.to_ascii_lowercase().contains("secruleengine")
        } else {
            false
        }
    };
    if !waf.rules.iter().any(says_engine) {
        waf.engine = Some(Engine::DetectionOnly);
        if let Some((_, entry)) = own.or(snippet) {
            cx.ledger.changed(
                *entry,
                "engine = \"detection_only\", as the modsecurity.conf of the controller has it",
            );
        }
    }
}

fn limits(ingress: &Ingress, global: &Global, said: &mut Said, cx: &mut Context<'_>) {
    let number = |name: &str| {
        let (value, entry) = ingress.annotations.get(name)?;
        value
            .parse::<u32>()
            .ok()
            .filter(|number| (1..=1_000_000).contains(number))
            .map(|number| (number, *entry))
    };
    let multiplier = number("limit-burst-multiplier");
    if let Some((_, entry)) = multiplier {
        cx.ledger.taken(entry, "burst of rate_limits");
    }
    let times = multiplier.map_or(5, |(number, _)| number);
    for (name, per_minute) in [("limit-rps", false), ("limit-rpm", true)] {
        let Some((rate, entry)) = number(name) else { continue };
        said.settings.rate_limits.push(RateLimit {
            name: name.to_owned(),
            key: Some("client".to_owned()),
            rate,
            per_minute,
            burst: rate.saturating_mul(times).min(1_000_000),
            status: Some(global.limit_status.unwrap_or(503)),
            entries: vec![entry],
        });
        cx.ledger.promise(entry);
        cx.ledger.changed(entry, "rate_limits, counted by this node for each path");
    }
}

fn networks(ingress: &Ingress, said: &mut Said, cx: &mut Context<'_>) {
    let mut access = Access::default();
    let mut any = false;
    for (name, allows) in [
        ("whitelist-source-range", true),
        ("allowlist-source-range", true),
        ("denylist-source-range", false),
        ("blacklist-source-range", false),
    ] {
        let Some((value, entry)) = ingress.annotations.get(name) else { continue };
        let (networks, other): (Vec<&str>, Vec<&str>) =
            value.split(',').map(str::trim).partition(|network| text::is_network(network));
        if networks.is_empty() {
            cx.ledger.left(*entry, "lists of clients take addresses and networks");
            continue;
        }
        any = true;
        let list = if allows { &mut access.allow } else { &mut access.deny };
        list.extend(networks.into_iter().map(str::to_owned));
        access.others_denied |= allows;
        let key = if allows { "access.allow" } else { "access.deny" };
        match other.is_empty() {
            true => cx.ledger.taken(*entry, key),
            false => cx.ledger.changed(*entry, format!("{key}, without {}", other.join(" "))),
        }
    }
    said.settings.access = any.then_some(access);
}
