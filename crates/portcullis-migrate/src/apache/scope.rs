//! What virtual hosts and locations inherit.

use super::syntax::Directive;
use super::{Context, left, rules};
use crate::model::{Access, ByMethod, HeaderChanges, Settings, UpstreamTls, Waf};
use crate::report::Entry;
use crate::sources::absolute;
use crate::{text, units};

/// What holds for a section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub waf: Waf,
    request_headers: HeaderChanges,
    response_headers: HeaderChanges,
    /// The client's `Host` is sent on.
    pub keeps_host: bool,
    access: Option<Access>,
    /// No client may ask.
    pub denied: bool,
    body_limit: Option<u64>,
    compression: Option<Vec<String>>,
    /// Conditions on who may ask, other than by address.
    closed: Vec<Entry>,
    /// Who may ask with some methods.
    by_method: Vec<Limited>,
    pub read_timeout: Option<String>,
    pub upstream_tls: UpstreamTls,
}

/// A `<Limit>` or `<LimitExcept>`: who may ask with these methods, or with all others.
#[derive(Clone, Debug)]
struct Limited {
    methods: Vec<String>,
    except: bool,
    access: Option<Access>,
    denied: bool,
    closed: Vec<Entry>,
    entry: Entry,
}

impl Scope {
    /// What holds in a section with these directives; they are settled as far as they are about it.
    pub fn enter(&self, items: &[Directive], cx: &mut Context<'_>) -> Scope {
        let mut scope = self.clone();
        rules::read(items, &mut scope.waf, cx);
        for item in items {
            scope.directive(item, cx);
        }
        scope.require(items, cx);
        scope.limits(items, cx);
        scope
    }

    /// The same for a location, whose rules belong to its site.
    pub fn enter_location(&self, items: &[Directive], cx: &mut Context<'_>) -> Scope {
        let mut scope = self.clone();
        for item in items {
            scope.directive(item, cx);
        }
        scope.require(items, cx);
        scope.limits(items, cx);
        scope
    }

    /// `<Limit>` and `<LimitExcept>`, in which access alone can be said.
    fn limits(&mut self, items: &[Directive], cx: &mut Context<'_>) {
        for item in items.iter().filter(|item| item.name == "limit" || item.name == "limitexcept") {
            let Some(entry) = item.entry else { continue };
            let Some(methods) = text::methods(item.args.iter().map(String::as_str)) else {
                self.closed.push(entry);
                cx.leave(item, "its methods are not words of upper case letters");
                continue;
            };
            let around = Scope { by_method: Vec::new(), ..self.clone() };
            let inner = around.enter_location(item.children(), cx);
            if inner.settings(None) == around.settings(None) && inner.denied == around.denied {
                cx.taken(item, "what is in it, where it has a counterpart");
                continue;
            }
            cx.ledger.promise(entry);
            cx.taken(item, "routes with these methods, and without");
            self.by_method.push(Limited {
                methods,
                except: item.name == "limitexcept",
                access: inner.access,
                denied: inner.denied,
                closed: inner.closed,
                entry,
            });
        }
    }

    fn directive(&mut self, item: &Directive, cx: &mut Context<'_>) {
        let value = item.arg(0);
        let on = value.eq_ignore_ascii_case("on");
        match item.name.as_str() {
            "header" => self.header(item, false, cx),
            "requestheader" => self.header(item, true, cx),
            "proxypreservehost" => {
                self.keeps_host = on;
                cx.taken(
                    item,
                    if on {
                        "the client's Host is sent on, which is the default"
                    } else {
                        "request_headers.set"
                    },
                );
            }
            "proxypassreverse" => {
                self.keeps_host = true;
                cx.changed(
                    item,
                    "the upstream is sent the client's Host, so that its redirects need no change",
                );
            }
            "proxytimeout" => {
                self.read_timeout = units::time(value).filter(|_| !value.ends_with(['m', 'h', 'd', 'w']));
                match self.read_timeout {
                    Some(_) => cx.taken(item, "read_timeout of the upstream"),
                    None => cx.left(item, "this time cannot be read, or is more than a day"),
                }
            }
            "sslproxyengine" => cx.taken(item, "endpoints with https://"),
            "sslproxycacertificatefile" => {
                self.upstream_tls.ca = Some(absolute(&cx.folder, value));
                cx.taken(item, "tls.ca of the upstream");
            }
            "sslproxyverify"
            | "sslproxycheckpeercn"
            | "sslproxycheckpeername"
            | "sslproxycheckpeerexpire" => match value.eq_ignore_ascii_case("require") || on {
                true => cx.taken(item, "always"),
                false => {
                    cx.changed(item, "certificates of upstreams are always verified; name theirs in tls.ca")
                }
            },
            "limitrequestbody" => self.body(item, cx),
            "addoutputfilterbytype" => {
                let types: Vec<String> =
                    item.args.iter().skip(1).filter(|kind| text::is_media_type(kind)).cloned().collect();
                if types.is_empty() || !value.to_ascii_lowercase().contains("deflate") {
                    return cx.left(item, "of filters, compression alone has a counterpart");
                }
                self.compression.get_or_insert_default().extend(types);
                cx.changed(item, "compression, also with zstd and br");
            }
            name if super::vhost::READS.contains(&name) => {}
            name => {
                if let Some(why) = left::why(name).filter(|_| item.block.is_none()) {
                    cx.left(item, why);
                }
            }
        }
    }

