//! What all readers do with a site once they have read it.

use std::collections::BTreeSet;

use crate::model::{Action, Model, PathMatch, Route, SITES_MAX, Settings, Site};
use crate::report::{Entry, Ledger};
use crate::rules::{self, Reading};
use crate::text;

/// Which hosts belong to which site: the first one that has a host at an address.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    taken: BTreeSet<(String, String)>,
}

impl Hosts {
    /// Adds `host` to those of a site at these addresses, if no site before it has it at one of them.
    pub fn claim(&mut self, addresses: &[&str], host: &str, hosts: &mut Vec<String>) -> bool {
        let free =
            addresses.iter().all(|address| !self.taken.contains(&((*address).to_owned(), host.to_owned())));
        let new = free && !hosts.iter().any(|known| known == host);
        if new {
            self.taken.extend(addresses.iter().map(|address| ((*address).to_owned(), host.to_owned())));
            hosts.push(host.to_owned());
        }
        new
    }
}

/// All paths.
pub(crate) fn root() -> PathMatch {
    PathMatch::Prefix("/".to_owned())
}

/// Adds a route; false if one with the same path is there.
pub(crate) fn push(site: &mut Site, route: Route) -> bool {
    let new = !site.routes.iter().any(|known| known.is_like(&route));
    if new {
        // Where there are too many, the migration ends.
        if site.routes.len() <= SITES_MAX {
            site.routes.push(route);
        }
    }
    new
}

/// Refuses the requests of a guarded place whose pattern cannot be that of a route: those of the pattern
/// without its conditions on what stands before and behind, which are more.
pub(crate) fn close(
    site: &mut Site,
    pattern: Option<&String>,
    settings: Settings,
    entry: Entry,
    ledger: &mut Ledger,
) {
    let pattern = pattern.map(|pattern| text::without_lookaround(pattern));
    let path = match pattern.filter(|pattern| text::groups(pattern).is_some()) {
        Some(pattern) => PathMatch::Pattern(pattern),
        // Rather the whole site than what was kept from everybody.
        None => root(),
    };
    ledger.closed(entry, "its pattern cannot be one of a route, and a wider one stands in its place");
    push(site, Route::new(path, Action::Respond { status: 403, body: None }, settings));
}

/// Gives a site that has been read its rules, and adds it to the model. `own` is what holds where no route
/// says otherwise.
pub(crate) fn finish(
    mut site: Site,
    own: Settings,
    reading: Reading<'_>,
    ledger: &mut Ledger,
    model: &mut Model,
) {
    site.settings = own;
    split_by_method(&mut site);
    report_closed(&site, ledger);
    hoist(&mut site);
    name_limits(&mut site);
    rules::settle(&mut site, reading, ledger);
    if site.upstream.is_none() && !site.routes.iter().any(Route::forwards) {
        let hosts = site.hosts.join(", ");
        for entry in &site.lost {
            ledger.broken(
                *entry,
                format!("requests for {hosts} have nowhere to go: write `upstream` of the site"),
            );
        }
    }
    if site.upstream.is_none() && site.routes.is_empty() {
        let action = Action::Respond { status: 404, body: None };
        site.routes.push(Route::new(root(), action, site.settings.clone()));
    }
    model.site(site);
}

/// Makes routes of what holds for requests with some methods only: those of a route with conditions are tried
/// before the one without.
fn split_by_method(site: &mut Site) {
    site.settings.by_method.clear();
    for mut route in std::mem::take(&mut site.routes) {
        let by_method = std::mem::take(&mut route.settings.by_method);
        let mut others: Option<Route> = None;
        // What is answered here reaches no application, whatever its method.
        let by_method = by_method.into_iter().filter(|_| route.forwards()).collect::<Vec<_>>();
        for rule in by_method {
            let action = match rule.refused {
                Some(status) => Action::Respond { status, body: None },
                None => route.action.clone(),
            };
            let mut own = Route { action, settings: rule.settings, ..route.clone() };
            own.conditions.entries.push(rule.entry);
            if !rule.except {
                own.conditions.methods = rule.methods;
                push(site, own);
                continue;
            }
            own.conditions.methods.clear();
            route.conditions.entries.push(rule.entry);
            match &mut others {
                None => {
                    route.conditions.methods = rule.methods;
                    others = Some(own);
                }
                Some(others) => {
                    route.conditions.methods.retain(|method| rule.methods.contains(method));
                    if rule.refused.is_some() {
                        *others = own;
                    }
                }
            }
        }
        if others.is_none() || !route.conditions.methods.is_empty() {
            push(site, route);
        }
        if let Some(others) = others {
            push(site, others);
        }
    }
}

/// Says of what guarded the requests of a route that these are refused.
fn report_closed(site: &Site, ledger: &mut Ledger) {
    for route in site.routes.iter().filter(|route| route.forwards()) {
        let (PathMatch::Prefix(path) | PathMatch::Exact(path) | PathMatch::Pattern(path)) = &route.path;
        let host = site.hosts.first().map_or("", String::as_str);
        for entry in &route.settings.closed {
            ledger.closed(*entry, format!("{host}{path}: it cannot be said here who may"));
        }
    }
}

/// Makes the route of all paths that of the site, where the document says the same then.
fn hoist(site: &mut Site) {
    let is_root = |route: &Route| route.path == root() && route.is_unconditional();
    let Some(at) = site.routes.iter().position(is_root) else { return };
    let route = &site.routes[at];
    let Action::Forward { upstream, rewrite: None } = &route.action else { return };
    if !route.settings.closed.is_empty() {
        return;
    }
    let others_hold = |other: &Route| {
        let limits = &route.settings.rate_limits;
        limits.iter().all(|limit| other.settings.rate_limits.contains(limit))
            && (route.settings.body_limit.is_none() || other.settings.body_limit.is_some())
    };
    if site.routes.iter().all(others_hold) {
        site.upstream = Some(upstream.clone());
        site.settings = route.settings.clone();
        site.routes.remove(at);
    }
}

/// Rate limits of a site have names of their own; those of routes that are not the site's get distinct names.
fn name_limits(site: &mut Site) {
    let of_site = site.settings.rate_limits.clone();
    let mut names: BTreeSet<String> = of_site.iter().map(|limit| limit.name.clone()).collect();
    for limit in site.routes.iter_mut().flat_map(|route| &mut route.settings.rate_limits) {
        if of_site.contains(limit) {
            continue;
        }
        let (wanted, mut number) = (limit.name.clone(), 1);
        while !names.insert(limit.name.clone()) {
            number += 1;
            limit.name = format!("{wanted}-{number}");
        }
    }
}
