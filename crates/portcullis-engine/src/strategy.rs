//! Cheaper ways to run the steps of a phase than looking at every value for every rule.
//!
//! The strategy of each step is chosen when the plan is made ([`StepKind`]). A plan may be made without some
//! strategies; and at run time a `ctl`, or an output that the caller requested, may rule some out: both are a
//! set of [`Strategies`], one value for as long as nothing changes it. Verdicts, matches and `TX` are the
//! same with any set.

use std::fmt;
use std::ops::BitOr;

use portcullis_types::{Phase, Variable};

use crate::candidates::is_pure;
use crate::execution::Execution;
use crate::plan::{Link, Plan, Rule, Step};
use crate::processors::Processors;
use crate::transaction::Transaction;
use crate::tx::{LinkTest, is_silent, sets_tx_alone};

/// A set of strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategies(u8);

impl Strategies {
    /// Every rule looks at every value.
    pub const NONE: Strategies = Strategies(0);
    /// Rules that no value of the message can match do not run. Most others stand on this one.
    pub const PREFILTER: Strategies = Strategies(1);
    /// The prefilter remembers what it found in repeated texts.
    pub const MEMO: Strategies = Strategies(2);
    /// A number decides whether a link matches, without a list of values.
    pub const LINK_TESTS: Strategies = Strategies(4);
    /// Rules on `TX` alone run as instructions.
    pub const TX_RULES: Strategies = Strategies(8);
    /// Blocks of such rules are not run, but what they come to is taken over.
    pub const TX_BLOCKS: Strategies = Strategies(16);
    /// A rule whose answer is known does only what follows from it.
    pub const DECIDED: Strategies = Strategies(32);
    /// A chain that comes to nothing leaves only its captures.
    pub const CAPTURE_ONLY: Strategies = Strategies(64);
    /// Values of `TX` that are the same text are looked at once by a link.
    pub const SAME_TEXTS: Strategies = Strategies(128);
    /// All of them.
    pub const ALL: Strategies = Strategies(255);

    /// Each by itself, with its name.
    pub const EACH: [(&'static str, Strategies); 8] = [
        ("prefilter", Strategies::PREFILTER),
        ("memo", Strategies::MEMO),
        ("link tests", Strategies::LINK_TESTS),
        ("tx rules", Strategies::TX_RULES),
        ("tx blocks", Strategies::TX_BLOCKS),
        ("decided", Strategies::DECIDED),
        ("capture only", Strategies::CAPTURE_ONLY),
        ("same texts", Strategies::SAME_TEXTS),
    ];

    /// True if all of `other` are in the set.
    #[inline]
    pub const fn has(self, other: Strategies) -> bool {
        self.0 & other.0 == other.0
    }

    /// The intersection of both sets.
    pub const fn and(self, other: Strategies) -> Strategies {
        Strategies(self.0 & other.0)
    }

    /// This set without `other`.
    pub const fn without(self, other: Strategies) -> Strategies {
        Strategies(self.0 & !other.0)
    }

    /// Without those that cannot be had alone: who runs all rules knows nothing of them beforehand.
    fn usable(self) -> Strategies {
        let mut usable = self;
        if !usable.has(Strategies::PREFILTER) {
            usable = usable.without(
                Strategies::MEMO | Strategies::TX_BLOCKS | Strategies::DECIDED | Strategies::CAPTURE_ONLY,
            );
        }
        if !usable.has(Strategies::TX_RULES) {
            usable = usable.without(Strategies::TX_BLOCKS);
        }
        usable
    }
}

impl BitOr for Strategies {
    type Output = Strategies;

    fn bitor(self, other: Strategies) -> Strategies {
        Strategies(self.0 | other.0)
    }
}

impl Default for Strategies {
    fn default() -> Strategies {
        Strategies::ALL
    }
}

/// The way to run a step, as long as the strategies allow it; [`General`](StepKind::General) otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// Values, transformations, operator, actions.
    #[default]
    General,
    /// A rule on `TX` alone.
    Tx,
    /// The same, and a block of them begins here, with this number.
    TxBlock(u32),
    /// A silent rule that has one value to look at, which the prefilter has seen match: its actions are all
    /// there is.
    Decided,
    /// The same for a rule on `REQBODY_PROCESSOR`, which one of these matches.
    OnProcessor(Processors),
    /// A chain of which the prefilter looks through the first link to the second. If that cannot match,
    /// the first leaves only what it captures; the number is the prefilter's candidate.
    CaptureOnly(u32),
}

