//! The audit trail: every change, by whom and from where. Rows are only added; triggers refuse everything
//! else.

use rusqlite::{Connection, params};

use crate::error::IdentityError;
use crate::file::Identities;

/// Characters of a member of an entry; what is longer loses its end.
pub const AUDIT_TEXT_MAX: usize = 500;

/// The author of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// `user:NAME`, `token:ID (NAME)`, `command line`.
    pub name: String,
    /// The client's address, if the request came over a connection.
    pub address: Option<String>,
}

impl Actor {
    /// Someone on this machine.
    pub fn new(name: impl Into<String>) -> Actor {
        Actor { name: name.into(), address: None }
    }
}

/// An entry of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number; later entries have higher ones.
    pub number: i64,
    /// When, in seconds since 1970.
    pub time: u64,
    /// Who.
    pub actor: String,
    /// From where.
    pub address: Option<String>,
    /// What: `token.create`, `user.delete`, `login.failed`, ...
    pub action: String,
    /// To what.
    pub object: String,
    /// More about it; never a secret.
    pub detail: String,
}

impl Identities {
    /// Adds an entry.
    pub fn record(
        &self,
        actor: &Actor,
        action: &str,
        object: &str,
        detail: &str,
        now: u64,
    ) -> Result<(), IdentityError> {
        record(&self.connection(), actor, action, object, detail, now)
    }

    /// Entries, newest first; only those before a number, if one is given.
    pub fn audit(&self, before: Option<i64>, limit: usize) -> Result<Vec<AuditEntry>, IdentityError> {
        let connection = self.connection();
        let sql = "SELECT number, time, actor, address, action, object, detail FROM audit
            WHERE number < ? ORDER BY number DESC LIMIT ?";
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![before.unwrap_or(i64::MAX), limit as i64], |row| {
            Ok(AuditEntry {
                number: row.get(0)?,
                time: row.get(1)?,
                actor: row.get(2)?,
                address: row.get(3)?,
                action: row.get(4)?,
                object: row.get(5)?,
                detail: row.get(6)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Adds an entry on a connection that may have a transaction.
pub(crate) fn record(
    connection: &Connection,
    actor: &Actor,
    action: &str,
    object: &str,
    detail: &str,
    now: u64,
) -> Result<(), IdentityError> {
    let sql = "INSERT INTO audit (time, actor, address, action, object, detail) VALUES (?, ?, ?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(sql)?;
    let cut = |text: &str| text.chars().take(AUDIT_TEXT_MAX).collect::<String>();
    statement.execute(params![
        now as i64,
        cut(&actor.name),
        actor.address,
        action,
        cut(object),
        cut(detail)
    ])?;
    Ok(())
}
