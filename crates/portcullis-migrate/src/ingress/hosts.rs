//! Hosts of all Ingresses as sites: each has the paths that any Ingress gives it.

use std::collections::{BTreeMap, BTreeSet};

use super::Context;
use super::annotations::{self, Said};
use super::config_map::{Global, default_hsts};
use super::objects::{Ingress, Path, Rule};
use crate::model::{Action, Certificate, Endpoint, PathMatch, Route, Settings, Site};
use crate::report::Entry;
use crate::site::{finish, push, root};
use crate::text;

/// Where the controller serves; a container without privileges cannot have ports 80 and 443.
const HTTP: &str = "0.0.0.0:8080";
const HTTPS: &str = "0.0.0.0:8443";
/// Where secrets with certificates are to be mounted.
const SECRETS: &str = "/etc/portcullis/tls";

/// Ports by namespace, service and name.
pub(crate) type Ports = BTreeMap<(String, String, String), String>;

/// A host with all that Ingresses say of it.
struct Host<'a> {
    name: String,
    rules: Vec<(&'a Rule, &'a Ingress, &'a Said)>,
}

/// Makes sites of all Ingresses.
pub(crate) fn all(ingresses: &[Ingress], global: &Global, ports: &Ports, cx: &mut Context<'_>) {
    let said: Vec<Said> = ingresses.iter().map(|ingress| annotations::read(ingress, global, cx)).collect();
    let mut hosts: Vec<Host<'_>> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for (ingress, said) in ingresses.iter().zip(&said) {
        if said.canary {
            skip(ingress, cx);
            continue;
        }
        cx.ledger.taken(ingress.entry, "sites of its hosts");
        for rule in &ingress.rules {
            let name = if rule.host.is_empty() { "*".to_owned() } else { rule.host.clone() };
            if name != "*" && !text::is_host(&name) {
                cx.ledger.left(rule.entry, "this is not the name of a host");
                for path in &rule.paths {
                    cx.ledger.left(path.entry, "its host cannot be said here");
                }
                continue;
            }
            let at = *index.entry(name.clone()).or_insert_with(|| {
                hosts.push(Host { name, rules: Vec::new() });
                hosts.len() - 1
            });
            if let Some(host) = hosts.get_mut(at) {
                host.rules.push((rule, ingress, said));
            }
        }
    }
    let certificates = certificates(ingresses, cx);
    let mut names: BTreeSet<String> = hosts.iter().map(|host| host.name.clone()).collect();
    for host in &hosts {
        site(host, &mut names, &certificates, (global, ports), cx);
    }
    if let Some(entry) = global.proxy_protocol {
        proxy_protocol(entry, cx);
    }
}

fn skip(ingress: &Ingress, cx: &mut Context<'_>) {
    let why = "an Ingress for a share of the requests; `weight` of an endpoint is the nearest";
    cx.ledger.left(ingress.entry, why);
    for rule in &ingress.rules {
        cx.ledger.left(rule.entry, why);
        rule.paths.iter().for_each(|path| cx.ledger.left(path.entry, why));
    }
    ingress.tls.iter().for_each(|tls| cx.ledger.left(tls.entry, why));
}

/// The hosts that have a certificate.
fn certificates(ingresses: &[Ingress], cx: &mut Context<'_>) -> BTreeMap<String, Certificate> {
    let mut found = BTreeMap::new();
    for ingress in ingresses {
        for tls in &ingress.tls {
            if tls.secret.is_empty() || tls.secret.contains(['/', '"']) {
                cx.ledger
                    .left(tls.entry, "it names no secret: the controller's own certificate is not known");
                continue;
            }
            let folder = format!("{SECRETS}/{}/{}", ingress.namespace, tls.secret);
            let pair = Certificate { cert: format!("{folder}/tls.crt"), key: format!("{folder}/tls.key") };
            let own = ingress.rules.iter().map(|rule| rule.host.clone());
            let hosts: Vec<String> = if tls.hosts.is_empty() { own.collect() } else { tls.hosts.clone() };
            for host in hosts {
                found.entry(host.to_ascii_lowercase()).or_insert_with(|| pair.clone());
            }
            cx.ledger.changed(tls.entry, format!("tls.certificates; mount the secret at {folder}"));
        }
    }
    found
}

fn site(
    host: &Host<'_>,
    names: &mut BTreeSet<String>,
    certificates: &BTreeMap<String, Certificate>,
    (global, ports): (&Global, &Ports),
    cx: &mut Context<'_>,
) {
    let mut site = Site { hosts: vec![host.name.clone()], ..Site::default() };
    let wildcard = host.name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
    let certificate = certificates.get(&host.name).or_else(|| certificates.get(&wildcard?));
    site.listeners.push(listener("http", HTTP, cx));
    if let Some(certificate) = certificate {
        site.listeners.push(listener("https", HTTPS, cx));
        let tls = cx.model.listener(HTTPS).tls.get_or_insert_default();
        if !tls.certificates.contains(certificate) {
            tls.certificates.push(certificate.clone());
        }
        tls.only_13 |= global.only_tls_13;
        site.hsts = (!global.no_hsts).then(|| global.hsts.clone().unwrap_or_else(default_hsts));
    }
    let mut own = Settings::default();
    for (rule, ingress, said) in &host.rules {
        cx.ledger.taken(rule.entry, format!("site for {}", host.name));
        let wants = said.ssl_redirect.or(global.ssl_redirect).unwrap_or(true);
        site.redirect_to_tls |= certificate.is_some() && wants;
        site.redirect_to_tls |= said.force_ssl_redirect || global.force_ssl_redirect;
        for alias in said.aliases.iter().filter(|_| host.name != "*") {
            if text::is_host(alias) && names.insert(alias.clone()) {
                site.hosts.push(alias.clone());
            }
        }
        for path in &rule.paths {
            routes(path, (ingress, ports), said, &mut site, cx);
        }
        if let Some(to) = &said.app_root {
            let action = Action::Redirect { to: to.clone(), status: 302 };
            push(&mut site, Route::new(PathMatch::Exact("/".to_owned()), action, said.settings.clone()));
        }
        own = said.settings.clone();
        own.rate_limits.clear();
    }
    // What no path is for is answered by nobody; that one Ingress has limits says nothing about it.
    own.access = None;
    finish(site, own, cx.reading, cx.ledger, cx.model);
}

