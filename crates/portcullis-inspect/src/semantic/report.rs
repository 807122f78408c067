//! The findings and scores of an exchange as events and explanations show them.

use portcullis_event::{Finding, FindingOutcome, SemanticScore, SuppressedBy, limits, text};
use portcullis_learn::FieldPlace;
use portcullis_semantic::{LEARNED_ROW, Score, exceptions};
use portcullis_types::Class;

use super::SemanticRun;

/// A value with findings of one class, as an explanation tells of it.
#[derive(Clone, Debug)]
pub struct ScoredValue {
    /// The location and the score.
    pub score: SemanticScore,
    /// The terms of the score, by name.
    pub terms: Vec<(String, f32)>,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl ScoredValue {
    /// The term for what rules and inspection agents added.
    pub const ADDED: &'static str = "crs and agents";
}

/// The findings as an event tells them.
pub(crate) struct Told {
    /// Those in values whose score passed a threshold, the first of each exception that suppresses or lowers
    /// something, and the first few of the others.
    pub(crate) findings: Vec<Finding>,
    /// The number of the others.
    pub(crate) below: u32,
    /// The number of others that an exception suppresses or lowers.
    pub(crate) suppressed: u32,
    /// Findings that were dropped before.
    pub(crate) dropped: u32,
}

impl SemanticRun {
    /// The verdict in a sentence: `SQL injection in query:id: a condition that is always true`.
    pub(crate) fn reason(&self) -> Option<String> {
        let (score, _) = self.verdict?;
        let analysis = &self.buffers.analysis;
        let value = analysis.values().get(score.value as usize)?;
        let detectors = &self.semantic.detectors;
        let telling = analysis
            .findings_of(detectors, &score)
            .filter(|finding| !finding.excluded)
            .max_by(|a, b| detectors.points(a).total_cmp(&detectors.points(b)));
        let why = telling.map_or(String::new(), |finding| format!(": {}", finding.kind.reason));
        let expires = if self.expires { "; refused again and again, the cookie is expired" } else { "" };
        Some(format!("{} in {value}{why}{expires}", score.class.title()))
    }

    /// The findings of an event, those of values over their threshold apart from others. `scores` are those
    /// of all values.
    pub(crate) fn findings(&self, scores: &[Score]) -> Told {
        let (analysis, detectors) = (&self.buffers.analysis, &self.semantic.detectors);
        let mut deciding = Vec::new();
        for score in scores.iter().filter(|score| self.outcome(score).passes()) {
            deciding.extend(analysis.findings_of(detectors, score).map(std::ptr::from_ref));
        }
        deciding.sort();
        let is_deciding =
            |found: &portcullis_semantic::Finding| deciding.binary_search(&std::ptr::from_ref(found)).is_ok();
        let is_excused = |found: &portcullis_semantic::Finding| {
            found.suppressed_by.is_some() && (found.is_suppressed() || !is_deciding(found))
        };
        let (mut few, mut rows) = (0, Vec::new());
        let (mut findings, left): (Vec<_>, Vec<_>) = analysis.findings().iter().partition(|found| {
            if is_excused(found) {
                // One of each exception tells what it is; many of one would leave no room for others.
                let is_new = !rows.contains(&found.suppressed_by);
                rows.extend(is_new.then_some(found.suppressed_by));
                return is_new && rows.len() <= limits::FINDINGS_SUPPRESSED_MAX;
            }
            is_deciding(found) || {
                few += 1;
                few <= limits::FINDINGS_BELOW_MAX
            }
        });
        let suppressed = left.iter().filter(|found| is_excused(found)).count();
        if findings.len() > limits::FINDINGS_MAX {
            // An event holds so many: those that tell most, and what counts before what does not.
            findings.sort_by(|a, b| {
                let by_points = detectors.points(b).total_cmp(&detectors.points(a));
                is_excused(a).cmp(&is_excused(b)).then(by_points)
            });
        }
        Told {
            findings: findings
                .into_iter()
                .map(|found| Finding { below: !is_deciding(found), ..self.describe(found) })
                .collect(),
            below: u32::try_from(left.len() - suppressed).unwrap_or(u32::MAX),
            suppressed: u32::try_from(suppressed).unwrap_or(u32::MAX),
            dropped: analysis.findings_dropped(),
        }
    }

