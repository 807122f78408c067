//! `sites` as written in the document.

use schemars::JsonSchema;
use serde::Deserialize;

use super::policy::{Engine, Failure, Level, Mode, RequestBody, ResponseBody, Rules, Semantic};
use super::route::{HeaderChanges, Route};
use crate::access::{self as control, raw as access};
use crate::access_log;
use crate::agents;
use crate::compression;
use crate::cookies;
use crate::declared;
use crate::discovery;
use crate::https;
use crate::learning;
use crate::profile::ProfileUse;
use crate::spanned::Spanned;

/// A site: the routes and the policy for its host names.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Site {
    /// The name in events and metrics.
    pub name: Spanned<String>,
    /// Host names: exact, `*.example.com`, or `*` for every host that no other site names.
    pub hosts: Spanned<Vec<Spanned<String>>>,
    /// That clients should come by TLS.
    #[serde(default)]
    pub https: https::Raw,
    /// Its cookies.
    #[serde(default)]
    pub cookies: cookies::Raw,
    /// Names of the listeners that serve it; default: all.
    pub listeners: Option<Vec<Spanned<String>>>,
    /// The upstream of every path that no route names.
    pub upstream: Option<Spanned<String>>,
    /// Routes: the handling of requests by path, method and header.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// `semantic`: parse what requests say. `crs`: inspect with the rules below. `both`: the one beside the
    /// other. `off`: forward without inspection. Default: `crs` with `rules`, `semantic` without.
    pub mode: Option<Mode>,
    /// Sensitivity of the semantic detector. Default: `balanced`.
    pub level: Option<Spanned<Level>>,
    /// Actions of the semantic detector by class of attack, and exclusions from it.
    pub semantic: Option<Spanned<Semantic>>,
    /// Learning of what fields carry, and what happens to values that are unlike it. Default: nothing is
    /// learned.
    pub fields: Option<Spanned<learning::Raw>>,
    /// The description of the API of the site, and what happens to requests that differ from it. Default:
    /// none.
    pub api: Option<Spanned<declared::Raw>>,
    /// Discovery of the endpoints that the site answers, with their parameters: `true`, or a table. Default:
    /// `false`.
    pub discovery: Option<Spanned<discovery::Raw>>,
    /// Profiles: named exclusions for known applications, which `portcullis profiles` lists. They count on
    /// every route, below the root of the site or the path that is said. Default: none.
    #[serde(default)]
    pub profiles: Vec<Spanned<ProfileUse>>,
    /// The effect of a match of a disruptive rule. Default: `blocking`, unless the rule files say otherwise.
    pub engine: Option<Engine>,
    /// The rules.
    pub rules: Option<Spanned<Rules>>,
    /// Changes of the headers that the upstream gets.
    pub request_headers: Option<HeaderChanges>,
    /// Changes of the headers of the upstream's answer.
    pub response_headers: Option<HeaderChanges>,
    /// Names of trailer fields of requests that are forwarded after buffered bodies; rules see them as
    /// headers from phase 2 on. Default: none.
    #[serde(default)]
    pub request_trailers: Vec<Spanned<String>>,
    /// Buffering of request bodies for inspection.
    #[serde(default)]
    pub request_body: RequestBody,
    /// Buffering of response bodies for inspection.
    #[serde(default)]
    pub response_body: ResponseBody,
    /// Treatment of requests that cannot be inspected.
    #[serde(default)]
    pub failure: Failure,
    /// Its access log; default: as the document says.
    pub access_log: Option<Spanned<access_log::Raw>>,
    /// Which clients may ask; default: as the document says.
    pub access: Option<Spanned<access::Access>>,
    /// When clients are banned for what they do here; default: as the document says.
    pub ban: Option<Spanned<control::ban::Raw>>,
    /// Compression of responses; default: as the document says.
    pub compression: Option<Spanned<compression::Raw>>,
    /// Rate limits of all its requests.
    #[serde(default)]
    pub rate_limits: Vec<access::RateLimit>,
    /// Agents that are asked about its requests. Default: none.
    #[serde(default)]
    pub agents: Vec<Spanned<agents::Use>>,
}
