//! Sites of a listener by host, and the choice of a route.

use std::borrow::Cow;
use std::collections::HashMap;

use portcullis_config::{HostPattern, PathMatch};
use portcullis_http::message::RequestHead;

use crate::facts::without_port;
use crate::path::{climbs, is_plain, readings};
use crate::route::{Case, Route};

/// The sites of one listener by host.
#[derive(Default)]
pub(crate) struct Hosts {
    exact: HashMap<String, usize>,
    /// With their leading dot, longest first.
    under: Vec<(String, usize)>,
    any: Option<usize>,
}

impl Hosts {
    /// Adds the patterns of the site with this index.
    pub(crate) fn add(&mut self, patterns: &[HostPattern], site: usize) {
        for pattern in patterns {
            match pattern {
                HostPattern::Any => self.any = Some(site),
                HostPattern::Exact(host) => drop(self.exact.insert(host.clone(), site)),
                HostPattern::Under(domain) => self.under.push((domain.clone(), site)),
            }
        }
        self.under.sort_by_key(|(domain, _)| std::cmp::Reverse(domain.len()));
    }

    /// The site that serves a `Host` value, port and a final dot left aside.
    pub(crate) fn find(&self, host: &[u8]) -> Option<usize> {
        self.named(host).or(self.any)
    }

    /// The same without the site that serves all other hosts.
    pub(crate) fn named(&self, host: &[u8]) -> Option<usize> {
        if self.exact.is_empty() && self.under.is_empty() {
            return None;
        }
        let name = without_port(host);
        let name = name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase();
        let name = std::str::from_utf8(&name).ok()?;
        let under = || {
            self.under.iter().find(|(domain, _)| name.len() > domain.len() && name.ends_with(domain.as_str()))
        };
        self.exact.get(name).copied().or_else(|| under().map(|(_, site)| *site))
    }
}

/// Bytes of different readings of one path, which all routes look at. A path of more is made to have them.
const READINGS_BYTES_MAX: usize = 64 * 1024;

/// A site, ready to serve.
pub(crate) struct Site {
    /// At least one, in the order in which they are tried.
    routes: Vec<Route>,
    /// Of each route, the first one that treats requests alike.
    treatments: Vec<usize>,
    /// Which route a request takes makes a difference.
    has_choice: bool,
    /// No routes differ in case only, so the server may ignore it.
    ignores_case: bool,
    /// A path of a route has a letter in upper case.
    has_upper: bool,
}

/// The outcome of [`Site::route`].
pub(crate) enum Routed {
    /// The index of the route.
    To(usize),
    /// No route fits.
    Nowhere,
    /// Servers that read the path differently take it to different routes: a request that may ask for one
    /// route's inspection and another route's application. It is refused. The route of the path as it is
    /// written, if there is one.
    Ambiguous(Option<usize>),
}

impl Site {
    /// `settings` are those of the routes.
    pub(crate) fn new(routes: Vec<Route>, settings: &[portcullis_config::Route]) -> Site {
        let first =
            |route: &portcullis_config::Route| settings.iter().position(|other| other.treats_as(route));
        let treatments: Vec<usize> = settings.iter().filter_map(first).collect();
        let takes_all = routes.iter().any(|route| route.matcher.is_catch_all());
        Site {
            has_choice: !takes_all || treatments.iter().any(|&treatment| treatment != 0),
            ignores_case: !distinguish_case(settings),
            has_upper: literals(settings).any(|path| path.bytes().any(|byte| byte.is_ascii_uppercase())),
            treatments,
            routes,
        }
    }

    pub(crate) fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The route of a request.
    pub(crate) fn route(&self, head: &RequestHead) -> Routed {
        let written = self.find(head.path(), head, Case::AsWritten);
        if self.has_choice && self.is_ambiguous(head, written) {
            return Routed::Ambiguous(written);
        }
        written.map_or(Routed::Nowhere, Routed::To)
    }

    fn is_ambiguous(&self, head: &RequestHead, written: Option<usize>) -> bool {
        let path = head.path();
        let treatment = |route: Option<usize>| route.map(|route| self.treatments[route]);
        let differs = |path: &[u8], case| treatment(self.find(path, head, case)) != treatment(written);
        let has_case = |path: &[u8]| self.has_upper || path.iter().any(u8::is_ascii_uppercase);
        let differs_without_case =
            |path: &[u8]| self.ignores_case && has_case(path) && differs(path, Case::Ignored);
        if is_plain(path) {
            return differs_without_case(path);
        }
        if climbs(path) || differs_without_case(path) {
            return true;
        }
        let (mut seen, mut bytes): (Vec<Cow<'_, [u8]>>, usize) = (Vec::new(), 0);
        for reading in readings(path) {
            if seen.contains(&reading) {
                continue;
            }
            bytes += reading.len();
            if bytes > READINGS_BYTES_MAX
                || differs(&reading, Case::AsWritten)
                || differs_without_case(&reading)
            {
                return true;
            }
            seen.push(reading);
        }
        false
    }

    fn find(&self, path: &[u8], head: &RequestHead, case: Case) -> Option<usize> {
        self.routes.iter().position(|route| route.matcher.takes(path, case, head))
    }
}

/// The paths of routes that are no patterns.
fn literals(routes: &[portcullis_config::Route]) -> impl Iterator<Item = &str> + Clone {
    routes.iter().filter_map(|route| match &route.path {
        PathMatch::Exact(path) | PathMatch::Prefix(path) => Some(path.as_str()),
        PathMatch::Pattern(_) => None,
    })
}

/// True if there are routes that differ in case only: then the server does not ignore it.
fn distinguish_case(routes: &[portcullis_config::Route]) -> bool {
    let paths = literals(routes);
    let mut pairs = paths.clone().flat_map(|one| paths.clone().map(move |other| (one, other)));
    pairs.any(|(one, other)| one != other && one.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let mut hosts = Hosts::default();
        hosts.add(&[HostPattern::Exact("a.example".into()), HostPattern::Exact("[::1]".into())], 0);
        hosts.add(&[HostPattern::Under(".example".into())], 1);
        hosts.add(&[HostPattern::Under(".b.example".into())], 2);
        for (host, site) in [
            ("a.example", Some(0)),
            ("A.Example.:80", Some(0)),
            ("[::1]:80", Some(0)),
            ("[::1]", Some(0)),
            ("c.example", Some(1)),
            ("example", None),
            (".example", None),
            ("x.b.example", Some(2)),
            ("b.example", Some(1)),
            ("\u{e9}", None),
            ("", None),
        ] {
            assert_eq!(hosts.find(host.as_bytes()), site, "{host}");
        }
        hosts.add(&[HostPattern::Any], 3);
        assert_eq!(hosts.find(b"whatever"), Some(3));
    }
}
