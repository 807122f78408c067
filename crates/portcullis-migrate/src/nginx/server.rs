//! `server`: one site.

use std::collections::{BTreeMap, BTreeSet};

use super::listen::{self, Listen};
use super::location::{self, Of};
use super::redirect::{self, Around};
use super::scope::Scope;
use super::syntax::Directive;
use super::{Context, leave};
use crate::model::{Action, Certificate, ClientAuth, Route, Site};
use crate::site::{self, Hosts, root};
use crate::sources::absolute;
use crate::text;

/// Directives of TLS that are read here, those of `http` where a server has none of its own.
pub(crate) const READS: &[&str] = &[
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_protocols",
    "ssl_client_certificate",
    "ssl_trusted_certificate",
    "ssl_verify_client",
];

/// All servers among the directives of `http`, in their order.
pub(crate) fn all(http: &[Directive], scope: &Scope, cx: &mut Context<'_>) {
    let servers: Vec<&Directive> = http.iter().filter(|item| item.name == "server").collect();
    let listens: Vec<Vec<Listen>> = servers
        .iter()
        .map(|server| {
            let mut listens = listen::all(server.children(), cx);
            if !server.children().iter().any(|item| item.name == "listen") {
                let address = "0.0.0.0:80".to_owned();
                listens.push(Listen { address, tls: false, default: false, entry: server.entry });
            }
            listens
        })
        .collect();
    // TLS of an address holds for all servers there.
    let with_tls: BTreeSet<String> =
        listens.iter().flatten().filter(|listen| listen.tls).map(|listen| listen.address.clone()).collect();
    // Who answers for hosts that no server names: the default server of an address, else the first.
    let mut defaults: BTreeMap<String, usize> = BTreeMap::new();
    for (index, listen) in
        listens.iter().enumerate().flat_map(|(index, all)| all.iter().map(move |one| (index, one)))
    {
        if listen.default {
            defaults.insert(listen.address.clone(), index);
        } else {
            defaults.entry(listen.address.clone()).or_insert(index);
        }
    }
    let mut taken = Hosts::default();
    for (index, (server, listens)) in servers.iter().zip(&listens).enumerate() {
        let is_default =
            !listens.is_empty() && listens.iter().all(|one| defaults.get(&one.address) == Some(&index));
        let mut reader = Server { item: server, http, listens, with_tls: &with_tls, taken: &mut taken };
        reader.read(is_default, scope, cx);
    }
    proxy_protocol(cx);
    without_certificate(&listens, cx);
}

struct Server<'a> {
    item: &'a Directive,
    http: &'a [Directive],
    listens: &'a [Listen],
    with_tls: &'a BTreeSet<String>,
    taken: &'a mut Hosts,
}

