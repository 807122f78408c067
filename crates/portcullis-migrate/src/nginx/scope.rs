//! What blocks inherit: settings of `http`, `server` and `location`.

use std::collections::BTreeMap;

use super::syntax::Directive;
use super::{Context, left, server, variables};
use crate::model::{
    Access, ByMethod, HeaderChanges, RateLimit, RuleKind, RuleSource, Settings, UpstreamTls, Waf,
};
use crate::report::Entry;
use crate::sources::absolute;
use crate::{text, units};

/// What holds for a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    waf: Waf,
    /// A server's rules are added to those of `http`.
    request_headers: HeaderChanges,
    /// `Host` is sent on, not that of the upstream.
    keeps_host: bool,
    response_headers: HeaderChanges,
    access: Option<Access>,
    rate_limits: Vec<RateLimit>,
    body_limit: Option<u64>,
    compression: Option<Vec<String>>,
    compressed_types: Option<Vec<String>>,
    /// No client may ask.
    pub denied: bool,
    /// Directives that ask for a password, a token or another server, by name; `off` ends one.
    guards: BTreeMap<String, Entry>,
    /// Conditions under which requests are refused.
    conditions: Vec<Entry>,
    /// Who may ask with other methods than these (`limit_except`), and who said so.
    by_method: Option<Box<(Vec<String>, Scope, Entry)>>,
    /// Variables that `set` gives one value without variables.
    constants: BTreeMap<String, (String, Entry)>,
    pub connect_timeout: Option<String>,
    pub read_timeout: Option<String>,
    pub write_timeout: Option<String>,
    pub upstream_tls: UpstreamTls,
    pub limit_status: Option<u16>,
}

impl Scope {
    /// What holds in a block with these directives; they are settled as far as they are about it.
    pub fn enter(&self, items: &[Directive], cx: &mut Context<'_>) -> Scope {
        let mut scope = self.clone();
        // Lists of a block replace those around it.
        let has = |name: &str| items.iter().any(|item| item.name == name);
        if has("proxy_set_header") || has("grpc_set_header") {
            scope.request_headers = HeaderChanges::default();
            scope.keeps_host = false;
        }
        if has("add_header") {
            scope.response_headers.add.clear();
            scope.response_headers.set.clear();
        }
        if has("proxy_hide_header") {
            scope.response_headers.remove.clear();
        }
        if has("limit_req") {
            scope.rate_limits.clear();
        }
        // It applies to the limits of its block wherever it stands.
        for item in items.iter().filter(|item| item.name == "limit_req_status") {
            scope.limit_status = item.arg(0).parse().ok().filter(|status| (400..600).contains(status));
        }
        scope.variables(items);
        for item in items {
            scope.directive(item, cx);
        }
        scope.networks(items, cx);
        for item in items.iter().filter(|item| item.name == "limit_except") {
            scope.limit(item, cx);
        }
        scope
    }

    /// What `set` says in a block; a variable that a condition sets is no constant.
    fn variables(&mut self, items: &[Directive]) {
        for item in items.iter().filter(|item| item.name == "set") {
            let Some(name) = item.arg(0).strip_prefix('$') else { continue };
            let (value, _) = self.with_constants(item.arg(1));
            match value.contains('$') {
                true => drop(self.constants.remove(name)),
                false => drop(self.constants.insert(name.to_owned(), (value, item.entry))),
            }
        }
        for item in items.iter().filter(|item| item.name == "if").flat_map(Directive::children) {
            if let Some(name) = item.arg(0).strip_prefix('$').filter(|_| item.name == "set") {
                self.constants.remove(name);
            }
        }
    }

