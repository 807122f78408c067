//! The exclusions that took something away from a verdict.

use portcullis_event::FindingOutcome;

use crate::inspection::Inspection;
use crate::semantic::SemanticRun;

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
        Excluded {
            semantic: self.semantic.as_ref().map(|semantic| semantic.excluded()).unwrap_or_default(),
            rules: self.transaction.exempted().to_vec(),
        }
    }
}

impl SemanticRun {
    fn excluded(&self) -> Vec<u32> {
        let mut fitting = Vec::new();
        let policy = &self.semantic.policy;
        if policy.exclusions.is_empty() {
            return fitting;
        }
        let (analysis, detectors) = (&self.buffers.analysis, &self.semantic.detectors);
        for score in analysis.scores(detectors) {
            if self.outcome(&score) != FindingOutcome::Excluded {
                continue;
            }
            let value = &analysis.values()[score.value as usize];
            let kinds: Vec<&str> =
                analysis.findings_of(detectors, &score).map(|found| found.kind.id).collect();
            let place = (value.place, value.name.as_ref());
            policy.fitting((score.class, &kinds), place, &self.elsewhere, &mut fitting);
        }
        fitting
    }
}
