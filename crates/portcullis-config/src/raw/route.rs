//! `sites.routes` as written in the document: conditions on requests, and actions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::policy::{Engine, Failure, Level, Mode, RequestBody, ResponseBody, Semantic};
use crate::access::{self as control, raw as access};
use crate::agents;
use crate::compression;
use crate::declared;
use crate::spanned::Spanned;

/// Which requests, and what happens to them. One of `path`, `path_exact` and `path_pattern` is needed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route {
    /// The name in events and metrics; default: methods and path.
    pub name: Option<Spanned<String>>,
    /// Path prefix, for example `/api/`. The longest one that fits wins.
    pub path: Option<Spanned<String>>,
    /// The whole path. Comes before patterns and prefixes.
    pub path_exact: Option<Spanned<String>>,
    /// A regular expression that the path matches, for example `^/v[0-9]+/users/([^/]+)$`. Patterns are tried
    /// in their order, before prefixes.
    pub path_pattern: Option<Spanned<String>>,
    /// Methods; default: all.
    #[serde(default)]
    pub methods: Vec<Spanned<String>>,
    /// Headers by name, with the value that one of them must have, or `*` for any. Default: none.
    #[serde(default)]
    pub headers: BTreeMap<String, Spanned<String>>,
    /// Its upstream; default: the upstream of the site.
    pub upstream: Option<Spanned<String>>,
    /// The path that the upstream sees in place of the prefix or path; with `path_pattern` the whole path, in
    /// which `$1` to `$9` stand for the groups. The query stays.
    pub rewrite: Option<Spanned<String>>,
    /// Answers with a redirect instead of asking an upstream.
    pub redirect: Option<Spanned<Redirect>>,
    /// Answers with a text instead of asking an upstream.
    pub respond: Option<Spanned<Respond>>,
    /// Changes of the headers that the upstream gets; default: as the site.
    pub request_headers: Option<HeaderChanges>,
    /// Changes of the headers of the upstream's answer; default: as the site.
    pub response_headers: Option<HeaderChanges>,
    /// As at the site, in place of what stands there; default: as the site.
    pub request_trailers: Option<Vec<Spanned<String>>>,
    /// Every method of its requests may be tried again, POST, too. Default: `false`.
    pub idempotent: Option<bool>,
    /// As at the site; default: as the site.
    pub mode: Option<Mode>,
    /// As at the site; default: as the site.
    pub level: Option<Spanned<Level>>,
    /// As at the site, in place of what stands there; default: as the site.
    pub semantic: Option<Spanned<Semantic>>,
    /// As at the site; what is not set here is as there.
    pub api: Option<Spanned<declared::Raw>>,
    /// As at the site; default: as the site.
    pub engine: Option<Engine>,
    /// As at the site; default: as the site.
    pub request_body: Option<RequestBody>,
    /// As at the site; default: as the site.
    pub response_body: Option<ResponseBody>,
    /// As at the site; default: as the site.
    pub failure: Option<Failure>,
    /// As at the site, in place of what stands there; default: as the site.
    pub access: Option<Spanned<access::Access>>,
    /// When clients are banned for what they do here; default: as the site.
    pub ban: Option<Spanned<control::ban::Raw>>,
    /// Compression of responses; default: as the site.
    pub compression: Option<Spanned<compression::Raw>>,
    /// As at the site, in place of what stands there; default: as the site.
    pub agents: Option<Vec<Spanned<agents::Use>>>,
    /// Rate limits of its requests, beside those of the site.
    #[serde(default)]
    pub rate_limits: Vec<access::RateLimit>,
}

/// A redirect.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redirect {
    /// The target: `https://...`, `http://...` or a path, with `{host}`, `{path}`, `{uri}` (path and query)
    /// and the groups of `path_pattern` as `$1` to `$9`.
    pub to: Spanned<String>,
    /// 301, 302, 303, 307 or 308. Default: 302.
    pub status: Option<Spanned<u16>>,
}

/// An answer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Respond {
    /// 200 to 599. Default: 200.
    #[schemars(range(min = 200, max = 599))]
    pub status: Option<Spanned<u16>>,
    /// Its body. Default: the page of our own answers.
    pub body: Option<String>,
    /// The media type of the body. Default: `text/plain; charset=utf-8`.
    pub content_type: Option<Spanned<String>>,
}

/// Changes of headers: first those of `remove` go, then those of `set` replace others of their name, then
/// those of `add` are added. Values may have `{client}`, `{country}`, `{continent}`, `{asn}`, `{host}`,
/// `{path}`, `{uri}` and `{request_id}`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeaderChanges {
    /// By name.
    #[serde(default)]
    pub set: BTreeMap<String, Spanned<String>>,
    /// By name.
    #[serde(default)]
    pub add: BTreeMap<String, Spanned<String>>,
    /// Names.
    #[serde(default)]
    pub remove: Vec<Spanned<String>>,
}