impl Server<'_> {
    fn read(&mut self, is_default: bool, scope: &Scope, cx: &mut Context<'_>) {
        let items = self.item.children();
        let hosts = self.hosts(is_default, cx);
        if hosts.is_empty() || self.listens.is_empty() {
            let why = "this server has no address or no host name that can be said here";
            cx.ledger.left(self.item.entry, why);
            return leave(items, why, cx);
        }
        cx.ledger.taken(self.item.entry, format!("site for {}", hosts.join(", ")));
        let scope = scope.enter(items, cx);
        let tls: Vec<bool> = self.listens.iter().map(|one| self.with_tls.contains(&one.address)).collect();
        let scheme = match (tls.contains(&true), tls.contains(&false)) {
            (true, false) => Some("https"),
            (false, true) => Some("http"),
            _ => None,
        };
        let names: Vec<String> =
            self.listens.iter().map(|one| cx.model.listener(&one.address).name.clone()).collect();
        let mut site = Site { hosts, listeners: names, ..Site::default() };
        self.tls(cx);
        let first = site.hosts.iter().find(|host| *host != "*").cloned();
        let around = Around { server: first.as_deref(), scheme, groups: None };
        let mut of = Of { site: &mut site, patterns: has_patterns(items), named: named(items), depth: 0 };
        let mut answers = None;
        for item in items {
            match item.name.as_str() {
                "location" => location::read(item, &scope, &around, &mut of, cx),
                "return" => answers = Some(item),
                "rewrite" => location::server_rewrite(item, &scope, &around, &mut of, cx),
                "if" if redirect::is_tls_condition(item) => {
                    of.site.redirect_to_tls = true;
                    cx.ledger.taken(item.entry, "https.redirect");
                    for inner in item.children() {
                        cx.ledger.taken(inner.entry, "https.redirect");
                    }
                }
                "if" => {
                    let why = "conditions on variables are not known; say it as routes, or as a rule";
                    cx.ledger.left(item.entry, why);
                    leave(item.children(), why, cx);
                }
                "set_real_ip_from" => super::real_ip(item, cx),
                "real_ip_header" => super::real_ip_header(item, cx),
                "resolver" => super::resolvers(item, cx),
                "http2" => cx.ledger.taken(item.entry, "the default where there is TLS"),
                "ssl" => cx.ledger.taken(item.entry, "tls of the listener"),
                _ => {}
            }
        }
        if let Some(item) = answers {
            self.answer_all(item, &scope, &around, &mut site, cx);
        }
        if site.routes.is_empty() && !site.redirect_to_tls {
            cx.ledger.changed(self.item.entry, "nothing of this server can be forwarded: it is answered 404");
        }
        site::finish(site, scope.settings(None), cx.reading, cx.ledger, cx.model);
    }

    /// `return` of a server answers whatever its locations say.
    fn answer_all(
        &self,
        item: &Directive,
        scope: &Scope,
        around: &Around<'_>,
        site: &mut Site,
        cx: &mut Context<'_>,
    ) {
        // 404 behind redirects to https is what certbot writes.
        if site.redirect_to_tls && item.arg(0) == "404" {
            return cx.ledger.taken(item.entry, "https.redirect");
        }
        if redirect::is_to_tls(item) && around.scheme == Some("http") {
            cx.ledger.taken(item.entry, "redirect to https");
            let action = Action::Redirect {
                to: "https://{host}{uri}".to_owned(),
                status: item.arg(0).parse().unwrap_or(301),
            };
            site.routes.clear();
            return site.routes.push(Route::new(root(), action, scope.settings(None)));
        }
        if let Some(action) = redirect::answer(item, around, cx) {
            site.routes.clear();
            site.upstream = None;
            let path = root();
            site.routes.push(Route::new(path, action, scope.settings(None)));
        }
    }

    fn hosts(&mut self, is_default: bool, cx: &mut Context<'_>) -> Vec<String> {
        let mut hosts: Vec<String> = Vec::new();
        for item in self.item.children().iter().filter(|item| item.name == "server_name") {
            let mut left = Vec::new();
            for name in &item.args {
                let name = name.to_ascii_lowercase();
                match name.strip_prefix('.') {
                    Some(name) if text::is_host(name) => {
                        self.host(name, &mut hosts);
                        self.host(&format!("*.{name}"), &mut hosts);
                    }
                    // A name that no client sends, for the default server.
                    _ if name == "_" || name.is_empty() => {}
                    _ if text::is_host(&name) => self.host(&name, &mut hosts),
                    _ => left.push(name),
                }
            }
            match left.is_empty() {
                true => cx.ledger.taken(item.entry, "hosts"),
                false => cx.ledger.changed(
                    item.entry,
                    format!("hosts, without {}: hosts are names, or `*.` before one", left.join(" ")),
                ),
            }
        }
        if is_default {
            self.host("*", &mut hosts);
        }
        hosts
    }

    fn host(&mut self, host: &str, hosts: &mut Vec<String>) {
        let addresses: Vec<&str> = self.listens.iter().map(|one| one.address.as_str()).collect();
        self.taken.claim(&addresses, host, hosts);
    }

    fn tls(&self, cx: &mut Context<'_>) {
        let of = |name: &str| self.own_or_inherited(name);
        let addresses: Vec<&str> = self
            .listens
            .iter()
            .map(|one| one.address.as_str())
            .filter(|address| self.with_tls.contains(*address))
            .collect();
        let usable = |item: &Directive| !item.arg(0).is_empty() && !item.arg(0).contains(['$', ':']);
        let mut keys = of("ssl_certificate_key").into_iter();
        for cert in of("ssl_certificate") {
            let key = keys.next();
            let Some(key) = key.filter(|key| usable(cert) && usable(key)) else {
                cx.ledger.left(cert.entry, "a certificate needs the name of a file, and one with its key");
                key.into_iter().for_each(|key| cx.ledger.left(key.entry, "its certificate cannot be used"));
                continue;
            };
            let pair =
                Certificate { cert: absolute(cx.folder, cert.arg(0)), key: absolute(cx.folder, key.arg(0)) };
            for entry in [cert.entry, key.entry] {
                match addresses.is_empty() {
                    true => cx.ledger.left(entry, "no address of this server has TLS"),
                    false => cx.ledger.taken(entry, "tls.certificates of the listener"),
                }
            }
            for address in &addresses {
                let tls = cx.model.listener(address).tls.get_or_insert_default();
                if !tls.certificates.contains(&pair) {
                    tls.certificates.push(pair.clone());
                }
            }
        }
        for item in of("ssl_protocols") {
            self.protocols(item, &addresses, cx);
        }
        self.client_auth(&addresses, cx);
    }

    /// The directives of this name in the server, else those of `http`.
    fn own_or_inherited(&self, name: &str) -> Vec<&Directive> {
        let named = |items: &'_ [Directive]| items.iter().any(|item| item.name == name);
        let items = if named(self.item.children()) { self.item.children() } else { self.http };
        items.iter().filter(|item| item.name == name).collect()
    }

    fn protocols(&self, item: &Directive, addresses: &[&str], cx: &mut Context<'_>) {
        let has = |version: &str| item.args.iter().any(|arg| arg == version);
        if has("TLSv1.3") && item.args.len() == 1 {
            for address in addresses {
                cx.model.listener(address).tls.get_or_insert_default().only_13 = true;
            }
            return cx.ledger.taken(item.entry, "tls.min_version = \"1.3\"");
        }
        match ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1"].iter().any(|old| has(old)) {
            true => cx.ledger.changed(item.entry, "TLS 1.2 is the oldest version that is spoken"),
            false => cx.ledger.taken(item.entry, "TLS 1.2 and 1.3, the default"),
        }
    }

    fn client_auth(&self, addresses: &[&str], cx: &mut Context<'_>) {
        let find = |name: &str| self.own_or_inherited(name).into_iter().next();
        let Some(verify) = find("ssl_verify_client") else { return };
        let ca = find("ssl_client_certificate").or_else(|| find("ssl_trusted_certificate"));
        let optional = match (verify.arg(0), ca) {
            ("off", _) => return cx.ledger.taken(verify.entry, "no certificates of clients"),
            ("on", Some(_)) => false,
            ("optional", Some(_)) => true,
            _ => {
                return cx
                    .ledger
                    .left(verify.entry, "clients' certificates are verified against a file of authorities");
            }
        };
        let Some(ca) = ca else { return };
        for address in addresses {
            let auth = ClientAuth { ca: absolute(cx.folder, ca.arg(0)), optional };
            cx.model.listener(address).tls.get_or_insert_default().client_auth.get_or_insert(auth);
        }
        for entry in [verify.entry, ca.entry] {
            cx.ledger.changed(entry, "tls.client_auth of the listener, for all sites that it serves");
        }
    }
}

