//! Decision on an exchange with these findings: scores, the action of the policy, the verdict.

use std::sync::Arc;

use portcullis_engine::Interruption;
use portcullis_event::FindingOutcome;
use portcullis_semantic::detectors::redirect;
use portcullis_semantic::{Score, Triage};
use portcullis_types::{Class, Phase, Place, Severity};

use super::SemanticRun;
use crate::evidence;
use crate::semantic_policy::{ClassAction, SemanticPolicy};
use crate::weighing::Evidence;

/// Status of a blocked request, as a `deny` without a status of its own.
const STATUS: u16 = 403;

impl SemanticRun {
    /// Takes what the rules found and the points of inspection agents as evidence.
    pub(crate) fn weigh_others(&mut self, rules: &[Evidence], agents: u32) {
        self.evidence.clear();
        let analysis = &self.buffers.analysis;
        // Where nothing weighs anything the rules add to nothing.
        for finding in analysis.findings().iter().filter(|finding| !finding.is_suppressed()) {
            let is_known =
                |(class, value, _): &(Class, u32, f32)| *class == finding.class && *value == finding.value;
            let Some(value) = analysis.values().get(finding.value as usize) else { continue };
            if !self.evidence.iter().any(is_known) {
                let about = |rule: &&Evidence| {
                    rule.is_about(finding.class) && rule.spot.has(value.place, &value.name)
                };
                let weight = rules.iter().filter(about).map(|rule| rule.weight).sum();
                self.evidence.push((finding.class, finding.value, evidence::points(weight, agents)));
            }
        }
    }

    /// The action for the findings up to `phase`, if they pass the threshold.
    pub(crate) fn decide(&mut self, phase: Phase, is_blocking: bool) -> Option<Interruption> {
        let analysis = &self.buffers.analysis;
        if analysis.findings().is_empty() {
            return None;
        }
        // Findings in a request were decided on before its response came.
        let is_response = phase > Phase::RequestBody;
        let passing = || {
            let scores = analysis.scores(&self.semantic.detectors).filter(|score| self.over(score) >= 0.0);
            scores.filter(|score| self.place(score).is_response() == is_response)
        };
        let worst = |action| {
            let of_action = passing().filter(|score| self.action(score) == action);
            of_action.max_by(|a, b| self.over(a).total_cmp(&self.over(b)))
        };
        let (score, blocks) = match worst(ClassAction::Block) {
            Some(score) => (score, is_blocking),
            None => (worst(ClassAction::Log)?, false),
        };
        // A detector that only detects continues; what the body has may be worse. An attack tells more than
        // what it leads to.
        if blocks || !is_response || self.verdict.is_none() {
            self.verdict = Some((score, phase));
        }
        self.blocked = blocks;
        blocks.then_some(Interruption::Deny { status: STATUS })
    }

    /// The class that passed the threshold, and the phase.
    pub(crate) fn decision(&self) -> Option<(Class, Phase)> {
        self.verdict.map(|(score, phase)| (score.class, phase))
    }

    /// The class of the findings that decided, and the place of their value.
    pub(crate) fn decided_in(&self) -> Option<(Class, Place)> {
        let (score, _) = self.verdict?;
        let value = self.buffers.analysis.values().get(score.value as usize)?;
        Some((score.class, value.place))
    }

    /// All that passed a threshold is only reported, and no attack: the request is not as the site's API
    /// declares it, or a field carries another type than before.
    pub(crate) fn has_deviations_alone(&self) -> bool {
        let mut passing = self
            .buffers
            .analysis
            .scores(&self.semantic.detectors)
            .filter(|score| self.over(score) >= 0.0 && self.action(score) != ClassAction::Off);
        passing.all(|score| {
            let is_deviation =
                score.class == Class::Api || score.class == Class::Field && !self.is_severe(&score);
            is_deviation && self.action(&score) == ClassAction::Log
        })
    }

    /// The request was blocked for what was found.
    pub(crate) fn has_blocked(&self) -> bool {
        self.blocked
    }

    /// The cookies that alone had the request blocked: the names of what was found in them, such as `prefs`
    /// or `prefs.next`. Empty: something else was found, too, or nothing was blocked.
    pub(crate) fn blocked_cookies(&self) -> Vec<&[u8]> {
        let analysis = &self.buffers.analysis;
        let blocks = |score: &Score| self.over(score) >= 0.0 && self.action(score) == ClassAction::Block;
        let mut names: Vec<&[u8]> = Vec::new();
        for score in analysis.scores(&self.semantic.detectors).filter(|score| self.blocked && blocks(score)) {
            let value = &analysis.values()[score.value as usize];
            if value.place == Place::Cookie {
                // Without a name it is of the whole header, and of one of those with a name, too.
                if !value.name.is_empty() && !names.contains(&&*value.name) {
                    names.push(&value.name);
                }
            } else if !value.place.is_response() {
                return Vec::new();
            }
        }
        names
    }

