//! A message with very many findings: the worst are kept.
//!
//! What decides is the highest score of each detector, so no flood of lesser findings may push it out: beyond
//! a number of findings, those of the values that score highest stay, for each detector and each group of
//! values that the policy sets apart, and all others are counted. That is done when the number has doubled,
//! so that it costs little for each finding.

use portcullis_types::{Level, Severity};

use super::{Analysis, Detectors};
use crate::Score;
use crate::limits::{FINDINGS_MAX, WORST_VALUES_MAX};

impl Analysis {
    /// Keeps the worst, if there are too many findings.
    pub(super) fn thin(&mut self, detectors: &Detectors) {
        if self.findings.len() > FINDINGS_MAX.max(self.findings_max) {
            self.keep_worst(detectors);
        }
    }

    /// What sets values apart in this message, see [`Triage`](super::Triage), and is forgotten with it.
    pub fn triage_by(&mut self, triage: std::sync::Arc<dyn super::Triage>) {
        self.triage = Some(triage);
    }

    #[cold]
    fn keep_worst(&mut self, detectors: &Detectors) {
        let group = |score: &Score| {
            let value = &self.values[score.value as usize];
            let group =
                self.triage.as_ref().map_or(0, |triage| triage.group(score.class, value.place, &value.name));
            let is_severe = self.findings_of(detectors, score).any(|found| {
                !found.mentioned
                    && !found.excluded
                    && !found.is_suppressed()
                    && found.kind.severity <= Severity::Critical
            });
            (detectors.class_of(score.detector), value.place.is_response(), group, is_severe)
        };
        let mut scores: Vec<_> = self.scores(detectors).map(|score| (group(&score), score)).collect();
        // Stable: of those that score the same, the first are kept.
        scores.sort_by(|(a, first), (b, second)| {
            let order = second.over(Level::Balanced).total_cmp(&first.over(Level::Balanced));
            a.cmp(b).then(order)
        });
        let mut kept: Vec<(u32, usize)> = Vec::new();
        for of_group in scores.chunk_by(|(a, _), (b, _)| a == b) {
            let worst = of_group.iter().take(WORST_VALUES_MAX);
            kept.extend(worst.map(|(_, score)| (score.value, detectors.class_of(score.detector))));
        }
        kept.sort_unstable();
        let before = self.findings.len();
        self.findings.retain(|found| {
            let class = detectors.class_of(detectors.number_of(found.feature));
            kept.binary_search(&(found.value, class)).is_ok()
        });
        self.dropped = self.dropped.saturating_add((before - self.findings.len()) as u32);
        self.findings_max = 2 * self.findings.len();
        // Numbers of values follow those that are left.
        let mut numbers = vec![None; self.values.len()];
        let mut next = 0;
        for found in &mut self.findings {
            let number = numbers[found.value as usize].get_or_insert_with(|| {
                next += 1;
                next - 1
            });
            found.value = *number;
        }
        let mut at = 0;
        self.values.retain(|_| {
            at += 1;
            numbers[at - 1].is_some()
        });
    }
}
