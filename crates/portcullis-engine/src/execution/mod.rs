//! Rules in order: which steps of a phase run, and how.
//!
//! [`Execution`] borrows the parts of a transaction and walks the steps of a phase. The kind of a step was
//! chosen when the plan was made ([`StepKind`]); here is one `match` over it. The general way is in [`rule`]
//! and [`link`], what a match does in [`matched`].

mod decide;
mod link;
mod matched;
mod rule;

use std::sync::Arc;

use portcullis_prefilter::Memo;
use portcullis_types::Phase;

use crate::candidates::Selection;
use crate::collect::Item;
use crate::expansion::Expansions;
use crate::journal::Journal;
use crate::message::Message;
use crate::patterns::{PatternError, Patterns};
use crate::plan::{Outcome, Plan, RuleIndex};
use crate::questions::{Progress, Questions, ResumePoint};
use crate::strategy::{StepKind, Strategies};
use crate::trace::NotRun;
use crate::tx::TxMachine;
use crate::vars::Vars;
use crate::{Exempt, Judge, RuleEngine};

pub(crate) use link::LinkAt;
pub(crate) use matched::Matched;

/// Runs the rules of a plan on a transaction. It borrows what they read and change for as long as a phase
/// runs.
pub(crate) struct Execution<'t> {
    pub(crate) plan: &'t Plan,
    pub(crate) message: &'t mut Message,
    pub(crate) vars: &'t mut Vars,
    pub(crate) journal: &'t mut Journal,
    pub(crate) run: &'t mut Run,
}

/// The position of the executor in the rules, and its buffers: the state that an [`Execution`] keeps from
/// phase to phase.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) phase: Phase,
    /// The strategies that the plan and the caller permit.
    pub(crate) permitted: Strategies,
    /// Those that hold now; see [`Execution::choose_strategies`].
    pub(crate) strategies: Strategies,
    pub(crate) current_rule: Option<RuleIndex>,
    /// The rule that runs has interrupted or allowed: its other values are not looked at.
    pub(crate) rule_ended: bool,
    /// Phase 5 has begun.
    pub(crate) logged: bool,
    pub(crate) questions: Questions,
    pub(crate) patterns: Patterns,
    pub(crate) expansions: Expansions,
    /// Asked before a rule interrupts.
    pub(crate) judge: Option<Arc<dyn Judge>>,
    /// Asked before a match counts.
    pub(crate) exempt: Option<Arc<dyn Exempt>>,
    /// Boxed, to keep moving a transaction cheap.
    pub(crate) selection: Option<Box<Selection>>,
    pub(crate) memo: Option<Memo>,
    pub(crate) items: Vec<Item>,
    pub(crate) argument: Vec<u8>,
    pub(crate) expansion: Vec<u8>,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            phase: Phase::RequestHeaders,
            permitted: Strategies::ALL,
            strategies: Strategies::NONE,
            current_rule: None,
            rule_ended: false,
            logged: false,
            questions: Questions::default(),
            patterns: Patterns::default(),
            expansions: Expansions::default(),
            judge: None,
            exempt: None,
            selection: None,
            memo: None,
            items: Vec::new(),
            argument: Vec::new(),
            expansion: Vec::new(),
        }
    }
}

impl Run {
    /// Memory above this is given back between transactions.
    const KEPT_ITEMS_MAX: usize = 4_096;
    const KEPT_TEXT_BYTES_MAX: usize = 64 << 10;

    /// New buffers that remember what the prefilter finds in `memo`.
    pub(crate) fn sharing(memo: &Memo) -> Run {
        Run { memo: Some(memo.clone()), ..Run::default() }
    }

    /// Begins a transaction.
    pub(crate) fn reset(&mut self, plan: &Plan, keeps_quiet: bool) {
        self.permitted = plan.strategies;
        self.patterns = Patterns::new(&plan.settings);
        self.expansions = Expansions::new(&plan.settings);
        self.selection.get_or_insert_default().reset(&plan.candidates, keeps_quiet);
    }

