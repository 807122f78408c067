//! Sessions of users who logged in.

use data_encoding::BASE64URL_NOPAD;
use rusqlite::{OptionalExtension, params};

use crate::audit::{Actor, record};
use crate::error::IdentityError;
use crate::file::Identities;
use crate::origin::Origin;
use crate::secret::{digest, has_form, random_secret};
use crate::users::{COLUMNS, COLUMNS_COUNT, User, object, user};

/// A session ends so many seconds after it began.
pub const SESSION_S: u64 = 12 * 3600;
/// A session ends so many seconds after its last request.
pub const SESSION_IDLE_S: u64 = 3600;
/// The time of the last request is written when it is older than this.
const LAST_USED_EVERY_S: u64 = 60;
/// Sessions of a user; the oldest ends when there is another.
const OF_USER_MAX: i64 = 16;
/// Networks that are remembered of a user.
const NETWORKS_MAX: i64 = 16;

/// A session that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Whose it is, as they are now.
    pub user: User,
    /// Latest end, in seconds since 1970.
    pub expires: u64,
}

impl Identities {
    /// Begins a session of a user who has just proved to be one, and returns its secret. It fails if the user
    /// was changed since. `network` is remembered as one that the user logs in from.
    pub fn start_session(
        &self,
        who: &User,
        network: &str,
        by: &Actor,
        now: u64,
    ) -> Result<String, IdentityError> {
        let secret = random_secret("")?;
        self.change(|transaction| {
            let sql = "SELECT 1 FROM users WHERE id = ? AND version = ? AND NOT disabled";
            let is_same = transaction.query_row(sql, [who.id, who.version], |_| Ok(())).optional()?;
            is_same.ok_or(IdentityError::Changed)?;
            let sql = "DELETE FROM sessions WHERE created <= ? OR last_used <= ?";
            let ended = |age: u64| now.saturating_sub(age) as i64;
            transaction.execute(sql, [ended(SESSION_S), ended(SESSION_IDLE_S)])?;
            let sql = "INSERT INTO sessions (digest, user, created, last_used) VALUES (?1, ?2, ?3, ?3)";
            transaction.execute(sql, params![digest(&secret), who.id, now as i64])?;
            let sql = "DELETE FROM sessions WHERE user = ?1 AND digest NOT IN
                (SELECT digest FROM sessions WHERE user = ?1
                    ORDER BY created DESC, digest = ?3 DESC LIMIT ?2)";
            transaction.execute(sql, params![who.id, OF_USER_MAX, digest(&secret)])?;
            let sql = "INSERT INTO known_networks (user, network, last_used) VALUES (?1, ?2, ?3)
                ON CONFLICT DO UPDATE SET last_used = ?3";
            transaction.execute(sql, params![who.id, network, now as i64])?;
            let sql = "DELETE FROM known_networks WHERE user = ?1 AND network NOT IN
                (SELECT network FROM known_networks WHERE user = ?1 ORDER BY last_used DESC LIMIT ?2)";
            transaction.execute(sql, [who.id, NETWORKS_MAX])?;
            let detail = if who.origin == Origin::Local { "" } else { who.origin.name() };
            record(transaction, by, "login", &object(&who.name), detail, now)
        })?;
        Ok(secret)
    }

    /// The session with this secret, if it has not ended.
    pub fn session_of(&self, secret: &str, now: u64) -> Result<Option<Session>, IdentityError> {
        self.session(secret, now, true)
    }

    /// The same without counting as a request of the session.
    pub fn peek_session(&self, secret: &str, now: u64) -> Result<Option<Session>, IdentityError> {
        self.session(secret, now, false)
    }

    fn session(&self, secret: &str, now: u64, counts: bool) -> Result<Option<Session>, IdentityError> {
        if !has_form(secret, "") {
            return Ok(None);
        }
        let digest = digest(secret);
        let connection = self.connection();
        let sql = format!(
            "SELECT {COLUMNS}, s.created, s.last_used FROM sessions s JOIN users u ON u.id = s.user
                WHERE s.digest = ?"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let read = |row: &rusqlite::Row<'_>| {
            let (created, last_used) = (row.get(COLUMNS_COUNT)?, row.get(COLUMNS_COUNT + 1)?);
            Ok((user(row)?, created, last_used))
        };
        let Some((user, created, last_used)): Option<(User, u64, u64)> =
            statement.query_row([digest], read).optional()?
        else {
            return Ok(None);
        };
        let expires = created.saturating_add(SESSION_S);
        if user.disabled || now >= expires || now >= last_used.saturating_add(SESSION_IDLE_S) {
            return Ok(None);
        }
        if counts && now >= last_used.saturating_add(LAST_USED_EVERY_S) {
            let sql = "UPDATE sessions SET last_used = ? WHERE digest = ?";
            let _ = connection.execute(sql, params![now as i64, digest]);
        }
        Ok(Some(Session { user, expires }))
    }

    /// Ends a session.
    pub fn end_session(&self, secret: &str, by: &Actor, now: u64) -> Result<(), IdentityError> {
        self.change(|transaction| {
            let ended = transaction.execute("DELETE FROM sessions WHERE digest = ?", [digest(secret)])?;
            if ended > 0 {
                record(transaction, by, "logout", "", "", now)?;
            }
            Ok(())
        })
    }

    /// True if the user of this name has logged in from this network before.
    pub fn is_known_network(&self, name: &str, network: &str) -> Result<bool, IdentityError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM known_networks n JOIN users u ON u.id = n.user
            WHERE u.name = ? AND n.network = ?)";
        let connection = self.connection();
        let mut statement = connection.prepare_cached(sql)?;
        Ok(statement.query_row([name, network], |row| row.get(0))?)
    }
}

/// The token that a page shows with each change, so that a page of another site cannot make one (CSRF). It
/// follows from the session's secret, and the secret does not follow from it.
pub fn csrf_token(secret: &str) -> String {
    BASE64URL_NOPAD.encode(&digest(&format!("csrf {secret}")))
}
