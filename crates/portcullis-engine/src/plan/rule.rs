//! Rules, the steps that run them, and what became of those that do not run.

use portcullis_types::{Phase, RuleId, Severity};

use crate::strategy::StepKind;
use crate::{Diversion, LogText, Template, TxSlot};

/// Position of a rule in [`Plan::rules`](crate::Plan::rules).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleIndex(pub u32);

/// A rule: a condition of one or more links, and what follows if all of them match.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `id`, 0 if the rule has none.
    pub id: RuleId,
    /// The phase in which it runs.
    pub phase: Phase,
    /// First link in [`Plan::links`](crate::Plan::links).
    pub first_link: u32,
    /// Number of links, at least 1.
    pub link_count: u32,
    /// The disruptive action of a match.
    pub disruption: Disruption,
    /// `pause`: milliseconds that the transaction is held up.
    pub pause: Option<Template>,
    /// `log`: the match is worth an event.
    pub log: bool,
    /// `auditlog`.
    pub audit_log: bool,
    /// Texts for people.
    pub metadata: Metadata,
}

/// The texts and labels of a rule.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// `msg`.
    pub msg: Option<LogText>,
    /// `logdata`.
    pub log_data: Option<LogText>,
    /// `tag`s in order.
    pub tags: Vec<Template>,
    /// `severity`.
    pub severity: Option<Severity>,
    /// `ver`.
    pub ver: Option<Box<str>>,
    /// `rev`.
    pub rev: Option<Box<str>>,
    /// `maturity`, 0 to 9.
    pub maturity: Option<u8>,
    /// `accuracy`, 0 to 9.
    pub accuracy: Option<u8>,
    /// The place of the rule in its file.
    pub place: SourcePlace,
}

/// The disruptive action of a rule, `block` already replaced by the default.
#[derive(Clone, Debug)]
pub enum Disruption {
    /// `pass`.
    Pass,
    /// `allow`.
    Allow(AllowScope),
    /// `deny`.
    Deny {
        /// HTTP status.
        status: u16,
    },
    /// `drop`: close the connection.
    Drop,
    /// `redirect`.
    Redirect {
        /// 301 to 307.
        status: u16,
        /// The location.
        location: Template,
    },
    /// `proxy`: the request goes to another server than the route's.
    Proxy(Diversion),
}

/// The scope of `allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowScope {
    /// The rest of the transaction but logging.
    Transaction,
    /// The rest of the phase.
    Phase,
    /// The remaining request phases.
    Request,
}

/// One entry of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rule.
    pub rule: RuleIndex,
    /// `skipAfter` and `skip`: where to continue in this phase's steps when the rule matched; `u32::MAX` if
    /// it does not skip.
    pub skip_to: u32,
    /// The way to run it; chosen last, of all the rest.
    pub(crate) kind: StepKind,
}

impl Step {
    /// A step that runs `rule` and does not skip.
    pub fn new(rule: RuleIndex) -> Step {
        Step { rule, skip_to: u32::MAX, kind: StepKind::General }
    }
}

/// The outcome of a whole rule, internal to the executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not all links matched.
    NoMatch,
    /// All links matched.
    Match,
    /// It waits for answers.
    Ask {
        /// The link that asks.
        link: u32,
    },
}

/// A place in a rule file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    /// Index in [`Plan::files`](crate::Plan::files).
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
}

/// A rule that was read and taken out again.
#[derive(Clone, Debug)]
pub struct Removed {
    /// Its id.
    pub id: RuleId,
    /// The phase in which it would have run.
    pub phase: Phase,
    /// The place of the rule in its file.
    pub place: SourcePlace,
    /// The directive that took it out, such as `SecRuleRemoveById`.
    pub directive: &'static str,
    /// The place of that directive.
    pub by: SourcePlace,
}

/// A directive that changed a rule.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    /// The rule.
    pub rule: RuleIndex,
    /// The directive, such as `SecRuleUpdateTargetById`.
    pub directive: &'static str,
    /// The place of that directive.
    pub by: SourcePlace,
}

/// A rule that no request can reach or match.
#[derive(Clone, Debug)]
pub struct Dead {
    /// The rule.
    pub rule: RuleIndex,
    /// The cause.
    pub why: DeadCause,
}

/// The cause for which a rule is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadCause {
    /// This rule skips it, every time.
    Skipped {
        /// The rule with the `skipAfter` or `skip`.
        by: RuleIndex,
    },
    /// Its condition on a `TX` key is always false.
    Never {
        /// The key.
        slot: TxSlot,
        /// The only value that the key ever has there; `None` if it is never set.
        value: Option<Box<[u8]>>,
    },
}