    fn body(&mut self, item: &Directive, cx: &mut Context<'_>) {
        self.body_limit = units::body_limit(item.arg(0));
        match self.body_limit {
            Some(_) => cx.taken(item, "request_body.limit"),
            None => cx.changed(item, units::LONGER_BODIES),
        }
    }

    /// `Header [always] set NAME VALUE` and the like.
    fn header(&mut self, item: &Directive, is_request: bool, cx: &mut Context<'_>) {
        let mut args =
            item.args.iter().map(String::as_str).filter(|arg| !["always", "onsuccess"].contains(arg));
        let (action, name) =
            (args.next().unwrap_or_default(), args.next().unwrap_or_default().to_ascii_lowercase());
        let (value, condition) = (args.next().unwrap_or_default(), args.next());
        if condition.is_some_and(|condition| condition.starts_with("env=") || condition.starts_with("expr="))
        {
            return cx
                .left(item, "headers are changed for all requests of a site or route, not on a condition");
        }
        if text::is_ours(&name) {
            return cx.taken(item, "the proxy writes this field itself");
        }
        if !text::is_field_name(&name) || (name == "host" && !(is_request && action == "set")) {
            return cx.left(item, "this field cannot be changed");
        }
        let key = if is_request { "request_headers" } else { "response_headers" };
        let changes = if is_request { &mut self.request_headers } else { &mut self.response_headers };
        if action == "unset" {
            if !changes.remove.contains(&name) {
                changes.remove.push(name);
            }
            return cx.taken(item, format!("{key}.remove"));
        }
        let Some(value) = value_of(value) else {
            return cx.left(
                item,
                "header values may have {client}, {host}, {path}, {uri}, {request_id}, not this variable",
            );
        };
        match action {
            "set" | "setifempty" => {
                if name == "host" {
                    self.keeps_host = true;
                }
                changes.set.insert(name, value);
            }
            "add" | "append" | "merge" => drop(changes.add.insert(name, value)),
            _ => return cx.left(item, "headers are set, added and removed"),
        }
        match action == "set" || action == "add" {
            true => cx.taken(item, key),
            false => cx.changed(item, format!("{key}, whatever is there already")),
        }
    }

