//! The history: every text of the document that served or was found in the file, in one SQLite file.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};

use crate::document::Text;
use crate::error::RevisionError;

/// The file's name in the data folder.
const FILE: &str = "revisions.db";
/// Revisions that are kept.
const REVISIONS_MAX: i64 = 1000;
/// Bytes of their texts that are kept together; the newest is kept whatever its size.
const TEXTS_BYTES_MAX: i64 = 64 << 20;
/// Characters of a reason.
const REASON_MAX: usize = 1000;
/// Longest wait for a lock of another process.
const BUSY: Duration = Duration::from_secs(5);
const VERSION: i64 = 1;

/// The way in which a text became the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Another program wrote the file.
    Outside,
    /// A change through the program.
    Change,
    /// An earlier text was brought back through the program.
    Restore,
}

impl Origin {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Outside => "outside",
            Origin::Change => "change",
            Origin::Restore => "restore",
        }
    }

    fn from_name(name: &str) -> Origin {
        match name {
            "change" => Origin::Change,
            "restore" => Origin::Restore,
            _ => Origin::Outside,
        }
    }
}

/// A revision without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionHead {
    /// Its number; later ones have higher numbers.
    pub number: i64,
    /// Its time, in milliseconds since 1970; of one from outside, when it was found.
    pub time: u64,
    /// Its author; none for one from outside.
    pub author: Option<String>,
    /// The reason for it.
    pub reason: String,
    /// The way in which it became the document.
    pub origin: Origin,
    /// The entity tag of its text.
    pub etag: String,
    /// Size of its text.
    pub bytes: u64,
}

/// A revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// All but its text.
    pub head: RevisionHead,
    /// Its text.
    pub text: String,
    /// The text of the revision before; none if there is none, or it was dropped.
    pub before: Option<String>,
}

/// A new revision.
pub(crate) struct NewRevision<'a> {
    pub(crate) time: u64,
    pub(crate) author: Option<&'a str>,
    pub(crate) reason: &'a str,
    pub(crate) origin: Origin,
    pub(crate) text: &'a Text,
}

#[derive(Debug)]
pub(crate) struct History {
    connection: Mutex<Connection>,
}

const HEAD: &str = "number, time, author, reason, origin, etag, length(text)";