    /// Forgets the transaction, keeping reasonable buffers.
    pub(crate) fn clear(&mut self) {
        self.phase = Phase::RequestHeaders;
        self.current_rule = None;
        self.rule_ended = false;
        self.logged = false;
        self.questions = Questions::default();
        self.patterns = Patterns::default();
        self.judge = None;
        self.exempt = None;
        self.items.clear();
        self.items.shrink_to(Self::KEPT_ITEMS_MAX);
        for text in [&mut self.argument, &mut self.expansion] {
            text.clear();
            text.shrink_to(Self::KEPT_TEXT_BYTES_MAX);
        }
    }
}

impl Execution<'_> {
    /// Runs the rules of `phase`; an interruption ends the transaction.
    pub(crate) fn run_phase(&mut self, phase: Phase) -> Progress {
        self.run.questions.abandon();
        self.run.phase = phase;
        if self.vars.ctl.rule_engine == RuleEngine::Off || self.vars.ctl.is_allowed(phase) {
            return Progress::Done(None);
        }
        self.doubt_collections();
        self.choose_strategies();
        if self.run.strategies.has(Strategies::PREFILTER) {
            self.scan();
        }
        self.run_steps(ResumePoint::default())
    }

    /// Runs the steps of the phase from `place` on: its beginning, or a link that has its answers now.
    pub(crate) fn run_steps(&mut self, place: ResumePoint) -> Progress {
        let progress = self.walk(place);
        self.share_collections();
        progress
    }

    /// Finds out which rules of the phase the values that are new could match.
    fn scan(&mut self) {
        let Run { phase, strategies, selection, memo, patterns, .. } = &mut *self.run;
        let selection = selection.get_or_insert_default();
        let memo = strategies.has(Strategies::MEMO).then(|| &*memo.get_or_insert_default());
        selection.scan(self.plan, *phase, &mut self.message.store, patterns, memo);
        if let Some(error) = patterns.take_error() {
            self.note_pattern_error(error);
            self.run.patterns.work().reserve();
        }
    }

    fn walk(&mut self, mut place: ResumePoint) -> Progress {
        let plan = self.plan;
        let steps = &plan.steps[usize::from(self.run.phase.number()) - 1];
        let mut at = place.step;
        loop {
            let from = std::mem::take(&mut place);
            if !from.resumed {
                let Some(next) = self.next_step(at) else { break };
                at = next;
            }
            let Some(step) = steps.get(at) else { break };
            if !from.resumed && self.vars.ctl.removed_rules.contains(step.rule.0) {
                self.trace_switched_off(step.rule);
                at += 1;
                continue;
            }
            at += 1;
            let kind = if from.resumed { StepKind::General } else { step.kind };
            match self.run_kind(kind, step.rule) {
                Shortcut::Block { end } => {
                    at = end;
                    continue;
                }
                Shortcut::Done { matches: false } => continue,
                Shortcut::Done { matches: true } => {}
                Shortcut::None => match self.run_rule(step.rule, from) {
                    Outcome::NoMatch => continue,
                    Outcome::Ask { link } => {
                        return self.run.questions.pause(ResumePoint { step: at - 1, link, resumed: true });
                    }
                    Outcome::Match => {
                        if let Some(progress) = self.end_of_phase() {
                            self.trace_not_run(&steps[at..], NotRun::Ended(step.rule));
                            return progress;
                        }
                    }
                },
            }
            if step.skip_to != u32::MAX {
                self.trace_not_run(&steps[at..step.skip_to as usize], NotRun::Skipped(step.rule));
                at = step.skip_to as usize;
            }
        }
        Progress::Done(None)
    }

    /// The end of the phase, if the rule that has just matched ends it.
    fn end_of_phase(&self) -> Option<Progress> {
        if self.journal.interruption.is_some() && self.run.phase != Phase::Logging {
            return Some(Progress::Done(self.journal.interruption.clone()));
        }
        // Whatever its scope, an allow ends the phase it is given in.
        let is_over = self.vars.ctl.rule_engine == RuleEngine::Off || self.run.rule_ended;
        is_over.then_some(Progress::Done(None))
    }

    /// The first step at `from` or behind it that has to run.
    fn next_step(&self, from: usize) -> Option<usize> {
        match &self.run.selection {
            Some(selection) if self.run.strategies.has(Strategies::PREFILTER) => {
                selection.next(self.run.phase, from)
            }
            _ => Some(from),
        }
    }

    /// Runs a step the way that its kind says, if the strategies allow that.
    #[inline]
    fn run_kind(&mut self, kind: StepKind, rule: RuleIndex) -> Shortcut {
        let allowed = self.run.strategies;
        match kind {
            StepKind::TxBlock(block) => {
                if allowed.has(Strategies::TX_BLOCKS)
                    && let Some(end) = self.run_tx_block(block)
                {
                    return Shortcut::Block { end };
                }
                self.run_tx_rule(rule)
            }
            StepKind::Tx => self.run_tx_rule(rule),
            StepKind::Decided if allowed.has(Strategies::DECIDED) && !self.is_narrowed(rule) => {
                self.run_decided(rule);
                Shortcut::Done { matches: true }
            }
            StepKind::OnProcessor(processors)
                if allowed.has(Strategies::DECIDED) && !self.is_narrowed(rule) =>
            {
                let matches = processors.has(self.message.body.processor());
                if matches {
                    self.run_decided(rule);
                }
                Shortcut::Done { matches }
            }
            StepKind::CaptureOnly(candidate)
                if allowed.has(Strategies::CAPTURE_ONLY) && !self.has_matched(candidate) =>
            {
                self.capture_last(rule);
                Shortcut::Done { matches: false }
            }
            StepKind::Decided | StepKind::OnProcessor(_) | StepKind::CaptureOnly(_) | StepKind::General => {
                Shortcut::None
            }
        }
    }

    /// Takes over what a block comes to, if that holds here; returns the step to continue at.
    fn run_tx_block(&mut self, block: u32) -> Option<usize> {
        let block = self.plan.tx_blocks.block(block)?;
        let (word, others) = block.others;
        let runs = self.run.selection.as_deref()?.runs(self.run.phase, word);
        (runs & others == 0 && block.run(&mut self.tx_machine())).then_some(block.end)
    }

    fn run_tx_rule(&mut self, index: RuleIndex) -> Shortcut {
        let rules = &self.plan.tx_rules;
        let rule = rules.of(index).filter(|_| self.run.strategies.has(Strategies::TX_RULES));
        let Some(rule) = rule else { return Shortcut::None };
        let mut machine = self.tx_machine();
        let Some(matches) = machine.holds(&rule.test) else { return Shortcut::None };
        if matches {
            let cut = machine.expansions.cut;
            rules.ops_of(rule).iter().for_each(|op| machine.apply(op, rules.texts()));
            if cut == 0 && machine.expansions.cut > 0 {
                self.note_pattern_error(PatternError::Exhausted);
            }
        }
        Shortcut::Done { matches }
    }

    /// True if a `ctl` took targets from this rule, or an exclusion may: values have to be looked at then.
    fn is_narrowed(&self, rule: RuleIndex) -> bool {
        let narrows = |&at: &u32| self.plan.ctl_targets[at as usize].rules.contains(rule.0);
        self.vars.ctl.removed_targets.iter().any(narrows) || self.may_be_exempt(rule)
    }

    /// The actions of a silent rule with one link.
    fn run_decided(&mut self, rule: RuleIndex) {
        let plan = self.plan;
        self.run_acts(&plan.links[plan.rule(rule).first_link as usize].acts);
    }

    /// True if the prefilter has found that this candidate matches.
    fn has_matched(&self, candidate: u32) -> bool {
        self.run.selection.as_deref().is_none_or(|selection| selection.has_matched(candidate))
    }

    /// The machine that runs instructions on `TX`.
    pub(crate) fn tx_machine(&mut self) -> TxMachine<'_> {
        let Execution { message, vars, journal, run, .. } = self;
        TxMachine {
            tx: &mut vars.tx,
            bytes: message.store.texts_mut(),
            changes: &mut journal.changes,
            expansions: &mut run.expansions,
        }
    }
}

/// The outcome of trying to run a step without the general path.
enum Shortcut {
    /// It has to run that way.
    None,
    /// A block ran in its place.
    Block {
        /// The step at which the phase continues.
        end: usize,
    },
    /// It is done.
    Done {
        /// The rule matches.
        matches: bool,
    },
}