    /// Those of the sorted scores that an event has room for.
    pub(crate) fn scores(&self, sorted: &[Score]) -> Vec<SemanticScore> {
        sorted.iter().take(limits::SEMANTIC_SCORES_MAX).map(|score| self.describe_score(score)).collect()
    }

    /// The classes with findings, each once, with the result of the worst of them.
    pub(crate) fn outcomes(&self, scores: &[Score]) -> Vec<(Class, FindingOutcome)> {
        let mut outcomes: Vec<(Class, FindingOutcome)> = Vec::new();
        for score in scores {
            let outcome = self.outcome(score);
            match outcomes.iter_mut().find(|(class, _)| *class == score.class) {
                Some((_, known)) => *known = (*known).min(outcome),
                None => outcomes.push((score.class, outcome)),
            }
        }
        outcomes
    }

    /// The explanation of each value with findings, for each class, the worst first.
    pub(crate) fn explain(&self) -> Vec<ScoredValue> {
        let (analysis, detectors) = (&self.buffers.analysis, &self.semantic.detectors);
        let terms = |score: &Score| {
            let mut terms = analysis.terms(detectors, score);
            let rules = self.added(score);
            if rules > 0.0 {
                terms.push((ScoredValue::ADDED.to_owned(), rules));
            }
            terms
        };
        let explain = |score: Score| ScoredValue {
            score: self.describe_score(&score),
            terms: terms(&score),
            findings: analysis.findings_of(detectors, &score).map(|found| self.describe(found)).collect(),
        };
        self.sorted_scores().into_iter().map(explain).collect()
    }

    fn describe(&self, found: &portcullis_semantic::Finding) -> Finding {
        let value = &self.buffers.analysis.values()[found.value as usize];
        Finding {
            class: found.class,
            kind: found.kind.id.into(),
            place: value.place,
            name: text(&value.name, limits::TARGET_NAME_BYTES_MAX),
            decoded: found.layers.iter().map(|layer| layer.name().into()).collect(),
            span: Some(found.span),
            evidence: text(&found.evidence, limits::VALUE_BYTES_MAX),
            count: 1,
            below: false,
            mentioned: found.mentioned,
            suppressed_by: found.suppressed_by.and_then(exceptions::find).map(|row| SuppressedBy {
                exception: row.id.into(),
                reason: match row.id {
                    LEARNED_ROW => self.carried_by(value, found.kind.id).into(),
                    _ => row.why.into(),
                },
            }),
            points: self.semantic.detectors.points(found),
            reason: found.kind.reason.into(),
            reference: found.kind.reference.into(),
        }
    }

    /// Clients that have shown that a field carries findings of this kind.
    fn carried_by(&self, value: &portcullis_semantic::Value, kind: &str) -> String {
        let place = FieldPlace::of(value.place);
        let opened =
            place.and_then(|place| self.buffers.analysis.noted_fields().opened(place, &value.name, kind));
        let evidence = opened.map_or("", |opened| &opened.evidence);
        format!("the field carries it: {evidence}")
    }

    fn describe_score(&self, score: &Score) -> SemanticScore {
        let value = &self.buffers.analysis.values()[score.value as usize];
        SemanticScore {
            class: score.class,
            place: value.place,
            name: text(&value.name, limits::TARGET_NAME_BYTES_MAX),
            points: score.points + self.added(score),
            threshold: self.semantic.detectors.model(score.detector).threshold(self.semantic.level),
            outcome: self.outcome(score),
        }
    }

    /// The scores of all values, highest over the threshold first.
    pub(crate) fn sorted_scores(&self) -> Vec<Score> {
        let mut scores: Vec<Score> = self.buffers.analysis.scores(&self.semantic.detectors).collect();
        scores.sort_by(|a, b| self.over(b).total_cmp(&self.over(a)));
        scores
    }
}
