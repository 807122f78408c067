//! Rules that the prefilter has run but for what they do: those with one link that looks at one value. If such a rule is to run, its operator
//! has said yes to this value, and would only say so again.

use portcullis_types::{Phase, Variable};

use crate::plan::{Act, Disruption, Plan, Rule, RuleIndex};
use crate::transaction::Transaction;

use super::Side;
use super::build::is_pure;
use super::origin::{Origin, origin, side};

impl Plan {
    /// Tells the prefilter of the steps with such rules whose match does no more than switch something. To be called once it is known which
    /// steps run whatever the values are: these may do so without a match.
    pub(crate) fn find_sure(&mut self) {
        self.prefilter.sure = std::array::from_fn(|phase| {
            let always = &self.prefilter.always[phase];
            let is_sure = |at: usize, rule: RuleIndex| {
                always[at / 64] >> (at % 64) & 1 == 0 && self.is_decided_by_one_value(self.rule(rule))
            };
            let mut sure = vec![0; always.len()];
            for (at, step) in self.steps[phase].iter().enumerate() {
                sure[at / 64] |= u64::from(is_sure(at, step.rule)) << (at % 64);
            }
            sure
        });
    }

    fn is_decided_by_one_value(&self, rule: &Rule) -> bool {
        let [link] = self.links_of(rule) else { return false };
        let [target] = link.targets.include.as_slice() else { return false };
        let is_silent = !rule.log
            && !rule.audit_log
            && rule.pause.is_none()
            && rule.metadata.severity.is_none()
            && matches!(rule.disruption, Disruption::Pass);
        is_silent
            && !self.reads_last_match
            && link.targets.exclude.is_empty()
            && !target.count
            && !link.multi_match
            && !link.capture
            && is_pure(link)
            && comes_in(target.variable) == Some(rule.phase)
            && link.acts.iter().all(is_switch)
    }
}

/// The phase before which a variable gets its value, and after which it keeps it.
fn comes_in(variable: Variable) -> Option<Phase> {
    use Variable::*;
    match (origin(variable), side(variable), variable) {
        (Origin::Scalar, Side::Response, ResponseBody) => Some(Phase::ResponseBody),
        (Origin::Scalar, Side::Response, _) => Some(Phase::ResponseHeaders),
        (Origin::Scalar, Side::Request, RequestMethod | RequestProtocol | RequestLine | RequestUriRaw) => {
            Some(Phase::RequestHeaders)
        }
        // These change between phases 1 and 2.
        (Origin::Scalar, Side::Request, RequestBasename | RequestFilename | RequestUri | PathInfo) => {
            Some(Phase::RequestHeaders)
        }
        _ => None,
    }
}

/// True for what neither looks at the match nor ends the phase.
pub(crate) fn is_switch(act: &Act) -> bool {
    matches!(
        act,
        Act::RemoveRules(_) | Act::RemoveTarget(_) | Act::BodyProcessor(_) | Act::ForceRequestBodyVariable(_)
    )
}

impl Transaction {
    /// Does what the rule at this step does, if the prefilter has seen it match; false if the rule has to run.
    pub(crate) fn run_sure(&mut self, plan: &Plan, step: usize, rule: RuleIndex) -> bool {
        let sure = &plan.prefilter.sure[usize::from(self.phase.number()) - 1];
        let is_sure = sure.get(step / 64).is_some_and(|word| word >> (step % 64) & 1 == 1);
        if !is_sure || self.trace.is_some() || self.keeps_quiet {
            return false;
        }
        let narrows = |&at: &u32| plan.ctl_targets[at as usize].rules.contains(rule.0);
        if self.removed_targets.iter().any(narrows) {
            return false;
        }
        let link = &plan.links[plan.rule(rule).first_link as usize];
        self.run_acts(plan, &link.acts);
        true
    }
}
