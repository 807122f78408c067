//! `<VirtualHost>`: one site.

use std::collections::BTreeMap;

use super::scope::Scope;
use super::syntax::Directive;
use super::{Context, left, proxy, redirect, rewrite, tls};
use crate::model::{Action, PathMatch, Route, Site};
use crate::site::{Hosts, close, finish, push};
use crate::text;

/// Directives that are read here, not by the scope.
pub(crate) const READS: &[&str] = &[
    "servername",
    "serveralias",
    "listen",
    "sslengine",
    "sslcertificatefile",
    "sslcertificatekeyfile",
    "sslcertificatechainfile",
    "sslprotocol",
    "sslverifyclient",
    "sslcacertificatefile",
    "proxypass",
    "proxypassmatch",
    "require",
    "requireany",
    "requireall",
    "requirenone",
    "order",
    "allow",
    "deny",
    "redirect",
    "redirectmatch",
    "redirectpermanent",
    "redirecttemp",
    "rewriteengine",
    "rewritecond",
    "rewriterule",
    "rewritemap",
    "rewritebase",
    "rewriteoptions",
    "remoteipheader",
    "remoteipinternalproxy",
    "remoteiptrustedproxy",
    "remoteipproxyprotocol",
];

/// All virtual hosts among the directives of the main server, or that server itself.
pub(crate) fn all(items: &[Directive], scope: &Scope, cx: &mut Context<'_>) {
    let ports = listen(items, cx);
    let hosts: Vec<&Directive> = items.iter().filter(|item| item.name == "virtualhost").collect();
    let mut taken = Hosts::default();
    let mut defaults: BTreeMap<String, usize> = BTreeMap::new();
    let addresses: Vec<Vec<String>> = hosts.iter().map(|host| addresses(&host.args, &ports)).collect();
    for (index, address) in
        addresses.iter().enumerate().flat_map(|(index, all)| all.iter().map(move |one| (index, one)))
    {
        defaults.entry(address.clone()).or_insert(index);
    }
    for (index, (host, addresses)) in hosts.iter().zip(&addresses).enumerate() {
        let is_default = addresses.iter().all(|address| defaults.get(address) == Some(&index));
        let reader = Host { item: host, items: host.children(), main: items, addresses };
        reader.read(is_default, scope, &mut taken, cx);
    }
    // The main server serves addresses that no virtual host has.
    let rest: Vec<String> =
        ports.iter().filter(|address| !defaults.contains_key(*address)).cloned().collect();
    let forwards =
        items.iter().any(|item| ["proxypass", "proxypassmatch", "location"].contains(&item.name.as_str()));
    if let (true, false, Some(first)) = (forwards || hosts.is_empty(), rest.is_empty(), items.first()) {
        let reader = Host { item: first, items, main: &[], addresses: &rest };
        reader.read(true, scope, &mut taken, cx);
    }
    tls::without_certificate(cx);
}

/// `Listen`: the addresses of the server.
fn listen(items: &[Directive], cx: &mut Context<'_>) -> Vec<String> {
    let mut addresses = Vec::new();
    for item in items.iter().filter(|item| item.name == "listen") {
        let text = item.arg(0);
        let address = match text.parse::<u16>() {
            Ok(port) if port > 0 => {
                cx.changed(item, format!("listener `0.0.0.0:{port}`; write another one for `[::]:{port}`"));
                format!("0.0.0.0:{port}")
            }
            _ => match text.replacen("*:", "0.0.0.0:", 1).parse::<std::net::SocketAddr>() {
                Ok(address) if address.port() > 0 => {
                    cx.taken(item, format!("listener `{address}`"));
                    address.to_string()
                }
                _ => {
                    cx.left(item, "listeners have an address and a port");
                    continue;
                }
            },
        };
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { vec!["0.0.0.0:80".to_owned()] } else { addresses }
}

/// The addresses of a virtual host: `*:443`, `192.0.2.1:443`, `*`, `_default_:443`.
fn addresses(args: &[String], ports: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for arg in args {
        let (host, port) =
            arg.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).unwrap_or((arg, "*"));
        let any = host == "*" || host == "_default_" || host.parse::<std::net::IpAddr>().is_err();
        let fits = |address: &&String| {
            let Some((of, number)) = address.rsplit_once(':') else { return false };
            (port == "*" || port == number) && (any || of == host || of == "0.0.0.0" || of == "[::]")
        };
        let known: Vec<String> = ports.iter().filter(fits).cloned().collect();
        let known = match port.parse::<u16>() {
            // A file of sites alone says no `Listen`.
            Ok(port) if known.is_empty() && port > 0 => vec![format!("0.0.0.0:{port}")],
            _ => known,
        };
        found.extend(known);
    }
    found.sort();
    found.dedup();
    found
}

/// A virtual host, or the main server.
pub(crate) struct Host<'a> {
    item: &'a Directive,
    pub items: &'a [Directive],
    /// Directives of the main server, which hold where the host has none.
    pub main: &'a [Directive],
    pub addresses: &'a [String],
}

