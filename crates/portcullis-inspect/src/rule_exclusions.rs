//! Exclusions of rules: matches that do not count on some paths, in some values, until some time.

use std::sync::Arc;

use portcullis_engine::{Exempt, Plan, RuleIndex, RuleSet};
use portcullis_types::Variable;

use crate::pattern::{glob, is_for_path};
use crate::severe::Severity;

/// Matches of rules that do not count: those to which all that is said here applies.
#[derive(Clone, Debug, Default)]
pub struct RuleExclusion {
    /// Ids of the rules.
    pub rules: Vec<u32>,
    /// The variable that the rules look at; none: whatever they look at.
    pub variable: Option<Variable>,
    /// The name of the value in it, whatever its case; `*` stands for any text. None: every value.
    pub name: Option<String>,
    /// A prefix of the path, or with `*` or `{id}` the whole path.
    pub path: Option<String>,
    /// From then on they count again; milliseconds since 1970.
    pub until: Option<u64>,
    /// It is only tried: matches count.
    pub trial: bool,
    /// It is of a profile: matches count in values with what acts wherever it is read (lookups of log4j,
    /// serialised objects, addresses of cloud metadata).
    pub of_profile: bool,
}

impl RuleExclusion {
    fn holds(&self, path: &[u8], epoch_millis: u64) -> bool {
        self.path.as_deref().is_none_or(|pattern| is_for_path(pattern, path))
            && self.until.is_none_or(|until| epoch_millis < until)
    }

    fn fits(&self, variable: Option<Variable>, key: &[u8]) -> bool {
        self.variable.is_none_or(|wanted| variable == Some(wanted))
            && self.name.as_deref().is_none_or(|pattern| glob(pattern.as_bytes(), key, true))
    }
}

/// The exclusions of a policy, for its plan.
#[derive(Debug)]
pub(crate) struct RuleExclusions {
    list: Box<[(RuleSet, RuleExclusion)]>,
}

impl RuleExclusions {
    /// Rules that the plan does not have are left out.
    pub(crate) fn new(plan: &Plan, exclusions: Vec<RuleExclusion>) -> RuleExclusions {
        let with_rules = |exclusion: RuleExclusion| {
            let mut rules = RuleSet::new();
            for (index, rule) in (0u32..).zip(&plan.rules) {
                if exclusion.rules.contains(&rule.id.0) {
                    rules.insert(index);
                }
            }
            (rules, exclusion)
        };
        RuleExclusions { list: exclusions.into_iter().map(with_rules).collect() }
    }

    /// True if there are exclusions on trial.
    pub(crate) fn has_trials(&self) -> bool {
        self.list.iter().any(|(_, each)| each.trial)
    }

    pub(crate) fn is_on_trial(&self, number: u32) -> bool {
        self.list.get(number as usize).is_some_and(|(_, each)| each.trial)
    }

    /// The same with the exclusions on trial counting.
    pub(crate) fn enforced(&self) -> RuleExclusions {
        let counting = |(rules, each): &(RuleSet, RuleExclusion)| {
            (rules.clone(), RuleExclusion { trial: false, ..each.clone() })
        };
        RuleExclusions { list: self.list.iter().map(counting).collect() }
    }

    /// The exclusions on trial that hold for this path at this time, with their numbers.
    pub(crate) fn trials(
        &self,
        path: &[u8],
        epoch_millis: u64,
    ) -> impl Iterator<Item = (u32, &RuleExclusion)> {
        let all = (0u32..).zip(&self.list).map(|(number, (_, each))| (number, each));
        all.filter(move |(_, each)| each.trial && each.holds(path, epoch_millis))
    }

    /// Those that hold for a request; none: no exclusion does.
    pub(crate) fn here(self: &Arc<Self>, path: &[u8], epoch_millis: u64) -> Option<Arc<RuleExclusionsHere>> {
        let holds: Vec<u32> = (0u32..)
            .zip(&self.list)
            .filter(|(_, (rules, each))| !rules.is_empty() && each.holds(path, epoch_millis))
            .map(|(number, _)| number)
            .collect();
        if holds.is_empty() {
            return None;
        }
        let mut rules = RuleSet::new();
        holds.iter().for_each(|number| rules.extend(&self.list[*number as usize].0));
        let severity = Severity::default();
        Some(Arc::new(RuleExclusionsHere { all: Arc::clone(self), holds, rules, severity }))
    }
}

/// The exclusions that hold for a request.
#[derive(Debug)]
pub(crate) struct RuleExclusionsHere {
    all: Arc<RuleExclusions>,
    holds: Vec<u32>,
    /// The rules of all of them.
    rules: RuleSet,
    severity: Severity,
}

impl Exempt for RuleExclusionsHere {
    fn concerns(&self, rule: RuleIndex) -> bool {
        self.rules.contains(rule.0)
    }

    fn reaches_tx(&self) -> bool {
        let of_tx =
            |variable: Option<Variable>| matches!(variable, None | Some(Variable::Tx | Variable::RemoteAddr));
        self.holds.iter().any(|number| of_tx(self.all.list[*number as usize].1.variable))
    }

    fn exempts(
        &self,
        rule: RuleIndex,
        variable: Option<Variable>,
        key: &[u8],
        value: &[u8],
        fitting: &mut Vec<u32>,
    ) -> bool {
        let mut exempts = false;
        for number in &self.holds {
            let (rules, exclusion) = &self.all.list[*number as usize];
            if !rules.contains(rule.0) || !exclusion.fits(variable, key) {
                continue;
            }
            if exclusion.of_profile && variable.is_some() && self.severity.is_severe(key, value) {
                continue;
            }
            exempts |= !exclusion.trial;
            if !fitting.contains(number) {
                fitting.push(*number);
            }
        }
        exempts
    }
}
