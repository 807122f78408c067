use std::fmt;

use portcullis_types::{Severity, Span};

use crate::{Class, Layer, Place};

/// A thing a detector can find: a feature with a stable name that weights, events and people know.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// `class.what`, stable across versions.
    pub id: &'static str,
    /// How telling it is by itself; sets the weight until one is learned. `Critical` alone is enough to
    /// block, `Error` and `Warning` together are, `Notice` is only context.
    pub severity: Severity,
    /// What it means, in plain language.
    pub reason: &'static str,
    /// Where to read more.
    pub reference: &'static str,
    /// Whether a quotation or a name of a field may lower it.
    pub activity: Activity,
}

/// Whether a text that shows code, or a field whose name stands for code, may lower a finding of a kind. The
/// sender writes the quotation marks, and a name of a field is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// What it names happens wherever the text stands: nothing lowers it.
    Active,
    /// It harms nobody who stores and shows the text, or only computes.
    Quotable,
}

/// Number of a [`Kind`] in its detector's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindId(pub u16);

/// Declares a detector's kinds: a constant [`KindId`] each, and the list of them, `KINDS`. Each says its id,
/// severity, [`Activity`] and reason.
///
/// ```
/// portcullis_semantic::kinds! {
///     reference "https://owasp.org/www-community/attacks/SQL_Injection";
///     TAUTOLOGY "example.tautology" Critical Quotable "a condition that is always true";
/// }
/// assert_eq!(KINDS[TAUTOLOGY.0 as usize].id, "example.tautology");
/// ```
#[macro_export]
macro_rules! kinds {
    (
        reference $reference:literal;
        $($name:ident $id:literal $severity:ident $activity:ident $reason:literal;)*
    ) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(u16)]
        enum KindNumber { $($name,)* }
        $(#[doc = $reason] pub const $name: $crate::KindId = $crate::KindId(KindNumber::$name as u16);)*
        /// All kinds, in the order of their numbers.
        pub static KINDS: &[$crate::Kind] = &[$($crate::Kind {
            id: $id,
            severity: $crate::Severity::$severity,
            reason: $reason,
            reference: $reference,
            activity: $crate::Activity::$activity,
        },)*];
    };
}

/// Something found in a value.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The class.
    pub class: Class,
    /// What was found.
    pub kind: &'static Kind,
    /// Its number in the scorer's table.
    pub(crate) feature: u16,
    /// It is quoted or named in a field that is for text, and weighs less.
    pub mentioned: bool,
    /// It is excluded in this value, and counts for nothing.
    pub excluded: bool,
    /// The exception by which it weighs less, if it is `mentioned`, or else nothing: an id of
    /// [`exceptions`](crate::exceptions).
    pub suppressed_by: Option<&'static str>,
    /// Number of the value in the message, see [`Analysis::values`](crate::Analysis::values).
    pub value: u32,
    /// How the bytes that `span` counts in came from the value.
    pub layers: Layers,
    /// The bytes it stands on, in the decoded value.
    pub span: Span,
    /// Those bytes, cut to [`EVIDENCE_BYTES_MAX`](crate::limits::EVIDENCE_BYTES_MAX).
    pub evidence: Box<[u8]>,
}

impl Finding {
    /// True if an exception takes all of its weight.
    pub fn is_suppressed(&self) -> bool {
        self.suppressed_by.is_some() && !self.mentioned
    }

    /// From now on exception `row` suppresses it.
    pub(crate) fn suppress(&mut self, row: &'static str) {
        debug_assert!(crate::exceptions::find(row).is_some(), "{row} is no exception");
        self.mentioned = false;
        self.suppressed_by = Some(row);
    }
}

/// A value with findings.
#[derive(Clone, Debug)]
pub struct Value {
    /// Where it stands.
    pub place: Place,
    /// Its name, cut to [`NAME_BYTES_MAX`](crate::limits::NAME_BYTES_MAX).
    pub name: Box<[u8]>,
    /// What it looks like, for the score.
    pub(crate) contexts: u32,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", crate::Location::new(self.place, &self.name))
    }
}

/// The decoding steps from a value to the bytes that were looked at, outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    steps: [Option<Layer>; crate::limits::LAYERS_MAX],
}

impl Layers {
    /// One step more, or `None` if there are too many.
    pub fn then(mut self, layer: Layer) -> Option<Layers> {
        let free = self.steps.iter_mut().find(|step| step.is_none())?;
        *free = Some(layer);
        Some(self)
    }

    /// The steps.
    pub fn iter(&self) -> impl Iterator<Item = Layer> + '_ {
        self.steps.iter().map_while(|step| *step)
    }

    /// True for the value itself.
    pub fn is_empty(&self) -> bool {
        self.steps[0].is_none()
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in self.iter().enumerate() {
            write!(f, "{}{}", if n > 0 { ">" } else { "" }, step.name())?;
        }
        Ok(())
    }
}
