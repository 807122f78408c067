//! One rule, the general way: its links in order.

use crate::Class;
use crate::plan::{Outcome, RuleIndex};
use crate::questions::ResumePoint;

use super::{Execution, LinkAt};

impl Execution<'_> {
    /// Runs a rule from its first link on, or from the one that has its answers now.
    pub(super) fn run_rule(&mut self, index: RuleIndex, from: ResumePoint) -> Outcome {
        let rule = self.plan.rule(index);
        if !from.resumed {
            if self.is_ruled_out(rule.first_link as usize) {
                return Outcome::NoMatch;
            }
            self.run.current_rule = Some(index);
            self.run.rule_ended = false;
            self.journal.rule_changes = self.journal.changes.len() as u32;
            self.message.store.clear_class(Class::MatchedVars);
            self.message.store.clear_class(Class::MatchedVarsNames);
        }
        for (number, link) in (0..).zip(self.plan.links_of(rule)).skip(from.link as usize) {
            let at = LinkAt { rule: index, number, link, is_last: number + 1 == rule.link_count };
            let has_asked = from.resumed && number == from.link;
            if link.operator.asks() && !has_asked && self.must_ask(at) {
                return Outcome::Ask { link: number };
            }
            if !self.run_link(at) {
                return Outcome::NoMatch;
            }
        }
        Outcome::Match
    }
}
