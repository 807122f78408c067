//! What an analysis has found, and what it did for that.

use super::{Analysis, Detectors};
use crate::gate::Candidates;
use crate::score::{self, Score};
use crate::{Class, Finding, Level, Value};

impl Analysis {
    /// What was found, in order.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Findings that were not kept: beyond [`FINDINGS_MAX`](crate::limits::FINDINGS_MAX), only those of the
    /// values that score highest are, for each detector and each group of its `Triage`.
    pub fn findings_dropped(&self) -> u32 {
        self.dropped
    }

    /// Bytes of uploaded texts beyond the first [`WINDOW_BYTES`](crate::limits::WINDOW_BYTES), which were
    /// searched for code only.
    pub fn bytes_left_out(&self) -> u64 {
        self.left_out
    }

    /// Bytes of bodies that are files by what they are (programs, archives, databases), which were searched
    /// for code only.
    pub fn bytes_of_files(&self) -> u64 {
        self.files
    }

    /// Bytes of messages in frames of gRPC that are compressed in a way that is not undone here.
    pub fn bytes_of_codings(&self) -> u64 {
        self.hidden
    }

    /// Bytes of the values for which the allowance of work did not suffice, see
    /// [`WORK_SPARE`](crate::limits::WORK_SPARE).
    pub fn bytes_cut(&self) -> u64 {
        self.cut
    }

    /// The work that was done: bytes read, by all who read, and how many were allowed.
    pub fn work(&self) -> (u64, u64) {
        self.work.done()
    }

    /// The findings that `score` counts.
    pub fn findings_of<'a>(
        &'a self,
        detectors: &'a Detectors,
        score: &Score,
    ) -> impl Iterator<Item = &'a Finding> {
        let of_class = &detectors.of_class[score.detector];
        let is_of_class = |finding: &&Finding| of_class.contains(&detectors.number_of(finding.feature));
        self.findings_in(score.value).iter().filter(is_of_class)
    }

    /// The values with findings; [`Finding::value`] is a number in it.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The score of each value for each class of which something was found in it. What the detectors of a
    /// class found adds up; each has a bias and a threshold of its own, and the one by which the sum is
    /// highest scores. What is only mentioned counts for it alone: others mention the same words.
    pub fn scores<'a>(&'a self, detectors: &'a Detectors) -> impl Iterator<Item = Score> + 'a {
        self.values.iter().enumerate().flat_map(move |(number, value)| {
            let number = number as u32;
            let findings = self.findings_in(number);
            let found_by =
                findings.iter().fold(0, |all, finding| all | 1 << detectors.number_of(finding.feature));
            let score = move |detector: usize| {
                let weighed = findings
                    .iter()
                    .filter_map(move |found| Some((found, detectors.weight(found, detector)?)));
                score::score(&detectors.models[detector], detector, number, value, weighed)
            };
            Candidates(found_by).filter_map(move |detector| {
                let of_class = &detectors.of_class[detector];
                if of_class.len() == 1 {
                    return score(detector);
                }
                let finders = of_class.iter().filter(|other| found_by >> **other & 1 == 1);
                let scores = finders.filter_map(|finder| score(*finder));
                let highest = scores.max_by(|a, b| a.over_balanced.total_cmp(&b.over_balanced));
                highest.filter(|score| score.detector == detector)
            })
        })
    }

    /// The findings of one value; they stand together, for values come one after the other.
    fn findings_in(&self, value: u32) -> &[Finding] {
        let start = self.findings.partition_point(|finding| finding.value < value);
        let rest = &self.findings[start..];
        &rest[..rest.partition_point(|finding| finding.value == value)]
    }

    /// The score that is highest over the threshold of `level`; `None` if nothing was found.
    /// [`Class::Redirect`] is left out: what the site's own hosts are decides there, and where nobody says
    /// that, it is no more than a note.
    pub fn worst(&self, detectors: &Detectors, level: Level) -> Option<Score> {
        if self.findings.is_empty() {
            return None;
        }
        let scores = self.scores(detectors).filter(|score| score.class != Class::Redirect);
        scores.max_by(|a, b| a.over(level).total_cmp(&b.over(level)))
    }

    /// The features of a score and what each adds, for people and for training.
    pub fn terms(&self, detectors: &Detectors, score: &Score) -> Vec<(String, f32)> {
        let model = &detectors.models[score.detector];
        let mut terms = vec![("bias".to_owned(), model.bias())];
        let mut left = crate::score::MENTIONS_MAX;
        for finding in self.findings_of(detectors, score).filter(|finding| !finding.excluded) {
            let points = detectors.weight(finding, score.detector).unwrap_or_default();
            if finding.is_suppressed() {
                continue;
            }
            if finding.mentioned {
                terms.push((format!("{}~", finding.kind.id), points.min(left)));
                left -= points.min(left);
            } else {
                terms.push((finding.kind.id.to_owned(), points));
            }
        }
        if let Some(value) = self.values.get(score.value as usize) {
            terms.extend(model.context_terms(value));
        }
        terms
    }
}
