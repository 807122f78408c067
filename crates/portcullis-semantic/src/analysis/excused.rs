//! Findings that count for nothing: the field carries them, the operator excludes them, or what stands beside
//! them shows that they do no harm.

use portcullis_learn::FieldPlace;

use super::Analysis;
use crate::detectors::field::Opens;
use crate::detectors::upload;
use crate::{Class, Finding, Place};

/// The id of the exception for fields that carry code.
pub const LEARNED_ROW: &str = "learned-field";

impl Analysis {
    /// The kinds of findings that count for nothing in fields of the next request that carry them, see
    /// `Fields::opened`.
    pub fn open_fields(&mut self, opens: Opens) {
        self.opens = opens;
    }

    /// Has the kinds on trial count for nothing, too. Returns where they stood.
    pub fn open_on_trial(&mut self) -> Vec<(FieldPlace, Box<[u8]>, &'static str)> {
        self.open_from(0, false)
    }

    /// Suppresses the findings from this number on that their field carries.
    pub(super) fn open_from(
        &mut self,
        from: usize,
        is_live: bool,
    ) -> Vec<(FieldPlace, Box<[u8]>, &'static str)> {
        let mut opened = Vec::new();
        let Analysis { findings, values, fields, opens, .. } = self;
        if *opens == Opens::Nothing {
            return opened;
        }
        for found in findings.iter_mut().skip(from).filter(|found| !found.is_suppressed()) {
            let Some(value) = values.get(found.value as usize) else { continue };
            let Some(place) = FieldPlace::of(value.place) else { continue };
            let is_opened = opens.allows(found.class, found.kind)
                && fields
                    .opened(place, &value.name, found.kind.id)
                    .is_some_and(|opened| opened.is_live == is_live);
            if is_opened {
                found.suppress(LEARNED_ROW);
                opened.push((place, value.name.clone(), found.kind.id));
            }
        }
        opened
    }

    /// Marks the findings from this number on that the [`Triage`] excludes.
    pub(super) fn exclude_from(&mut self, from: usize) {
        let Analysis { findings, values, triage: Some(triage), .. } = self else { return };
        for found in &mut findings[from..] {
            if let Some(value) = values.get(found.value as usize) {
                found.excluded = triage.excludes(found.class, found.kind.id, value.place, &value.name);
            }
        }
    }

    /// What was found in the values from number `from` on of one of `classes` is suppressed by exception
    /// `row`.
    pub(crate) fn excuse_from(&mut self, from: usize, classes: &[Class], row: &'static str) {
        let is_one = |found: &&mut Finding| (found.value as usize) >= from && classes.contains(&found.class);
        self.findings.iter_mut().filter(is_one).for_each(|found| found.suppress(row));
    }

    /// What was found in texts of XML from value number `from` on is suppressed by exception `row`.
    pub(crate) fn excuse_texts_from(&mut self, from: usize, row: &'static str) {
        let Analysis { findings, values, .. } = self;
        let is_text = |number: u32| {
            let value = values.get(number as usize);
            (number as usize) >= from && value.is_some_and(|value| value.place == Place::XmlText)
        };
        findings.iter_mut().filter(|found| is_text(found.value)).for_each(|found| found.suppress(row));
    }

    /// Suppresses what was found in the name of a file, value number `name`, if its contents, all of it, show
    /// that it means no harm.
    pub(crate) fn excuse_name(&mut self, name: usize, contents: &[u8]) {
        let is_name = |found: &Finding| found.value as usize == name && upload::is_server_name(found);
        if self.findings.iter().any(is_name)
            && self.work.charge(contents.len())
            && upload::is_harmless(contents)
        {
            let names = self.findings.iter_mut().filter(|found| is_name(found));
            names.for_each(|found| found.suppress("harmless-file"));
        }
    }
}
