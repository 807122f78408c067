//! A service: one site.

use super::{Context, Custom};
use crate::model::{
    Access, Acme, Action, Certificate, Endpoint, Engine, PathMatch, RateLimit, Route, RuleKind, RuleSource,
    Settings, Site, Upstream, upstream_name,
};
use crate::report::Entry;
use crate::site::{finish, push};
use crate::{text, units};

/// Up to so many bytes of a body are held for inspection unless rules say otherwise.
const HELD_BYTES: u64 = 12_800 << 10;

/// Header fields of answers by the settings that say them.
const HEADERS: &[(&str, &str)] = &[
    ("STRICT_TRANSPORT_SECURITY", "strict-transport-security"),
    ("CONTENT_SECURITY_POLICY", "content-security-policy"),
    ("REFERRER_POLICY", "referrer-policy"),
    ("PERMISSIONS_POLICY", "permissions-policy"),
    ("X_FRAME_OPTIONS", "x-frame-options"),
    ("X_CONTENT_TYPE_OPTIONS", "x-content-type-options"),
    ("X_XSS_PROTECTION", "x-xss-protection"),
];

/// Reads the settings of a service.
pub(crate) fn read(service: &str, hosts: &[String], cx: &mut Context<'_>) {
    let mut site = Site::default();
    let (http, https) = (port(cx, "HTTP_PORT", 8080), port(cx, "HTTPS_PORT", 8443));
    for host in hosts.iter().filter(|host| text::is_host(host)) {
        cx.hosts.claim(&[&http, &https], host, &mut site.hosts);
    }
    for name in ["SERVER_NAME", "MULTISITE"] {
        if let Some((_, entry)) = cx.variables.of(service, name) {
            cx.ledger.taken(entry, "hosts");
        }
        if let Some((_, entry)) = cx.variables.global(name) {
            cx.ledger.taken(entry, "hosts");
        }
    }
    if site.hosts.is_empty() {
        return;
    }
    listeners(service, &http, &https, &mut site, cx);
    clients(cx);
    let mut settings = Settings::default();
    rules(service, &mut settings, cx);
    headers(service, &mut settings, cx);
    body(service, &mut settings, cx);
    access(service, &mut settings, cx);
    let limits = rate_limits(service, cx);
    settings
        .rate_limits
        .extend(limits.iter().filter(|(path, _, _)| path == "/").map(|(_, limit, _)| limit.clone()));
    routes(service, &settings, &limits, &mut site, cx);
    finish(site, settings, cx.reading, cx.ledger, cx.model);
}

fn port(cx: &mut Context<'_>, name: &str, default: u16) -> String {
    let said = cx.variables.global(name);
    let port = said.and_then(|(port, _)| port.parse().ok()).filter(|port| *port > 0).unwrap_or(default);
    if let Some((_, entry)) = said {
        cx.ledger.taken(entry, "addresses of the listeners");
    }
    format!("0.0.0.0:{port}")
}

/// True if a setting is `yes`; it is settled.
fn yes(service: &str, name: &str, default: bool, note: &str, cx: &mut Context<'_>) -> bool {
    match cx.variables.of(service, name) {
        Some((value, entry)) => {
            let yes = value == "yes";
            cx.ledger.taken(entry, note);
            yes
        }
        None => default,
    }
}

