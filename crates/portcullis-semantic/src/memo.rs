//! Results for repeated header fields and paths: what a browser says of itself is the same in each of
//! its requests, and most requests of a site are for few paths.
//!
//! What is found in them depends on their bytes, the place and the detectors, and on nothing else.

use std::sync::{Arc, Mutex, MutexGuard};

use portcullis_types::{Place, Recent, RecentKey, Sight};

use crate::{Detectors, Finding, Value};

/// Fields whose results are kept.
const FIELDS: usize = 256;
/// Bytes of the name and the value of a field that is kept; longer ones are few.
const FIELD_BYTES_MAX: usize = 512;
/// Paths whose results are kept. They have a table of their own: a site has more of them than its clients
/// have header fields.
const PATHS: usize = 256;
/// Bytes of a path that is kept.
const PATH_BYTES_MAX: usize = 128;
/// Findings of a field that is kept; one with more is an attack.
const FINDINGS_MAX: usize = 8;

/// A cache shared by the analyses of one thread; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Memo(Arc<Mutex<Known>>);

/// The results that some detectors had.
#[derive(Debug)]
pub(crate) struct Known {
    /// Of the detectors that looked. Held, so that no others can have the same address.
    detectors: Option<Arc<()>>,
    fields: Recent<FieldResult>,
    paths: Recent<FieldResult>,
}

/// The cached result for a header field or a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldResult {
    /// What it was charged.
    pub work: u64,
    pub findings: Box<[Finding]>,
    /// The values with findings; those are identified by their number in it.
    pub values: Box<[Value]>,
}

/// A header field, or a path, which has no name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub place: Place,
    pub name: &'a [u8],
    pub value: &'a [u8],
}

impl Memo {
    /// What is known by `detectors`; nothing while another thread has it.
    pub(crate) fn of(&self, detectors: &Detectors) -> Option<MutexGuard<'_, Known>> {
        let mut known = self.0.try_lock().ok()?;
        if !known.detectors.as_ref().is_some_and(|id| Arc::ptr_eq(id, detectors.id())) {
            let detectors = Some(Arc::clone(detectors.id()));
            *known = Known {
                detectors,
                fields: Recent::new(FIELDS, FIELD_BYTES_MAX),
                paths: Recent::new(PATHS, PATH_BYTES_MAX),
            };
        }
        Some(known)
    }
}

impl Default for Known {
    fn default() -> Self {
        Known { detectors: None, fields: Recent::new(1, 0), paths: Recent::new(1, 0) }
    }
}

impl Known {
    pub fn find(&mut self, field: Field<'_>) -> Sight<'_, FieldResult> {
        self.table(field.place).find(&field.key())
    }

    /// Keeps what came of a field that was seen twice, if it may be kept.
    pub fn enter(&mut self, field: Field<'_>, result: FieldResult) {
        if result.findings.len() <= FINDINGS_MAX {
            self.table(field.place).enter(&field.key(), result);
        }
    }

    fn table(&mut self, place: Place) -> &mut Recent<FieldResult> {
        if place == Place::Path { &mut self.paths } else { &mut self.fields }
    }
}

impl Field<'_> {
    fn key(&self) -> RecentKey<'_> {
        RecentKey { kind: self.place as u32, name: self.name, text: self.value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_of_one_set_of_detectors() {
        let (memo, detectors) = (Memo::default(), Detectors::of(Vec::new()).unwrap());
        let mut known = memo.of(&detectors).unwrap();
        assert!(memo.clone().of(&detectors).is_none(), "another thread has it");
        let accept = Field { place: Place::Header, name: b"accept", value: b"*/*" };
        let is_known = |known: &mut Known, field| matches!(known.find(field), Sight::Known(_));
        assert!(!is_known(&mut known, accept) && !is_known(&mut known, accept));
        known.enter(accept, FieldResult { work: 7, ..FieldResult::default() });
        assert!(matches!(known.find(accept), Sight::Known(FieldResult { work: 7, .. })));
        assert!(!is_known(&mut known, Field { place: Place::ResponseHeader, ..accept }));
        drop(known);
        // Other detectors may find something.
        let others = Detectors::of(Vec::new()).unwrap();
        assert!(!is_known(&mut memo.of(&others).unwrap(), accept));
    }
}
