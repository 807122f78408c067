//! The semantic detector beside the rules: what it is shown, when it decides, what events say of it.

use std::sync::Arc;

use portcullis_engine::Interruption;
use portcullis_event::{Finding, FindingOutcome, SemanticScore, limits, text};
use portcullis_http::message::RequestHead;
use portcullis_semantic::{Analysis, Detectors, Score};
use portcullis_types::{Class, Level, Phase};

use crate::evidence::evidence;
use crate::semantic_policy::{ClassAction, SemanticPolicy};

/// Status of a blocked request, as a `deny` without a status of its own.
const STATUS: u16 = 403;
/// A body buffer that is kept for the next exchange.
const KEPT_BODY_BYTES_MAX: usize = 64 << 10;

/// The semantic detector of a policy.
#[derive(Clone, Debug)]
pub struct Semantic {
    /// The detectors; one for the process.
    pub detectors: Arc<Detectors>,
    /// How sure they must be.
    pub level: Level,
    /// What is done about single classes, and what does not count.
    pub policy: Arc<SemanticPolicy>,
}

/// A value with findings of one class, as an explanation tells of it.
#[derive(Clone, Debug)]
pub struct ScoredValue {
    /// Where, and how sure.
    pub score: SemanticScore,
    /// What the score is the sum of, by name.
    pub terms: Vec<(String, f32)>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// Buffers of an analysis, for the next one.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    analysis: Analysis,
    content_type: Vec<u8>,
    /// The request body, content codings undone.
    body: Vec<u8>,
}

/// The analysis of one exchange.
#[derive(Debug)]
pub(crate) struct SemanticRun {
    semantic: Semantic,
    buffers: Buffers,
    /// Exclusions whose path is not that of the request.
    elsewhere: Vec<bool>,
    /// What the rules add to the score of a class, in mode `both`.
    evidence: Vec<(Class, f32)>,
    /// The score that passed the threshold, and when.
    verdict: Option<(Score, Phase)>,
    /// The verdict was carried out.
    blocked: bool,
}

impl SemanticRun {
    pub(crate) fn new(semantic: &Semantic, mut buffers: Buffers) -> SemanticRun {
        buffers.analysis.clear();
        buffers.content_type.clear();
        buffers.body.clear();
        SemanticRun {
            semantic: semantic.clone(),
            buffers,
            elsewhere: Vec::new(),
            evidence: Vec::new(),
            verdict: None,
            blocked: false,
        }
    }

    pub(crate) fn into_buffers(self) -> Buffers {
        let mut buffers = self.buffers;
        if buffers.body.capacity() > KEPT_BODY_BYTES_MAX {
            buffers.body = Vec::new();
        }
        buffers
    }

    pub(crate) fn request_head(&mut self, head: &RequestHead) {
        self.elsewhere = self.semantic.policy.elsewhere(head.path());
        let Buffers { analysis, content_type, .. } = &mut self.buffers;
        analysis.request_head(&self.semantic.detectors, head.method(), head.target(), head.fields());
        content_type.extend_from_slice(head.header("content-type").next().unwrap_or_default());
    }

    /// A piece of the request body.
    pub(crate) fn request_body(&mut self, chunk: &[u8]) {
        self.buffers.body.extend_from_slice(chunk);
    }

    /// The request body has been shown. `truncated`: there is more of it.
    pub(crate) fn request_end(&mut self, truncated: bool) {
        let Buffers { analysis, content_type, body } = &mut self.buffers;
        let detectors = &self.semantic.detectors;
        match truncated {
            false => analysis.request_body(detectors, content_type, body),
            true => analysis.request_body_beginning(detectors, content_type, body),
        }
    }

    /// Takes what the rules found as evidence; `number` reads a variable of the collection `TX`.
    pub(crate) fn weigh_rules(&mut self, number: impl Fn(&[u8]) -> Option<i64>) {
        self.evidence.clear();
        for finding in self.buffers.analysis.findings() {
            if !self.evidence.iter().any(|(class, _)| *class == finding.class) {
                self.evidence.push((finding.class, evidence(finding.class, &number)));
            }
        }
    }

    /// What the findings up to `phase` ask for, if they pass the threshold.
    pub(crate) fn decide(&mut self, phase: Phase, is_blocking: bool) -> Option<Interruption> {
        let analysis = &self.buffers.analysis;
        if analysis.findings().is_empty() {
            return None;
        }
        let passing = || analysis.scores(&self.semantic.detectors).filter(|score| self.over(score) >= 0.0);
        let worst = |action| {
            let of_action = passing().filter(|score| self.action(score) == action);
            of_action.max_by(|a, b| self.over(a).total_cmp(&self.over(b)))
        };
        let (score, blocks) = match worst(ClassAction::Block) {
            Some(score) => (score, is_blocking),
            None => (worst(ClassAction::Log)?, false),
        };
        // A detector that only detects goes on; what the body has may be worse.
        self.verdict = Some((score, phase));
        self.blocked = blocks;
        blocks.then_some(Interruption::Deny { status: STATUS })
    }

