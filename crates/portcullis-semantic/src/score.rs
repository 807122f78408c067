//! From findings to a score: small tables of weights, one for each detector.
//!
//! A value's score for a detector is the logarithm of the odds that it is an attack:
//! `bias + sum of the weights of its features`. Features are the kinds found (one that is only mentioned in a
//! field for text has a weight of its own, written `kind~`), and the place where the value stands
//! ([`CONTEXTS`]). Weights come from the detector's table; a kind that is not in it has the weight of its
//! severity, so that a new detector works before it is trained.
//!
//! No weight of a kind or a context is below zero, and nothing that the sender chooses is a context: neither
//! the text around a finding nor its length, lines or encoding. So nothing that is added to a message lowers
//! a score.

use portcullis_types::{Level, Severity};

use crate::detector::Detector;
use crate::{Class, Finding, Place, Value};

/// The groups of places, see [`Place::group`]. Nothing else about a value counts: the rest is the sender's
/// choice.
pub const CONTEXTS: &[&str] = &[
    "at:line",
    "at:path",
    "at:raw",
    "at:query",
    "at:name",
    "at:form",
    "at:json",
    "at:xml",
    "at:filename",
    "at:file",
    "at:header",
    "at:cookie",
    "at:text",
    "at:response",
];

/// The contexts of a value that stands at `place`, as bits of [`CONTEXTS`].
pub(crate) fn contexts(place: Place) -> u32 {
    let is_of = |name: &&str| name.strip_prefix("at:") == Some(place.group());
    CONTEXTS.iter().position(is_of).map_or(0, |at| 1 << at)
}

/// A mistake in a table of weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// The weights of one detector.
#[derive(Clone, Debug)]
pub struct Model {
    /// The detector's class.
    pub class: Class,
    bias: f32,
    balanced: f32,
    strict: f32,
    /// For each kind: its weight, and its weight where it is only mentioned.
    kinds: Vec<[f32; 2]>,
    contexts: Vec<f32>,
}

impl Model {
    /// The model of `detector`, from its table.
    pub fn new(detector: &dyn Detector) -> Result<Model, WeightsError> {
        Model::parse(detector, detector.profile().weights)
    }

    /// The model of `detector` from `table`: lines of a name, a tab and a number; `#` begins a comment.
    pub fn parse(detector: &dyn Detector, table: &str) -> Result<Model, WeightsError> {
        let mut model = Model {
            class: detector.profile().class,
            bias: -3.5,
            balanced: 0.0,
            strict: -1.0,
            kinds: detector.profile().kinds.iter().map(|kind| prior(kind.severity)).collect(),
            contexts: vec![0.0; CONTEXTS.len()],
        };
        for (index, line) in table.lines().enumerate() {
            let wrong = |message: String| WeightsError { line: index + 1, message };
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (name, number) =
                line.split_once('\t').ok_or_else(|| wrong("a line is a name, a tab and a number".into()))?;
            let weight: f32 =
                number.trim().parse().map_err(|_| wrong(format!("`{number}` is not a number")))?;
            if weight < 0.0 && !matches!(name, "bias" | "threshold.balanced" | "threshold.strict") {
                return Err(wrong(format!(
                    "`{name}` weighs less than nothing: nobody may hide an attack by adding to it"
                )));
            }
            let (plain, mentioned) = match name.strip_suffix('~') {
                Some(plain) => (plain, 1),
                None => (name, 0),
            };
            let kind = detector.profile().kinds.iter().position(|kind| kind.id == plain);
            let context = CONTEXTS.iter().position(|known| *known == name);
            match (name, kind, context) {
                ("bias", _, _) => model.bias = weight,
                ("threshold.balanced", _, _) => model.balanced = weight,
                ("threshold.strict", _, _) => model.strict = weight,
                (_, Some(kind), _) => model.kinds[kind][mentioned] = weight,
                (_, _, Some(context)) => model.contexts[context] = weight,
                _ => return Err(wrong(format!("`{name}` is neither a kind of this detector nor a context"))),
            }
        }
        Ok(model)
    }

