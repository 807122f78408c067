//! What rules, the semantic detector and agents have found.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_types::{Class, Phase, Place, RuleId, Severity, Span};
use serde::{Deserialize, Serialize};

use crate::wire;
use crate::{AgentOutcome, FindingOutcome};

/// Anomaly scores in the sense of the CRS, absent where the rules kept none; and those of the semantic
/// detector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// The score that is compared with the inbound threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbound_blocking: Option<i64>,
    /// The same up to the detection paranoia level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbound_detection: Option<i64>,
    /// The score that is compared with the outbound threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbound_blocking: Option<i64>,
    /// The same up to the detection paranoia level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbound_detection: Option<i64>,
    /// Non-zero scores by attack class: `sql_injection`, `xss`, ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_class: BTreeMap<Cow<'static, str>, i64>,
    /// Scores of the semantic detector, one for each value and class with findings, highest over the
    /// threshold first; at most [`limits::SEMANTIC_SCORES_MAX`](crate::limits::SEMANTIC_SCORES_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub semantic: Vec<SemanticScore>,
    /// Scores that the written form leaves out.
    #[serde(default, skip_serializing_if = "wire::is_zero")]
    pub semantic_omitted: u32,
}

impl Scores {
    /// True if there is no score to show.
    pub fn is_empty(&self) -> bool {
        *self == Scores::default()
    }
}

/// The semantic detector's score of one class in one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SemanticScore {
    /// The class.
    #[serde(with = "wire::class")]
    pub class: Class,
    /// The place of the value.
    #[serde(with = "wire::place")]
    pub place: Place,
    /// The value's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Logarithm of the odds that it is an attack.
    #[serde(with = "wire::hundredths")]
    pub points: f32,
    /// The score from which the level blocks.
    #[serde(with = "wire::hundredths")]
    pub threshold: f32,
    /// The outcome.
    pub outcome: FindingOutcome,
}

/// The fields of a rule that are the same in every event: the plan keeps one per rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleInfo {
    /// The rule's id.
    #[serde(with = "wire::rule_id")]
    pub rule_id: RuleId,
    /// The phase it runs in.
    #[serde(with = "wire::phase")]
    pub phase: Phase,
    /// Its severity.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::severity_opt")]
    pub severity: Option<Severity>,
    /// Operator name without `@`, with `!` when negated: `rx`, `!pm`. Empty for `SecAction`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub operator: Box<str>,
    /// The operator's argument as written. Left out of JSON: patterns are long, and the rule file has them.
    #[serde(skip)]
    pub argument: Box<str>,
    /// Transformation names in order, `none` left out.
    #[serde(default, skip_serializing_if = "is_empty_list")]
    pub transformations: Box<[Box<str>]>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "is_empty_list")]
    pub tags: Box<[Box<str>]>,
    /// Rule set version (`ver:`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ver: Option<Box<str>>,
    /// Revision (`rev:`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rev: Option<Box<str>>,
    /// `maturity:`; for log lines only.
    #[serde(skip)]
    pub maturity: Option<u8>,
    /// `accuracy:`; for log lines only.
    #[serde(skip)]
    pub accuracy: Option<u8>,
    /// File it stands in.
    pub file: Arc<str>,
    /// Line it begins on, from 1.
    pub line: u32,
}

/// One match of one rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleMatch {
    /// The rule.
    #[serde(flatten)]
    pub rule: Arc<RuleInfo>,
    /// `msg:` with its macros expanded.
    pub message: String,
    /// `logdata:` with its macros expanded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// The target that matched: `ARGS:q`, `REQUEST_HEADERS:User-Agent`, `REQUEST_LINE`.
    pub target: String,
    /// The value that the operator saw, after transformations; see [`text`](crate::text()).
    pub value: String,
    /// The bytes of the value that matched, before escaping and cutting.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::span_opt")]
    pub span: Option<Span>,
    /// Points it added to an anomaly score.
    pub points: i64,
    /// The effect of its disruptive action, as far as the verdict does not say it; for log lines only.
    #[serde(skip)]
    pub effect: RuleEffect,
}

/// A rule that matched and is only named.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AlsoMatched {
    /// The rule.
    #[serde(with = "wire::rule_id")]
    pub rule_id: RuleId,
    /// The target of its match; of several that which added the most points.
    pub target: String,
    /// The points that this match added to an anomaly score.
    pub points: i64,
    /// Its matches that are not in `matches`.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub count: u32,
}

/// The effect of a rule's disruptive action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RuleEffect {
    /// Nothing, or what the verdict says.
    #[default]
    None,
    /// `allow`: no further rules run, in the words of ModSecurity 2: `Access`, `Access to request`,
    /// `Access to phase`.
    Allowed(&'static str),
    /// `redirect`: where to.
    Redirected(String),
}

/// Something that the semantic detector found in a value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The class of attack.
    #[serde(with = "wire::class")]
    pub class: Class,
    /// The kind of finding: `sqli.union`.
    pub kind: Cow<'static, str>,
    /// The place of the value.
    #[serde(with = "wire::place")]
    pub place: Place,
    /// The value's name: of a parameter, field, header, cookie, JSON path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Decoding steps from the value to the bytes that were looked at, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decoded: Vec<Cow<'static, str>>,
    /// Its bytes in the decoded value, before escaping and cutting.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::span_opt")]
    pub span: Option<Span>,
    /// Those bytes; see [`text`](crate::text()).
    pub evidence: String,
    /// Findings of this kind in the value that it stands for, in the written form: more than one where they
    /// were put together.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub count: u32,
    /// The score of its value passes no threshold.
    #[serde(skip)]
    pub below: bool,
    /// It is quoted or named in a field that is for text, and weighs less.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mentioned: bool,
    /// The exception by which it weighs less, if it is `mentioned`, or else nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed_by: Option<SuppressedBy>,
    /// The points that it adds to the score of its class.
    #[serde(with = "wire::hundredths")]
    pub points: f32,
    /// The explanation, in plain language.
    pub reason: Cow<'static, str>,
    /// The reference to read more.
    pub reference: Cow<'static, str>,
}

impl Finding {
    /// True if an exception lowers or takes its weight, and its value was not decided on.
    pub fn is_excused(&self) -> bool {
        self.suppressed_by.is_some() && (self.below || !self.mentioned)
    }
}

/// An exception of the semantic detector's policy, as it stands in the documentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuppressedBy {
    /// Its id: `own-file`.
    pub exception: Cow<'static, str>,
    /// The reason for it, in plain language.
    pub reason: Cow<'static, str>,
}

/// The verdict of an inspection agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentWord {
    /// Its configured name.
    pub name: Arc<str>,
    /// The outcome.
    pub outcome: AgentOutcome,
    /// Points that it added to the score.
    #[serde(default, skip_serializing_if = "wire::is_zero")]
    pub score: u32,
    /// Its words for the exchange.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// One sentence for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl AgentWord {
    /// It found something, whatever was done about it.
    pub fn is_finding(&self) -> bool {
        let is_verdict = matches!(self.outcome, AgentOutcome::Block | AgentOutcome::Redirect);
        is_verdict || self.score > 0 || !self.tags.is_empty()
    }
}

fn single() -> u32 {
    1
}

fn is_single(count: &u32) -> bool {
    *count == 1
}

fn is_empty_list(list: &[Box<str>]) -> bool {
    list.is_empty()
}
