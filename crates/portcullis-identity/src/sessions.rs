//! Sessions of users who logged in.

use data_encoding::BASE64URL_NOPAD;
use rusqlite::{OptionalExtension, params};

use crate::audit::{Actor, record};
use crate::error::IdentityError;
use crate::file::Identities;
use crate::origin::Origin;
use crate::secret::{digest, has_form, random_secret};
use crate::users::{COLUMNS, COLUMNS_COUNT, User, object, user, user_named};

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
/// Characters of the name of a browser; what is longer loses its end.
const AGENT_MAX: usize = 200;

/// A session that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its number, never given twice.
    pub number: i64,
    /// Whose it is, as they are now.
    pub user: User,
    /// Latest end, in seconds since 1970.
    pub expires: u64,
}

/// A session that has not ended, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEntry {
    /// Its number, never given twice.
    pub number: i64,
    /// The user's name.
    pub user: String,
    /// Time of the login, in seconds since 1970.
    pub created: u64,
    /// Last use, to a minute.
    pub last_used: u64,
    /// When it ends if it is not used again.
    pub expires: u64,
    /// The address of the login.
    pub address: Option<String>,
    /// The address of the last use, to a minute.
    pub last_address: Option<String>,
    /// The browser, as it named itself at the login (`User-Agent`).
    pub agent: String,
}

/// Sessions to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The session of this number.
    One(i64),
    /// The same, if it is one of this user.
    Own {
        /// [`User::id`].
        user: i64,
        /// The session.
        number: i64,
    },
    /// All sessions of a user but one.
    Others {
        /// [`User::id`].
        user: i64,
        /// The session that stays.
        keep: i64,
    },
    /// All sessions of the user of this name.
    Of(String),
}