fn listeners(service: &str, http: &str, https: &str, site: &mut Site, cx: &mut Context<'_>) {
    if yes(service, "LISTEN_HTTP", true, "listeners of the site", cx) {
        site.listeners.push(named(http, "http", cx));
    }
    let custom = yes(service, "USE_CUSTOM_SSL", false, "tls of the listener", cx);
    let files = (cx.variables.of(service, "CUSTOM_SSL_CERT"), cx.variables.of(service, "CUSTOM_SSL_KEY"));
    let mut with_tls = false;
    if let (true, (Some((cert, cert_entry)), Some((key, key_entry)))) = (custom, files) {
        let pair = Certificate { cert: cert.to_owned(), key: key.to_owned() };
        for entry in [cert_entry, key_entry] {
            cx.ledger.taken(entry, "tls.certificates of the listener");
        }
        site.listeners.push(named(https, "https", cx));
        let tls = cx.model.listener(https).tls.get_or_insert_default();
        if !tls.certificates.contains(&pair) {
            tls.certificates.push(pair);
        }
        with_tls = true;
    }
    let orders = cx
        .variables
        .of(service, "AUTO_LETS_ENCRYPT")
        .filter(|(value, _)| *value == "yes")
        .map(|(_, entry)| entry);
    if let (Some(entry), false) = (orders, with_tls) {
        let contact = cx
            .variables
            .of(service, "EMAIL_LETS_ENCRYPT")
            .filter(|(email, _)| text::is_contact(email))
            .map(|(email, entry)| (email.to_owned(), entry));
        cx.ledger.changed(entry, "certificates are ordered with `acme`; terms_agreed = true says that you agree to the terms of the authority");
        if !site.hosts.iter().any(|host| text::is_domain(host)) {
            cx.ledger.left(entry, "certificates are ordered for exact names");
        } else {
            let acme = cx.model.acme.get_or_insert_with(Acme::default);
            if let Some((email, entry)) = contact {
                acme.contact.get_or_insert(email);
                cx.ledger.taken(entry, "acme.contact");
            }
            site.listeners.push(named(https, "https", cx));
            cx.model.listener(https).tls.get_or_insert_default().acme = true;
            with_tls = true;
        }
    }
    let always = yes(service, "REDIRECT_HTTP_TO_HTTPS", false, "https.redirect", cx);
    let auto = yes(service, "AUTO_REDIRECT_HTTP_TO_HTTPS", true, "https.redirect", cx);
    site.redirect_to_tls = always || (auto && with_tls);
    if let Some((value, entry)) = cx.variables.of(service, "SSL_PROTOCOLS") {
        let only_13 = value.trim() == "TLSv1.3";
        cx.ledger.taken(entry, "tls.min_version");
        if only_13 && with_tls {
            cx.model.listener(https).tls.get_or_insert_default().only_13 = true;
        }
    }
    if site.listeners.is_empty() {
        site.listeners.push(named(http, "http", cx));
    }
}

fn named(address: &str, name: &str, cx: &mut Context<'_>) -> String {
    let listener = cx.model.listener(address);
    name.clone_into(&mut listener.name);
    name.to_owned()
}

/// Where the client's address comes from; it holds for the whole document.
fn clients(cx: &mut Context<'_>) {
    let Some(("yes", used)) = cx.variables.global("USE_REAL_IP") else { return };
    cx.ledger.taken(used, "client_address");
    if let Some((networks, entry)) = cx.variables.global("REAL_IP_FROM") {
        let (known, other): (Vec<String>, Vec<String>) =
            networks.split_whitespace().map(str::to_owned).partition(|network| text::is_network(network));
        for network in known {
            if !cx.model.trusted_proxies.contains(&network) {
                cx.model.trusted_proxies.push(network);
            }
        }
        match other.is_empty() {
            true => cx.ledger.taken(entry, "client_address.trusted_proxies"),
            false => cx
                .ledger
                .changed(entry, format!("client_address.trusted_proxies, without {}", other.join(" "))),
        }
    }
    match cx.variables.global("REAL_IP_HEADER") {
        Some((header, entry)) if header.eq_ignore_ascii_case("x-forwarded-for") => {
            cx.model.client_header = Some("x-forwarded-for");
            cx.ledger.taken(entry, "client_address.header");
        }
        Some(("proxy_protocol", entry)) if !cx.model.trusted_proxies.is_empty() => {
            for listener in &mut cx.model.listeners {
                listener.proxy_protocol = true;
            }
            cx.ledger.taken(entry, "proxy_protocol of the listeners");
        }
        Some((_, entry)) => cx
            .ledger
            .left(entry, "the client's address comes from X-Forwarded-For, Forwarded or the PROXY protocol"),
        None => cx.model.client_header = Some("x-forwarded-for"),
    }
}

