//! The detectors with what weighs their findings.

use std::sync::Arc;

use crate::detector::Detector;
use crate::gate::Gate;
use crate::score::Model;
use crate::{Class, Finding, Kind, WeightsError};

/// The detectors with their gate and weights. Built once, shared by all threads, never changed.
#[derive(Debug)]
pub struct Detectors {
    pub(crate) list: Vec<Box<dyn Detector>>,
    pub(super) gate: Gate,
    pub(super) models: Vec<Model>,
    /// The first feature number of each detector.
    pub(super) bases: Vec<u16>,
    /// For each detector the numbers of all those of its class, ascending.
    pub(super) of_class: Vec<Vec<usize>>,
    /// The one that notes what no text shows, if it is among them.
    pub(super) protocol: Option<usize>,
    /// Tells them from others.
    pub(super) id: Arc<()>,
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
        let of_class = |class| {
            let numbers = list.iter().enumerate().filter(move |(_, other)| other.profile().class == class);
            numbers.map(|(number, _)| number).collect::<Vec<usize>>()
        };
        let of_class: Vec<_> = list.iter().map(|detector| of_class(detector.profile().class)).collect();
        let protocol = list.iter().position(|detector| detector.profile().class == Class::Protocol);
        Ok(Detectors { list, gate, models, bases, of_class, protocol, id: Arc::default() })
    }

    /// All kinds, with the class and the number of their detector.
    pub fn kinds(&self) -> impl Iterator<Item = (usize, Class, &'static Kind)> + '_ {
        self.list.iter().enumerate().flat_map(|(number, detector)| {
            detector.profile().kinds.iter().map(move |kind| (number, detector.profile().class, kind))
        })
    }

    /// The same for these detectors only.
    pub(crate) fn id(&self) -> &Arc<()> {
        &self.id
    }

    /// The number of the detector that has this feature.
    pub(super) fn number_of(&self, feature: u16) -> usize {
        self.bases.partition_point(|base| *base <= feature) - 1
    }

    /// The first detector of the same class, which stands for the class.
    pub(super) fn class_of(&self, detector: usize) -> usize {
        self.of_class[detector][0]
    }

    /// What `finding` adds to the score of its class.
    pub fn points(&self, finding: &Finding) -> f32 {
        let detector = self.number_of(finding.feature);
        match finding.is_suppressed() {
            true => 0.0,
            false => {
                let kind = usize::from(finding.feature - self.bases[detector]);
                self.models[detector].weight(kind, finding.mentioned)
            }
        }
    }

    /// What `finding` adds to a score of its class by `detector`; `None` if it is of another class.
    pub(super) fn weight(&self, finding: &Finding, detector: usize) -> Option<f32> {
        let finder = self.number_of(finding.feature);
        let is_counted = finder == detector || !finding.mentioned;
        self.of_class[detector].contains(&finder).then(|| if is_counted { self.points(finding) } else { 0.0 })
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