impl fmt::Display for StepKind {
    /// As in the dump of a plan: nothing for the general way.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepKind::General => Ok(()),
            StepKind::Tx => f.write_str(" [tx]"),
            StepKind::TxBlock(block) => write!(f, " [tx, block {block}]"),
            StepKind::Decided => f.write_str(" [decided by the prefilter]"),
            StepKind::OnProcessor(_) => f.write_str(" [decided by the body processor]"),
            StepKind::CaptureOnly(_) => f.write_str(" [captures only, unless the chain can match]"),
        }
    }
}

impl StepKind {
    /// The kind of a step that is part of no block.
    pub(crate) fn of(plan: &Plan, (phase, at): (usize, usize), step: &Step) -> StepKind {
        let Plan { tests, tx_rules, candidates, .. } = plan;
        let rule = plan.rule(step.rule);
        if tx_rules.of(step.rule).is_some() {
            return StepKind::Tx;
        }
        if let Some(candidate) = candidates.captures_only(phase, at) {
            return StepKind::CaptureOnly(candidate);
        }
        let [link] = plan.links_of(rule) else { return StepKind::General };
        if !is_silent(rule) || !link.acts.iter().all(|act| act.is_switch() || sets_tx_alone(act)) {
            return StepKind::General;
        }
        match tests.of(rule.first_link as usize) {
            LinkTest::Processor(processors) => StepKind::OnProcessor(processors),
            LinkTest::Values if !candidates.always_runs(phase, at) && is_decided_by_one_value(rule, link) => {
                StepKind::Decided
            }
            LinkTest::Values
            | LinkTest::Tx(_)
            | LinkTest::Length(..)
            | LinkTest::Count(_)
            | LinkTest::AnyKey => StepKind::General,
        }
    }
}

/// True for a rule whose only link looks at one value that the prefilter sees, the same all through the
/// rule's phase.
fn is_decided_by_one_value(rule: &Rule, link: &Link) -> bool {
    let [target] = link.targets.include.as_slice() else { return false };
    link.targets.exclude.is_empty()
        && !target.count
        && !link.multi_match
        && !link.capture
        && is_pure(link)
        && comes_in(target.variable) == Some(rule.phase)
}

/// The phase before which a variable gets its value, and after which it keeps it.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a rule on a variable that is not listed takes the general way"
)]
fn comes_in(variable: Variable) -> Option<Phase> {
    use Variable::*;
    Some(match variable {
        ResponseBody => Phase::ResponseBody,
        ResponseProtocol | ResponseStatus | StatusLine | ResponseContentType | ResponseContentLength => {
            Phase::ResponseHeaders
        }
        RequestMethod | RequestProtocol | RequestLine | RequestUriRaw => Phase::RequestHeaders,
        // These change between phases 1 and 2.
        RequestBasename | RequestFilename | RequestUri | PathInfo => Phase::RequestHeaders,
        _ => return None,
    })
}

impl Transaction {
    /// Does without the strategies that are not in `strategies`. To be called before phase 1.
    pub fn limit_strategies(&mut self, strategies: Strategies) {
        self.run.permitted = self.run.permitted.and(strategies);
    }
}

impl Execution<'_> {
    /// The strategies that hold from now on. To be called when a phase begins, and after a `ctl` that takes
    /// rules or targets away.
    pub(crate) fn choose_strategies(&mut self) {
        let mut allowed = self.run.permitted.usable();
        if self.journal.keeps_quiet || self.plan.reads_last_match {
            // Every match is to be noted, with its value.
            allowed = allowed.without(
                Strategies::TX_RULES | Strategies::TX_BLOCKS | Strategies::DECIDED | Strategies::CAPTURE_ONLY,
            );
        }
        let ctl = &self.vars.ctl;
        if !ctl.removed_rules.is_empty() {
            allowed = allowed.without(Strategies::TX_BLOCKS);
        }
        let is_of_tx = |&removed: &u32| {
            let variable = self.plan.ctl_targets[removed as usize].variable;
            matches!(variable, Variable::Tx | Variable::RemoteAddr)
        };
        let is_exempt = self.run.exempt.as_ref().is_some_and(|exempt| exempt.reaches_tx());
        if is_exempt || ctl.removed_targets.iter().any(is_of_tx) {
            allowed = allowed.without(Strategies::TX_RULES | Strategies::TX_BLOCKS);
        }
        self.run.strategies = allowed;
    }
}
