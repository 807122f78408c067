//! What is kept of a profile to judge values by.

use super::{Carried, Closed, Form, OPTIONS_MAX, Profile};
use crate::bytes::Syntax;
use crate::opening::OpeningState;
use crate::source::Thresholds;
use crate::value::{Shape, TypeSet, ValueType};

/// What a value that is unlike its field shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusual {
    /// Its type.
    pub kind: ValueType,
    /// Bytes of code in it that the field never had.
    pub syntax: Syntax,
    /// What the field is known to carry.
    pub evidence: std::sync::Arc<str>,
}

/// What is needed to judge the values of a closed field, and to tell what is nothing new in any.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    closed: Option<(Closed, TypeSet)>,
    /// It has carried enough to tell what is nothing new.
    is_settled: bool,
    /// Values of these types may be nothing new, and are not unlike it for their type.
    usual: TypeSet,
    /// It is closed as a list.
    is_list: bool,
    /// The types that it has carried.
    types: TypeSet,
    /// The classes of bytes of code that it has shown.
    syntax: Syntax,
    /// Bytes of its shortest and its longest value.
    bytes: (u32, u32),
    /// Hashes of its values while they are few.
    options: Box<[u64]>,
    evidence: std::sync::Arc<str>,
    /// Kinds that count for nothing here, or are on trial for it.
    pub openings: Box<[Opened]>,
}

/// A kind of finding in a field that carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The kind.
    pub kind: Box<str>,
    /// It counts for nothing; else that is on trial.
    pub is_live: bool,
    /// Who has shown it.
    pub evidence: std::sync::Arc<str>,
}

impl Known {
    pub fn of(profile: &Profile, thresholds: &Thresholds) -> Known {
        let closed = profile.closed.map(|closed| match closed.form {
            Form::Type(kind) => (closed, kind.covers()),
            Form::Enumeration => (closed, TypeSet::default()),
        });
        let evidence = closed.as_ref().map_or_else(Default::default, |_| profile.evidence().into());
        let openings = profile.openings.iter().filter_map(|(kind, opening)| {
            let is_live = opening.state == OpeningState::Live;
            (is_live || opening.state == OpeningState::Trial).then(|| Opened {
                kind: kind.as_str().into(),
                is_live,
                evidence: opening.evidence().into(),
            })
        });
        let types: TypeSet = profile.types.keys().copied().collect();
        let is_settled = profile.all.values >= thresholds.values || closed.is_some();
        let is_list = closed.is_some_and(|(closed, _)| closed.form == Form::Enumeration);
        Known {
            is_settled,
            usual: match closed {
                _ if !is_settled => TypeSet::default(),
                Some((_, covered)) if !is_list => types.both(covered),
                _ => types,
            },
            is_list,
            closed,
            types,
            syntax: profile.syntax_where(|_| true),
            bytes: profile.bytes,
            options: profile.options.as_slice().into(),
            evidence,
            openings: openings.collect(),
        }
    }

    /// It has carried enough to tell what is nothing new.
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// True if the value is as a closed field has them, or the field is open.
    #[inline]
    fn fits(&self, carried: &Carried) -> bool {
        match &self.closed {
            None => true,
            Some((Closed { form: Form::Type(_), .. }, covered)) => covered.has(carried.shape.kind),
            Some((Closed { form: Form::Enumeration, .. }, _)) => {
                self.options.contains(&carried.option) && self.is_of_shape(carried)
            }
        }
    }

    /// What is unlike a closed field in the value.
    pub fn judge(&self, carried: &Carried) -> Option<Unusual> {
        let (closed, _) = self.closed.as_ref()?;
        (!self.fits(carried)).then(|| Unusual {
            kind: carried.shape.kind,
            syntax: carried.shape.syntax.without(closed.shown),
            evidence: self.evidence.clone(),
        })
    }

    /// A number of all that is learned of the value but for how many there are; none if it shows something
    /// new or is unlike the field, or if the field is not known well enough to tell.
    #[inline]
    pub fn usual(&self, carried: &Carried) -> Option<u64> {
        if !self.usual.has(carried.shape.kind) || !self.is_within(carried) {
            return None;
        }
        let is_option = carried.option != 0;
        let is_other = !is_option || !self.options.contains(&carried.option);
        // One that is not in a list is unlike it, and a list that may still grow takes it up.
        if is_other && (self.is_list || is_option && self.options.len() < OPTIONS_MAX) {
            return None;
        }
        let Shape { kind, syntax } = carried.shape;
        Some(u64::from(syntax.bits()) << 16 | (kind as u64) << 1 | u64::from(is_other))
    }

    /// Its type, its length and its bytes of code are among those that the field has carried. An attacker who
    /// finds another value with the hash of one of a list is bound by them.
    fn is_of_shape(&self, carried: &Carried) -> bool {
        self.types.has(carried.shape.kind) && self.is_within(carried)
    }

    #[inline]
    fn is_within(&self, carried: &Carried) -> bool {
        (self.bytes.0..=self.bytes.1).contains(&carried.bytes)
            && carried.shape.syntax.without(self.syntax).is_empty()
    }
}