    /// `Require`, also in the sections around it.
    fn require(&mut self, items: &[Directive], cx: &mut Context<'_>) {
        let mut access = Access::default();
        let mut seen = false;
        let mut granted = false;
        // A section's own conditions replace those around it.
        if items.iter().any(|item| item.name.starts_with("require")) {
            self.closed.clear();
            self.by_method.clear();
        }
        let is_of_all = |item: &Directive, name: &str| {
            item.name == name
                && item.arg(0).eq_ignore_ascii_case("from")
                && item.arg(1).eq_ignore_ascii_case("all")
        };
        // As Apache 2.2 had it.
        if items.iter().any(|item| is_of_all(item, "deny")) && !items.iter().any(|item| item.name == "allow")
        {
            for item in items.iter().filter(|item| item.name == "deny" || item.name == "order") {
                cx.taken(item, "nobody may ask");
            }
            self.denied = true;
            return;
        }
        let mut guards = Vec::new();
        for item in items {
            match (item.name.as_str(), item.arg(0).to_ascii_lowercase().as_str()) {
                ("requireany", _) => {
                    cx.taken(item, "access");
                    let inner: Vec<Directive> = item.children().to_vec();
                    return self.require(&inner, cx);
                }
                ("requireall" | "requirenone", _) => {
                    guards.extend(item.entry);
                    cx.leave(
                        item,
                        "write `access` of the site or route: all conditions together are not known",
                    );
                }
                ("require", "all") => {
                    seen = true;
                    granted = item.arg(1).eq_ignore_ascii_case("granted");
                    cx.taken(
                        item,
                        if granted { "everybody may ask" } else { "who is not named may not ask" },
                    );
                }
                ("require", "ip") => {
                    let (networks, other): (Vec<_>, Vec<_>) =
                        item.args.iter().skip(1).cloned().partition(|network| text::is_network(network));
                    access.allow.extend(networks);
                    seen = true;
                    match other.is_empty() {
                        true => cx.taken(item, "access.allow"),
                        false => cx.changed(item, format!("access.allow, without {}", other.join(" "))),
                    }
                }
                ("require", "local") => {
                    access.allow.extend(["127.0.0.0/8".to_owned(), "::1".to_owned()]);
                    seen = true;
                    cx.taken(item, "access.allow");
                }
                ("require", _) => {
                    guards.extend(item.entry);
                    cx.left(
                        item,
                        "clients are identified by address alone: keep a server that asks for more behind",
                    );
                }
                // As Apache 2.2 had it.
                ("deny" | "allow" | "order", _) => {
                    if item.name == "deny" {
                        guards.extend(item.entry);
                    }
                    cx.left(item, left::why(&item.name).unwrap_or_default());
                }
                _ => {}
            }
        }
        // One condition of several is enough: who is in a list of clients needs no password.
        if !granted && access.allow.is_empty() {
            self.closed.extend(guards);
        }
        if seen {
            access.others_denied = !granted;
            self.denied = access.others_denied && access.allow.is_empty();
            self.access = access.others_denied.then_some(access).filter(|access| !access.allow.is_empty());
        }
    }

    /// True if not everybody may ask, in a way that is not in a list of clients.
    pub fn is_guarded(&self) -> bool {
        self.denied || !self.closed.is_empty() || !self.by_method.is_empty()
    }

    /// The settings of a site or route. `host` is what the upstream is called, if requests go to one.
    pub fn settings(&self, host: Option<&str>) -> Settings {
        let mut request_headers = self.request_headers.clone();
        if let (false, Some(host)) = (self.keeps_host, host) {
            request_headers.set.insert("host".to_owned(), host.to_owned());
        }
        Settings {
            waf: self.waf.clone(),
            request_headers,
            response_headers: self.response_headers.clone(),
            access: self.access.clone(),
            body_limit: self.body_limit,
            compression: self.compression.clone(),
            closed: self.closed.clone(),
            by_method: self.by_method.iter().map(|limited| self.limited(limited, host)).collect(),
            ..Settings::default()
        }
    }

    fn limited(&self, limited: &Limited, host: Option<&str>) -> ByMethod {
        let scope = Scope {
            access: limited.access.clone(),
            closed: limited.closed.clone(),
            by_method: Vec::new(),
            ..self.clone()
        };
        ByMethod {
            methods: limited.methods.clone(),
            except: limited.except,
            refused: limited.denied.then_some(403),
            settings: scope.settings(host),
            entry: limited.entry,
        }
    }
}

/// A value of `Header`: text, with the few variables that documents know.
fn value_of(text: &str) -> Option<String> {
    let text = text
        .replace("%{REMOTE_ADDR}s", "{client}")
        .replace("%{REMOTE_ADDR}e", "{client}")
        .replace("%{HTTP_HOST}s", "{host}")
        .replace("%{UNIQUE_ID}e", "{request_id}")
        .replace("%{SSL_CLIENT_S_DN}s", "{client_cert_subject}")
        .replace("%%", "\u{1}");
    if text.contains('%') {
        return None;
    }
    let text = text.replace('\u{1}', "%");
    // Nothing else may look like a placeholder.
    let known = ["{client}", "{host}", "{request_id}", "{client_cert_subject}"];
    let rest = known.iter().fold(text.clone(), |rest, name| rest.replace(name, ""));
    text::template(&rest.replace('$', ""), |_| None)?;
    (!text.chars().any(char::is_control)).then_some(text)
}