fn has_patterns(items: &[Directive]) -> bool {
    let is_pattern = |item: &&Directive| item.name == "location" && item.arg(0).starts_with('~');
    items.iter().any(|item| is_pattern(&item) || (item.name == "location" && has_patterns(item.children())))
}

/// Named locations, which `try_files` leads to.
fn named(items: &[Directive]) -> BTreeMap<String, Directive> {
    let named = items.iter().filter(|item| item.name == "location" && item.arg(0).starts_with('@'));
    named.map(|item| (item.arg(0).to_owned(), item.clone())).collect()
}

/// Listeners read the PROXY protocol from trusted proxies only.
fn proxy_protocol(cx: &mut Context<'_>) {
    let known = !cx.model.trusted_proxies.is_empty();
    for (address, entry) in std::mem::take(&mut cx.proxy_protocol) {
        match known {
            true => cx.model.listener(&address).proxy_protocol = true,
            false => cx.ledger.changed(
                entry,
                "listener, without the PROXY protocol: it is read from trusted proxies only; name them in \
                 client_address.trusted_proxies and say `proxy_protocol = true`",
            ),
        }
    }
}

/// An address with TLS and without a certificate cannot be served.
fn without_certificate(listens: &[Vec<Listen>], cx: &mut Context<'_>) {
    let mut gone = BTreeSet::new();
    for listen in listens.iter().flatten().filter(|listen| listen.tls) {
        let is_served = cx.model.listeners.iter().any(|known| {
            known.address == listen.address
                && known.tls.as_ref().is_some_and(|tls| !tls.certificates.is_empty())
        });
        if !is_served {
            gone.insert(listen.address.clone());
            cx.ledger.left(listen.entry, "no certificate could be taken over for this address");
        }
    }
    cx.model.remove_listeners(&gone);
}
