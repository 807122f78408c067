//! A second opinion on rules that interrupt: the caller's.

use std::fmt;
use std::sync::Arc;

use crate::execution::Execution;
use crate::journal::Journal;
use crate::message::Message;
use crate::plan::{Plan, RuleIndex};
use crate::record::{Match, ScoreChange};
use crate::settings::BodyProcessor;
use crate::transaction::Transaction;
use crate::tx::TxSlot;
use crate::vars::Vars;
use portcullis_types::Variable;
use portcullis_values::Class;

/// Has the last word on whether a rule that matched interrupts.
pub trait Judge: fmt::Debug + Send + Sync {
    /// True if the disruptive action of `rule`, which has matched and done all else that it does, is not
    /// carried out.
    fn withholds(&self, transaction: TransactionView<'_>, rule: RuleIndex) -> bool;
}

/// A transaction as its judge sees it: what matched so far, and its effects.
#[derive(Clone, Copy, Debug)]
pub struct TransactionView<'t> {
    plan: &'t Plan,
    message: &'t Message,
    vars: &'t Vars,
    journal: &'t Journal,
}

impl<'t> TransactionView<'t> {
    /// The plan.
    pub fn plan(self) -> &'t Plan {
        self.plan
    }

    /// Matches so far, in order; see [`Transaction::matches`].
    pub fn matches(self) -> &'t [Match] {
        &self.journal.matches
    }

    /// The key of the value that completed a match; empty for scalars.
    pub fn matched_key(self, found: &Match) -> &'t [u8] {
        self.message.store.text(found.key)
    }

    /// The names of the query's arguments, in each reading that applications have of it.
    pub fn query_names(self) -> impl Iterator<Item = &'t [u8]> {
        let store = &self.message.store;
        let classes = [Class::ArgsGet, Class::ArgsGetReadings].into_iter();
        classes.flat_map(|class| store.class(class)).map(|value| store.text(store.key(value)))
    }

    /// Names and values of the request's cookies.
    pub fn cookies(self) -> impl ExactSizeIterator<Item = (&'t [u8], &'t [u8])> {
        self.pairs(Class::RequestCookies)
    }

    /// Names and values of the query's arguments, in their first reading.
    pub fn query_arguments(self) -> impl ExactSizeIterator<Item = (&'t [u8], &'t [u8])> {
        self.pairs(Class::ArgsGet)
    }

    /// The same of the request body's.
    pub fn body_arguments(self) -> impl ExactSizeIterator<Item = (&'t [u8], &'t [u8])> {
        self.pairs(Class::ArgsPost)
    }

    /// True if the request body is read as JSON.
    pub fn has_json(self) -> bool {
        self.message.body.processor() == Some(BodyProcessor::Json)
    }

    /// The header fields of the request.
    pub fn request_fields(self) -> impl ExactSizeIterator<Item = (&'t [u8], &'t [u8])> {
        self.pairs(Class::RequestHeaders)
    }

    /// The header fields of the response.
    pub fn response_fields(self) -> impl ExactSizeIterator<Item = (&'t [u8], &'t [u8])> {
        self.pairs(Class::ResponseHeaders)
    }

    /// The body of the response as rules see it, if they do.
    pub fn response_body(self) -> &'t [u8] {
        let store = &self.message.store;
        store.scalar(Variable::ResponseBody).map_or(b"", |body| store.text(store.data(body)))
    }

    fn pairs(self, class: Class) -> impl ExactSizeIterator<Item = (&'t [u8], &'t [u8])> {
        let store = &self.message.store;
        store.class(class).map(|value| (store.text(store.key(value)), store.text(store.data(value))))
    }

    /// The numeric changes of `TX` keys that a match of this transaction made.
    pub fn score_changes(self, found: &Match) -> &'t [ScoreChange] {
        self.journal.changes_of(found)
    }

    /// The numeric value of a `TX` key, if it is set.
    pub fn tx_slot_number(self, slot: TxSlot) -> Option<i64> {
        self.vars.tx.number(slot, self.message.store.bytes())
    }
}

impl Transaction {
    /// Has `judge` asked before a rule interrupts. To be called before phase 1.
    pub fn set_judge(&mut self, judge: Arc<dyn Judge>) {
        self.run.judge = Some(judge);
    }

    /// The last rule whose disruptive action the judge withheld.
    pub fn withheld(&self) -> Option<RuleIndex> {
        self.journal.withheld
    }

    /// The transaction as its judge sees it.
    pub fn as_view(&self) -> TransactionView<'_> {
        let Transaction { plan, message, vars, journal, .. } = self;
        TransactionView { plan, message, vars, journal }
    }
}

impl Execution<'_> {
    pub(crate) fn is_withheld(&mut self, rule: RuleIndex) -> bool {
        if !Match::is_disruptive(&self.plan.rule(rule).disruption) {
            return false;
        }
        let Some(judge) = &self.run.judge else { return false };
        let Execution { plan, message, vars, journal, .. } = self;
        let withholds = judge.withholds(TransactionView { plan, message, vars, journal }, rule);
        if withholds {
            self.journal.withheld = Some(rule);
            // The match stays in logs, as one that interrupts nothing.
            if let Some(last) = self.journal.matches.last_mut().filter(|last| last.rule == rule) {
                last.disruptive = false;
            }
        }
        withholds
    }
}
