//! Sites of a listener by host, and the choice of a route.

use std::collections::HashMap;

use portcullis_config::HostPattern;
use portcullis_http::message::RequestHead;

use crate::facts::without_port;
use crate::path::{is_unusual, resolved};
use crate::route::Route;

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
        if self.exact.is_empty() && self.under.is_empty() {
            return self.any;
        }
        let name = without_port(host);
        let name = name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase();
        let Ok(name) = std::str::from_utf8(&name) else { return self.any };
        let under = || {
            self.under.iter().find(|(domain, _)| name.len() > domain.len() && name.ends_with(domain.as_str()))
        };
        self.exact.get(name).copied().or_else(|| under().map(|(_, site)| *site)).or(self.any)
    }
}

/// A site, ready to serve.
pub(crate) struct Site {
    /// At least one, in the order in which they are tried.
    pub(crate) routes: Vec<Route>,
}

/// The outcome of [`Site::route`].
pub(crate) enum Routed {
    /// The index of the route.
    To(usize),
    /// No route fits.
    Nowhere,
    /// The path as written and the path as servers resolve it lead to different routes: a request that asks
    /// for one route's inspection and another route's application. It is refused.
    Ambiguous,
}

impl Site {
    /// The route of a request.
    pub(crate) fn route(&self, head: &RequestHead) -> Routed {
        let path = head.path();
        let as_written = self.find(path, head);
        let has_choice =
            self.routes.len() > 1 || self.routes.iter().any(|route| !route.matcher.is_catch_all());
        if has_choice && is_unusual(path) && self.find(&resolved(path), head) != as_written {
            return Routed::Ambiguous;
        }
        as_written.map_or(Routed::Nowhere, Routed::To)
    }

    fn find(&self, path: &[u8], head: &RequestHead) -> Option<usize> {
        self.routes.iter().position(|route| route.matcher.takes(path, head))
    }
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
