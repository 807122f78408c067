//! Fields whose types are declared, beside those that are learned.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::key::FieldPlace;
use crate::path;
use crate::profile::{Carried, Unusual};
use crate::value::{TypeSet, classify};

/// What is declared of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredField {
    types: TypeSet,
    /// Hashes of single values that it may carry beside those types.
    options: Box<[u64]>,
    /// Free text: it carries anything, and nothing in it is unusual.
    is_open: bool,
    evidence: Arc<str>,
}

impl DeclaredField {
    /// A field of free text.
    pub fn open() -> DeclaredField {
        DeclaredField {
            types: TypeSet::default(),
            options: Box::default(),
            is_open: true,
            evidence: "".into(),
        }
    }

    /// A field of values of these types; `evidence` is what findings say of it.
    pub fn of_types(types: TypeSet, evidence: &str) -> DeclaredField {
        DeclaredField { types, options: Box::default(), is_open: false, evidence: evidence.into() }
    }

    /// The same, and these values, whatever their type.
    pub fn with_values<'v>(mut self, values: impl Iterator<Item = &'v [u8]>) -> DeclaredField {
        let mut options = self.options.to_vec();
        for value in values {
            let carried = Carried::of(FieldPlace::Query, value, classify(value, |_| false));
            match carried.option {
                // Those that no list is kept of are known by their type.
                0 => self.types = self.types | TypeSet::of(&[carried.shape.kind]),
                option => options.push(option),
            }
        }
        self.options = options.into();
        self
    }

    fn judge(&self, carried: &Carried) -> Option<Unusual> {
        let fits = self.is_open
            || self.types.has(carried.shape.kind)
            || carried.option != 0 && self.options.contains(&carried.option);
        (!fits).then(|| Unusual {
            kind: carried.shape.kind,
            syntax: carried.shape.syntax,
            evidence: Arc::clone(&self.evidence),
        })
    }
}

/// The declared fields of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredFields {
    /// By name, in the one form under which fields are known.
    fields: BTreeMap<Vec<u8>, Vec<(FieldPlace, DeclaredField)>>,
}

impl DeclaredFields {
    /// Adds a field. One that is declared twice may carry what either declares.
    pub fn add(&mut self, place: FieldPlace, name: &[u8], field: DeclaredField) {
        let mut canonical = Vec::new();
        if !path::name(place.place(), name, &mut canonical) {
            return;
        }
        let known = self.fields.entry(canonical).or_default();
        match known.iter_mut().find(|(own, _)| *own == place) {
            Some((_, known)) => {
                known.is_open |= field.is_open;
                known.types = known.types | field.types;
                known.options = known.options.iter().chain(&*field.options).copied().collect();
            }
            None => known.push((place, field)),
        }
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// What is unlike the declaration in the value that a field carries, if the field is declared.
    pub(crate) fn judge(
        &self,
        place: FieldPlace,
        name: &[u8],
        carried: &Carried,
        canonical: &mut Vec<u8>,
    ) -> Option<Option<Unusual>> {
        if !path::name(place.place(), name, canonical) {
            return None;
        }
        let known = self.fields.get(canonical.as_slice())?;
        known.iter().find(|(own, _)| *own == place).map(|(_, field)| field.judge(carried))
    }
}
