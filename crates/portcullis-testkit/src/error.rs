//! Errors of finding and reading test data.

use std::fmt;
use std::path::{Path, PathBuf};

/// A failure of the test kit itself, never of the product under test.
#[derive(Debug)]
#[non_exhaustive]
pub enum TestkitError {
    /// Something that the setup should have installed is missing.
    Missing {
        /// The thing that is missing.
        what: &'static str,
        /// The place where it was expected.
        path: PathBuf,
        /// The way to get it.
        how: &'static str,
    },
    /// A file could not be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// A file was read and makes no sense.
    Parse {
        /// The file.
        path: PathBuf,
        /// Its line, where known.
        line: Option<usize>,
        /// The error.
        message: String,
    },
    /// A process or socket of a run did not do its part.
    Run(String),
}

impl TestkitError {
    /// A file or folder that could not be used.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        TestkitError::Io { path: path.as_ref().to_path_buf(), source }
    }

    pub(crate) fn parse(path: impl AsRef<Path>, line: Option<usize>, message: impl fmt::Display) -> Self {
        TestkitError::Parse { path: path.as_ref().to_path_buf(), line, message: message.to_string() }
    }
}

impl fmt::Display for TestkitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TestkitError::Missing { what, path, how } => {
                write!(f, "{what} not found at {}: {how}", path.display())
            }
            TestkitError::Io { path, source } => write!(f, "{}: {source}", path.display()),
            TestkitError::Parse { path, line: Some(line), message } => {
                write!(f, "{}:{line}: {message}", path.display())
            }
            TestkitError::Parse { path, line: None, message } => write!(f, "{}: {message}", path.display()),
            TestkitError::Run(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for TestkitError {}
