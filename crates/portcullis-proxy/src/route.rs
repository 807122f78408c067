//! A route: conditions on requests, and their handling.

use std::sync::Arc;

use portcullis_config::{CookieFlags, Failure, HeaderChanges, PathMatch, RouteTarget, Template};
use portcullis_exchange::Exclusions;
use portcullis_http::message::RequestHead;
use portcullis_inspect::{Inspector, PolicyNames};
use portcullis_match::regex::Captures;
use portcullis_match::{Regex, RegexFlags};
use portcullis_metrics::RouteMetrics;

use crate::StartError;
use crate::access::Access;
use crate::access_log::AccessLog;
use crate::agents::AgentUse;
use crate::compress::Compression;
use crate::cookies::{Signing, SiteCookies};
use crate::facts::Facts;
use crate::https::Https;
use crate::recognition::Recognition;
use crate::template::{Source, fill, query};
use crate::upstream::Slot;

/// A route, ready to serve.
pub(crate) struct Route {
    /// Its name, that of its site, and the number of the settings.
    pub(crate) names: PolicyNames,
    pub(crate) matcher: Matcher,
    pub(crate) target: Target,
    /// That of its site.
    pub(crate) https: Arc<Https>,
    /// Those of its site, if they are kept.
    pub(crate) cookies: Option<Arc<SiteCookies>>,
    /// Cookies for which a client is refused again and again are expired.
    pub(crate) expires_cookies: bool,
    /// Attributes that cookies of the upstream are given; none if there are no such.
    pub(crate) cookie_flags: Option<Arc<CookieFlags>>,
    /// The signed cookies of its site; none if there are no such.
    pub(crate) signing: Option<Arc<Signing>>,
    /// That of its site, if it has one.
    pub(crate) recognition: Option<Arc<Recognition>>,
    pub(crate) request_headers: HeaderChanges,
    pub(crate) response_headers: HeaderChanges,
    pub(crate) inspector: Option<Arc<Inspector>>,
    pub(crate) failure: Failure,
    /// Its controls of clients; none if it has none.
    pub(crate) access: Access,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) compression: Option<Arc<Compression>>,
    /// The agents that are asked, in the order in which decisions count.
    pub(crate) agents: Box<[AgentUse]>,
    /// Names of trailers that go on.
    pub(crate) request_trailers: Box<[String]>,
    pub(crate) metrics: RouteMetrics,
    /// None: it is not inspected.
    pub(crate) exclusions: Option<Exclusions>,
}

/// The target of the requests of a route.
pub(crate) enum Target {
    Forward { slot: Arc<Slot>, rewrite: Option<Template>, idempotent: bool },
    Redirect { status: u16, to: Template },
    Respond { status: u16, body: Option<(String, String)> },
}

impl Target {
    /// `groups` are those of the upstreams, by index.
    pub(crate) fn new(target: &RouteTarget, groups: &[Arc<Slot>]) -> Self {
        match target.clone() {
            RouteTarget::Forward { upstream, rewrite, idempotent } => {
                Target::Forward { slot: Arc::clone(&groups[upstream]), rewrite, idempotent }
            }
            RouteTarget::Redirect { status, to } => Target::Redirect { status, to },
            RouteTarget::Respond { status, body } => Target::Respond { status, body },
        }
    }
}

/// The conditions for the requests of a route.
pub(crate) struct Matcher {
    path: Path,
    methods: Vec<String>,
    headers: Vec<(String, Option<String>)>,
}

enum Path {
    Root,
    Prefix(Vec<u8>),
    Exact(Vec<u8>),
    /// With true, nothing in it asks for a letter in upper case.
    Pattern(Box<Regex>, bool),
}

/// Comparison of the letters of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    AsWritten,
    Ignored,
}

impl Matcher {
    pub(crate) fn new(route: &portcullis_config::Route) -> Result<Self, StartError> {
        let path = match &route.path {
            PathMatch::Prefix(path) if path == "/" => Path::Root,
            PathMatch::Prefix(path) => Path::Prefix(path.clone().into_bytes()),
            PathMatch::Exact(path) => Path::Exact(path.clone().into_bytes()),
            PathMatch::Pattern(pattern) => {
                let regex = Regex::new(pattern.as_bytes(), RegexFlags::default());
                let wrong = |error| StartError::new(format!("the route `{}`: {error}", route.name));
                let is_lower = !pattern.bytes().any(|byte| byte.is_ascii_uppercase());
                Path::Pattern(Box::new(regex.map_err(wrong)?), is_lower)
            }
        };
        Ok(Matcher { path, methods: route.methods.clone(), headers: route.headers.clone() })
    }

    /// One that takes every request.
    pub(crate) fn all() -> Self {
        Matcher { path: Path::Root, methods: Vec::new(), headers: Vec::new() }
    }

    /// Takes every request.
    pub(crate) fn is_catch_all(&self) -> bool {
        matches!(self.path, Path::Root) && self.methods.is_empty() && self.headers.is_empty()
    }

    /// Takes a request with this path, which need not be the one in its head.
    pub(crate) fn takes(&self, path: &[u8], case: Case, head: &RequestHead) -> bool {
        let same = |own: &[u8], path: Option<&[u8]>| match case {
            Case::AsWritten => path == Some(own),
            Case::Ignored => path.is_some_and(|path| path.eq_ignore_ascii_case(own)),
        };
        let fits = match &self.path {
            Path::Root => true,
            Path::Prefix(prefix) => same(prefix, path.get(..prefix.len())),
            Path::Exact(exact) => same(exact, Some(path)),
            Path::Pattern(regex, is_lower) => {
                let folds = *is_lower && case == Case::Ignored && path.iter().any(u8::is_ascii_uppercase);
                if folds { regex.is_match(&path.to_ascii_lowercase()) } else { regex.is_match(path) }
            }
        };
        fits && (self.methods.is_empty() || self.methods.iter().any(|own| own.as_bytes() == head.method()))
            && self.headers.iter().all(|(name, value)| {
                let mut values = head.header(name);
                match value {
                    Some(value) => values.any(|got| got == value.as_bytes()),
                    None => values.next().is_some(),
                }
            })
    }

    /// The captures of its pattern in the request's path.
    pub(crate) fn groups(&self, head: &RequestHead) -> Captures {
        let mut groups = [None; 10];
        if let Path::Pattern(regex, _) = &self.path {
            regex.captures(head.path(), &mut groups);
        }
        groups
    }

    /// The request target with the path that `rewrite` makes of the request's.
    pub(crate) fn rewritten(&self, rewrite: &Template, facts: &Facts<'_>) -> Vec<u8> {
        let head = facts.head;
        let source = Source { facts, groups: &self.groups(head) };
        let mut target = fill(rewrite, &source);
        let rest = match &self.path {
            Path::Root => head.path().strip_prefix(b"/").unwrap_or_default(),
            Path::Prefix(prefix) => head.path().strip_prefix(&prefix[..]).unwrap_or_default(),
            Path::Exact(_) | Path::Pattern(..) => b"",
        };
        // Two slashes are not one to every server.
        let rest = if target.ends_with(b"/") { rest.strip_prefix(b"/").unwrap_or(rest) } else { rest };
        target.extend_from_slice(rest);
        query(head, &mut target);
        target
    }
}
