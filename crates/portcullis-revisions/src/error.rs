use std::io;

use portcullis_config::ConfigError;

/// The reason why a revision is not made, or not found.
#[derive(Debug)]
pub enum RevisionError {
    /// There is no such revision.
    NotFound,
    /// The document is another one than the change was made for: its entity tag now.
    Changed(String),
    /// The change does not fit the document, and why.
    Unfit(String),
    /// The change needs a user with more rights, and why.
    Forbidden(String),
    /// The new text has mistakes.
    Invalid(ConfigError),
    /// The running program could not use the new text, or could not write it; the old settings serve.
    Refused(String),
    /// Changes are switched off here.
    ReadOnly,
    /// The program is ending.
    Ending,
    /// The document cannot be read.
    Document(io::Error),
    /// The history cannot be read or written.
    History(String),
}

impl std::fmt::Display for RevisionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RevisionError::NotFound => f.write_str("there is no such revision, or it was dropped for its age"),
            RevisionError::Changed(etag) => {
                write!(f, "the document was changed since it was read; its entity tag is now \"{etag}\"")
            }
            RevisionError::Unfit(why) | RevisionError::Forbidden(why) | RevisionError::Refused(why) => f.write_str(why),
            RevisionError::Invalid(error) => error.fmt(f),
            RevisionError::ReadOnly => f.write_str(
                "`admin.read_only` keeps the document from being changed here; change the file where it comes from",
            ),
            RevisionError::Ending => f.write_str("the program is ending"),
            RevisionError::Document(error) => write!(f, "the document cannot be read: {error}"),
            RevisionError::History(error) => write!(f, "the history of the document: {error}"),
        }
    }
}

impl std::error::Error for RevisionError {}

impl From<rusqlite::Error> for RevisionError {
    fn from(error: rusqlite::Error) -> RevisionError {
        RevisionError::History(error.to_string())
    }
}
