//! The reason why a configuration cannot be migrated at all.

use std::fmt;

/// A mistake that ends the migration: a file that cannot be read, a text that is not in its syntax, a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// `file:line`, or the file alone.
    place: String,
    message: String,
    help: Option<String>,
}

impl Error {
    /// What is wrong at a place.
    pub(crate) fn new(place: impl Into<String>, message: impl Into<String>) -> Error {
        Error { place: place.into(), message: message.into(), help: None }
    }

    /// With what to do about it.
    pub(crate) fn with_help(self, help: impl Into<String>) -> Error {
        Error { help: Some(help.into()), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
