//! One message: values in, findings and scores out.

use portcullis_types::Span;

use crate::detector::{Detector, Found, Input};
use crate::gate::Gate;
use crate::limits::{FORM_BYTES_FACTOR, FORM_BYTES_SPARE, FORMS_MAX, NAME_BYTES_MAX};
use crate::score::{self, Model, Score};
use crate::{
    ByteGroups, Class, Finding, Kind, KindId, Layers, Level, Location, Place, Value, WeightsError, decode,
};

/// The detectors with their gate and weights. Built once, shared by all threads, never changed.
#[derive(Debug)]
pub struct Detectors {
    pub(crate) list: Vec<Box<dyn Detector>>,
    gate: Gate,
    models: Vec<Model>,
    /// The first feature number of each detector.
    bases: Vec<u16>,
}

impl Detectors {
    /// All detectors of the product.
    pub fn new() -> Detectors {
        Detectors::of(crate::detectors::all()).unwrap_or_else(|(detector, error)| {
            // The tables are part of the program; a test reads each.
            unreachable!("weights of {detector}, line {}: {}", error.line, error.message)
        })
    }

    /// These detectors. A mistake in a table of weights comes with its class.
    pub fn of(list: Vec<Box<dyn Detector>>) -> Result<Detectors, (Class, WeightsError)> {
        let gate = Gate::new(&list);
        let mut bases = Vec::with_capacity(list.len());
        let mut models = Vec::with_capacity(list.len());
        let mut next = 0u16;
        for detector in &list {
            bases.push(next);
            next += detector.profile().kinds.len() as u16;
            models.push(Model::new(detector.as_ref()).map_err(|error| (detector.profile().class, error))?);
        }
        Ok(Detectors { list, gate, models, bases })
    }

    /// All kinds, with the class and the number of their detector.
    pub fn kinds(&self) -> impl Iterator<Item = (usize, Class, &'static Kind)> + '_ {
        self.list.iter().enumerate().flat_map(|(number, detector)| {
            detector.profile().kinds.iter().map(move |kind| (number, detector.profile().class, kind))
        })
    }

    /// What `finding` adds to the score of its class.
    pub fn points(&self, finding: &Finding) -> f32 {
        let detector = self.bases.partition_point(|base| *base <= finding.feature) - 1;
        self.models[detector].weight(usize::from(finding.feature - self.bases[detector]), finding.loose)
    }

    /// The model of detector number `detector`.
    pub fn model(&self, detector: usize) -> &Model {
        &self.models[detector]
    }
}

impl Default for Detectors {
    fn default() -> Self {
        Detectors::new()
    }
}

/// The analysis of one message. Keep it for the next one: its buffers are reused.
#[derive(Debug, Default)]
pub struct Analysis {
    findings: Vec<Finding>,
    dropped: u32,
    /// Bytes of files that were not looked at.
    pub(crate) left_out: u64,
    values: Vec<Value>,
    arena: Vec<u8>,
    forms: Vec<Form>,
    spare: Vec<u8>,
    /// Decoded pieces of the message, see `message.rs`.
    pub(crate) pieces: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Form {
    span: Span,
    layers: Layers,
}

impl Analysis {
    /// An analysis with nothing in it.
    pub fn new() -> Analysis {
        Analysis::default()
    }

    /// Forgets the message before.
    pub fn clear(&mut self) {
        self.findings.clear();
        self.values.clear();
        self.dropped = 0;
        self.left_out = 0;
    }

    /// Looks at one value, which stands at `location`, as it is and in every form that decoding makes of it.
    pub fn value(&mut self, detectors: &Detectors, location: Location<'_>, bytes: &[u8]) {
        let groups = ByteGroups::of(bytes);
        let is_plain = decode::is_plain(bytes, groups);
        if is_plain && groups.is_within(ByteGroups::ALPHANUMERIC) && location.place.is_value() {
            return;
        }
        let before = self.findings.len();
        self.detect(detectors, location, bytes, groups, Layers::default());
        if !is_plain && location.place.is_value() {
            self.forms(detectors, location, bytes, groups);
        }
        if self.findings.len() > before {
            let name = &location.name[..location.name.len().min(NAME_BYTES_MAX)];
            let contexts = score::contexts(location.place, bytes);
            self.values.push(Value { place: location.place, name: name.into(), contexts });
        }
    }

    /// Notes something about the message that no text shows: `kind` of the detector of `class`, with a word of evidence.
    pub fn note(
        &mut self,
        detectors: &Detectors,
        location: Location<'_>,
        class: Class,
        kind: KindId,
        evidence: &[u8],
    ) {
        let Some(number) = detectors.list.iter().position(|detector| detector.profile().class == class)
        else {
            return;
        };
        let before = self.findings.len();
        self.found(detectors, number, evidence, Layers::default()).add(kind, Span::new(0, evidence.len()));
        if self.findings.len() > before {
            let contexts = score::contexts(location.place, b"");
            self.values.push(Value { place: location.place, name: location.name.into(), contexts });
        }
    }

    /// What was found, in order.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Findings that were not kept.
    pub fn findings_dropped(&self) -> u32 {
        self.dropped
    }

    /// Bytes of uploaded files beyond [`FILE_BYTES_MAX`](crate::limits::FILE_BYTES_MAX), which were not looked at.
    pub fn bytes_left_out(&self) -> u64 {
        self.left_out
    }