    /// The score from which `level` blocks.
    pub fn threshold(&self, level: Level) -> f32 {
        match level {
            Level::Balanced => self.balanced,
            Level::Strict => self.strict,
        }
    }

    pub(crate) fn start(&self, value: &Value) -> f32 {
        let contexts = self.contexts.iter().enumerate();
        self.bias
            + contexts.filter(|(at, _)| value.contexts >> at & 1 == 1).map(|(_, weight)| weight).sum::<f32>()
    }

    pub(crate) fn weight(&self, kind: usize, mentioned: bool) -> f32 {
        self.kinds.get(kind).map_or(0.0, |weights| weights[usize::from(mentioned)])
    }

    pub(crate) fn bias(&self) -> f32 {
        self.bias
    }

    pub(crate) fn context_terms(&self, value: &Value) -> impl Iterator<Item = (String, f32)> {
        let contexts = value.contexts;
        let named = CONTEXTS.iter().zip(&self.contexts).enumerate();
        named
            .filter(move |(at, _)| contexts >> at & 1 == 1)
            .map(|(_, (name, weight))| ((*name).to_owned(), *weight))
    }
}

/// What a finding that is only mentioned weighs of that: a long text mentions many.
const MENTIONED: f32 = 0.1;

/// What all mentions of a value may weigh together: a text that speaks of everything is still no attack. With
/// what is live in it they count up to here; more of them take nothing away.
pub(crate) const MENTIONS_MAX: f32 = 2.5;

/// Weights until some are learned.
fn prior(severity: Severity) -> [f32; 2] {
    let weight = match severity {
        Severity::Emergency | Severity::Alert | Severity::Critical => 4.0,
        Severity::Error => 2.5,
        Severity::Warning => 1.2,
        Severity::Notice | Severity::Info | Severity::Debug => 0.3,
    };
    [weight, weight * MENTIONED]
}

/// The score of one value for one detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The detector's class.
    pub class: Class,
    /// Number of the detector.
    pub detector: usize,
    /// Number of the value.
    pub value: u32,
    /// Logarithm of the odds that it is an attack.
    pub points: f32,
    /// Points of findings that are excluded: they are not in `points`.
    pub excluded: f32,
    /// `points` less the threshold of `balanced`: at or above zero blocks.
    pub over_balanced: f32,
    /// `points` less the threshold of `strict`.
    pub over_strict: f32,
}

impl Score {
    /// `points` less the threshold of `level`.
    pub fn over(&self, level: Level) -> f32 {
        match level {
            Level::Balanced => self.over_balanced,
            Level::Strict => self.over_strict,
        }
    }

    /// True if `level` blocks.
    pub fn blocks(&self, level: Level) -> bool {
        self.over(level) >= 0.0
    }
}

/// The score of one value by `model`, that of `detector`, from its findings and what each weighs.
pub(crate) fn score<'a>(
    model: &Model,
    detector: usize,
    number: u32,
    value: &Value,
    weighed: impl Iterator<Item = (&'a Finding, f32)>,
) -> Option<Score> {
    // What is live and what is only mentioned, of the findings that count and of all.
    let (mut counted, mut all) = ([0.0, 0.0], [0.0, 0.0]);
    let mut any = false;
    for (finding, weight) in weighed {
        any = true;
        all[usize::from(finding.mentioned)] += weight;
        if !finding.excluded {
            counted[usize::from(finding.mentioned)] += weight;
        }
    }
    if !any {
        return None;
    }
    let sum = |[live, mentioned]: [f32; 2]| live + f32::min(mentioned, MENTIONS_MAX);
    let points = sum(counted) + model.start(value);
    Some(Score {
        class: model.class,
        detector,
        value: number,
        points,
        excluded: sum(all) - sum(counted),
        over_balanced: points - model.balanced,
        over_strict: points - model.strict,
    })
}
