use std::fmt;

use portcullis_types::Place;

use crate::detectors::purpose;

/// A place and the name of what stands there (`Query` `q`, `Header` `Referer`); the name is empty where there
/// is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// The place.
    pub place: Place,
    /// The name, as sent.
    pub name: &'a [u8],
}

impl<'a> Location<'a> {
    /// `place` with a name.
    pub fn new(place: Place, name: &'a [u8]) -> Location<'a> {
        Location { place, name }
    }

    /// True if the site made the field for texts, markup, code or statements, as its name and place say: what
    /// is quoted there is no attack by itself. Always false for queries, headers, cookies and paths, and for
    /// names that two readers take differently.
    pub fn takes_documents(self) -> bool {
        purpose::takes_documents(self)
    }

    /// `place` without a name.
    pub fn of(place: Place) -> Location<'static> {
        Location { place, name: b"" }
    }
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.place.name())?;
        match self.name.is_empty() {
            true => Ok(()),
            false => write!(f, ":{}", self.name.escape_ascii()),
        }
    }
}
