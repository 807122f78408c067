use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::password::PasswordError;

/// Why identities cannot be read or changed.
#[derive(Debug)]
pub enum IdentityError {
    /// A file or folder cannot be used.
    File(PathBuf, io::Error),
    /// Others than its owner may write to the folder.
    Open(PathBuf),
    /// The file was written by a newer version.
    TooNew(i64),
    /// SQLite cannot do what was asked.
    Sqlite(rusqlite::Error),
    /// The system gives no randomness.
    Random,
    /// There is no such object.
    NotFound(&'static str),
    /// A user of this name exists.
    Exists,
    /// The user has a view of this name.
    ViewExists,
    /// A value is not allowed; says what is.
    Invalid(String),
    /// The password is not allowed.
    Password(PasswordError),
    /// The object was changed since it was read.
    Changed,
    /// Nobody could administer any more.
    LastAdmin,
    /// The TOTP code does not fit.
    Code,
    /// The user is disabled.
    Disabled,
    /// The role and the login of this user are the provider's.
    Provided,
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::File(path, error) => write!(f, "{}: {error}", path.display()),
            IdentityError::Open(path) => write!(
                f,
                "{}: other users may write to this folder; run `chmod 700` on it, or name another",
                path.display()
            ),
            IdentityError::TooNew(version) => {
                write!(f, "the file of identities was written by a newer version (schema {version})")
            }
            IdentityError::Sqlite(error) => write!(f, "the file of identities: {error}"),
            IdentityError::Random => f.write_str("the system gives no random numbers"),
            IdentityError::NotFound(what) => write!(f, "there is no such {what}"),
            IdentityError::Exists => f.write_str("there is a user of this name"),
            IdentityError::ViewExists => f.write_str("you have a saved view of this name"),
            IdentityError::Invalid(message) => f.write_str(message),
            IdentityError::Password(error) => error.fmt(f),
            IdentityError::Changed => f.write_str("it was changed since you read it"),
            IdentityError::LastAdmin => {
                f.write_str("this is the last administrator with a password; create another first")
            }
            IdentityError::Code => f.write_str("the code is not right"),
            IdentityError::Disabled => f.write_str("this user is disabled"),
            IdentityError::Provided => f.write_str(
                "this user logs in at the provider of `admin.oidc`: the role follows from the groups there, \
                 and there is no password here",
            ),
        }
    }
}

impl std::error::Error for IdentityError {}

impl From<rusqlite::Error> for IdentityError {
    fn from(error: rusqlite::Error) -> IdentityError {
        IdentityError::Sqlite(error)
    }
}

impl From<PasswordError> for IdentityError {
    fn from(error: PasswordError) -> IdentityError {
        IdentityError::Password(error)
    }
}
