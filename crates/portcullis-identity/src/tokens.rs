//! API tokens.

use rusqlite::{OptionalExtension, Row, params};

use crate::audit::{Actor, record};
use crate::error::IdentityError;
use crate::file::Identities;
use crate::role::Role;
use crate::secret::{TOKEN_PREFIX, digest, has_form, is_same, random_secret};
use crate::sites::Sites;

/// The time of the last use is written when it is older than this, so that a request does not cost a write.
const LAST_USED_EVERY_S: u64 = 60;
/// Tokens that are neither revoked nor expired.
const VALID_MAX: i64 = 1000;
/// Characters of a name.
const NAME_MAX: usize = 100;

/// A token to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Its purpose; 1 to 100 characters.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its sites; an administrator has all.
    pub sites: Sites,
    /// Expiry in seconds since 1970; none: never.
    pub expires: Option<u64>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its number, never given twice.
    pub id: i64,
    /// Its purpose.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its sites.
    pub sites: Sites,
    /// Time of creation, in seconds since 1970.
    pub created: u64,
    /// Expiry.
    pub expires: Option<u64>,
    /// Last use, to a minute.
    pub last_used: Option<u64>,
    /// The address of the last use.
    pub last_address: Option<String>,
    /// Time of revocation.
    pub revoked: Option<u64>,
}

impl Token {
    /// True if it works at this time.
    pub fn is_valid(&self, now: u64) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|expires| now < expires)
    }
}

const COLUMNS: &str = "id, name, role, created, expires, last_used, revoked, last_address, sites";

impl Identities {
    /// Creates a token; its secret is not kept and cannot be shown again.
    pub fn create_token(
        &self,
        new: &NewToken,
        by: &Actor,
        now: u64,
    ) -> Result<(Token, String), IdentityError> {
        let name = new.name.trim();
        if name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
            let message =
                format!("a token's name has 1 to {NAME_MAX} characters, none of them a control character");
            return Err(IdentityError::Invalid(message));
        }
        if new.expires.is_some_and(|expires| expires <= now || i64::try_from(expires).is_err()) {
            return Err(IdentityError::Invalid("a token must expire in the future".to_owned()));
        }
        check_sites(new.role, &new.sites)?;
        let secret = random_secret(TOKEN_PREFIX)?;
        let token = self.change(|transaction| {
            let sql =
                "SELECT count(*) FROM tokens WHERE revoked IS NULL AND (expires IS NULL OR expires > ?)";
            let valid: i64 = transaction.query_row(sql, [now as i64], |row| row.get(0))?;
            if valid >= VALID_MAX {
                return Err(IdentityError::Invalid(format!(
                    "there are {VALID_MAX} tokens; revoke some first"
                )));
            }
            let sql = "INSERT INTO tokens (digest, name, role, created, expires, sites)
                VALUES (?, ?, ?, ?, ?, ?)";
            let expires = new.expires.map(|time| time as i64);
            transaction.execute(
                sql,
                params![digest(&secret), name, new.role.name(), now as i64, expires, new.sites.stored()],
            )?;
            let id = transaction.last_insert_rowid();
            record(transaction, by, "token.create", &object(id, name), &granted(new.role, &new.sites), now)?;
            let (name, role, sites, expires) = (name.to_owned(), new.role, new.sites.clone(), new.expires);
            let (last_used, last_address, revoked) = (None, None, None);
            Ok(Token { id, name, role, sites, created: now, expires, last_used, last_address, revoked })
        })?;
        Ok((token, secret))
    }

    /// Tokens by number, revoked ones too; only those after a number, if one is given.
    pub fn tokens(&self, after: Option<i64>, limit: usize) -> Result<Vec<Token>, IdentityError> {
        let connection = self.connection();
        let sql = format!("SELECT {COLUMNS} FROM tokens WHERE id > ? ORDER BY id LIMIT ?");
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params![after.unwrap_or(0), limit as i64], token)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Revokes a token, for good. One that is revoked already stays so.
    pub fn revoke_token(&self, id: i64, by: &Actor, now: u64) -> Result<(), IdentityError> {
        self.change(|transaction| {
            let sql = "SELECT name, revoked FROM tokens WHERE id = ?";
            let found: Option<(String, Option<i64>)> =
                transaction.query_row(sql, [id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let Some((name, revoked)) = found else { return Err(IdentityError::NotFound("token")) };
            if revoked.is_none() {
                transaction.execute("UPDATE tokens SET revoked = ? WHERE id = ?", [now as i64, id])?;
                record(transaction, by, "token.revoke", &object(id, &name), "", now)?;
            }
            Ok(())
        })
    }

    /// The token with this secret, if it works at this time, for a request from this address.
    pub fn token_of(&self, secret: &str, address: &str, now: u64) -> Result<Option<Token>, IdentityError> {
        if !has_form(secret, TOKEN_PREFIX) {
            return Ok(None);
        }
        let digest = digest(secret);
        let connection = self.connection();
        let sql = format!("SELECT {COLUMNS}, digest FROM tokens WHERE digest = ?");
        let mut statement = connection.prepare_cached(&sql)?;
        let found =
            statement.query_row([digest], |row| Ok((token(row)?, row.get::<_, Vec<u8>>(9)?))).optional()?;
        let Some((found, stored)) = found else { return Ok(None) };
        if !is_same(&stored, &digest) || !found.is_valid(now) {
            return Ok(None);
        }
        if found.last_used.is_none_or(|last| now >= last.saturating_add(LAST_USED_EVERY_S)) {
            // That it cannot be written, for want of space perhaps, does not lock anybody out.
            let sql = "UPDATE tokens SET last_used = ?, last_address = ? WHERE id = ?";
            let _ = connection.execute(sql, params![now as i64, address, found.id]);
        }
        Ok(Some(found))
    }

    /// True if this token works at this time.
    pub fn is_token_valid(&self, id: i64, now: u64) -> Result<bool, IdentityError> {
        let connection = self.connection();
        let sql = format!("SELECT {COLUMNS} FROM tokens WHERE id = ?");
        let mut statement = connection.prepare_cached(&sql)?;
        let found = statement.query_row([id], token).optional()?;
        Ok(found.is_some_and(|token| token.is_valid(now)))
    }
}

fn object(id: i64, name: &str) -> String {
    format!("token {id} ({name})")
}

fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    Ok(Token {
        id: row.get(0)?,
        name: row.get(1)?,
        role: role(row, 2)?,
        created: row.get(3)?,
        expires: row.get(4)?,
        last_used: row.get(5)?,
        revoked: row.get(6)?,
        last_address: row.get(7)?,
        sites: Sites::read(row, 8)?,
    })
}

/// Refuses an administrator of some sites: who changes the configuration and other identities has all.
pub(crate) fn check_sites(role: Role, sites: &Sites) -> Result<(), IdentityError> {
    if role == Role::Admin && !sites.is_all() {
        let message = "an administrator cannot be limited to sites; give the role viewer or analyst";
        return Err(IdentityError::Invalid(message.to_owned()));
    }
    Ok(())
}

/// What an identity may do, for the audit trail.
pub(crate) fn granted(role: Role, sites: &Sites) -> String {
    match sites {
        Sites::All => role.name().to_owned(),
        Sites::Named(_) => format!("{role}, limited to {sites}"),
    }
}

/// The role in a column. One that this version does not know is an error, not a guess.
pub(crate) fn role(row: &Row<'_>, column: usize) -> rusqlite::Result<Role> {
    let name: String = row.get(column)?;
    let unknown = || {
        let message = format!("there is no role `{name}`");
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, message.into())
    };
    Role::named(&name).ok_or_else(unknown)
}