    /// A text with the constants in it put in, and the directives that set these.
    pub fn with_constants(&self, text: &str) -> (String, Vec<Entry>) {
        let (mut result, mut used, mut rest) = (String::new(), Vec::new(), text);
        while let Some(at) = rest.find('$') {
            result.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let (name, length) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                Some((name, _)) => (name, name.len() + 2),
                None => {
                    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
                    (&after[..end], end)
                }
            };
            match self.constants.get(name) {
                Some((value, entry)) => {
                    result.push_str(value);
                    used.push(*entry);
                }
                None => result.push_str(&rest[at..at + 1 + length]),
            }
            rest = &after[length..];
        }
        result.push_str(rest);
        (result, used)
    }

    fn directive(&mut self, item: &Directive, cx: &mut Context<'_>) {
        let value = item.arg(0);
        match item.name.as_str() {
            "modsecurity" | "ModSecurityEnabled" => {
                self.waf.on = value.eq_ignore_ascii_case("on");
                cx.ledger.taken(item.entry, if self.waf.on { "inspection" } else { "mode = \"off\"" });
            }
            "modsecurity_rules_file" | "ModSecurityConfig" => {
                let path = absolute(cx.folder, value);
                self.rule(RuleKind::File { path, optional: false }, item.entry);
            }
            "modsecurity_rules" => self.rule(RuleKind::Inline(value.to_owned()), item.entry),
            "modsecurity_rules_remote" => cx.ledger.left(
                item.entry,
                "write `SecRemoteRules KEY URL sha256:HEX` in `rules.directives`, with the checksum of the file",
            ),
            "proxy_set_header" | "grpc_set_header" => self.request_header(item, cx),
            "add_header" => self.response_header(item, cx),
            "proxy_hide_header"
                if text::is_field_name(value)
                    && !text::is_ours(value)
                    && !value.eq_ignore_ascii_case("host") =>
            {
                self.response_headers.remove.push(value.to_ascii_lowercase());
                cx.ledger.taken(item.entry, "response_headers.remove");
            }
            "proxy_connect_timeout" | "grpc_connect_timeout" => {
                self.connect_timeout = timeout(item, "connect_timeout", cx);
            }
            "proxy_read_timeout" | "grpc_read_timeout" => {
                self.read_timeout = timeout(item, "read_timeout", cx);
            }
            "proxy_send_timeout" | "grpc_send_timeout" => {
                self.write_timeout = timeout(item, "write_timeout", cx);
            }
            "proxy_ssl_trusted_certificate" => self.upstream_tls.ca = file(item, "tls.ca", cx),
            "proxy_ssl_certificate" => self.upstream_tls.cert = file(item, "tls.cert", cx),
            "proxy_ssl_certificate_key" => self.upstream_tls.key = file(item, "tls.key", cx),
            "proxy_ssl_name" if text::is_host(value) => {
                self.upstream_tls.name = Some(value.to_owned());
                cx.ledger.taken(item.entry, "tls.name of the upstream");
            }
            "proxy_ssl_verify" if value == "on" => cx.ledger.taken(item.entry, "always"),
            "proxy_ssl_verify" => {
                cx.ledger.changed(item.entry, "certificates of upstreams are always verified; name theirs in tls.ca");
            }
            "client_max_body_size" => self.body(item, cx),
            "limit_req" => self.rate_limit(item, cx),
            "limit_req_status" => cx.ledger.taken(item.entry, "status of rate limits"),
            "gzip" => {
                self.compression = (value == "on").then(Vec::new);
                cx.ledger.changed(item.entry, "compression, also with zstd and br, of the usual types or gzip_types");
            }
            "gzip_types" => {
                let types = item.args.iter().filter(|kind| text::is_media_type(kind)).cloned().collect();
                self.compressed_types = Some(types);
                cx.ledger.taken(item.entry, "compression.types");
            }
            "allow" | "deny" => {}
            name if GUARDS.contains(&name) => {
                match value {
                    "off" => drop(self.guards.remove(name)),
                    _ => drop(self.guards.insert(name.to_owned(), item.entry)),
                }
                match left::inherited(name) {
                    _ if value == "off" => cx.ledger.taken(item.entry, "nothing is asked for"),
                    why => cx.ledger.left(item.entry, why.unwrap_or(left::NOBODY_ASKED)),
                }
            }
            // What is in them is settled where locations and servers are read.
            "if" if item.children().iter().any(refuses) => self.conditions.push(item.entry),
            // It is read behind all that holds around it.
            "limit_except" => {}
            name if server::READS.contains(&name) => {}
            name => {
                if let Some(why) = left::inherited(name) {
                    cx.ledger.left(item.entry, why);
                }
            }
        }
    }

    fn rule(&mut self, kind: RuleKind, entry: Entry) {
        self.waf.rules.push(RuleSource { kind, entry });
    }

    fn request_header(&mut self, item: &Directive, cx: &mut Context<'_>) {
        let (name, value) = (item.arg(0).to_ascii_lowercase(), item.arg(1));
        if name == "host" {
            match value {
                "$host" | "$http_host" | "$host:$server_port" | "$server_name" => {
                    self.keeps_host = true;
                    return cx.ledger.taken(item.entry, "the client's Host is sent on, which is the default");
                }
                "$proxy_host" => {
                    self.keeps_host = false;
                    return cx.ledger.taken(item.entry, "request_headers.set");
                }
                _ => self.keeps_host = true,
            }
        }
        if text::is_ours(&name) {
            return cx.ledger.taken(item.entry, "the proxy writes this field itself");
        }
        if !text::is_field_name(&name) {
            return cx.ledger.left(item.entry, "this is not the name of a header field");
        }
        if value.is_empty() && name != "host" {
            self.request_headers.remove.push(name);
            return cx.ledger.taken(item.entry, "request_headers.remove");
        }
        match variables::value(value) {
            Some(value) => {
                self.request_headers.set.insert(name, value);
                cx.ledger.taken(item.entry, "request_headers.set");
            }
            None => cx.ledger.left(
                item.entry,
                "header values may have {client}, {host}, {path}, {uri}, {request_id}, not this variable",
            ),
        }
    }

    fn response_header(&mut self, item: &Directive, cx: &mut Context<'_>) {
        let name = item.arg(0).to_ascii_lowercase();
        if !text::is_field_name(&name) || text::is_ours(&name) || name == "host" {
            return cx
                .ledger
                .left(item.entry, "the proxy writes this field itself, or this is not the name of one");
        }
        match variables::value(item.arg(1)) {
            Some(value) => {
                self.response_headers.add.insert(name, value);
                cx.ledger.taken(item.entry, "response_headers.add");
            }
            None => cx.ledger.left(item.entry, "header values do not know this variable"),
        }
    }

    fn body(&mut self, item: &Directive, cx: &mut Context<'_>) {
        self.body_limit = units::body_limit(item.arg(0));
        match self.body_limit {
            Some(_) => cx.ledger.taken(item.entry, "request_body.limit"),
            None => cx.ledger.changed(item.entry, units::LONGER_BODIES),
        }
    }

    fn rate_limit(&mut self, item: &Directive, cx: &mut Context<'_>) {
        let option = |name: &str| item.args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
        let zone = option("zone").unwrap_or_default();
        let Some(zone) = cx.zones.get(zone) else {
            return cx
                .ledger
                .left(item.entry, "there is no such limit_req_zone that counts by something we know");
        };
        let burst: u32 = option("burst").and_then(|burst| burst.parse().ok()).unwrap_or(0);
        if self.rate_limits.iter().any(|known| known.name == zone.name) {
            return cx.ledger.left(item.entry, "another limit_req of this block has the same zone");
        }
        self.rate_limits.push(RateLimit {
            burst: burst.saturating_add(1).min(1_000_000),
            status: Some(self.limit_status.unwrap_or(503)),
            entries: vec![item.entry],
            ..zone.clone()
        });
        cx.ledger.promise(item.entry);
        cx.ledger.changed(
            item.entry,
            "rate_limits; requests beyond the burst are refused at once and none are delayed, each location counts by \
             itself",
        );
    }

    /// `limit_except`: who may ask with other methods than these.
    fn limit(&mut self, item: &Directive, cx: &mut Context<'_>) {
        let Some(methods) = text::methods(item.args.iter().map(String::as_str)) else {
            self.conditions.push(item.entry);
            return;
        };
        let mut inner = Scope { by_method: None, ..self.clone() };
        for inside in item.children() {
            inner.directive(inside, cx);
        }
        inner.networks(item.children(), cx);
        cx.ledger.promise(item.entry);
        cx.ledger.taken(item.entry, "routes with these methods, and without");
        self.by_method = Some(Box::new((methods, inner, item.entry)));
    }

    /// `allow` and `deny`; those of a block replace those around it.
    fn networks(&mut self, items: &[Directive], cx: &mut Context<'_>) {
        let rules: Vec<&Directive> =
            items.iter().filter(|item| item.name == "allow" || item.name == "deny").collect();
        if rules.is_empty() {
            return;
        }
        let mut access = Access::default();
        let mut decided = false;
        for item in rules {
            let (network, allows) = (item.arg(0), item.name == "allow");
            if decided {
                cx.ledger.taken(item.entry, "no client comes this far");
            } else if network == "all" {
                access.others_denied = !allows;
                decided = true;
                let nobody = !allows && access.allow.is_empty();
                cx.ledger.taken(item.entry, if nobody { "nobody may ask" } else { "access.others" });
            } else if !text::is_network(network) {
                cx.ledger.left(item.entry, "lists of clients take addresses and networks");
            } else if allows && !access.deny.is_empty() {
                access.allow.push(network.to_owned());
                cx.ledger
                    .changed(item.entry, "access.allow, which wins over access.deny whatever their order");
            } else {
                let list = if allows { &mut access.allow } else { &mut access.deny };
                list.push(network.to_owned());
                cx.ledger.taken(item.entry, if allows { "access.allow" } else { "access.deny" });
            }
        }
        // Lists that let nobody in are none: routes answer 403.
        self.denied = access.others_denied && access.allow.is_empty();
        self.access = (!self.denied).then_some(access);
    }

    /// The settings of a site or route. `host` is what the upstream is called, if requests go to one.
    pub fn settings(&self, host: Option<&str>) -> Settings {
        let mut request_headers = self.request_headers.clone();
        if let (false, Some(host)) = (self.keeps_host, host) {
            request_headers.set.insert("host".to_owned(), host.to_owned());
        }
        let types = self.compressed_types.clone().unwrap_or_default();
        Settings {
            waf: self.waf.clone(),
            request_headers,
            response_headers: self.response_headers.clone(),
            access: self.access.clone(),
            rate_limits: self.rate_limits.clone(),
            body_limit: self.body_limit,
            compression: self.compression.as_ref().map(|_| types),
            closed: self.guards.values().chain(&self.conditions).copied().collect(),
            by_method: self.by_method.iter().map(|limited| self.limited(limited, host)).collect(),
        }
    }

    fn limited(&self, limited: &(Vec<String>, Scope, Entry), host: Option<&str>) -> ByMethod {
        let (methods, inner, entry) = limited;
        let scope = Scope {
            access: inner.access.clone(),
            guards: inner.guards.clone(),
            conditions: inner.conditions.clone(),
            by_method: None,
            ..self.clone()
        };
        ByMethod {
            methods: methods.clone(),
            except: true,
            refused: inner.denied.then_some(403),
            settings: scope.settings(host),
            entry: *entry,
        }
    }

    /// True if not everybody may ask, in a way that is not in a list of clients.
    pub fn is_guarded(&self) -> bool {
        self.denied || !self.guards.is_empty() || !self.conditions.is_empty() || self.by_method.is_some()
    }
}