    /// The answer expires cookies, which the reason is to say.
    pub(crate) fn note_expired(&mut self) {
        self.expires = true;
    }

    /// The points that rules and agents add to a score.
    pub(super) fn added(&self, score: &Score) -> f32 {
        let mut evidence = self.evidence.iter();
        let found = evidence.find(|(class, value, _)| *class == score.class && *value == score.value);
        found.map_or(0.0, |(.., added)| *added)
    }

    /// The score less the threshold, with what the rules add.
    pub(super) fn over(&self, score: &Score) -> f32 {
        score.over(self.semantic.level) + self.added(score)
    }

    pub(crate) fn outcome(&self, score: &Score) -> FindingOutcome {
        let over = self.over(score);
        if over < 0.0 {
            return match over + score.excluded < 0.0 {
                true => FindingOutcome::Below,
                false => FindingOutcome::Excluded,
            };
        }
        match self.action(score) {
            ClassAction::Off => FindingOutcome::Excluded,
            ClassAction::Block if self.blocked => FindingOutcome::Blocked,
            ClassAction::Block | ClassAction::Log => FindingOutcome::Detected,
        }
    }

    /// The action for `score` if it passes the threshold.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a class without a row of its own blocks")]
    pub(super) fn action(&self, score: &Score) -> ClassAction {
        let value = &self.buffers.analysis.values()[score.value as usize];
        let said = self.semantic.policy.action(score.class, value.place, &value.name, &self.elsewhere);
        if score.class == Class::Redirect && !self.leads_elsewhere(score) {
            return ClassAction::Off;
        }
        said.unwrap_or_else(|| match score.class {
            // A page that is not shown costs more than an error message that is; a key or a web shell costs
            // everything.
            Class::Leak if !self.is_severe(score) => ClassAction::Log,
            // Letters where numbers were are no attack.
            Class::Field if !self.blocks_unusual() || !self.is_severe(score) => ClassAction::Log,
            Class::Api if !self.blocks_deviation(score) => ClassAction::Log,
            // Many sites redirect elsewhere on purpose, and none writes such an address so that only browsers
            // see its host. A list of the hosts that are allowed excludes all others.
            Class::Redirect if self.semantic.policy.hosts.is_empty() && !self.is_disguised(score) => {
                ClassAction::Log
            }
            _ => ClassAction::Block,
        })
    }

    fn blocks_unusual(&self) -> bool {
        self.fields.as_ref().is_some_and(|fields| fields.blocks())
    }

    fn blocks_deviation(&self, score: &Score) -> bool {
        let Some(declared) = &self.declared else { return false };
        let mut findings = self.buffers.analysis.findings_of(&self.semantic.detectors, score);
        let place = self.place(score);
        let counts = |found: &portcullis_semantic::Finding| !found.excluded && !found.is_suppressed();
        findings.any(|found| counts(found) && declared.blocks(found.kind.id, place))
    }

    /// The host that a redirect names, the finding's evidence, is neither the one that is asked nor one to
    /// which pages may lead.
    fn leads_elsewhere(&self, score: &Score) -> bool {
        let mut findings = self.buffers.analysis.findings_of(&self.semantic.detectors, score);
        let is_own =
            |host: &[u8]| host.eq_ignore_ascii_case(&self.host) || self.semantic.policy.is_own_host(host);
        findings.any(|found| !found.excluded && !found.is_suppressed() && !is_own(&found.evidence))
    }

    /// The address is written so that who checks it sees no other host.
    fn is_disguised(&self, score: &Score) -> bool {
        let mut findings = self.buffers.analysis.findings_of(&self.semantic.detectors, score);
        findings.any(|found| !found.excluded && redirect::is_disguised(found.kind))
    }

    fn is_severe(&self, score: &Score) -> bool {
        let mut findings = self.buffers.analysis.findings_of(&self.semantic.detectors, score);
        let counts = |found: &portcullis_semantic::Finding| {
            !found.mentioned && !found.excluded && !found.is_suppressed()
        };
        findings.any(|found| counts(found) && found.kind.severity == Severity::Critical)
    }

    pub(super) fn place(&self, score: &Score) -> Place {
        self.buffers.analysis.values()[score.value as usize].place
    }
}

/// Values for which the policy says the same: those that are excluded push no other ones out of the findings.
#[derive(Debug)]
pub(super) struct Actions {
    pub(super) policy: Arc<SemanticPolicy>,
    pub(super) elsewhere: Vec<bool>,
}

impl Triage for Actions {
    fn group(&self, class: Class, place: Place, name: &[u8]) -> u8 {
        match self.policy.action(class, place, name, &self.elsewhere) {
            None => 0,
            Some(ClassAction::Block) => 1,
            Some(ClassAction::Log) => 2,
            Some(ClassAction::Off) => 3,
        }
    }

    fn excludes(&self, class: Class, kind: &str, place: Place, name: &[u8]) -> bool {
        self.policy.excludes(class, kind, place, name, &self.elsewhere)
    }
}
