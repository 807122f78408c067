//! The checked inspection policy of a site.

use std::path::PathBuf;
use std::time::Duration;

use portcullis_types::{Class, Level, Place, Variable};

use crate::declared::DeclaredApi;
use crate::discovery::Discovery;
use crate::learning::LearnedFields;

/// Everything that decides what is inspected and how. Equal policies are compiled once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// The detection mode.
    pub mode: Mode,
    /// The level of the semantic detector; the default where it does not run.
    pub level: Level,
    /// Its actions for single classes, and its exclusions; empty where it does not run.
    pub semantic: Semantic,
    /// The learning of fields, if the site learns and the detector runs.
    pub fields: Option<LearnedFields>,
    /// The API that requests are compared with.
    pub api: Option<DeclaredApi>,
    /// The discovery of the site's interfaces, if the site has it.
    pub discovery: Option<Discovery>,
    /// Files before the CRS, may hold `*`.
    pub setup: Vec<PathBuf>,
    /// Folder of the CRS.
    pub crs: Option<PathBuf>,
    /// 1 to 4.
    pub paranoia: Option<u8>,
    /// The anomaly score of the CRS is weighted; none: in mode `both`.
    pub weighted: Option<bool>,
    /// Files after the CRS, may hold `*`.
    pub include: Vec<PathBuf>,
    /// Directives after all files.
    pub directives: Option<String>,
    /// Matches of rules that do not count.
    pub rule_exclude: Vec<RuleExclusion>,
    /// Messages are read as libmodsecurity reads them, where that differs from ModSecurity 2.
    pub modsecurity3: bool,
    /// The effect of a disruptive rule; none: as the rule files say, else blocking.
    pub engine: Option<Engine>,
    /// Request body settings that override the rule files.
    pub request_body: Body,
    /// Response body settings that override the rule files.
    pub response_body: Body,
}

impl Policy {
    /// The anomaly score of the CRS counts the points of rules that benign traffic triggers only where
    /// several agree.
    pub fn is_weighted(&self) -> bool {
        self.crs.is_some() && self.weighted.unwrap_or(self.mode == Mode::Both)
    }
}

/// The detection mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The rules of the policy.
    #[default]
    Crs,
    /// The semantic detector; the policy has no rules of its own.
    Semantic,
    /// Both.
    Both,
}

impl Mode {
    /// The semantic detector runs.
    pub fn has_semantic(self) -> bool {
        self != Mode::Crs
    }

    /// The rules of the policy run.
    pub fn has_rules(self) -> bool {
        self != Mode::Semantic
    }
}

/// The semantic detector's actions for single classes of attacks, and its exclusions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Semantic {
    /// Classes for which something else is done than to block.
    pub classes: Vec<(Class, ClassAction)>,
    /// Hosts to which pages may lead, in lower case; `*.` stands before those below which all are meant.
    pub hosts: Vec<String>,
    /// Findings that do not count.
    pub exclude: Vec<Exclusion>,
    /// The longest time for which the body of a response that no rule asks for is held for its upstream in
    /// all.
    pub response_wait: Duration,
}

impl Default for Semantic {
    fn default() -> Self {
        // A page that is sent in pieces should not appear noticeably later.
        Semantic {
            classes: Vec::new(),
            hosts: Vec::new(),
            exclude: Vec::new(),
            response_wait: Duration::from_millis(200),
        }
    }
}

/// The action for findings of a class that pass the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClassAction {
    /// The request is blocked.
    Block,
    /// The message passes, with an event.
    Log,
    /// Nothing.
    Off,
}

/// Findings that do not count: those to which all that is said here applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Exclusion {
    /// The class.
    pub class: Option<Class>,
    /// The kind of finding. It is of the class, if there is one; whether there is such a kind, the detectors
    /// know.
    pub kind: Option<String>,
    /// The place of the value.
    pub place: Option<Place>,
    /// The name of the value; `*` stands for any text.
    pub name: Option<String>,
    /// Place and name as they are written.
    pub location: Option<String>,
    /// The profile that it is of, if the document does not say it itself.
    pub profile: Option<String>,
    /// What exclusions of both sorts say.
    pub terms: Terms,
}

/// Matches of rules that do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RuleExclusion {
    /// The rules; at least one. Whether there are such rules, the plan knows.
    pub rules: Vec<u32>,
    /// The values in which they do not count; none: in all.
    pub target: Option<RuleTarget>,
    /// The target as it is written.
    pub target_text: Option<String>,
    /// The profile that it is of, if the document does not say it itself.
    pub profile: Option<String>,
    /// What exclusions of both sorts say.
    pub terms: Terms,
}

/// Values that rules look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleTarget {
    /// The variable that the rule names.
    pub variable: Variable,
    /// The name of the value in it, whatever its case; `*` stands for any text. None: every value.
    pub name: Option<String>,
}

/// What exclusions of both sorts say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Terms {
    /// A prefix of the path; with `*` or `{}` the whole path.
    pub path: Option<String>,
    /// From then on what is excluded counts again; milliseconds since 1970.
    pub until: Option<u64>,
    /// Why it is there.
    pub reason: Option<String>,
    /// Who added it.
    pub author: Option<String>,
    /// It is only tried.
    pub trial: bool,
    /// The end of the trial without a person.
    pub auto_enforce: Option<AutoEnforce>,
}

/// Conditions under which a trial ends and the exclusion counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AutoEnforce {
    /// Time on trial.
    pub after: Duration,
    /// Requests that had the field, at least 1.
    pub requests: u64,
}

/// Body settings; none means as the rule files say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Body {
    /// True if it is inspected.
    pub inspect: Option<bool>,
    /// Bytes held.
    pub limit_bytes: Option<u64>,
    /// The action for a body above it.
    pub over_limit: Option<OverLimit>,
    /// Requests only: bytes of a streamed upload.
    pub upload_limit_bytes: Option<u64>,
    /// Requests only: what is not the JSON that its type says is refused.
    pub unreadable_refused: Option<bool>,
    /// Requests only: bytes that may come out of a content coding for each that goes in.
    pub decoded_ratio: Option<u32>,
    /// Requests only: names of content codings, in lower case, in which bodies pass without inspection.
    pub uninspected_codings: Vec<String>,
    /// Requests only: a body that applications read differently passes.
    pub ambiguous_pass: bool,
    /// Requests only: whether rules see second readings.
    pub second_readings: Option<bool>,
}

/// The effect of a match of a disruptive rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Interrupts the transaction.
    Blocking,
    /// Is logged only.
    DetectionOnly,
}

/// The action for a body above its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OverLimit {
    /// 413 for a request, 500 for a response.
    Reject,
    /// The rest passes uninspected and is counted.
    PassUninspected,
}

/// The policy for each cause for which inspection cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A caught bug.
    pub engine_error: OpenOrClosed,
    /// A request body whose content coding cannot be undone.
    pub undecodable: OpenOrClosed,
    /// A pattern that used up its steps.
    pub pattern_limit: OpenOrClosed,
    /// A lookup without an answer.
    pub lookup: OpenOrClosed,
}

impl Default for Failure {
    fn default() -> Self {
        let (open, closed) = (OpenOrClosed::Open, OpenOrClosed::Closed);
        Failure { engine_error: closed, undecodable: closed, pattern_limit: closed, lookup: open }
    }
}

/// Pass or refuse; both are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenOrClosed {
    /// Pass.
    Open,
    /// Refuse.
    Closed,
}
