//! What is wrong with a document.

use std::fmt;

/// Something in a document that is wrong, or not enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer into the document.
    pub pointer: String,
    /// Line, from 1 on, if it is known.
    pub line: Option<u64>,
    /// What it is.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { pointer: pointer.into(), line: None, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer)?;
        }
        f.write_str(&self.message)
    }
}

/// `pointer` with one step more.
pub(crate) fn child(pointer: &str, step: &str) -> String {
    let step = step.replace('~', "~0").replace('/', "~1");
    format!("{pointer}/{step}")
}
