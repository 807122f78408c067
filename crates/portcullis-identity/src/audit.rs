//! The audit trail: every change, by whom and from where. Rows are only added; triggers refuse everything
//! else.

use std::borrow::Cow;

use rusqlite::{Connection, params};

use crate::error::IdentityError;
use crate::file::Identities;

/// Characters of a member of an entry; what is longer loses its end.
pub const AUDIT_TEXT_MAX: usize = 500;
/// Characters of the difference of an entry; what is longer loses its end, and a line says so.
pub const AUDIT_CHANGE_MAX: usize = 16_000;
/// Entries that one look goes through: the trail has no bound, and other work waits for its lock.
const LOOK: i64 = 10_000;

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
    /// The difference that it made to the document, in the unified format; empty for everything else.
    pub change: String,
}

/// An entry to add.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewEntry<'a> {
    /// [`AuditEntry::action`].
    pub action: &'a str,
    /// [`AuditEntry::object`].
    pub object: &'a str,
    /// [`AuditEntry::detail`].
    pub detail: &'a str,
    /// [`AuditEntry::change`].
    pub change: &'a str,
}

/// Entries to look for. What is none fits every entry; texts fit in any ASCII case, wherever they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// A part of the author's name.
    pub actor: Option<String>,
    /// The whole action, or with a dot at its end the beginning of several: `user.`.
    pub action: Option<String>,
    /// A part of the object.
    pub object: Option<String>,
    /// Not before this second since 1970.
    pub from: Option<u64>,
    /// Before this second since 1970.
    pub to: Option<u64>,
}

/// The result of a look at a part of the trail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditLook {
    /// Entries that fit, newest first.
    pub entries: Vec<AuditEntry>,
    /// The number before which nothing has been looked at; none: the trail ends here.
    pub rest: Option<i64>,
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

    /// Adds an entry that may have a difference.
    pub fn record_entry(&self, actor: &Actor, entry: &NewEntry<'_>, now: u64) -> Result<(), IdentityError> {
        record_entry(&self.connection(), actor, entry, now)
    }

    /// Entries, newest first; only those before a number, if one is given.
    pub fn audit(&self, before: Option<i64>, limit: usize) -> Result<Vec<AuditEntry>, IdentityError> {
        Ok(self.look_at_audit(&AuditFilter::default(), before, limit)?.entries)
    }

    /// Entries that fit, newest first: so many at most, among the 10,000 before a number, or the newest. To
    /// see all, look again before [`AuditLook::rest`].
    pub fn look_at_audit(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<AuditLook, IdentityError> {
        let connection = self.connection();
        let newest: i64 =
            connection.query_row("SELECT coalesce(max(number), 0) FROM audit", (), |row| row.get(0))?;
        let end = before.unwrap_or(i64::MAX).min(newest.saturating_add(1));
        let begin = end.saturating_sub(LOOK).max(1);
        let sql = "SELECT number, time, actor, address, action, object, detail, change FROM audit
            WHERE number >= ?1 AND number < ?2
                AND (?3 IS NULL OR instr(lower(actor), lower(?3)) > 0)
                AND (?4 IS NULL OR action = ?4 OR substr(?4, -1) = '.' AND substr(action, 1, length(?4)) = ?4)
                AND (?5 IS NULL OR instr(lower(object), lower(?5)) > 0)
                AND (?6 IS NULL OR time >= ?6) AND (?7 IS NULL OR time < ?7)
            ORDER BY number DESC LIMIT ?8";
        let mut statement = connection.prepare_cached(sql)?;
        let second = |time: Option<u64>| time.map(|time| i64::try_from(time).unwrap_or(i64::MAX));
        let (from, to) = (second(filter.from), second(filter.to));
        let AuditFilter { actor, action, object, .. } = filter;
        let arguments = params![begin, end, actor, action, object, from, to, limit as i64];
        let rows = statement.query_map(arguments, |row| {
            Ok(AuditEntry {
                number: row.get(0)?,
                time: row.get(1)?,
                actor: row.get(2)?,
                address: row.get(3)?,
                action: row.get(4)?,
                object: row.get(5)?,
                detail: row.get(6)?,
                change: row.get(7)?,
            })
        })?;
        let entries: Vec<AuditEntry> = rows.collect::<Result<_, _>>()?;
        let looked_to = match entries.last() {
            Some(last) if entries.len() >= limit => last.number,
            _ => begin,
        };
        Ok(AuditLook { entries, rest: (looked_to > 1).then_some(looked_to) })
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
    record_entry(connection, actor, &NewEntry { action, object, detail, change: "" }, now)
}

fn record_entry(
    connection: &Connection,
    actor: &Actor,
    entry: &NewEntry<'_>,
    now: u64,
) -> Result<(), IdentityError> {
    let sql = "INSERT INTO audit (time, actor, address, action, object, detail, change)
        VALUES (?, ?, ?, ?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(sql)?;
    let cut = |text: &str| text.chars().take(AUDIT_TEXT_MAX).collect::<String>();
    statement.execute(params![
        now as i64,
        cut(&actor.name),
        actor.address,
        entry.action,
        cut(entry.object),
        cut(entry.detail),
        cut_change(entry.change)
    ])?;
    Ok(())
}

/// The difference, without the lines that are too many.
fn cut_change(change: &str) -> Cow<'_, str> {
    let Some((end, _)) = change.char_indices().nth(AUDIT_CHANGE_MAX) else { return change.into() };
    let kept = &change[..end];
    let lines = kept.rfind('\n').map_or("", |line_end| &kept[..=line_end]);
    format!("{lines}… the difference is longer than this; the revision has all of it\n").into()
}