/// ModSecurity is on unless it is switched off, and so is the CRS.
fn rules(service: &str, settings: &mut Settings, cx: &mut Context<'_>) {
    let on = yes(service, "USE_MODSECURITY", true, "whether requests are inspected", cx);
    let with_crs = yes(service, "USE_MODSECURITY_CRS", true, "whether the CRS is there", cx);
    settings.waf.on = on;
    if !on {
        return;
    }
    // Whoever says nothing of it has it all the same: the setting of the hosts stands for it then.
    let said = ["USE_MODSECURITY_CRS", "USE_MODSECURITY", "SERVER_NAME"];
    let entry = said.iter().find_map(|name| cx.variables.of(service, name)).map(|(_, entry)| entry);
    let of_service: Vec<Custom> = cx
        .custom
        .iter()
        .filter(|custom| custom.service.is_empty() || custom.service == service)
        .cloned()
        .collect();
    let source = |custom: &Custom| RuleSource { kind: custom.kind.clone(), entry: custom.entry };
    let waf = &mut settings.waf;
    waf.rules.extend(of_service.iter().filter(|custom| custom.before).map(source));
    if let (true, Some(entry)) = (with_crs, entry) {
        waf.rules.push(RuleSource { kind: RuleKind::Crs, entry });
    }
    waf.rules.extend(of_service.iter().filter(|custom| !custom.before).map(source));
    for (name, directive) in [
        ("MODSECURITY_SEC_AUDIT_ENGINE", "SecAuditEngine"),
        ("MODSECURITY_SEC_AUDIT_LOG_PARTS", "SecAuditLogParts"),
        ("MODSECURITY_REQ_BODY_NO_FILES_LIMIT", "SecRequestBodyNoFilesLimit"),
    ] {
        if let Some((value, entry)) = cx.variables.of(service, name).filter(|(value, _)| is_word(value)) {
            waf.rules.push(RuleSource { kind: RuleKind::Inline(format!("{directive} {value}")), entry });
        }
    }
    if let Some((_, entry)) = cx.variables.of(service, "MODSECURITY_CRS_VERSION") {
        cx.ledger.changed(entry, format!("the release of the CRS in {}", cx.reading.crs));
    }
    let engine = cx.variables.of(service, "MODSECURITY_SEC_RULE_ENGINE");
    waf.engine = Some(Engine::Blocking);
    if let Some((value, entry)) = engine {
        match value {
            "DetectionOnly" => waf.engine = Some(Engine::DetectionOnly),
            "Off" => waf.on = false,
            _ => {}
        }
        cx.ledger.taken(entry, "engine");
    }
    if let Some((value, entry)) = cx.variables.of(service, "SECURITY_MODE") {
        if value == "detect" {
            waf.engine = Some(Engine::DetectionOnly);
        }
        cx.ledger.taken(entry, "engine");
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn headers(service: &str, settings: &mut Settings, cx: &mut Context<'_>) {
    let usable = |value: &str| {
        !value.chars().any(char::is_control) && text::template(&value.replace('$', ""), |_| None).is_some()
    };
    for (name, field) in HEADERS {
        let Some((value, entry)) = cx.variables.of(service, name) else { continue };
        if !value.is_empty() && usable(value) {
            settings.response_headers.set.insert((*field).to_owned(), value.to_owned());
        }
        cx.ledger.taken(entry, "response_headers.set");
    }
    for (_, value, entry) in cx.variables.numbered(service, "CUSTOM_HEADER") {
        let field = value
            .split_once(':')
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        match field.filter(|(name, value)| {
            text::is_field_name(name) && !text::is_ours(name) && name != "host" && usable(value)
        }) {
            Some((name, value)) => {
                settings.response_headers.set.insert(name, value);
                cx.ledger.taken(entry, "response_headers.set");
            }
            None => cx.ledger.left(entry, "this is not a header field that can be set"),
        }
    }
    if let Some((value, entry)) = cx.variables.of(service, "REMOVE_HEADERS") {
        let names = value.split_whitespace().map(str::to_ascii_lowercase);
        settings
            .response_headers
            .remove
            .extend(names.filter(|name| text::is_field_name(name) && !text::is_ours(name) && name != "host"));
        cx.ledger.taken(entry, "response_headers.remove");
    }
    for name in ["USE_GZIP", "USE_BROTLI"] {
        if let Some((value, entry)) = cx.variables.of(service, name) {
            if value == "yes" {
                settings.compression.get_or_insert_default();
            }
            cx.ledger.changed(entry, "compression, of the usual types");
        }
    }
}

fn body(service: &str, settings: &mut Settings, cx: &mut Context<'_>) {
    let Some((value, entry)) = cx.variables.of(service, "MAX_CLIENT_SIZE") else { return };
    settings.body_limit = units::size(value).filter(|size| (1..=HELD_BYTES).contains(size));
    match settings.body_limit {
        Some(_) => cx.ledger.taken(entry, "request_body.limit"),
        None => cx.ledger.changed(
            entry,
            "bodies are held to be inspected, up to SecRequestBodyLimit of the rules (12.5 MiB unless they say), and \
             longer ones are refused; set request_body.limit for more",
        ),
    }
}

fn access(service: &str, settings: &mut Settings, cx: &mut Context<'_>) {
    let mut access = Access::default();
    for (name, used, allows) in
        [("WHITELIST_IP", "USE_WHITELIST", true), ("BLACKLIST_IP", "USE_BLACKLIST", false)]
    {
        let Some((value, entry)) = cx.variables.of(service, name) else { continue };
        let on = cx.variables.of(service, used).is_none_or(|(value, _)| value == "yes");
        let (networks, other): (Vec<String>, Vec<String>) =
            value.split_whitespace().map(str::to_owned).partition(|network| text::is_network(network));
        if !on || networks.is_empty() {
            cx.ledger.left(entry, "this list is switched off or has no address");
            continue;
        }
        let without = if other.is_empty() { String::new() } else { format!(", without {}", other.join(" ")) };
        match allows {
            true => {
                access.allow.extend(networks);
                cx.ledger.changed(
                    entry,
                    format!("access.allow{without}: inspected all the same; access.bypass would not be"),
                );
            }
            false => {
                access.deny.extend(networks);
                cx.ledger.taken(entry, format!("access.deny{without}"));
            }
        }
        if let Some((_, entry)) = cx.variables.of(service, used) {
            cx.ledger.taken(entry, "access");
        }
    }
    settings.access = (access != Access::default()).then_some(access);
}

/// `LIMIT_REQ_URL` and `LIMIT_REQ_RATE`, by path.
fn rate_limits(service: &str, cx: &mut Context<'_>) -> Vec<(String, RateLimit, Entry)> {
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
        };
        limits.push((path, limit, url.map_or(entry, |(_, _, entry)| *entry)));
        cx.ledger.changed(entry, "rate_limits; so many may come at once");
    }
    for (path, _, entry) in limits.iter().filter(|(path, _, _)| path == "/") {
        cx.ledger.changed(*entry, format!("rate_limits of the site, for {path}"));
    }
    limits
}

fn routes(
    service: &str,
    settings: &Settings,
    limits: &[(String, RateLimit, Entry)],
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
        let is_tls = upstream.endpoints.iter().any(|endpoint| endpoint.url.starts_with("https"));
        let name = cx.model.upstream(upstream);
        let rewrite = target.filter(|target| path_match != PathMatch::Prefix(target.clone()));
        let rewrite = rewrite.filter(|_| !matches!(path_match, PathMatch::Pattern(_)));
        let action = Action::Forward { upstream: name.clone(), rewrite };
        if !push(site, Route { path: path_match, action, settings: own }) {
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
