//! The ConfigMap of the controller: what holds for all Ingresses.

use super::{Context, left};
use crate::error::Error;
use crate::inline;
use crate::model::{Engine, Hsts, RuleKind, RuleSource};
use crate::nginx::syntax::unquoted;
use crate::report::Entry;
use crate::sources::Place;
use crate::yaml::Node;
use crate::{text, units};

/// What the controller has for all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Global {
    pub modsecurity: bool,
    pub crs: Option<Entry>,
    pub rules: Vec<RuleSource>,
    pub engine: Option<Engine>,
    pub ssl_redirect: Option<bool>,
    /// Another server is asked who may.
    pub guard: Option<Entry>,
    pub force_ssl_redirect: bool,
    pub hsts: Option<Hsts>,
    pub no_hsts: bool,
    pub body_limit: Option<String>,
    pub connect_timeout: Option<String>,
    pub read_timeout: Option<String>,
    pub send_timeout: Option<String>,
    pub only_tls_13: bool,
    pub proxy_protocol: Option<Entry>,
    pub limit_status: Option<u16>,
    pub hidden: Vec<String>,
    pub compression: Option<Vec<String>>,
}

/// Names that only a ConfigMap of the controller has.
const KNOWN: &[&str] = &[
    "enable-modsecurity",
    "enable-owasp-modsecurity-crs",
    "modsecurity-snippet",
    "use-forwarded-headers",
    "proxy-real-ip-cidr",
    "use-proxy-protocol",
    "ssl-redirect",
    "force-ssl-redirect",
    "ssl-protocols",
    "ssl-ciphers",
    "proxy-body-size",
    "server-tokens",
    "hsts",
    "allow-snippet-annotations",
    "annotations-risk-level",
];

/// Reads a ConfigMap; one of something else is left.
pub(crate) fn read(
    object: &Node,
    place: Place,
    global: &mut Global,
    cx: &mut Context<'_>,
) -> Result<(), Error> {
    let name = object.text_at(&["metadata", "name"]).unwrap_or_default();
    let data = object.get("data").map_or(&[][..], Node::members);
    let entry = cx.enter(place, &format!("ConfigMap {name}"))?;
    if !data.iter().any(|(key, _, _)| KNOWN.contains(&key.as_str())) {
        cx.ledger.left(entry, "this is not the ConfigMap of ingress-nginx");
        return Ok(());
    }
    cx.ledger.taken(entry, "read");
    for (key, line, value) in data {
        let value = value.text().unwrap_or_default();
        let entry = cx.enter(Place { line: *line, ..place }, &format!("{key}: {value}"))?;
        setting(key, value, entry, global, cx);
    }
    // CRS behind the rules of the snippet, as the controller has it.
    if let Some(entry) = global.crs.filter(|_| global.modsecurity) {
        let crs = RuleSource { kind: RuleKind::Crs, entry };
        if !global.rules.contains(&crs) {
            global.rules.push(crs);
        }
    }
    Ok(())
}