impl History {
    pub(crate) fn open(folder: &Path) -> Result<History, RevisionError> {
        let path = folder.join(FILE);
        // Documents hold secrets. What SQLite keeps beside the file gets its mode.
        let failed = |error| RevisionError::History(format!("{}: {error}", path.display()));
        portcullis_files::make_private(&path).map_err(failed)?;
        for beside in ["revisions.db-wal", "revisions.db-shm"].map(|name| folder.join(name)) {
            if beside.exists() {
                portcullis_files::make_private(&beside).map_err(failed)?;
            }
        }
        let mut connection = Connection::open(&path)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "trusted_schema", false)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version > VERSION {
            let message = format!("{} is of a later version of Portcullis", path.display());
            return Err(RevisionError::History(message));
        }
        transaction.execute_batch(
            "CREATE TABLE IF NOT EXISTS revisions (
                number INTEGER PRIMARY KEY AUTOINCREMENT,
                time INTEGER NOT NULL,
                author TEXT,
                reason TEXT NOT NULL,
                origin TEXT NOT NULL,
                etag TEXT NOT NULL,
                text BLOB NOT NULL
            ) STRICT",
        )?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
        Ok(History { connection: Mutex::new(connection) })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a revision, unless it has the text of the newest one; drops the oldest beyond the bounds. Returns
    /// the newest.
    pub(crate) fn add(&self, new: &NewRevision<'_>) -> Result<RevisionHead, RevisionError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let newest = newest(&transaction)?;
        if let Some(newest) = newest.filter(|newest| newest.etag == new.text.etag()) {
            return Ok(newest);
        }
        let reason: String = new.reason.chars().take(REASON_MAX).collect();
        transaction.execute(
            "INSERT INTO revisions (time, author, reason, origin, etag, text) VALUES (?, ?, ?, ?, ?, ?)",
            params![
                i64::try_from(new.time).unwrap_or(i64::MAX),
                new.author,
                reason,
                new.origin.name(),
                new.text.etag(),
                new.text.as_str().as_bytes()
            ],
        )?;
        transaction.execute(
            "DELETE FROM revisions WHERE number IN (SELECT number FROM (
                SELECT number, row_number() OVER newer AS place, sum(length(text)) OVER newer AS bytes
                FROM revisions WINDOW newer AS (ORDER BY number DESC))
             WHERE place > 1 AND (place > ? OR bytes > ?))",
            params![REVISIONS_MAX, TEXTS_BYTES_MAX],
        )?;
        let added = self::newest(&transaction)?.ok_or(RevisionError::NotFound)?;
        transaction.commit()?;
        Ok(added)
    }

    /// Takes the newest revision back, if it is this one.
    pub(crate) fn take_back(&self, number: i64) -> Result<(), RevisionError> {
        let sql = "DELETE FROM revisions WHERE number = ?1 AND number = (SELECT max(number) FROM revisions)";
        self.connection().execute(sql, [number])?;
        Ok(())
    }

    /// The newest revision.
    pub(crate) fn newest(&self) -> Result<Option<RevisionHead>, RevisionError> {
        newest(&self.connection())
    }

    /// The text that was the document at a time; the oldest that is known if none is so old.
    pub(crate) fn text_at(&self, time: u64) -> Result<Option<String>, RevisionError> {
        let connection = self.connection();
        let time = i64::try_from(time).unwrap_or(i64::MAX);
        let ask = |sql: &str, time: &[i64]| {
            connection.query_row(sql, rusqlite::params_from_iter(time), |row| text(row, 0)).optional()
        };
        let then = ask("SELECT text FROM revisions WHERE time <= ? ORDER BY number DESC LIMIT 1", &[time])?;
        match then {
            Some(text) => Ok(Some(text)),
            None => Ok(ask("SELECT text FROM revisions ORDER BY number LIMIT 1", &[])?),
        }
    }

    /// The newest revision with this text.
    pub(crate) fn of_text(&self, text: &Text) -> Result<Option<RevisionHead>, RevisionError> {
        let sql = format!("SELECT {HEAD} FROM revisions WHERE etag = ? ORDER BY number DESC LIMIT 1");
        Ok(self.connection().query_row(&sql, [text.etag()], head).optional()?)
    }

    /// Revisions, newest first; only those before a number, if one is given.
    pub(crate) fn list(&self, before: Option<i64>, limit: usize) -> Result<Vec<RevisionHead>, RevisionError> {
        let connection = self.connection();
        let sql = format!("SELECT {HEAD} FROM revisions WHERE number < ? ORDER BY number DESC LIMIT ?");
        let mut statement = connection.prepare_cached(&sql)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![before.unwrap_or(i64::MAX), limit], head)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// A revision with its text and the one before.
    pub(crate) fn get(&self, number: i64) -> Result<Revision, RevisionError> {
        let connection = self.connection();
        let sql = format!("SELECT {HEAD}, text FROM revisions WHERE number = ?");
        let found = connection.query_row(&sql, [number], |row| Ok((head(row)?, text(row, 7)?)));
        let (head, own) = found.optional()?.ok_or(RevisionError::NotFound)?;
        let sql = "SELECT text FROM revisions WHERE number < ? ORDER BY number DESC LIMIT 1";
        let before = connection.query_row(sql, [number], |row| text(row, 0)).optional()?;
        Ok(Revision { head, text: own, before })
    }
}

fn newest(connection: &Connection) -> Result<Option<RevisionHead>, RevisionError> {
    let sql = format!("SELECT {HEAD} FROM revisions ORDER BY number DESC LIMIT 1");
    Ok(connection.query_row(&sql, (), head).optional()?)
}

fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    let bytes: Vec<u8> = row.get(column)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn head(row: &Row<'_>) -> rusqlite::Result<RevisionHead> {
    let (time, bytes, origin): (i64, i64, String) = (row.get(1)?, row.get(6)?, row.get(4)?);
    Ok(RevisionHead {
        number: row.get(0)?,
        time: u64::try_from(time).unwrap_or(0),
        author: row.get(2)?,
        reason: row.get(3)?,
        origin: Origin::from_name(&origin),
        etag: row.get(5)?,
        bytes: u64::try_from(bytes).unwrap_or(0),
    })
}