    /// The class that passed the threshold, and the phase.
    pub(crate) fn decision(&self) -> Option<(Class, Phase)> {
        self.verdict.map(|(score, phase)| (score.class, phase))
    }

    /// The request was blocked for what was found.
    pub(crate) fn has_blocked(&self) -> bool {
        self.blocked
    }

    /// The verdict in a sentence: `SQL injection in query:id: a condition that is always true`.
    pub(crate) fn reason(&self) -> Option<String> {
        let (score, _) = self.verdict?;
        let analysis = &self.buffers.analysis;
        let value = analysis.values().get(score.value as usize)?;
        let detectors = &self.semantic.detectors;
        let telling = analysis
            .findings_of(detectors, &score)
            .max_by(|a, b| detectors.points(a).total_cmp(&detectors.points(b)));
        let why = telling.map_or(String::new(), |finding| format!(": {}", finding.kind.reason));
        Some(format!("{} in {value}{why}", score.class.title()))
    }

    /// Bytes of uploaded files that were not looked at.
    pub(crate) fn bytes_left_out(&self) -> u64 {
        self.buffers.analysis.bytes_left_out()
    }

    /// What was found, for an event, and how many findings were dropped before.
    pub(crate) fn findings(&self) -> (impl Iterator<Item = Finding> + '_, u32) {
        let analysis = &self.buffers.analysis;
        (analysis.findings().iter().map(|found| self.describe(found)), analysis.findings_dropped())
    }

    /// The scores of all values, highest over the threshold first.
    pub(crate) fn scores(&self) -> Vec<SemanticScore> {
        self.sorted_scores()
            .iter()
            .take(limits::SEMANTIC_SCORES_MAX)
            .map(|score| self.describe_score(score))
            .collect()
    }

    /// The classes with findings, each once, with what came of the worst of them.
    pub(crate) fn outcomes(&self) -> Vec<(Class, FindingOutcome)> {
        let mut outcomes: Vec<(Class, FindingOutcome)> = Vec::new();
        for score in self.buffers.analysis.scores(&self.semantic.detectors) {
            let outcome = self.outcome(&score);
            match outcomes.iter_mut().find(|(class, _)| *class == score.class) {
                Some((_, known)) => *known = (*known).min(outcome),
                None => outcomes.push((score.class, outcome)),
            }
        }
        outcomes
    }

    /// What there is to tell of each value with findings, for each class, the worst first.
    pub(crate) fn explain(&self) -> Vec<ScoredValue> {
        let (analysis, detectors) = (&self.buffers.analysis, &self.semantic.detectors);
        let terms = |score: &Score| {
            let mut terms = analysis.terms(detectors, score);
            let rules = self.added(score.class);
            if rules > 0.0 {
                terms.push(("crs".to_owned(), rules));
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
            kind: found.kind.id,
            place: value.place,
            name: text(&value.name, limits::TARGET_NAME_BYTES_MAX),
            decoded: found.layers.iter().map(|layer| layer.name()).collect(),
            span: Some(found.span),
            evidence: text(&found.evidence, limits::VALUE_BYTES_MAX),
            loose: found.loose,
            points: self.semantic.detectors.points(found),
            reason: found.kind.reason,
            reference: found.kind.reference,
        }
    }

    fn describe_score(&self, score: &Score) -> SemanticScore {
        let value = &self.buffers.analysis.values()[score.value as usize];
        SemanticScore {
            class: score.class,
            place: value.place,
            name: text(&value.name, limits::TARGET_NAME_BYTES_MAX),
            points: score.points + self.added(score.class),
            threshold: self.semantic.detectors.model(score.detector).threshold(self.semantic.level),
            outcome: self.outcome(score),
        }
    }

    fn sorted_scores(&self) -> Vec<Score> {
        let mut scores: Vec<Score> = self.buffers.analysis.scores(&self.semantic.detectors).collect();
        scores.sort_by(|a, b| self.over(b).total_cmp(&self.over(a)));
        scores
    }

    /// What the rules add to a score of `class`.
    fn added(&self, class: Class) -> f32 {
        self.evidence.iter().find(|(known, _)| *known == class).map_or(0.0, |(_, added)| *added)
    }

    /// The score less the threshold, with what the rules add.
    fn over(&self, score: &Score) -> f32 {
        score.over(self.semantic.level) + self.added(score.class)
    }

    fn outcome(&self, score: &Score) -> FindingOutcome {
        if self.over(score) < 0.0 {
            return FindingOutcome::Below;
        }
        match self.action(score) {
            ClassAction::Off => FindingOutcome::Excluded,
            ClassAction::Block if self.blocked => FindingOutcome::Blocked,
            ClassAction::Block | ClassAction::Log => FindingOutcome::Detected,
        }
    }

    /// What is done about `score` if it passes the threshold.
    fn action(&self, score: &Score) -> ClassAction {
        let value = &self.buffers.analysis.values()[score.value as usize];
        self.semantic.policy.action(score.class, value.place, &value.name, &self.elsewhere)
    }
}
