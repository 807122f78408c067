//! Inspection policies as written in the document.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::spanned::Spanned;
use crate::units::{Size, Time};

/// Which detection runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// The semantic detector, without the rules of `rules`.
    Semantic,
    /// The rules of `rules`.
    Crs,
    /// Both, combined.
    Both,
    /// No inspection.
    Off,
}

/// Sensitivity of the semantic detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// Almost no false positives.
    Balanced,
    /// More attacks are caught, with a few more false positives.
    Strict,
}

/// Actions of the semantic detector by class of attack, and exclusions from it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Semantic {
    /// By class, for example `{ xss = "log", ssrf = "off" }`. Default: `block`; for `leak`, private keys,
    /// files of the system and web shells block, all else is logged; for `redirect`, `log` where `hosts` is
    /// empty and the address does not hide its host.
    #[serde(default)]
    pub classes: BTreeMap<String, Spanned<ClassAction>>,
    /// The hosts to which pages of the site may lead, beside the one that is asked: names, or `*.example.com`
    /// for all below one. With them a parameter that leads elsewhere (class `redirect`) blocks; without, it
    /// is logged, unless only browsers see the host in it. Default: none.
    #[serde(default)]
    pub hosts: Vec<Spanned<String>>,
    /// Findings that do not count.
    #[serde(default)]
    pub exclude: Vec<Spanned<Exclude>>,
    /// The longest time that the body of a response is held while its upstream sends it, where no rule needs
    /// it. Default: `"200ms"`.
    pub response_wait: Option<Time>,
}

/// The action for findings of a class that pass the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClassAction {
    /// The request is blocked.
    Block,
    /// The request is forwarded, with an event.
    Log,
    /// Nothing.
    Off,
}

/// Findings that do not count: those to which all that is said here applies.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exclude {
    /// The class; default: every class.
    pub class: Option<Spanned<String>>,
    /// The kind of finding as events show it, for example `sqli.union`: other findings in the same value
    /// count. Default: every kind.
    pub kind: Option<Spanned<String>>,
    /// Place and name of the value as events show them, for example `form:comment`, `header:X-*`,
    /// `json:*.html`, `*:q`, or a place alone. Default: every value.
    pub location: Option<Spanned<String>>,
    /// Path of the request: a prefix; or the whole path if there is a `*` in it, which stands for any text,
    /// or something in braces, which stands for one segment: `/posts/{id}`. Default: every path.
    pub path: Option<Spanned<String>>,
    /// The end of the exclusion, in UTC: a day that still belongs to it (`2026-12-31`), or a time
    /// (`2026-12-31T18:00:00Z`). Default: it has none.
    pub until: Option<Spanned<String>>,
    /// The reason for the exclusion, which the admin API shows. Default: none.
    pub reason: Option<String>,
    /// The name of who added it, which the admin API writes and shows. Default: none.
    pub author: Option<String>,
    /// Only try it: what it excludes counts, and requests that would have passed with it are pointed out.
    /// Default: `false`.
    #[serde(default)]
    pub trial: bool,
    /// The end of the trial without a person: the exclusion counts once all of this holds and no request that
    /// it would let through had anything else in it. Default: none.
    pub auto_enforce: Option<Spanned<AutoEnforce>>,
}

/// Conditions under which a trial ends and the exclusion counts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AutoEnforce {
    /// Time on trial in this process, for example `"24h"`.
    pub after: Time,
    /// Requests that had the field on its path in that time.
    pub requests: std::num::NonZeroU64,
}

/// Matches of rules that do not count: those to which all that is said here applies.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExcludeRule {
    /// The ids of the rules.
    pub rules: Vec<u32>,
    /// The value as events show it (`matches.target`), for example `ARGS:comment`, or `ARGS` for every value
    /// of that variable; `*` stands for any text of a name. Default: every value.
    pub target: Option<Spanned<String>>,
    /// Path of the request: a prefix; or the whole path if there is a `*` in it, which stands for any text,
    /// or something in braces, which stands for one segment: `/posts/{id}`. Default: every path.
    pub path: Option<Spanned<String>>,
    /// The end of the exclusion, in UTC: a day that still belongs to it (`2026-12-31`), or a time
    /// (`2026-12-31T18:00:00Z`). Default: it has none.
    pub until: Option<Spanned<String>>,
    /// The reason for the exclusion, which the admin API shows. Default: none.
    pub reason: Option<String>,
    /// The name of who added it, which the admin API writes and shows. Default: none.
    pub author: Option<String>,
    /// Only try it: what it excludes counts, and requests that would have passed with it are pointed out.
    /// Default: `false`.
    #[serde(default)]
    pub trial: bool,
    /// The end of the trial without a person: the exclusion counts once all of this holds and no request that
    /// it would let through had anything else in it. Default: none.
    pub auto_enforce: Option<Spanned<AutoEnforce>>,
}

/// The effect of a match of a disruptive rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Engine {
    /// Answer with the block page.
    Blocking,
    /// Log only.
    DetectionOnly,
}

/// SecLang rules, read in the order of the keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    /// Files with settings and exclusions to read before the CRS; `*` is allowed in names.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Folder of the CRS: `crs-setup.conf` (or its `.example`) and `rules/*.conf`.
    pub crs: Option<String>,
    /// CRS paranoia level, 1 to 4. Default: as `crs-setup.conf` says.
    #[schemars(range(min = 1, max = 4))]
    pub paranoia: Option<Spanned<u8>>,
    /// Files to read after the CRS; `*` is allowed in names.
    #[serde(default)]
    pub include: Vec<String>,
    /// Directives to read last.
    pub directives: Option<String>,
    /// Matches of rules that do not count.
    #[serde(default)]
    pub exclude: Vec<Spanned<ExcludeRule>>,
    /// Which ModSecurity's reading counts where the two differ: `modsecurity2`, the default, or
    /// `modsecurity3`.
    pub compat: Option<RulesCompat>,
    /// The points that count for the anomaly score of the CRS: all points (`anomaly`, the default in mode
    /// `crs`), or those of rules that benign traffic triggers only where several of them agree on a value
    /// (`weighted`, the default in mode `both`).
    pub scoring: Option<Spanned<Scoring>>,
}

