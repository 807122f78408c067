//! A field of a request.

use std::ops::Range;

use crate::key::FieldPlace;
use crate::profile::Carried;

/// A field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The place.
    pub place: FieldPlace,
    pub(crate) name: Range<u32>,
    /// That of a URL.
    pub(crate) host: Range<u32>,
    /// What it carried.
    pub carried: Carried,
    /// It is a segment of a path that may be the name of a page: that counts, and is unlike nothing.
    pub(crate) is_name: bool,
}
