//! Rules on settings and scores, which stand side by side: run one after the other without what other rules need.

use portcullis_types::{Phase, Variable};

use crate::plan::{Plan, RuleIndex};
use crate::shortcut::OfRule;
use crate::transaction::Transaction;

impl Transaction {
    /// Runs the steps at `from` and behind it, as far as they have to run, up to the first that takes more than a look at numbers and `setvar`
    /// of numbers: says which that is; `None`: the phase has come to its end. Here nothing is asked that rules of this kind cannot change.
    pub(crate) fn run_settings(&mut self, plan: &Plan, from: usize) -> Option<usize> {
        let phase = self.phase;
        let steps = &plan.steps[usize::from(phase.number()) - 1];
        let is_simple = self.removed_rules.is_empty()
            && !self.keeps_quiet
            && !plan.reads_last_match
            && !self.may_be_taken_away(plan);
        let mut at = from;
        loop {
            at = self.prefilter_state.as_deref()?.next(phase, at)?;
            if !is_simple || phase == Phase::RequestHeaders && at == plan.prelude.begin() {
                return Some(at);
            }
            if let Some(end) = self.take_stretch(plan, at) {
                at = end;
                continue;
            }
            let step = steps.get(at)?;
            let Some(rule) = plan.shortcuts.of(step.rule) else { return Some(at) };
            if !rule.is_certain {
                match self.decide(plan, &rule.first) {
                    None => return Some(at),
                    Some(false) => {
                        at += 1;
                        continue;
                    }
                    Some(true) => {}
                }
            }
            if !rule.is_plain || !rule.is_all_numbers {
                return Some(at);
            }
            self.run_plain_acts(plan, step.rule, rule);
            at = if step.skip_to == u32::MAX { at + 1 } else { step.skip_to as usize };
        }
    }

    /// What a plain rule does.
    pub(crate) fn run_plain_acts(&mut self, plan: &Plan, index: RuleIndex, known: &OfRule) {
        let numbers = plan.shortcuts.acts_of(known);
        let done = numbers.iter().take_while(|act| self.run_slot_act(act)).count();
        if done < numbers.len() || !known.is_all_numbers {
            let link = &plan.links[plan.rule(index).first_link as usize];
            self.run_acts(plan, &link.acts[done..]);
        }
    }

    /// True if a `ctl` keeps values of the kind that plain rules look at from some rule.
    pub(crate) fn may_be_taken_away(&self, plan: &Plan) -> bool {
        self.removed_targets.iter().any(|&removed| {
            let variable = plan.ctl_targets[removed as usize].variable;
            matches!(variable, Variable::Tx | Variable::RemoteAddr | Variable::ReqbodyProcessor)
        })
    }
}