impl Host<'_> {
    fn read(&self, is_default: bool, scope: &Scope, taken: &mut Hosts, cx: &mut Context<'_>) {
        let hosts = self.hosts(is_default, taken, cx);
        if hosts.is_empty() || self.addresses.is_empty() {
            return cx.leave(self.item, "this virtual host has no address or no name that can be said here");
        }
        if self.item.name == "virtualhost" {
            cx.taken(self.item, format!("site for {}", hosts.join(", ")));
        }
        let scope = if self.main.is_empty() { scope.clone() } else { scope.enter(self.items, cx) };
        let listeners =
            self.addresses.iter().map(|address| cx.model.listener(address).name.clone()).collect();
        let mut site = Site { hosts, listeners, ..Site::default() };
        let tls = self.tls(cx);
        let rewrites = rewrite::read(self.items, cx);
        site.redirect_to_tls = rewrites.to_tls && !tls;
        let below = |path: &str, cx: &mut Context<'_>| self.below(path, &scope, cx);
        rewrites.ordinary(&mut site, cx, below);
        for item in self.items {
            self.directive(item, &scope, &mut site, cx);
        }
        // What the main server says comes behind what the host says.
        for item in
            self.main.iter().filter(|item| ["proxypass", "proxypassmatch"].contains(&item.name.as_str()))
        {
            self.pass(item, None, &scope, &mut site, cx);
        }
        rewrites.web_sockets(&mut site, cx, below);
        let own = scope.settings(None);
        let empty = site.routes.is_empty();
        if empty && !site.redirect_to_tls && self.item.name == "virtualhost" {
            cx.changed(self.item, "nothing of this virtual host can be forwarded: it is answered 404");
        }
        finish(site, own, cx.reading, cx.ledger, cx.model);
    }

    fn directive(&self, item: &Directive, scope: &Scope, site: &mut Site, cx: &mut Context<'_>) {
        match item.name.as_str() {
            "proxypass" | "proxypassmatch" => self.pass(item, None, scope, site, cx),
            "redirect" | "redirectmatch" | "redirectpermanent" | "redirecttemp" => {
                if let Some((path, action)) = redirect::read(item, cx)
                    && !push(site, Route::new(path, action, scope.settings(None)))
                {
                    cx.left(item, "another route of this site has the same path");
                }
            }
            "location" | "locationmatch" => self.location(item, scope, site, cx),
            "proxy" if self.item.name == "virtualhost" => {}
            "directory" | "directorymatch" | "files" | "filesmatch" => cx.leave(item, left::FILES),
            "if" | "elseif" | "else" => cx.leave(item, left::CONDITIONS),
            "remoteipheader" | "remoteipinternalproxy" | "remoteiptrustedproxy" if !self.main.is_empty() => {
                cx.left(item, "client_address holds for the whole document: say it there");
            }
            "remoteipproxyprotocol" => {
                if cx.model.trusted_proxies.is_empty() {
                    return cx.left(item, "the PROXY protocol is read from trusted proxies only: name them in client_address.trusted_proxies");
                }
                for address in self.addresses {
                    cx.model.listener(address).proxy_protocol = true;
                }
                cx.taken(item, "proxy_protocol of the listener");
            }
            _ => {}
        }
    }

    fn pass(
        &self,
        item: &Directive,
        place: Option<&PathMatch>,
        scope: &Scope,
        site: &mut Site,
        cx: &mut Context<'_>,
    ) {
        let below = match place {
            None if item.name == "proxypass" => Some(self.below(item.arg(0), scope, cx)),
            _ => None,
        };
        let routes = proxy::pass(item, place, below.as_ref().unwrap_or(scope), cx);
        if routes.is_empty() {
            site.lost.extend(item.entry);
        }
        let mut all = routes.len();
        // In Apache the first path that fits wins, here the longest.
        let shadowed = routes.iter().any(|route| {
            let (PathMatch::Prefix(new) | PathMatch::Exact(new)) = &route.path else { return false };
            place.is_none() && site.routes.iter().any(|known| matches!(&known.path, PathMatch::Prefix(old) if new != old && new.starts_with(old.as_str())))
        });
        for route in routes {
            all -= usize::from(push(site, route));
        }
        if all > 0 {
            cx.changed(item, "another route of this site has one of these paths");
        } else if shadowed {
            cx.changed(
                item,
                "the longest path wins here: a shorter one before it would have taken these requests",
            );
        }
    }

    /// A section for a place: what is forwarded from there, or what holds for what is.
    fn location(&self, item: &Directive, scope: &Scope, site: &mut Site, cx: &mut Context<'_>) {
        let tilde = item.arg(0) == "~";
        let path = item.arg(usize::from(tilde));
        let path = match item.name == "locationmatch" || tilde {
            true => text::groups(path).map(|_| PathMatch::Pattern(path.to_owned())),
            false => (text::is_path(path) && !path.contains(['*', '?', '[']))
                .then(|| PathMatch::Prefix(path.to_owned())),
        };
        let Some(path) = path else {
            let inner = scope.enter_location(item.children(), cx);
            cx.leave(item, "this path or pattern cannot be one of a route");
            if let (true, Some(entry)) = (inner.is_guarded(), item.entry) {
                close(site, item.args.last(), inner.settings(None), entry, cx.ledger);
            }
            return;
        };
        let inner = match &path {
            PathMatch::Prefix(path) | PathMatch::Exact(path) => self.below(path, scope, cx),
            PathMatch::Pattern(_) => self.below("/", scope, cx).enter_location(item.children(), cx),
        };
        let pass = item.children().iter().find(|inner| inner.name == "proxypass");
        let only_rules = item.children().iter().all(Directive::is_rule);
        if let Some(pass) = pass {
            cx.taken(item, "route");
            return self.pass(pass, Some(&path), &inner, site, cx);
        }
        if only_rules {
            return;
        }
        if inner.settings(None) == scope.settings(None) && inner.denied == scope.denied {
            return cx.taken(item, "what is in it, where it has a counterpart");
        }
        // Where requests for this place go, another directive says.
        let around = self.around(item, &path, scope, cx);
        for (path, _) in proxy::paths(&path) {
            let (action, host) = match (inner.denied, &around) {
                (true, _) => (Action::Respond { status: 403, body: None }, None),
                (false, Some((action, host))) => (action.clone(), host.as_deref()),
                (false, None) => (Action::Respond { status: 404, body: None }, None),
            };
            push(site, Route::new(path, action, inner.settings(host)));
        }
        match around.is_some() || inner.denied {
            true => cx.taken(item, "route"),
            false => {
                cx.changed(item, "route; it is not said where these requests go, so they are answered 404")
            }
        }
    }

    /// What holds for a path below all sections for it, in the order of the file.
    fn below(&self, path: &str, scope: &Scope, cx: &mut Context<'_>) -> Scope {
        let mut scope = scope.clone();
        for item in self.items.iter().filter(|item| item.name == "location" && item.arg(0) != "~") {
            let place = item.arg(0);
            let rest =
                path.strip_prefix(place).filter(|_| text::is_path(place) && !place.contains(['*', '?', '[']));
            if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || place.ends_with('/')) {
                scope = scope.enter_location(item.children(), cx);
            }
        }
        scope
    }

    /// Where the longest ProxyPass around a place sends its requests, and the `Host` that the upstream gets.
    fn around(
        &self,
        item: &Directive,
        path: &PathMatch,
        scope: &Scope,
        cx: &mut Context<'_>,
    ) -> Option<(Action, Option<String>)> {
        let passes =
            self.items.iter().chain(self.main).filter(|pass| pass.name == "proxypass" && pass.args.len() > 1);
        let place = match path {
            PathMatch::Prefix(place) | PathMatch::Exact(place) => place,
            // A pattern may fit any path, also one that another section guards.
            PathMatch::Pattern(_) if passes.clone().count() == 1 && !self.guards_others(item) => "/",
            PathMatch::Pattern(_) => return None,
        };
        let pass =
            passes.filter(|pass| place.starts_with(pass.arg(0))).max_by_key(|pass| pass.arg(0).len())?;
        // Only where the path stays as it is.
        let silent = Directive { entry: None, ..pass.clone() };
        let route = proxy::pass(&silent, None, scope, cx).into_iter().last();
        let Some(route) = route.filter(|route| matches!(route.action, Action::Forward { rewrite: None, .. }))
        else {
            cx.left(item, "the path is rewritten around this place");
            return None;
        };
        let host = route.settings.request_headers.set.get("host").cloned();
        Some((route.action, host))
    }

    /// True if another section says who may ask for some paths.
    fn guards_others(&self, own: &Directive) -> bool {
        let guards = |item: &Directive| item.name.starts_with("require") || item.name == "deny";
        let sections =
            self.items.iter().filter(|item| item.name.starts_with("location") && item.place != own.place);
        let inner = sections.flat_map(Directive::children);
        inner.clone().any(guards) || inner.flat_map(Directive::children).any(guards)
    }

    fn hosts(&self, is_default: bool, taken: &mut Hosts, cx: &mut Context<'_>) -> Vec<String> {
        let addresses: Vec<&str> = self.addresses.iter().map(String::as_str).collect();
        let mut hosts = Vec::new();
        for item in self.items.iter().filter(|item| item.name == "servername" || item.name == "serveralias") {
            let mut left = Vec::new();
            for name in &item.args {
                let name = name.to_ascii_lowercase();
                let name = name.split_once("://").map_or(name.as_str(), |(_, rest)| rest);
                let name = name
                    .rsplit_once(':')
                    .filter(|(_, port)| port.parse::<u16>().is_ok())
                    .map_or(name, |(name, _)| name);
                match text::is_host(name) {
                    true => drop(taken.claim(&addresses, name, &mut hosts)),
                    false => left.push(name.to_owned()),
                }
            }
            match left.is_empty() {
                true => cx.taken(item, "hosts"),
                false => cx.changed(
                    item,
                    format!("hosts, without {}: hosts are names, or `*.` before one", left.join(" ")),
                ),
            }
        }
        if is_default {
            taken.claim(&addresses, "*", &mut hosts);
        }
        hosts
    }
}
