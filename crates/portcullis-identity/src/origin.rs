use rusqlite::Row;

/// Who knows a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This file: they log in with a password.
    Local,
    /// An OpenID Connect provider, where they log in.
    Oidc {
        /// The provider's name, an URL.
        issuer: String,
        /// The user's name there, never given to another one.
        subject: String,
    },
}

impl Origin {
    /// Its name in the API and the audit trail.
    pub fn name(&self) -> &'static str {
        match self {
            Origin::Local => "local",
            Origin::Oidc { .. } => "oidc",
        }
    }

    /// From the columns `issuer` and `subject`, which begin at `at`.
    pub(crate) fn read(row: &Row<'_>, at: usize) -> rusqlite::Result<Origin> {
        let (issuer, subject): (Option<String>, Option<String>) = (row.get(at)?, row.get(at + 1)?);
        Ok(match (issuer, subject) {
            (Some(issuer), Some(subject)) => Origin::Oidc { issuer, subject },
            _ => Origin::Local,
        })
    }
}
