//! Collects the mistakes that the checks of the parts of a document find.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// A mistake: its place in the text, the message, and a hint where there is one.
pub(crate) type Found = (Range<usize>, String, Option<String>);

/// The mistakes of one document so far.
pub(crate) struct Mistakes<'a> {
    base: &'a Path,
    found: Vec<Found>,
}

impl<'a> Mistakes<'a> {
    /// None yet. Relative paths in the document start from `base`.
    pub(crate) fn new(base: &'a Path) -> Self {
        Mistakes { base, found: Vec::new() }
    }

    pub(crate) fn wrong(&mut self, span: Range<usize>, message: String) {
        self.found.push((span, message, None));
    }

    pub(crate) fn wrong_with_hint(&mut self, span: Range<usize>, message: String, hint: String) {
        self.found.push((span, message, Some(hint)));
    }

    /// A path that the document names.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    pub(crate) fn into_found(self) -> Vec<Found> {
        self.found
    }
}