fn setting(key: &str, value: &str, entry: Entry, global: &mut Global, cx: &mut Context<'_>) {
    let on = value == "true";
    let ledger = &mut *cx.ledger;
    match key {
        "enable-modsecurity" => {
            global.modsecurity = on;
            ledger
                .taken(entry, if on { "all sites are inspected" } else { "sites are inspected that say so" });
        }
        "enable-owasp-modsecurity-crs" if on => {
            global.crs = Some(entry);
            ledger.taken(entry, "the CRS, where requests are inspected");
        }
        "enable-owasp-modsecurity-crs" => ledger.taken(entry, "without the CRS"),
        "modsecurity-snippet" => {
            global.rules.extend(inline::split(&unquoted(value), entry, left::built_in));
        }
        "global-auth-url" => {
            global.guard = Some(entry);
            ledger.left(entry, left::annotation(key));
        }
        "ssl-redirect" => {
            global.ssl_redirect = Some(on);
            ledger.taken(entry, "https.redirect");
        }
        "force-ssl-redirect" => {
            global.force_ssl_redirect = on;
            ledger.taken(entry, "https.redirect");
        }
        "hsts" => {
            global.no_hsts = !on;
            ledger.taken(entry, "https.hsts");
        }
        "hsts-max-age" | "hsts-include-subdomains" | "hsts-preload" => hsts(key, value, entry, global, cx),
        "proxy-body-size" => {
            global.body_limit = Some(value.to_owned());
            ledger.taken(entry, "request_body.limit, where it is less than what rules have");
        }
        "proxy-connect-timeout" => time(value, entry, &mut global.connect_timeout, cx),
        "proxy-read-timeout" => time(value, entry, &mut global.read_timeout, cx),
        "proxy-send-timeout" => time(value, entry, &mut global.send_timeout, cx),
        "ssl-protocols" => {
            global.only_tls_13 = value.trim() == "TLSv1.3";
            match value.contains("TLSv1 ") || value.contains("TLSv1.1") {
                true => ledger.changed(entry, "TLS 1.2 is the oldest version that is spoken"),
                false => ledger.taken(entry, "tls.min_version"),
            }
        }
        "use-proxy-protocol" if on => global.proxy_protocol = Some(entry),
        "use-forwarded-headers" if on => {
            cx.model.client_header = Some("x-forwarded-for");
            ledger
                .changed(entry, "client_address.header, believed from client_address.trusted_proxies alone");
        }
        "use-proxy-protocol" | "use-forwarded-headers" => ledger.taken(entry, "the default"),
        "proxy-real-ip-cidr" => proxies(value, entry, cx),
        "limit-req-status-code" => {
            global.limit_status = value.parse().ok().filter(|status| (400..600).contains(status));
            ledger.taken(entry, "status of rate limits");
        }
        "hide-headers" => {
            let names = value.split(',').map(|name| name.trim().to_ascii_lowercase());
            global.hidden.extend(
                names.filter(|name| text::is_field_name(name) && !text::is_ours(name) && name != "host"),
            );
            ledger.taken(entry, "response_headers.remove");
        }
        "use-gzip" | "enable-brotli" if on => {
            global.compression.get_or_insert_default();
            ledger.changed(entry, "compression, of the usual types");
        }
        "gzip-types" | "brotli-types" => {
            let types = value.split_whitespace().filter(|kind| text::is_media_type(kind)).map(str::to_owned);
            global.compression.get_or_insert_default().extend(types);
            ledger.changed(entry, "compression.types");
        }
        _ => ledger.left(entry, left::config_map(key)),
    }
}

fn hsts(key: &str, value: &str, entry: Entry, global: &mut Global, cx: &mut Context<'_>) {
    let hsts = global.hsts.get_or_insert_with(default_hsts);
    match key {
        "hsts-max-age" => match value.parse() {
            Ok(seconds) => hsts.seconds = seconds,
            Err(_) => return cx.ledger.left(entry, "this number cannot be read"),
        },
        "hsts-include-subdomains" => hsts.subdomains = value == "true",
        _ => hsts.preload = value == "true",
    }
    cx.ledger.taken(entry, "https.hsts");
}

/// What the controller sends unless configured otherwise.
pub(crate) fn default_hsts() -> Hsts {
    Hsts { seconds: 31_536_000, subdomains: true, preload: false }
}

fn time(value: &str, entry: Entry, to: &mut Option<String>, cx: &mut Context<'_>) {
    *to = units::time(value);
    match to {
        Some(_) => cx.ledger.taken(entry, "time limits of upstreams"),
        None => cx.ledger.left(entry, "this time cannot be read"),
    }
}

fn proxies(value: &str, entry: Entry, cx: &mut Context<'_>) {
    let (networks, other): (Vec<&str>, Vec<&str>) =
        value.split(',').map(str::trim).partition(|network| text::is_network(network));
    if networks.iter().any(|network| network.ends_with("/0")) {
        return cx.ledger.left(entry, "who believes everybody believes attackers: name the proxies in front");
    }
    for network in networks {
        if !cx.model.trusted_proxies.iter().any(|known| known == network) {
            cx.model.trusted_proxies.push(network.to_owned());
        }
    }
    match other.is_empty() {
        true => cx.ledger.taken(entry, "client_address.trusted_proxies"),
        false => {
            cx.ledger.changed(entry, format!("client_address.trusted_proxies, without {}", other.join(" ")))
        }
    }
}