fn listener(name: &str, address: &str, cx: &mut Context<'_>) -> String {
    let listener = cx.model.listener(address);
    name.clone_into(&mut listener.name);
    name.to_owned()
}

/// The routes of a path.
fn routes(path: &Path, of: (&Ingress, &Ports), said: &Said, site: &mut Site, cx: &mut Context<'_>) {
    let wanted = if path.path.is_empty() { "/" } else { &path.path };
    let (matches, rewrite) = if said.regex || said.rewrite.is_some() {
        let pattern = format!("(?i)^{wanted}");
        let Some(groups) = text::groups(&pattern) else {
            return cx.ledger.left(path.entry, "this pattern cannot be used for a route");
        };
        let rewrite = match &said.rewrite {
            Some((to, entry)) if !is_rewrite(to, groups) => {
                return cx
                    .ledger
                    .left(*entry, "this target has groups that the path does not have, or is no path");
            }
            Some((to, _)) => Some(to.clone()),
            None => None,
        };
        (vec![PathMatch::Pattern(pattern)], rewrite)
    } else if !text::is_path(wanted) {
        return cx.ledger.left(path.entry, "this is not a path that routes can have");
    } else {
        (prefixes(wanted, &path.kind), None)
    };
    let Some(action) = action(path, of, said, rewrite, &mut site.lost, cx) else { return };
    let mut missing = 0;
    for path in matches {
        missing += usize::from(!push(site, Route::new(path, action.clone(), said.settings.clone())));
    }
    if missing > 0 {
        cx.ledger.left(path.entry, "another Ingress has this path of the host");
    }
}

fn is_rewrite(to: &str, groups: usize) -> bool {
    let fits = |at: usize| {
        to[at + 1..].chars().next().and_then(|c| c.to_digit(10)).is_some_and(|n| n as usize <= groups)
    };
    text::is_path(to) && !to.contains('{') && to.match_indices('$').all(|(at, _)| fits(at))
}

/// `Prefix` goes by whole segments: `/a` is `/a` and what is below `/a/`.
fn prefixes(path: &str, kind: &str) -> Vec<PathMatch> {
    match kind {
        "Exact" => vec![PathMatch::Exact(path.to_owned())],
        "Prefix" if path != "/" => {
            let path = path.trim_end_matches('/');
            vec![PathMatch::Exact(path.to_owned()), PathMatch::Prefix(format!("{path}/"))]
        }
        _ if path == "/" => vec![root()],
        _ => vec![PathMatch::Prefix(path.to_owned())],
    }
}

fn action(
    path: &Path,
    (ingress, ports): (&Ingress, &Ports),
    said: &Said,
    rewrite: Option<String>,
    lost: &mut Vec<Entry>,
    cx: &mut Context<'_>,
) -> Option<Action> {
    if let Some((to, status)) = &said.redirect {
        cx.ledger.taken(path.entry, "redirect");
        return Some(Action::Redirect { to: to.clone(), status: *status });
    }
    let scheme = if said.https { "https" } else { "http" };
    let named = (ingress.namespace.clone(), path.service.clone(), path.port.clone());
    let port = ports.get(&named).unwrap_or(&path.port);
    let authority = format!("{}.{}.svc:{port}", path.service, ingress.namespace);
    if said.unspoken || path.service.is_empty() || !text::is_authority(&authority) {
        let why = match port.parse::<u16>() {
            Ok(_) => "there is no service that HTTP is spoken to: answered 404",
            Err(_) => {
                "the port has a name: name the manifest of the service, too, or write its number; until then it is answered 404"
            }
        };
        cx.ledger.left(path.entry, why);
        lost.push(path.entry);
        return Some(Action::Respond { status: 404, body: None });
    }
    let mut upstream = said.upstream.clone();
    upstream.name = format!("{}-{}", ingress.namespace, path.service);
    upstream.endpoints = vec![Endpoint { url: format!("{scheme}://{authority}"), ..Endpoint::default() }];
    if !said.https {
        upstream.tls = Default::default();
    }
    let upstream = cx.model.upstream(upstream);
    cx.ledger.taken(path.entry, format!("upstream `{upstream}`"));
    Some(Action::Forward { upstream, rewrite })
}

fn proxy_protocol(entry: crate::report::Entry, cx: &mut Context<'_>) {
    if cx.model.trusted_proxies.is_empty() {
        let why = "the PROXY protocol is read from trusted proxies only: name them in client_address.trusted_proxies";
        return cx.ledger.left(entry, why);
    }
    for listener in &mut cx.model.listeners {
        listener.proxy_protocol = true;
    }
    cx.ledger.taken(entry, "proxy_protocol of the listeners");
}
