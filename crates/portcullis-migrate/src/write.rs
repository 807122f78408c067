//! Writes a model as a document. Strings are quoted by `toml_edit`; the layout is that of a document that a
//! person wrote.

use std::fmt::Write as _;

use crate::model::{
    Access, Action, Engine, HeaderChanges, Listener, Model, PathMatch, RateLimit, Route, RuleSet, Settings,
    Site, Tls, Upstream,
};

/// A document in the making. Writing to a text does not fail.
struct Text(String);

impl Text {
    fn line(&mut self, line: impl AsRef<str>) {
        self.0.push_str(line.as_ref());
        self.0.push('\n');
    }

    /// `key = "value"`.
    fn text(&mut self, key: &str, value: &str) {
        self.line(format!("{key} = {}", quoted(value)));
    }

    fn some_text(&mut self, key: &str, value: Option<&String>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    fn list(&mut self, key: &str, values: &[String]) {
        if !values.is_empty() {
            self.line(format!("{key} = {}", list(values)));
        }
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

fn list(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("[{}]", values.join(", "))
}

/// `{ a, b }`.
fn table(members: &[String]) -> String {
    format!("{{ {} }}", members.join(", "))
}

/// A key, quoted where it has to be.
fn key(text: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.chars().all(is_bare) { text.to_owned() } else { single_line(text) }
}

/// A string of TOML without line breaks, as keys are.
fn single_line(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// The document.
pub(crate) fn document(model: &Model, from: &str) -> String {
    let mut text = Text(String::new());
    text.line(format!(
        "# Written by `portcullis migrate {from}`. Read its report before this document serves: it names"
    ));
    text.line("# what has changed in meaning, and what is not here. Then `portcullis check`.");
    text.line("#");
    text.line("# To keep events and see them in the console: data = { folder = \"/var/lib/portcullis\" }");
    text.line("# and admin = { listen = \"127.0.0.1:9090\", console = \"127.0.0.1:9443\" }.");
    document_settings(model, &mut text);
    for listener in &model.listeners {
        write_listener(listener, &mut text);
    }
    for site in &model.sites {
        write_site(site, &mut text);
    }
    for upstream in &model.upstreams {
        write_upstream(upstream, &mut text);
    }
    text.0
}

fn document_settings(model: &Model, text: &mut Text) {
    if let Some(acme) = &model.acme {
        text.line("\n[acme]");
        text.line("state = \"/var/lib/portcullis/acme\"");
        text.line("terms_agreed = true");
        if let Some(contact) = &acme.contact {
            text.list("contact", std::slice::from_ref(contact));
        }
        text.some_text("directory", acme.directory.as_ref());
    }
    if !model.trusted_proxies.is_empty() {
        text.line("\n[client_address]");
        text.list("trusted_proxies", &model.trusted_proxies);
        if let Some(header) = model.client_header {
            text.text("header", header);
        }
    }
    if !model.resolvers.is_empty() {
        text.line("\n[lookups]");
        text.list("resolvers", &model.resolvers);
    }
}

fn write_listener(listener: &Listener, text: &mut Text) {
    text.line("\n[[listeners]]");
    text.text("name", &listener.name);
    text.text("address", &listener.address);
    if listener.proxy_protocol {
        text.line("proxy_protocol = true");
    }
    if let Some(tls) = &listener.tls {
        write_tls(tls, text);
    }
}

fn write_tls(tls: &Tls, text: &mut Text) {
    text.line("\n[listeners.tls]");
    if !tls.certificates.is_empty() {
        text.line("certificates = [");
        for pair in &tls.certificates {
            text.line(format!("    {{ cert = {}, key = {} }},", quoted(&pair.cert), quoted(&pair.key)));
        }
        text.line("]");
    }
    if tls.acme {
        text.line("acme = {}");
    }
    if tls.only_13 {
        text.line("min_version = \"1.3\"");
    }
    if let Some(client) = &tls.client_auth {
        let mode = if client.optional { "optional" } else { "required" };
        text.line(format!("client_auth = {{ ca = {}, mode = \"{mode}\" }}", quoted(&client.ca)));
    }
}

fn write_site(site: &Site, text: &mut Text) {
    text.line("\n[[sites]]");
    text.text("name", &site.name);
    text.list("hosts", &site.hosts);
    text.list("listeners", &site.listeners);
    text.some_text("upstream", site.upstream.as_ref());
    let mut https = Vec::new();
    if site.redirect_to_tls {
        https.push("redirect = true".to_owned());
    }
    if let Some(hsts) = &site.hsts {
        let mut members = vec![format!("max_age = \"{}s\"", hsts.seconds)];
        members.extend(hsts.subdomains.then(|| "include_subdomains = true".to_owned()));
        members.extend(hsts.preload.then(|| "preload = true".to_owned()));
        https.push(format!("hsts = {}", table(&members)));
    }
    if !https.is_empty() {
        text.line(format!("https = {}", table(&https)));
    }
    if site.rules.any() && site.settings.waf.on {
        text.line("mode = \"crs\"    # \"both\" adds the semantic detector");
    } else {
        text.line("mode = \"off\"    # nothing inspected these requests; \"semantic\" would");
    }
    engine(&site.settings, text);
    common(&site.settings, None, text);
    if site.rules.any() {
        write_rules(&site.rules, text);
    }
    for route in &site.routes {
        write_route(route, site, text);
    }
}

fn engine(settings: &Settings, text: &mut Text) {
    match settings.waf.engine {
        Some(Engine::Blocking) => text.line("engine = \"blocking\""),
        Some(Engine::DetectionOnly) => text.line("engine = \"detection_only\""),
        None => {}
    }
}

fn write_rules(rules: &RuleSet, text: &mut Text) {
    text.line("\n[sites.rules]");
    text.list("setup", &rules.setup);
    text.some_text("crs", rules.crs.as_ref());
    if let Some(level) = rules.paranoia {
        text.line(format!("paranoia = {level}"));
    }
    text.list("include", &rules.include);
    if rules.modsecurity3 {
        text.line("compat = \"modsecurity3\"");
    }
    if !rules.directives.is_empty() {
        text.text("directives", &rules.directives);
    }
}

fn write_route(route: &Route, site: &Site, text: &mut Text) {
    text.line("\n[[sites.routes]]");
    match &route.path {
        PathMatch::Prefix(path) => text.text("path", path),
        PathMatch::Exact(path) => text.text("path_exact", path),
        PathMatch::Pattern(pattern) => text.text("path_pattern", pattern),
    }
    text.list("methods", &route.conditions.methods);
    if !route.conditions.headers.is_empty() {
        let fields = route.conditions.headers.iter();
        let fields: Vec<String> =
            fields.map(|(name, value)| format!("{} = {}", key(name), quoted(value))).collect();
        text.line(format!("headers = {}", table(&fields)));
    }
    match &route.action {
        Action::Forward { upstream, .. } if !route.settings.closed.is_empty() => {
            text.line(
                "# Not everybody may ask for this, in a way that could not be taken over: see the report.",
            );
            text.line(format!(
                "respond = {{ status = 403 }}    # in place of upstream = {}",
                quoted(upstream)
            ));
        }
        Action::Forward { upstream, rewrite } => {
            text.text("upstream", upstream);
            text.some_text("rewrite", rewrite.as_ref());
        }
        Action::Redirect { to, status } => {
            text.line(format!("redirect = {{ to = {}, status = {status} }}", quoted(to)));
        }
        Action::Respond { status, body: None } => text.line(format!("respond = {{ status = {status} }}")),
        Action::Respond { status, body: Some(body) } => {
            text.line(format!("respond = {{ status = {status}, body = {} }}", quoted(body)));
        }
    }
    if !route.settings.waf.on && site.settings.waf.on {
        text.line("mode = \"off\"");
    } else if route.settings.waf.on && !site.settings.waf.on {
        text.line("mode = \"crs\"");
    }
    if route.settings.waf.engine != site.settings.waf.engine {
        engine(&route.settings, text);
    }
    common(&route.settings, Some(&site.settings), text);
}

/// What sites and routes have; of a route only what its site does not say.
fn common(settings: &Settings, site: Option<&Settings>, text: &mut Text) {
    let differs = |same: fn(&Settings, &Settings) -> bool| site.is_none_or(|site| !same(settings, site));
    if differs(|a, b| a.request_headers == b.request_headers) {
        headers("request_headers", &settings.request_headers, site.is_some(), text);
    }
    if differs(|a, b| a.response_headers == b.response_headers) {
        headers("response_headers", &settings.response_headers, site.is_some(), text);
    }
    if differs(|a, b| a.access == b.access) {
        access(settings.access.as_ref(), site.is_some(), text);
    }
    if differs(|a, b| a.body_limit == b.body_limit)
        && let Some(limit) = settings.body_limit
    {
        text.line(format!("request_body = {{ limit = {limit} }}"));
    }
    if differs(|a, b| a.compression == b.compression) {
        match &settings.compression {
            Some(types) if types.is_empty() => text.line("compression = {}"),
            Some(types) => text.line(format!("compression = {{ types = {} }}", list(types))),
            None if site.is_some() => text.line("compression = { enabled = false }"),
            None => {}
        }
    }
    // Those of a route count beside those of its site.
    let own =
        settings.rate_limits.iter().filter(|limit| site.is_none_or(|site| !site.rate_limits.contains(limit)));
    let own: Vec<String> = own.map(rate_limit).collect();
    if !own.is_empty() {
        text.line(format!("rate_limits = [{}]", own.join(", ")));
    }
}

fn headers(name: &str, changes: &HeaderChanges, is_route: bool, text: &mut Text) {
    if changes.is_empty() {
        if is_route {
            text.line(format!("{name} = {{}}"));
        }
        return;
    }
    let fields = |fields: &std::collections::BTreeMap<String, String>| {
        let fields: Vec<String> =
            fields.iter().map(|(name, value)| format!("{} = {}", key(name), quoted(value))).collect();
        table(&fields)
    };
    let mut members = Vec::new();
    if !changes.remove.is_empty() {
        members.push(format!("remove = {}", list(&changes.remove)));
    }
    if !changes.set.is_empty() {
        members.push(format!("set = {}", fields(&changes.set)));
    }
    if !changes.add.is_empty() {
        members.push(format!("add = {}", fields(&changes.add)));
    }
    text.line(format!("{name} = {}", table(&members)));
}

fn access(access: Option<&Access>, is_route: bool, text: &mut Text) {
    let Some(access) = access else {
        if is_route {
            text.line("access = { others = \"allow\" }");
        }
        return;
    };
    let mut members = Vec::new();
    if !access.allow.is_empty() {
        members.push(format!("allow = {{ networks = {} }}", list(&access.allow)));
    }
    if !access.deny.is_empty() {
        members.push(format!("deny = {{ networks = {} }}", list(&access.deny)));
    }
    members.push(format!("others = \"{}\"", if access.others_denied { "deny" } else { "allow" }));
    text.line(format!("access = {}", table(&members)));
}

fn rate_limit(limit: &RateLimit) -> String {
    let mut members = vec![format!("name = {}", quoted(&limit.name))];
    match &limit.key {
        Some(key) if key == "client" => {}
        Some(key) => members.push(format!("key = [{}]", quoted(key))),
        None => members.push("key = []".to_owned()),
    }
    members.push(format!("rate = {}", limit.rate));
    members.extend(limit.per_minute.then(|| "per = \"1m\"".to_owned()));
    members.push(format!("burst = {}", limit.burst));
    members.extend(limit.status.map(|status| format!("status = {status}")));
    table(&members)
}

fn write_upstream(upstream: &Upstream, text: &mut Text) {
    text.line(format!("\n[upstreams.{}]", key(&upstream.name)));
    text.line("endpoints = [");
    for endpoint in &upstream.endpoints {
        let mut members = vec![format!("url = {}", quoted(&endpoint.url))];
        members.extend(endpoint.weight.map(|weight| format!("weight = {weight}")));
        members.extend(endpoint.backup.then(|| "priority = 1".to_owned()));
        match members.len() {
            1 => text.line(format!("    {},", quoted(&endpoint.url))),
            _ => text.line(format!("    {},", table(&members))),
        }
    }
    text.line("]");
    for (key, value) in [("protocol", upstream.protocol), ("balance", upstream.balance)] {
        if let Some(value) = value {
            text.text(key, value);
        }
    }
    text.some_text("hash_by", upstream.hash_by.as_ref());
    text.some_text("sticky_cookie", upstream.sticky_cookie.as_ref());
    text.some_text("slow_start", upstream.slow_start.as_ref());
    for (key, value) in [
        ("connect_timeout", &upstream.connect_timeout),
        ("read_timeout", &upstream.read_timeout),
        ("write_timeout", &upstream.write_timeout),
        ("idle_timeout", &upstream.idle_timeout),
    ] {
        text.some_text(key, value.as_ref());
    }
    if let Some(number) = upstream.idle_connections {
        text.line(format!("idle_connections = {number}"));
    }
    if let Some(path) = &upstream.health_path {
        let mut members = vec![format!("path = {}", quoted(path))];
        members.extend(upstream.health_interval.as_ref().map(|time| format!("interval = {}", quoted(time))));
        text.line(format!("health = {}", table(&members)));
    }
    let mut ejection = Vec::new();
    ejection.extend(upstream.ejection_failures.map(|number| format!("failures = {number}")));
    ejection.extend(upstream.ejection_time.as_ref().map(|time| format!("time = {}", quoted(time))));
    if !ejection.is_empty() {
        text.line(format!("ejection = {}", table(&ejection)));
    }
    if let Some(number) = upstream.requests_max {
        text.line(format!("limits = {{ requests = {number} }}"));
    }
    let tls = &upstream.tls;
    let members: Vec<String> = [("ca", &tls.ca), ("name", &tls.name), ("cert", &tls.cert), ("key", &tls.key)]
        .into_iter()
        .filter_map(|(key, value)| value.as_ref().map(|value| format!("{key} = {}", quoted(value))))
        .collect();
    if !members.is_empty() {
        text.line(format!("tls = {}", table(&members)));
    }
}
