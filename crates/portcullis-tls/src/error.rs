//! An error that keeps a process from starting, or from taking new settings.

use std::path::Path;

/// The operator's mistake, or the machine's: an address in use, a file that is missing or wrong.
#[derive(Debug)]
pub struct StartError {
    message: String,
}

impl StartError {
    /// An error that says this.
    pub fn new(message: String) -> Self {
        StartError { message }
    }

    /// An error about a file.
    pub fn file(path: &Path, error: impl std::fmt::Display) -> Self {
        StartError { message: format!("{}: {error}", path.display()) }
    }
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StartError {}
