//! `sites.routes`, checked.

use std::cmp::Reverse;

use crate::access::{Access, Ban, RateLimit};
use crate::agents::AgentUse;
use crate::checked::policy::Failure;
use crate::compression::Compression;
use crate::template::Template;

/// A route: the requests that it matches, and their treatment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The name in events and metrics.
    pub name: String,
    /// The paths that it matches.
    pub path: PathMatch,
    /// The methods that it matches; none: all.
    pub methods: Vec<String>,
    /// Headers that a request must have, by name in lower case, with their value or any.
    pub headers: Vec<(String, Option<String>)>,
    /// The target of its requests.
    pub target: RouteTarget,
    /// Changes of the headers that an upstream gets.
    pub request_headers: HeaderChanges,
    /// Changes of the headers of an upstream's answer.
    pub response_headers: HeaderChanges,
    /// Names of trailer fields of requests that are forwarded, in lower case.
    pub request_trailers: Vec<String>,
    /// Index into [`Config::policies`](crate::Config::policies); none: without inspection.
    pub policy: Option<usize>,
    /// The name in the document of the route whose `semantic` holds: this one's, if it has one; none: that of
    /// the site.
    pub semantic_of: Option<String>,
    /// The policy where inspection cannot be done.
    pub failure: Failure,
    /// The access lists; none: all clients are let in.
    pub access: Option<Access>,
    /// The ban policy for offences here.
    pub ban: Option<Ban>,
    /// The compression of responses.
    pub compression: Option<Compression>,
    /// Rate limits beside those of the site.
    pub rate_limits: Vec<RateLimit>,
    /// Agents that are asked, in the order in which their decisions count.
    pub agents: Vec<AgentUse>,
}

/// The paths that a route matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathMatch {
    /// This one.
    Exact(String),
    /// Those that a regular expression matches, which compiles.
    Pattern(String),
    /// Those that begin so.
    Prefix(String),
}

impl PathMatch {
    /// The path, pattern or prefix as it is written.
    pub(crate) fn text(&self) -> &str {
        let (PathMatch::Exact(text) | PathMatch::Pattern(text) | PathMatch::Prefix(text)) = self;
        text
    }
}

/// The target of a route's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteTarget {
    /// They are forwarded.
    Forward {
        /// Index into [`Config::upstreams`](crate::Config::upstreams).
        upstream: usize,
        /// The path there: in place of prefix or path, or all of it where the path is a pattern.
        rewrite: Option<Template>,
        /// They may be tried again, whatever their method.
        idempotent: bool,
    },
    /// They are answered with a redirect.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// The `Location`.
        to: Template,
    },
    /// They are answered with a text.
    Respond {
        /// 200 to 599.
        status: u16,
        /// Body and media type; none: the page of our own answers.
        body: Option<(String, String)>,
    },
}

/// Changes of headers, in the order of the fields. Names are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderChanges {
    /// Are dropped.
    pub remove: Vec<String>,
    /// Replace others of their name.
    pub set: Vec<(String, Template)>,
    /// Come beside others of their name.
    pub add: Vec<(String, Template)>,
}

impl Route {
    /// Every request, for an upstream, as it is.
    pub(crate) fn root(upstream: usize, policy: Option<usize>, failure: Failure) -> Self {
        Route {
            name: "/".to_string(),
            path: PathMatch::Prefix("/".to_string()),
            methods: Vec::new(),
            headers: Vec::new(),
            target: RouteTarget::Forward { upstream, rewrite: None, idempotent: false },
            request_headers: HeaderChanges::default(),
            response_headers: HeaderChanges::default(),
            request_trailers: Vec::new(),
            policy,
            semantic_of: None,
            failure,
            access: None,
            ban: None,
            compression: None,
            rate_limits: Vec::new(),
            agents: Vec::new(),
        }
    }

    /// True if it makes no difference to applications and their protection which of both a request takes:
    /// they agree in inspection, access, limits, agents, upstream and what the upstream is sent.
    pub fn treats_as(&self, other: &Route) -> bool {
        let Route {
            name: _,
            path: _,
            methods: _,
            headers: _,
            target,
            request_headers,
            response_headers: _,
            request_trailers,
            policy,
            semantic_of,
            failure,
            access,
            ban,
            compression: _,
            rate_limits,
            agents,
        } = self;
        *target == other.target
            && *request_headers == other.request_headers
            && *request_trailers == other.request_trailers
            && (*policy, semantic_of) == (other.policy, &other.semantic_of)
            && *failure == other.failure
            && *access == other.access
            && *ban == other.ban
            && *rate_limits == other.rate_limits
            && *agents == other.agents
    }

    pub(crate) fn conditions(&self) -> usize {
        self.headers.len() + usize::from(!self.methods.is_empty())
    }

    /// So that the first route that fits is the one to take: whole paths, then patterns in their order, then
    /// the longest prefix; of those with the same path the one with more conditions.
    pub(crate) fn rank(&self) -> (u8, Reverse<usize>, Reverse<usize>) {
        match &self.path {
            PathMatch::Exact(_) => (0, Reverse(0), Reverse(self.conditions())),
            PathMatch::Pattern(_) => (1, Reverse(0), Reverse(0)),
            PathMatch::Prefix(path) => (2, Reverse(path.len()), Reverse(self.conditions())),
        }
    }
}