impl Identities {
    /// Begins a session of a user who has just proved to be one, and returns its secret. It fails if the user
    /// was changed since. `network` is remembered as one that the user logs in from; `agent` is the browser,
    /// as it names itself.
    pub fn start_session(
        &self,
        who: &User,
        network: &str,
        agent: &str,
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
            let sql = "INSERT INTO sessions (digest, user, created, last_used, address, last_address, agent)
                VALUES (?1, ?2, ?3, ?3, ?4, ?4, ?5)";
            let agent: String = agent.chars().filter(|char| !char.is_control()).take(AGENT_MAX).collect();
            transaction.execute(sql, params![digest(&secret), who.id, now as i64, by.address, agent])?;
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

    /// The session with this secret, if it has not ended, for a request from this address.
    pub fn session_of(
        &self,
        secret: &str,
        address: &str,
        now: u64,
    ) -> Result<Option<Session>, IdentityError> {
        self.session(secret, Some(address), now)
    }

    /// The same without counting as a request of the session.
    pub fn peek_session(&self, secret: &str, now: u64) -> Result<Option<Session>, IdentityError> {
        self.session(secret, None, now)
    }

    fn session(
        &self,
        secret: &str,
        address: Option<&str>,
        now: u64,
    ) -> Result<Option<Session>, IdentityError> {
        if !has_form(secret, "") {
            return Ok(None);
        }
        let digest = digest(secret);
        let connection = self.connection();
        let sql = format!(
            "SELECT {COLUMNS}, s.created, s.last_used, s.number FROM sessions s
                JOIN users u ON u.id = s.user WHERE s.digest = ?"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let read = |row: &rusqlite::Row<'_>| {
            let (created, last_used) = (row.get(COLUMNS_COUNT)?, row.get(COLUMNS_COUNT + 1)?);
            Ok((user(row)?, created, last_used, row.get(COLUMNS_COUNT + 2)?))
        };
        let Some((user, created, last_used, number)): Option<(User, u64, u64, i64)> =
            statement.query_row([digest], read).optional()?
        else {
            return Ok(None);
        };
        let expires = created.saturating_add(SESSION_S);
        if user.disabled || now >= expires || now >= last_used.saturating_add(SESSION_IDLE_S) {
            return Ok(None);
        }
        if let Some(address) = address
            && now >= last_used.saturating_add(LAST_USED_EVERY_S)
        {
            let sql = "UPDATE sessions SET last_used = ?, last_address = ? WHERE number = ?";
            let _ = connection.execute(sql, params![now as i64, address, number]);
        }
        Ok(Some(Session { number, user, expires }))
    }

    /// Sessions that have not ended, by number: of one user or of all, only those after a number, if one is
    /// given.
    pub fn sessions(
        &self,
        user: Option<&str>,
        after: Option<i64>,
        limit: usize,
        now: u64,
    ) -> Result<Vec<SessionEntry>, IdentityError> {
        let connection = self.connection();
        let sql = "SELECT s.number, u.name, s.created, s.last_used, s.address, s.last_address, s.agent
            FROM sessions s JOIN users u ON u.id = s.user
            WHERE s.number > ?1 AND (?2 IS NULL OR u.name = ?2) AND NOT u.disabled
                AND s.created > ?3 AND s.last_used > ?4
            ORDER BY s.number LIMIT ?5";
        let mut statement = connection.prepare_cached(sql)?;
        let alive_since = |age: u64| now.saturating_sub(age) as i64;
        let (created, used) = (alive_since(SESSION_S), alive_since(SESSION_IDLE_S));
        let rows =
            statement.query_map(params![after.unwrap_or(0), user, created, used, limit as i64], |row| {
                let (created, last_used): (u64, u64) = (row.get(2)?, row.get(3)?);
                let (oldest, idle) =
                    (created.saturating_add(SESSION_S), last_used.saturating_add(SESSION_IDLE_S));
                Ok(SessionEntry {
                    number: row.get(0)?,
                    user: row.get(1)?,
                    created,
                    last_used,
                    expires: oldest.min(idle),
                    address: row.get(4)?,
                    last_address: row.get(5)?,
                    agent: row.get(6)?,
                })
            })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Ends sessions, and returns how many. A session that has no request any more counts as none.
    pub fn end_sessions(&self, which: &Ending, by: &Actor, now: u64) -> Result<usize, IdentityError> {
        self.change(|transaction| {
            let (condition, number, user) = match which {
                Ending::One(number) => ("number = ?1 AND ?2 IS NULL", Some(*number), None),
                Ending::Own { user, number } => ("number = ?1 AND user = ?2", Some(*number), Some(*user)),
                Ending::Others { user, keep } => ("number <> ?1 AND user = ?2", Some(*keep), Some(*user)),
                Ending::Of(name) => {
                    let user = user_named(transaction, name)?.ok_or(IdentityError::NotFound("user"))?;
                    ("?1 IS NULL AND user = ?2", None, Some(user.id))
                }
            };
            let sql = format!(
                "DELETE FROM sessions WHERE {condition} RETURNING
                    (SELECT name FROM users WHERE id = user), number, created, last_used, address"
            );
            let mut statement = transaction.prepare(&sql)?;
            let rows = statement.query_map(params![number, user], |row| {
                let (created, last_used): (u64, u64) = (row.get(2)?, row.get(3)?);
                let is_open =
                    now < created.saturating_add(SESSION_S) && now < last_used.saturating_add(SESSION_IDLE_S);
                Ok(Deleted { user: row.get(0)?, number: row.get(1)?, address: row.get(4)?, is_open })
            })?;
            let deleted: Vec<Deleted> = rows.collect::<Result<_, _>>()?;
            let ended: Vec<_> = deleted.into_iter().filter(|session| session.is_open).collect();
            let Some(Deleted { user, .. }) = ended.first() else { return Ok(0) };
            let named = ended.iter().map(|Deleted { number, address, .. }| match address {
                Some(address) => format!("session {number} from {address}"),
                None => format!("session {number}"),
            });
            let named: Vec<String> = named.collect();
            record(transaction, by, "session.end", &object(user), &named.join(", "), now)?;
            Ok(ended.len())
        })
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

/// A session that is gone from the file.
struct Deleted {
    user: String,
    number: i64,
    address: Option<String>,
    /// It had not ended by itself.
    is_open: bool,
}

/// The token that a page shows with each change, so that a page of another site cannot make one (CSRF). It
/// follows from the session's secret, and the secret does not follow from it.
pub fn csrf_token(secret: &str) -> String {
    BASE64URL_NOPAD.encode(&digest(&format!("csrf {secret}")))
}
