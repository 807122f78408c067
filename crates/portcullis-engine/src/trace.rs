//! The trace of a transaction for explanations, beside the matches: which rules did not run, which values
//! they were not shown, and what the operator of one chosen rule saw. Recorded only on request; a transaction
//! in service has none.

use portcullis_types::{Phase, Span};

use crate::collect::Item;
use crate::execution::Execution;
use crate::plan::{RuleIndex, Step};
use crate::record::target_name;
use crate::strategy::Strategies;
use crate::transaction::Transaction;

/// A record of what did not happen, and of what one rule saw.
#[derive(Debug, Default)]
pub struct Trace {
    /// In the order in which it happened.
    pub notes: Vec<Note>,
    watched: Option<RuleIndex>,
    /// `ctl` switches so far: the act's index, whether it takes a target or whole rules, and the rule that
    /// ran it.
    switches: Vec<(u32, Switch, RuleIndex)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    Rules,
    Target,
}

/// One thing that a [`Trace`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A rule did not run.
    NotRun {
        /// The rule.
        rule: RuleIndex,
        /// The phase in which it would have run.
        phase: Phase,
        /// The reason.
        why: NotRun,
    },
    /// A value was kept from a rule.
    Excluded {
        /// The rule.
        rule: RuleIndex,
        /// Link of its chain, from 0.
        link: u32,
        /// The value's name: `ARGS:password`.
        target: Vec<u8>,
        /// The rule whose `ctl` did it; `None`: the rule's own list of targets.
        by: Option<RuleIndex>,
    },
    /// The watched rule's operator looked at a value.
    Tested {
        /// Link of its chain, from 0.
        link: u32,
        /// The value's name.
        target: Vec<u8>,
        /// The value after transformations.
        value: Vec<u8>,
        /// True if the link matched, negation included.
        matched: bool,
    },
}

/// The reason why a rule did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotRun {
    /// This rule skipped it.
    Skipped(RuleIndex),
    /// This rule switched it off by `ctl`.
    SwitchedOff(RuleIndex),
    /// The phase had ended: this rule interrupted, allowed or switched the engine off.
    Ended(RuleIndex),
}

impl Transaction {
    /// From now on a trace is kept; `watched` is the rule whose tests it tells. Costs time and memory.
    pub fn keep_trace(&mut self, watched: Option<RuleIndex>) {
        self.journal.trace = Some(Box::new(Trace { watched, ..Trace::default() }));
        self.journal.keeps_quiet = true;
        // All rules run then, not only those that may match: an explanation tells of the others, too.
        self.limit_strategies(Strategies::NONE);
        self.run.patterns.work().lift();
    }

    /// The trace, if one is kept.
    pub fn trace(&self) -> Option<&Trace> {
        self.journal.trace.as_deref()
    }
}

impl Execution<'_> {
    pub(crate) fn trace_switch(&mut self, index: u32, switch: Switch) {
        if let (Some(trace), Some(rule)) = (&mut self.journal.trace, self.run.current_rule) {
            trace.switches.push((index, switch, rule));
        }
    }

    pub(crate) fn trace_switched_off(&mut self, rule: RuleIndex) {
        let phase = self.run.phase;
        let Some(trace) = &mut self.journal.trace else { return };
        let by = trace.switches.iter().find(|(index, switch, _)| {
            *switch == Switch::Rules && self.plan.ctl_removals[*index as usize].contains(rule.0)
        });
        if let Some(&(_, _, by)) = by {
            trace.notes.push(Note::NotRun { rule, phase, why: NotRun::SwitchedOff(by) });
        }
    }

    /// These steps of the phase are passed over.
    pub(crate) fn trace_not_run(&mut self, steps: &[Step], why: NotRun) {
        let phase = self.run.phase;
        let Some(trace) = &mut self.journal.trace else { return };
        trace.notes.extend(steps.iter().map(|step| Note::NotRun { rule: step.rule, phase, why }));
    }

    pub(crate) fn trace_excluded(&mut self, rule: RuleIndex, link: u32, item: &Item) {
        if self.journal.trace.is_none() {
            return;
        }
        let target = target_name(item.variable, item.count, self.message.store.text(item.key));
        let key = self.message.store.text(item.key);
        let Some(trace) = &self.journal.trace else { return };
        let by = trace.switches.iter().find(|(index, switch, _)| {
            *switch == Switch::Target && link == 0 && {
                let taken = &self.plan.ctl_targets[*index as usize];
                taken.rules.contains(rule.0) && taken.variable == item.variable && taken.filter.accepts(key)
            }
        });
        let by = by.map(|(.., by)| *by);
        let note = Note::Excluded { rule, link, target, by };
        if let Some(trace) = &mut self.journal.trace {
            trace.notes.push(note);
        }
    }

    pub(crate) fn trace_test(&mut self, rule: RuleIndex, link: u32, item: &Item, form: Span, matched: bool) {
        if self.journal.trace.as_ref().is_none_or(|trace| trace.watched != Some(rule)) {
            return;
        }
        let target = target_name(item.variable, item.count, self.message.store.text(item.key));
        let value = self.message.store.text(form).to_vec();
        if let Some(trace) = &mut self.journal.trace {
            trace.notes.push(Note::Tested { link, target, value, matched });
        }
    }
}