/// The points that count for the anomaly score of the CRS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scoring {
    /// Every point that a rule adds.
    Anomaly,
    /// The points of a value count where the weights of the rules that matched in it come to 1.
    Weighted,
}

/// Which ModSecurity the rules were written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum RulesCompat {
    /// Version 2.9 on Apache.
    #[serde(rename = "modsecurity2")]
    ModSecurity2,
    /// libmodsecurity, version 3.
    #[serde(rename = "modsecurity3")]
    ModSecurity3,
}

/// Buffering of request bodies for inspection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestBody {
    /// `false` forwards request bodies without inspection. Default: as the rules say.
    pub inspect: Option<bool>,
    /// Bytes held for inspection, at most 1GiB; what is not files may be as long
    /// (`SecRequestBodyNoFilesLimit`). Default: as the rules say (`SecRequestBodyLimit`), else 12.5 MiB.
    pub limit: Option<Size>,
    /// Bytes of an upload: a file, or a form with files, that is longer than `limit` is sent to the upstream
    /// while the semantic detector inspects it, and is aborted before its end if something is found; rules
    /// inspect what is held. Default: ten times what is held. The same as `limit` switches it off.
    pub upload_limit: Option<Size>,
    /// Treatment of a body longer than `limit`. Default: uploads are sent on, others are refused; or as the
    /// rules say (`SecRequestBodyLimitAction`). `reject` refuses uploads, too, unless `upload_limit` is
    /// given.
    pub over_limit: Option<OverLimit>,
    /// Treatment of a body that is not the JSON that its content type declares: `inspect`, the default where
    /// the semantic detector runs alone, reads it as what it is, too; `refuse`, the default elsewhere,
    /// answers 400.
    pub unreadable: Option<Unreadable>,
    /// Bytes that may come out of a body in a content coding for each that goes in, beyond 64KiB; one that
    /// grows more is answered
    /// 413. Default: 20.
    pub decoded_ratio: Option<std::num::NonZeroU32>,
    /// Content codings in which bodies pass without inspection, decoded here or not, such as `lz4`; each is
    /// counted. A body in any other coding that cannot be decoded is answered 415. Default: none.
    #[serde(default)]
    pub uninspected_codings: Vec<CodingName>,
    /// Treatment of a body that applications are known to parse differently, such as one in UTF-7 or with
    /// parts in Base64. Default: `refuse`, with 400.
    pub ambiguous: Option<Ambiguous>,
    /// Rules also see arguments as other applications parse them. Default: `true`.
    pub second_readings: Option<bool>,
}

/// The name of a content coding.
#[derive(Clone, Debug, JsonSchema)]
pub(crate) struct CodingName(pub String);

impl<'de> Deserialize<'de> for CodingName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        match !name.is_empty() && name.bytes().all(is_sign) {
            true => Ok(CodingName(name.to_ascii_lowercase())),
            false => Err(serde::de::Error::custom(format!(
                "`{name}` is no content coding: a single name as it stands in Content-Encoding, such as \"lz4\""
            ))),
        }
    }
}

/// Treatment of a body that is not the JSON that its content type declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unreadable {
    /// Read as what it is, too.
    Inspect,
    /// Refused by rule 9000103, where the engine blocks.
    Refuse,
}

/// Treatment of a body that applications parse differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ambiguous {
    /// Refused by rule 9000105, where the engine blocks.
    Refuse,
    /// Passed and counted.
    Pass,
}

/// Buffering of response bodies for inspection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResponseBody {
    /// `true` holds responses of the inspected media types until their verdict; `false` lets all pass.
    /// Default: rules see what they ask for, the semantic detector text that need not wait for its upstream.
    pub inspect: Option<bool>,
    /// Bytes held for inspection; default: as the rules say (`SecResponseBodyLimit`).
    pub limit: Option<Size>,
    /// Treatment of a longer body.
    pub over_limit: Option<OverLimit>,
}

/// Treatment of a body above its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OverLimit {
    /// Refuse it: 413 for a request, 500 for a response.
    Reject,
    /// Inspect the part within the limit, pass the rest uninspected, and count it.
    PassUninspected,
}

/// Treatment of requests that cannot be inspected.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    /// A bug in our code was caught while inspecting. Default: `closed`.
    pub engine_error: Option<OpenOrClosed>,
    /// The request body has a content coding that is not decoded here, or is not what its coding says.
    /// Default: `closed`, where the engine blocks.
    pub undecodable: Option<OpenOrClosed>,
    /// The rules used up the work budget of a request, or a pattern its step limit, so that it is unknown
    /// whether a rule matches: `closed` answers 403. Default: `closed`, where the engine blocks.
    pub pattern_limit: Option<OpenOrClosed>,
    /// A lookup that a rule asks for gets no answer: `closed` answers 503. Default: `open`, the rule does not
    /// match.
    pub lookup: Option<OpenOrClosed>,
}

/// Pass or refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpenOrClosed {
    /// Pass the request on and count it.
    Open,
    /// Refuse the request and count it.
    Closed,
}
