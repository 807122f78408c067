//! The exclusions that took something away from a verdict.

use portcullis_event::FindingOutcome;

use crate::inspection::Inspection;
use crate::semantic::SemanticRun;
use crate::semantic_policy::ClassAction;

/// Numbers of the exclusions of a policy, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excluded {
    /// Those of the semantic detector without which a score would have passed its threshold.
    pub semantic: Vec<u32>,
    /// Those of rules without which a rule would have matched.
    pub rules: Vec<u32>,
}

impl Inspection {
    /// The exclusions that took something away so far.
    pub(crate) fn excluded(&self) -> Excluded {
        let rules = self.inspector.rule_exclusions.as_ref();
        let counts = |number: &&u32| rules.is_some_and(|rules| !rules.is_on_trial(**number));
        Excluded {
            semantic: self.semantic.as_ref().map(|semantic| semantic.excluded()).unwrap_or_default(),
            rules: self.transaction.exempted().iter().filter(counts).copied().collect(),
        }
    }
}

impl SemanticRun {
    fn excluded(&self) -> Vec<u32> {
        self.exclusions_of(false, |outcome| outcome == FindingOutcome::Excluded)
    }

    /// The exclusions on trial that name something of a score that passes its threshold.
    pub(crate) fn touched_trials(&self) -> Vec<u32> {
        self.exclusions_of(true, FindingOutcome::passes)
    }

    /// Numbers of the exclusions that fit scores with such an outcome.
    fn exclusions_of(&self, on_trial: bool, is_meant: impl Fn(FindingOutcome) -> bool) -> Vec<u32> {
        let mut fitting = Vec::new();
        let policy = &self.semantic.policy;
        if policy.exclusions.is_empty() {
            return fitting;
        }
        let (analysis, detectors) = (&self.buffers.analysis, &self.semantic.detectors);
        for score in analysis.scores(detectors).filter(|score| is_meant(self.outcome(score))) {
            let value = &analysis.values()[score.value as usize];
            let kinds: Vec<&str> =
                analysis.findings_of(detectors, &score).map(|found| found.kind.id).collect();
            let place = (value.place, value.name.as_ref());
            policy.fitting(on_trial, (score.class, &kinds), place, &self.elsewhere, &mut fitting);
        }
        fitting
    }

    /// True if something was found that no exclusion names, below a threshold or not.
    pub(crate) fn finds_more(&self) -> bool {
        let analysis = &self.buffers.analysis;
        analysis.findings().iter().any(|found| {
            let value = &analysis.values()[found.value as usize];
            let action = self.semantic.policy.action(found.class, value.place, &value.name, &self.elsewhere);
            !found.excluded && action != Some(ClassAction::Off)
        })
    }
}
