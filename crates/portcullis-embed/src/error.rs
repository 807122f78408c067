//! Mistakes of a policy or a document.

use std::fmt;

use portcullis_config::{ConfigError, NoRoute};
use portcullis_load::LoadError;

/// The reason why there is no engine.
#[derive(Debug)]
pub enum BuildError {
    /// The document cannot be read, or has mistakes.
    Document(ConfigError),
    /// The document does not say which policy is meant.
    Route(NoRoute),
    /// The rules have mistakes.
    Rules(LoadError),
    /// The block page cannot be read.
    BlockPage(portcullis_exchange::PageError),
    /// The settings contradict each other, or name what is not there.
    Setting(String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Document(error) => error.fmt(f),
            BuildError::Route(error) => error.fmt(f),
            BuildError::Rules(error) => error.fmt(f),
            BuildError::BlockPage(error) => error.fmt(f),
            BuildError::Setting(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for BuildError {}

impl From<ConfigError> for BuildError {
    fn from(error: ConfigError) -> BuildError {
        BuildError::Document(error)
    }
}

impl From<NoRoute> for BuildError {
    fn from(error: NoRoute) -> BuildError {
        BuildError::Route(error)
    }
}

impl From<LoadError> for BuildError {
    fn from(error: LoadError) -> BuildError {
        BuildError::Rules(error)
    }
}