    /// The findings that `score` counts.
    pub fn findings_of<'a>(
        &'a self,
        detectors: &'a Detectors,
        score: &Score,
    ) -> impl Iterator<Item = &'a Finding> {
        let base = detectors.bases[score.detector];
        let features = base..base + detectors.list[score.detector].profile().kinds.len() as u16;
        self.findings_in(score.value).iter().filter(move |finding| features.contains(&finding.feature))
    }

    /// The values with findings; [`Finding::value`] is a number in it.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The score of each value for each detector that found something in it.
    pub fn scores<'a>(&'a self, detectors: &'a Detectors) -> impl Iterator<Item = Score> + 'a {
        self.values.iter().enumerate().flat_map(move |(number, value)| {
            let models = detectors.models.iter().zip(&detectors.bases).enumerate();
            models.filter_map(move |(detector, (model, &base))| {
                score::score(model, detector, base, number as u32, value, self.findings_in(number as u32))
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
    pub fn worst(&self, detectors: &Detectors, level: Level) -> Option<Score> {
        if self.findings.is_empty() {
            return None;
        }
        self.scores(detectors).max_by(|a, b| a.over(level).total_cmp(&b.over(level)))
    }

    /// The features of a score and what each adds, for people and for training.
    pub fn terms(&self, detectors: &Detectors, score: &Score) -> Vec<(String, f32)> {
        let model = &detectors.models[score.detector];
        let mut terms = vec![("bias".to_owned(), model.bias())];
        let mut decoded = false;
        for finding in self.findings_of(detectors, score) {
            let mark = if finding.loose { "~" } else { "" };
            terms.push((format!("{}{mark}", finding.kind.id), detectors.points(finding)));
            decoded |= score::is_decoded(finding.layers);
        }
        if let Some(value) = self.values.get(score.value as usize) {
            terms.extend(model.context_terms(value));
        }
        if decoded {
            terms.push(("via:decoded".to_owned(), model.decoded()));
        }
        terms
    }

    fn forms(&mut self, detectors: &Detectors, location: Location<'_>, bytes: &[u8], groups: ByteGroups) {
        let bytes_max = bytes.len().saturating_mul(FORM_BYTES_FACTOR).saturating_add(FORM_BYTES_SPARE);
        self.arena.clear();
        self.forms.clear();
        let (arena, forms) = (&mut self.arena, &mut self.forms);
        let mut keep = |arena: &mut Vec<u8>, layers: Layers, layer, form: &[u8]| {
            let Some(layers) = layers.then(layer) else { return };
            if forms.len() < FORMS_MAX && arena.len() + form.len() <= bytes_max {
                forms.push(Form { span: Span::new(arena.len(), arena.len() + form.len()), layers });
                arena.extend_from_slice(form);
            }
        };
        let mut spare = std::mem::take(&mut self.spare);
        decode::unwrap(bytes, groups, Layers::default(), &mut spare, &mut |layer, form| {
            keep(arena, Layers::default(), layer, form);
        });
        let mut next = 0;
        while let Some(&form) = self.forms.get(next) {
            next += 1;
            let arena = std::mem::take(&mut self.arena);
            let text = form.span.of(&arena);
            let groups = ByteGroups::of(text);
            self.detect(detectors, location, text, groups, form.layers);
            let mut more = std::mem::take(&mut self.pieces);
            more.clear();
            if !decode::is_plain(text, groups) {
                let start = arena.len();
                let forms = &mut self.forms;
                decode::unwrap(text, groups, form.layers, &mut spare, &mut |layer, made| {
                    let Some(layers) = form.layers.then(layer) else { return };
                    let at = start + more.len();
                    if forms.len() < FORMS_MAX && at + made.len() <= bytes_max {
                        forms.push(Form { span: Span::new(at, at + made.len()), layers });
                        more.extend_from_slice(made);
                    }
                });
            }
            self.arena = arena;
            self.arena.extend_from_slice(&more);
            self.pieces = more;
        }
        self.spare = spare;
    }

    fn detect(
        &mut self,
        detectors: &Detectors,
        location: Location<'_>,
        text: &[u8],
        groups: ByteGroups,
        layers: Layers,
    ) {
        let candidates = detectors.gate.candidates(text, groups, location.place);
        if candidates.is_empty() {
            return;
        }
        let is_json = location.place.is_value() && decode::is_json(text, groups);
        for number in candidates {
            let input = Input { text, groups, location, layers, is_json };
            let mut found = self.found(detectors, number, text, layers);
            detectors.list[number].detect(&input, &mut found);
        }
    }

    fn found<'a>(
        &'a mut self,
        detectors: &Detectors,
        number: usize,
        text: &'a [u8],
        layers: Layers,
    ) -> Found<'a> {
        let detector = &detectors.list[number];
        Found {
            class: detector.profile().class,
            kinds: detector.profile().kinds,
            base: detectors.bases[number],
            value: self.values.len() as u32,
            text,
            layers,
            findings: &mut self.findings,
            dropped: &mut self.dropped,
        }
    }
}

/// True if the path is to be taken apart: it has something besides letters, digits and the usual signs.
pub(crate) fn is_odd_path(path: &[u8]) -> bool {
    const USUAL: ByteGroups = ByteGroups::of(b"az09/-_.~");
    !ByteGroups::of(path).is_within(USUAL)
}

/// The place of a path's segment.
pub(crate) const SEGMENT: Location<'static> = Location { place: Place::PathSegment, name: b"" };
