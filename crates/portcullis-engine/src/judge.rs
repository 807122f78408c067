//! A second opinion on rules that interrupt: the caller's.

use std::fmt;
use std::sync::Arc;

use portcullis_values::Class;

use crate::plan::{Plan, RuleIndex};
use crate::record::{Match, ScoreChange};
use crate::transaction::Transaction;
use crate::tx_store::TxSlot;

/// Has the last word on whether a rule that matched interrupts.
pub trait Judge: fmt::Debug + Send + Sync {
    /// True if the disruptive action of `rule`, which has matched and done all else that it does, is not carried out.
    fn withholds(&self, plan: &Plan, transaction: &Transaction, rule: RuleIndex) -> bool;
}

impl Transaction {
    /// Has `judge` asked before a rule interrupts. To be called before phase 1.
    pub fn set_judge(&mut self, judge: Arc<dyn Judge>) {
        self.judge = Some(judge);
    }

    /// The last rule whose disruptive action the judge withheld.
    pub fn withheld(&self) -> Option<RuleIndex> {
        self.withheld
    }

    /// The key of the value that completed a match; empty for scalars.
    pub fn matched_key(&self, found: &Match) -> &[u8] {
        self.text(found.key)
    }

    /// The names of the query's arguments, in each reading that applications have of it.
    pub fn query_names(&self) -> impl Iterator<Item = &[u8]> {
        let classes = [Class::ArgsGet, Class::ArgsGetReadings].into_iter();
        classes.flat_map(|class| self.store.class(class)).map(|value| self.text(self.store.key(value)))
    }

    /// The numeric changes of `TX` keys that a match of this transaction made.
    pub fn score_changes(&self, found: &Match) -> &[ScoreChange] {
        let first = found.first_change as usize;
        self.changes().get(first..first + found.change_count as usize).unwrap_or_default()
    }

    /// The numeric value of a `TX` key, if it is set.
    pub fn tx_slot_number(&self, slot: TxSlot) -> Option<i64> {
        self.tx_int(slot)
    }

    pub(crate) fn is_withheld(&mut self, plan: &Plan, rule: RuleIndex) -> bool {
        if !Match::is_disruptive(&plan.rule(rule).disruption) {
            return false;
        }
        let Some(judge) = self.judge.as_ref().map(Arc::clone) else { return false };
        let withholds = judge.withholds(plan, self, rule);
        if withholds {
            self.withheld = Some(rule);
            // The match stays in logs, as one that interrupts nothing.
            if let Some(last) = self.matches.last_mut().filter(|last| last.rule == rule) {
                last.disruptive = false;
            }
        }
        withholds
    }
}
