//! Facts that loading derives from patterns and word lists, to be kept from one run of the program to the
//! next.

use portcullis_types::ByteSet;

use crate::{Gates, Pcre, WordSet};

/// Names the code that derives [`Facts`]. Facts that other code derived may be wrong for this one.
pub const FACTS_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("PORTCULLIS_MATCH_SOURCES"));

/// The facts about a pattern or a word list once a plan was made with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Capture groups, of a pattern.
    pub group_count: u8,
    /// Its gates, if they were needed, and the alphabet of the second one.
    pub gates: Option<(ByteSet, Gates)>,
}

impl Pcre {
    /// `None` for patterns that are always read anew: those that backtrack, or may be too large.
    pub fn facts(&self) -> Option<Facts> {
        let group_count = u8::try_from(self.group_count()).ok().filter(|_| self.is_lazy())?;
        Some(Facts { group_count, gates: self.gates_cell().known().cloned() })
    }
}

impl WordSet {
    /// Returns the facts about it.
    pub fn facts(&self) -> Facts {
        Facts { group_count: 0, gates: self.gates_cell().known().cloned() }
    }
}
