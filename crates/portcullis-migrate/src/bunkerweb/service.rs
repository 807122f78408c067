//! A service: one site.

use super::{Context, routes, rules};
use crate::model::{Access, Acme, ByMethod, Certificate, Engine, RuleKind, RuleSource, Settings, Site};
use crate::site::finish;
use crate::{text, units};

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
    rules::read(service, &mut settings, cx);
    headers(service, &mut settings, cx);
    body(service, &mut settings, cx);
    access(service, &mut settings, cx);
    passwords(service, &mut settings, cx);
    methods(service, &mut settings, cx);
    let limits = routes::limits(service, cx);
    settings
        .rate_limits
        .extend(limits.iter().filter(|(path, _, _)| path == "/").map(|(_, limit, _)| limit.clone()));
    routes::read(service, &settings, &limits, &mut site, cx);
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
pub(crate) fn yes(service: &str, name: &str, default: bool, note: &str, cx: &mut Context<'_>) -> bool {
    match cx.variables.of(service, name) {
        Some((value, entry)) => {
            let yes = value == "yes";
            cx.ledger.taken(entry, if yes { note } else { "it is off" });
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
    settings.body_limit = units::body_limit(value);
    match settings.body_limit {
        Some(_) => cx.ledger.taken(entry, "request_body.limit"),
        None => cx.ledger.changed(entry, units::LONGER_BODIES),
    }
}

/// Passwords are asked for by BunkerWeb itself, for the whole site or a path of it.
fn passwords(service: &str, settings: &mut Settings, cx: &Context<'_>) {
    let on = |name: &str| cx.variables.of(service, name).filter(|(value, _)| *value == "yes");
    settings.closed.extend(on("USE_AUTH_BASIC").map(|(_, entry)| entry));
}

/// Other methods are answered 405.
fn methods(service: &str, settings: &mut Settings, cx: &mut Context<'_>) {
    /// The CRS refuses all others (911100) unless its settings name them.
    const OF_CRS: &[&str] = &["GET", "HEAD", "POST", "OPTIONS"];
    /// What it lets through where nothing is said.
    const BY_DEFAULT: &str = "GET|POST|HEAD";
    let Some((value, entry)) = cx.variables.of(service, "ALLOWED_METHODS") else {
        let waf = &settings.waf;
        let has_crs = waf.rules.iter().any(|source| source.kind == RuleKind::Crs);
        if waf.on && has_crs && waf.engine != Some(Engine::DetectionOnly) {
            return;
        }
        let name = cx.variables.of(service, "SERVER_NAME").or(cx.variables.global("SERVER_NAME"));
        let Some((_, entry)) = name else { return };
        let methods = BY_DEFAULT.split('|').map(str::to_owned).collect();
        cx.ledger.taken(
            entry,
            "routes with the methods that BunkerWeb allows by default, others are answered 405",
        );
        let rule = ByMethod { methods, except: true, refused: Some(405), settings: settings.clone(), entry };
        settings.by_method.push(rule);
        return;
    };
    let words: Vec<&str> = value.split('|').map(str::trim).collect();
    if !words.iter().all(|word| text::is_method(word)) {
        cx.ledger.left(entry, "methods are words of upper case letters, with `|` between them");
        settings.closed.push(entry);
        return;
    }
    let methods: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let crs = settings.waf.rules.iter().position(|source| source.kind == RuleKind::Crs);
    if let (Some(at), true) = (crs, words.iter().any(|word| !OF_CRS.contains(word))) {
        let text = format!(
            "SecAction \"id:900200,phase:1,pass,nolog,t:none,setvar:'tx.allowed_methods={}'\"",
            words.join(" ")
        );
        settings.waf.rules.insert(at, RuleSource { kind: RuleKind::Inline(text), entry });
    }
    cx.ledger.promise(entry);
    cx.ledger.taken(entry, "routes with these methods, and without, which are answered 405");
    let rule = ByMethod { methods, except: true, refused: Some(405), settings: settings.clone(), entry };
    settings.by_method.push(rule);
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