/// Directives that let only authenticated clients through.
const GUARDS: &[&str] = &[
    "auth_basic",
    "auth_digest",
    "auth_gss",
    "auth_jwt",
    "auth_ldap",
    "auth_oidc",
    "auth_pam",
    "auth_request",
];

/// True for an answer of the 400s, or nginx's 444, which closes the connection.
fn refuses(item: &Directive) -> bool {
    match item.name.as_str() {
        "return" => item.arg(0).parse::<u16>().is_ok_and(|status| (400..500).contains(&status)),
        "deny" => true,
        _ => false,
    }
}

fn timeout(item: &Directive, key: &str, cx: &mut Context<'_>) -> Option<String> {
    let time = units::time(item.arg(0));
    match &time {
        Some(_) => cx.ledger.taken(item.entry, format!("{key} of the upstream")),
        None => cx.ledger.left(item.entry, "this time cannot be read, or is more than a day"),
    }
    time
}

fn file(item: &Directive, key: &str, cx: &mut Context<'_>) -> Option<String> {
    if item.arg(0).contains('$') || item.arg(0).is_empty() {
        cx.ledger.left(item.entry, "the name of a file cannot have variables");
        return None;
    }
    cx.ledger.taken(item.entry, format!("{key} of the upstream"));
    Some(absolute(cx.folder, item.arg(0)))
}
