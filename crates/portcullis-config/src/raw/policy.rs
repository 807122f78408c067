//! What is inspected and how, as a person writes it.

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

/// How sure the semantic detector must be to block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// Almost no false alarms.
    Balanced,
    /// More attacks are caught, with a few more false alarms.
    Strict,
}

/// What the semantic detector does about single classes of attacks, and what it leaves alone.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Semantic {
    /// By class, for example `{ xss = "log", ssrf = "off" }`. Default: `block`; for `leak`, private keys,
    /// files of the system and web shells block, all else is logged; for `redirect`, `log` where `hosts` is
    /// empty.
    #[serde(default)]
    pub classes: BTreeMap<String, Spanned<ClassAction>>,
    /// The hosts to which pages of the site may lead, beside the one that is asked: names, or `*.example.com`
    /// for all below one. With them a parameter that leads elsewhere (class `redirect`) blocks; without, it
    /// is logged. Default: none.
    #[serde(default)]
    pub hosts: Vec<Spanned<String>>,
    /// Findings that do not count.
    #[serde(default)]
    pub exclude: Vec<Spanned<Exclude>>,
    /// How long the body of a response that no rule asks for is held for its upstream in all. Default:
    /// `"200ms"`.
    pub response_wait: Option<Time>,
}

/// What is done about findings of a class that pass the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClassAction {
    /// The request is blocked.
    Block,
    /// It goes on, with an event.
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
    /// Place and name of the value as events show them, for example `form:comment`, `header:X-*`,
    /// `json:*.html`, `*:q`, or a place alone. Default: every value.
    pub location: Option<Spanned<String>>,
    /// Path of the request: a prefix, or the whole path if there is a `*` in it. Default: every path.
    pub path: Option<Spanned<String>>,
}

/// What a match of a disruptive rule does.
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
    /// Which ModSecurity's reading counts where the two differ: `modsecurity2`, the default, or
    /// `modsecurity3`.
    pub compat: Option<RulesCompat>,
    /// What the anomaly score of the CRS counts: all points (`anomaly`, the default in mode `crs`), or those
    /// of rules that honest traffic triggers only where several of them agree on a value (`weighted`, the
    /// default in mode `both`).
    pub scoring: Option<Spanned<Scoring>>,
}

/// What the anomaly score of the CRS counts.
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

/// How request bodies are held for inspection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestBody {
    /// `false` forwards request bodies without inspection. Default: as the rules say.
    pub inspect: Option<bool>,
    /// Bytes held for inspection; what is not files may be as long (`SecRequestBodyNoFilesLimit`). Default:
    /// as the rules say (`SecRequestBodyLimit`), else 12.5 MiB.
    pub limit: Option<Size>,
    /// Bytes of an upload, where the semantic detector runs: a file, or a form with files, that is longer
    /// than `limit` goes on to the upstream while it is inspected, and is broken off before its end where
    /// something is found. Default: ten times what is held. The same as `limit` switches it off.
    pub upload_limit: Option<Size>,
    /// What happens to a longer body.
    pub over_limit: Option<OverLimit>,
    /// What happens to a body that is not the JSON that its type says: `inspect`, the default where the
    /// semantic detector runs alone, reads it as what it is, too; `refuse`, the default elsewhere, answers
    /// 400.
    pub unreadable: Option<Unreadable>,
    /// Bytes that may come out of a body in a content coding for each that goes in, beyond 64KiB; one that
    /// grows more is answered
    /// 413. Default: 20.
    pub decoded_ratio: Option<std::num::NonZeroU32>,
    /// What happens to a body that applications are known to read differently, such as one in UTF-7 or with
    /// parts in Base64. Default: `refuse`, with 400.
    pub ambiguous: Option<Ambiguous>,
    /// Whether rules also see arguments as other applications read them. Default: `true`.
    pub second_readings: Option<bool>,
}

/// What happens to a body that is not the JSON that its type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unreadable {
    /// Read as what it is, too.
    Inspect,
    /// Refused by rule 9000103, where the engine blocks.
    Refuse,
}

/// What happens to a body that applications read differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ambiguous {
    /// Refused by rule 9000105, where the engine blocks.
    Refuse,
    /// Passed and counted.
    Pass,
}

/// How response bodies are held for inspection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResponseBody {
    /// `true` holds responses of the inspected media types until their verdict; `false` lets all pass.
    /// Default: rules see what they ask for, the semantic detector text that need not wait for its upstream.
    pub inspect: Option<bool>,
    /// Bytes held for inspection; default: as the rules say (`SecResponseBodyLimit`).
    pub limit: Option<Size>,
    /// What happens to a longer body.
    pub over_limit: Option<OverLimit>,
}

/// What happens to a body above its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OverLimit {
    /// Refuse it: 413 for a request, 500 for a response.
    Reject,
    /// Inspect the part within the limit, pass the rest uninspected, and count it.
    PassUninspected,
}

/// What happens when inspection cannot be done.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    /// A bug of ours was caught while inspecting. Default: `closed`.
    pub engine_error: Option<OpenOrClosed>,
    /// The request body has a content coding that is not decoded here, or is not what its coding says.
    /// Default: `closed`, where the engine blocks.
    pub undecodable: Option<OpenOrClosed>,
    /// The rules used up the work that a request brings with it, or a pattern its steps, so that nobody knows
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
