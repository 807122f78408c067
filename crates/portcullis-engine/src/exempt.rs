//! Matches that do not count: exclusions of the caller, which hold for single transactions.
//!
//! Unlike a target that `ctl:ruleRemoveTargetById` takes away, the value is tested, so that an exclusion
//! which took something away is known from one that nothing needs any more.

use std::fmt;
use std::sync::Arc;

use portcullis_types::{Span, Variable};

use crate::collect::Item;
use crate::execution::Execution;
use crate::plan::RuleIndex;
use crate::transaction::Transaction;

/// The exclusions that hold for a transaction.
pub trait Exempt: fmt::Debug + Send + Sync {
    /// True if some matches of the rule may not count.
    fn concerns(&self, rule: RuleIndex) -> bool;

    /// True if there are exclusions of rules in `TX`, or of rules whatever they look at.
    fn reaches_tx(&self) -> bool;

    /// True if a match of the rule in this value does not count. The numbers of the exclusions that fit are
    /// added to `fitting`, each once. `variable` is `None` for a count, which no name stands for; `value` is
    /// the text before transformations.
    fn exempts(
        &self,
        rule: RuleIndex,
        variable: Option<Variable>,
        key: &[u8],
        value: &[u8],
        fitting: &mut Vec<u32>,
    ) -> bool;
}

impl Transaction {
    /// Has matches that `exempt` names not count. To be called before phase 1.
    pub fn set_exempt(&mut self, exempt: Arc<dyn Exempt>) {
        self.run.exempt = Some(exempt);
    }

    /// The numbers of the exclusions that fitted a match, each once.
    pub fn exempted(&self) -> &[u32] {
        &self.journal.exempted
    }
}

impl Execution<'_> {
    /// True if a match of the rule's first link in this value, whose text is `data`, does not count.
    pub(crate) fn is_exempt(&mut self, rule: RuleIndex, at: u32, item: &Item, data: Span) -> bool {
        let Some(exempt) = self.run.exempt.as_ref().filter(|exempt| at == 0 && exempt.concerns(rule)) else {
            return false;
        };
        let variable = (!item.count).then_some(item.variable);
        let store = &self.message.store;
        exempt.exempts(rule, variable, store.text(item.key), store.text(data), &mut self.journal.exempted)
    }

    /// True if values of the rule have to be looked at one by one for an exclusion's sake.
    pub(crate) fn may_be_exempt(&self, rule: RuleIndex) -> bool {
        self.run.exempt.as_ref().is_some_and(|exempt| exempt.concerns(rule))
    }
}
