//! Learning of the fields of a site from an exchange.

use std::net::IpAddr;

use portcullis_learn::{FieldPlace, TryResult};
use portcullis_semantic::Score;
use portcullis_types::{Class, Phase, Place};

use super::SemanticRun;
use crate::fields::note_unusual;
use crate::semantic_policy::ClassAction;
use crate::weighing::Evidence;

impl SemanticRun {
    /// Looks for values that are unlike their fields, once the request is there as a whole.
    pub(crate) fn judge_fields(&mut self, rules: impl FnOnce() -> Vec<Evidence>) {
        let SemanticRun { semantic, buffers, host, fields, declared, .. } = self;
        let (analysis, detectors) = (&mut buffers.analysis, &*semantic.detectors);
        let is_own = |name: &[u8]| name.eq_ignore_ascii_case(host) || semantic.policy.is_own_host(name);
        if let Some(fields) = fields {
            fields.judge(analysis, detectors, rules, is_own);
        } else if let Some(declared) = declared
            && declared.judges()
        {
            note_unusual(analysis, detectors, rules);
        }
    }

    /// Has the fields learned of a request that was answered well, unless the detector or, if it is not
    /// `is_clean`, a rule would have refused it. The kinds of findings that they carried are learned anyway.
    /// What would have had it refused is noted with the field, if it was all in one.
    pub(crate) fn learn_fields(
        &self,
        is_clean: bool,
        rules: impl FnOnce() -> Vec<Evidence>,
        client: IpAddr,
        epoch_millis: u64,
    ) {
        let Some(fields) = &self.fields else { return };
        if fields.teach(true, &self.buffers.analysis, client, epoch_millis) {
            return;
        }
        if is_clean && !self.has_verdict() {
            fields.learn(&self.buffers.analysis, client, epoch_millis);
        } else {
            self.learn_refusal(rules, client, epoch_millis);
        }
        if self.has_findings() {
            fields.learn_kinds(true, &self.buffers.analysis, client, epoch_millis);
        }
    }

    /// Has the kinds learned for which a request was refused, if its source is trusted; and of one that the
    /// detector or, if it is not `is_clean`, a rule has refused, the field if it was all in one.
    pub(crate) fn learn_refused(
        &self,
        is_clean: bool,
        rules: impl FnOnce() -> Vec<Evidence>,
        client: IpAddr,
        epoch_millis: u64,
    ) {
        let Some(fields) = &self.fields else { return };
        if fields.teach(false, &self.buffers.analysis, client, epoch_millis) {
            return;
        }
        if !is_clean || self.has_verdict() {
            self.learn_refusal(rules, client, epoch_millis);
        }
        if self.blocked && self.has_findings() {
            fields.learn_kinds(false, &self.buffers.analysis, client, epoch_millis);
        }
    }

    /// The detector would have the request refused, for what it would be in any other site.
    fn has_verdict(&self) -> bool {
        let is_own = |score: &Score| matches!(score.class, Class::Field | Class::Api);
        self.verdict.as_ref().is_some_and(|(score, _)| !is_own(score))
    }

    fn learn_refusal(&self, rules: impl FnOnce() -> Vec<Evidence>, client: IpAddr, epoch_millis: u64) {
        let Some(fields) = &self.fields else { return };
        let analysis = &self.buffers.analysis;
        if let Some(lone) = self.lone_field(&rules()) {
            fields.learn_refused(lone, analysis, client, epoch_millis);
        }
    }

    /// The only field of the request in which the detector or `rules` found anything that counts.
    fn lone_field(&self, rules: &[Evidence]) -> Option<(FieldPlace, &[u8])> {
        let analysis = &self.buffers.analysis;
        let counting = analysis.findings().iter().filter(|found| !found.excluded && !found.is_suppressed());
        let mut lone = None;
        for found in counting {
            let value = analysis.values().get(found.value as usize)?;
            // The whole query and the whole body have what their fields have; the answer is not the request's
            // doing.
            if matches!(value.place, Place::QueryString | Place::RawBody) || value.place.is_response() {
                continue;
            }
            let here = self.noted(value)?;
            if *lone.get_or_insert(here) != here {
                return None;
            }
        }
        for rule in rules.iter().filter(|rule| rule.weight > 0.0 && !rule.spot.is_of_many()) {
            let has = |(place, name): (FieldPlace, &[u8])| rule.spot.has(place.place(), name);
            match lone {
                Some(here) if has(here) => {}
                Some(_) => return None,
                None => {
                    let fields = analysis.noted_fields();
                    lone = fields.iter().map(|(field, name)| (field.place, name)).find(|here| has(*here));
                    lone?;
                }
            }
        }
        lone
    }

    /// The field of the request that this value is of.
    fn noted<'a>(&'a self, value: &'a portcullis_semantic::Value) -> Option<(FieldPlace, &'a [u8])> {
        if let Some(place) = FieldPlace::of(value.place) {
            return Some((place, &value.name));
        }
        let mut noted = self.buffers.analysis.noted_fields().iter();
        let (field, name) = if let Place::Header | Place::Cookie = value.place {
            noted.find(|(field, name)| {
                field.place.place() == value.place && name.eq_ignore_ascii_case(&value.name)
            })?
        } else if let Place::Path | Place::PathSegment = value.place {
            let has_code = |field: &portcullis_learn::Field| !field.carried.shape.syntax.is_empty();
            let mut segments =
                noted.filter(|(field, _)| field.place == FieldPlace::PathSegment && has_code(field));
            let first = segments.next()?;
            segments.next().is_none().then_some(first)?
        } else {
            return None;
        };
        Some((field.place, name))
    }

    /// Notes what would have become of the request, which was stopped or would have been, if the kinds on
    /// trial had counted for nothing; `is_matched` if rules object to it, too. To be called last: they count
    /// for nothing from now on.
    pub(crate) fn try_openings(&mut self, is_matched: bool, client: IpAddr, epoch_millis: u64) {
        let stops = |(score, phase): &(Score, Phase)| {
            *phase <= Phase::RequestBody && self.action(score) == ClassAction::Block
        };
        let is_tried = self.fields.as_ref().is_some_and(|fields| fields.tries());
        if !is_tried || !self.verdict.as_ref().is_some_and(stops) {
            return;
        }
        let opened = self.buffers.analysis.open_on_trial();
        if opened.is_empty() {
            return;
        }
        let analysis = &self.buffers.analysis;
        let counts = |found: &&portcullis_semantic::Finding| !found.excluded && !found.is_suppressed();
        // What nothing is left of, the rules add to no more.
        self.evidence.retain(|(class, value, _)| {
            let mut left = analysis.findings().iter().filter(counts);
            left.any(|found| found.class == *class && found.value == *value)
        });
        let scores = analysis.scores(&self.semantic.detectors);
        let mut of_request = scores.filter(|score| !self.place(score).is_response());
        let is_stopped =
            of_request.any(|score| self.over(&score) >= 0.0 && self.action(&score) == ClassAction::Block);
        let is_request = |found: &portcullis_semantic::Finding| {
            let value = analysis.values().get(found.value as usize);
            value.is_some_and(|value| !value.place.is_response())
        };
        let result = match () {
            () if is_stopped => TryResult::Stopped,
            () if is_matched || analysis.findings().iter().filter(counts).any(is_request) => TryResult::Lost,
            () => TryResult::Passes,
        };
        if let Some(fields) = &self.fields {
            fields.note_trial(&opened, result, &self.buffers.analysis, (client, epoch_millis));
        }
    }
}
