use std::fmt;

/// A mistake in a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The byte at which it begins.
    pub at: usize,
    /// The character at which it begins, from 1.
    pub column: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Mistake {
    pub(crate) fn new(text: &str, at: usize, message: impl Into<String>) -> Mistake {
        let column = text.get(..at).map_or(0, |before| before.chars().count()) + 1;
        Mistake { at, column, message: message.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for Mistake {}
