//! Users: who they are, and the proof that a client is one of them.

use rusqlite::{OptionalExtension, Row, Transaction, params};

use crate::audit::{Actor, record};
use crate::error::IdentityError;
use crate::file::Identities;
use crate::origin::Origin;
use crate::password::{self, check_password};
use crate::role::Role;
use crate::sites::Sites;
use crate::tokens::{check_sites, granted, role};
use crate::totp::TotpSecret;

/// Users, at most.
const USERS_MAX: i64 = 1000;
/// Bytes of a name.
pub(crate) const NAME_MAX: usize = 64;

/// A user to create.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// 1 to 64 of `a-z0-9._@-`.
    pub name: String,
    /// Their role.
    pub role: Role,
    /// Their sites; an administrator has all.
    pub sites: Sites,
    /// See [`check_password`].
    pub password: String,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Their number, never given twice.
    pub id: i64,
    /// Their name, never changed.
    pub name: String,
    /// Their role.
    pub role: Role,
    /// Their sites.
    pub sites: Sites,
    /// Time of creation, in seconds since 1970.
    pub created: u64,
    /// They cannot log in.
    pub disabled: bool,
    /// They log in with a one-time code, too.
    pub totp: bool,
    /// Rises with each change.
    pub version: i64,
    /// Who knows them.
    pub origin: Origin,
}

/// A user as they were when they were read: who is created anew under a name is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edition {
    /// [`User::id`].
    pub id: i64,
    /// [`User::version`].
    pub version: i64,
}

/// Changes to a user; none: it stays.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Their role.
    pub role: Option<Role>,
    /// Their sites. An administrator has all.
    pub sites: Option<Sites>,
    /// A new password. Ends their sessions.
    pub password: Option<String>,
    /// True: they cannot log in, and their sessions end.
    pub disabled: Option<bool>,
    /// They log in without a one-time code from now on.
    pub remove_totp: bool,
}

/// Result of a check of name and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It is this user.
    Is(User),
    /// Name, password or code are wrong, or the user is disabled.
    Wrong,
    /// Name and password are right, and a one-time code is needed.
    CodeNeeded,
}

impl User {
    /// The user as stored now.
    pub fn edition(&self) -> Edition {
        Edition { id: self.id, version: self.version }
    }
}

/// What [`user`] reads, of the table `users` alone or as `u`.
pub(crate) const COLUMNS: &str = "u.id, u.name, u.role, u.created, u.disabled, u.totp IS NOT NULL, u.version, u.issuer, u.subject, u.sites";
/// Number of [`COLUMNS`].
pub(crate) const COLUMNS_COUNT: usize = 10;

impl Identities {
    /// Creates a user.
    pub fn create_user(&self, new: &NewUser, by: &Actor, now: u64) -> Result<User, IdentityError> {
        self.create_user_if(new, by, now, false)
    }

    /// Creates the first user with a password, an administrator; fails if there is one already.
    pub fn create_first_admin(
        &self,
        name: &str,
        password: &str,
        by: &Actor,
        now: u64,
    ) -> Result<User, IdentityError> {
        let (name, password) = (name.to_owned(), password.to_owned());
        let new = NewUser { name, role: Role::Admin, sites: Sites::All, password };
        self.create_user_if(&new, by, now, true)
    }

    fn create_user_if(
        &self,
        new: &NewUser,
        by: &Actor,
        now: u64,
        as_first: bool,
    ) -> Result<User, IdentityError> {
        if !(1..=NAME_MAX).contains(&new.name.len()) || !new.name.bytes().all(fits_name) {
            let message =
                format!("a user's name has 1 to {NAME_MAX} characters of a-z, 0-9, `.`, `_`, `@` and `-`");
            return Err(IdentityError::Invalid(message));
        }
        check_sites(new.role, &new.sites)?;
        check_password(&new.name, &new.password)?;
        let hash = password::hash(&new.password)?;
        self.change(|transaction| {
            // Users of a provider come by themselves: they must not stop the first start.
            let sql = "SELECT EXISTS (SELECT 1 FROM users WHERE issuer IS NULL)";
            if as_first && transaction.query_row(sql, (), |row| row.get(0))? {
                return Err(IdentityError::Exists);
            }
            check_room(transaction)?;
            if user_named(transaction, &new.name)?.is_some() {
                return Err(IdentityError::Exists);
            }
            let sql = "INSERT INTO users (name, role, password, created, sites) VALUES (?, ?, ?, ?, ?)";
            transaction
                .execute(sql, params![new.name, new.role.name(), hash, now as i64, new.sites.stored()])?;
            record(transaction, by, "user.create", &object(&new.name), &granted(new.role, &new.sites), now)?;
            user_named(transaction, &new.name)?.ok_or(IdentityError::NotFound("user"))
        })
    }

    /// Users by number; only those after a number, if one is given.
    pub fn users(&self, after: Option<i64>, limit: usize) -> Result<Vec<User>, IdentityError> {
        let connection = self.connection();
        let sql = format!("SELECT {COLUMNS} FROM users u WHERE id > ? ORDER BY id LIMIT ?");
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params![after.unwrap_or(0), limit as i64], user)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The user of this name.
    pub fn user(&self, name: &str) -> Result<Option<User>, IdentityError> {
        user_named(&self.connection(), name)
    }

    /// Changes a user, if they are still as they were read (or in any case, if no edition is given). The last
    /// administrator who can log in with a password stays one. A user of a provider has the role that the
    /// provider's groups give, and no password.
    pub fn change_user(
        &self,
        name: &str,
        edition: Option<Edition>,
        change: &Change,
        by: &Actor,
        now: u64,
    ) -> Result<User, IdentityError> {
        let hash = match &change.password {
            Some(text) => {
                check_password(name, text)?;
                Some(password::hash(text)?)
            }
            None => None,
        };
        self.change(|transaction| {
            let old = current(transaction, name, edition)?;
            if old.origin != Origin::Local
                && (hash.is_some() || change.role.is_some_and(|role| role != old.role))
            {
                return Err(IdentityError::Provided);
            }
            let (role, sites) =
                (change.role.unwrap_or(old.role), change.sites.as_ref().unwrap_or(&old.sites));
            if change.role.is_some() || change.sites.is_some() {
                check_sites(role, sites)?;
            }
            let mut done = Vec::new();
            let mut set = |sql: &str, value: &dyn rusqlite::ToSql, what: String| {
                done.push(what);
                transaction.execute(sql, params![value, old.id])
            };
            if let Some(role) = change.role.filter(|role| *role != old.role) {
                set(
                    "UPDATE users SET role = ? WHERE id = ?",
                    &role.name(),
                    format!("role {} to {role}", old.role),
                )?;
            }
            if let Some(sites) = change.sites.as_ref().filter(|sites| **sites != old.sites) {
                let what = format!("limits: {} to {sites}", old.sites);
                set("UPDATE users SET sites = ? WHERE id = ?", &sites.stored(), what)?;
            }
            if let Some(disabled) = change.disabled.filter(|disabled| *disabled != old.disabled) {
                let what = if disabled { "disabled" } else { "enabled" };
                set("UPDATE users SET disabled = ? WHERE id = ?", &disabled, what.to_owned())?;
            }
            if let Some(hash) = &hash {
                set("UPDATE users SET password = ? WHERE id = ?", hash, "password".to_owned())?;
            }
            if change.remove_totp && old.totp {
                let nothing = rusqlite::types::Null;
                set("UPDATE users SET totp = ? WHERE id = ?", &nothing, "one-time code removed".to_owned())?;
            }
            if done.is_empty() {
                return Ok(old);
            }
            if was_last_admin(transaction, &old)? {
                return Err(IdentityError::LastAdmin);
            }
            transaction.execute("UPDATE users SET version = version + 1 WHERE id = ?", [old.id])?;
            if change.disabled == Some(true) || hash.is_some() {
                transaction.execute("DELETE FROM sessions WHERE user = ?", [old.id])?;
            }
            record(transaction, by, "user.change", &object(name), &done.join(", "), now)?;
            user_named(transaction, name)?.ok_or(IdentityError::NotFound("user"))
        })
    }

    /// Deletes a user with their sessions, if they are still as they were read (or in any case, if no edition
    /// is given). `may_be_last` says whether the last administrator may go, too.
    pub fn delete_user(
        &self,
        name: &str,
        edition: Option<Edition>,
        may_be_last: bool,
        by: &Actor,
        now: u64,
    ) -> Result<(), IdentityError> {
        self.change(|transaction| {
            let old = current(transaction, name, edition)?;
            transaction.execute("DELETE FROM users WHERE id = ?", [old.id])?;
            if !may_be_last && was_last_admin(transaction, &old)? {
                return Err(IdentityError::LastAdmin);
            }
            record(transaction, by, "user.delete", &object(name), "", now)
        })
    }

    /// Checks name and password of a client. Takes one argon2id (19 MiB, some 20 ms of a core), whether
    /// there is such a user or not; the file is not locked meanwhile.
    pub fn prove(
        &self,
        name: &str,
        password: &str,
        code: Option<&str>,
        now: u64,
    ) -> Result<Proof, IdentityError> {
        let found = {
            let connection = self.connection();
            let sql = format!(
                "SELECT {COLUMNS}, password, totp, totp_step FROM users u WHERE name = ? AND issuer IS NULL"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let read = |row: &Row<'_>| {
                let (password, totp): (String, Option<Vec<u8>>) =
                    (row.get(COLUMNS_COUNT)?, row.get(COLUMNS_COUNT + 1)?);
                Ok((user(row)?, password, totp, row.get::<_, i64>(COLUMNS_COUNT + 2)?))
            };
            statement.query_row([name], read).optional()?
        };
        let stored = found.as_ref().map(|(_, stored, _, _)| stored.as_str());
        let is_right = password::is_right(password, stored);
        let Some((user, _, totp, last_step)) = found.filter(|(user, ..)| is_right && !user.disabled) else {
            return Ok(Proof::Wrong);
        };
        let Some(totp) = totp else { return Ok(Proof::Is(user)) };
        let Some(code) = code else { return Ok(Proof::CodeNeeded) };
        let last = u64::try_from(last_step).unwrap_or(0);
        let Some(step) = TotpSecret::of(totp).step_of(code, last, now) else { return Ok(Proof::Wrong) };
        // Of two clients with the same code one is first.
        let sql = "UPDATE users SET totp_step = ?1 WHERE id = ?2 AND totp_step < ?1";
        let is_first = self.connection().execute(sql, params![step as i64, user.id])? == 1;
        Ok(if is_first { Proof::Is(user) } else { Proof::Wrong })
    }

    /// A secret for one-time codes, which counts once a code confirms it. Only for users with a password.
    pub fn offer_totp(&self, user: i64) -> Result<TotpSecret, IdentityError> {
        let secret = TotpSecret::random()?;
        let sql = "UPDATE users SET totp_offered = ? WHERE id = ? AND issuer IS NULL";
        match self.connection().execute(sql, params![secret.bytes(), user])? {
            0 => Err(IdentityError::NotFound("user")),
            _ => Ok(secret),
        }
    }

    /// Has a user log in with one-time codes from now on. The code shows that an app has the secret.
    pub fn confirm_totp(&self, user: &User, code: &str, by: &Actor, now: u64) -> Result<(), IdentityError> {
        self.change(|transaction| {
            let sql = "SELECT totp_offered FROM users WHERE id = ?";
            let offered: Option<Option<Vec<u8>>> =
                transaction.query_row(sql, [user.id], |row| row.get(0)).optional()?;
            let Some(offered) = offered.flatten() else { return Err(IdentityError::NotFound("offer")) };
            let step = TotpSecret::of(offered).step_of(code, 0, now).ok_or(IdentityError::Code)?;
            let sql = "UPDATE users SET totp = totp_offered, totp_offered = NULL, totp_step = ?,
                version = version + 1 WHERE id = ?";
            transaction.execute(sql, params![step as i64, user.id])?;
            record(transaction, by, "user.change", &object(&user.name), "one-time code added", now)
        })
    }
}

pub(crate) fn object(name: &str) -> String {
    format!("user {name}")
}

fn current(
    transaction: &Transaction<'_>,
    name: &str,
    edition: Option<Edition>,
) -> Result<User, IdentityError> {
    let user = user_named(transaction, name)?.ok_or(IdentityError::NotFound("user"))?;
    match edition {
        Some(edition) if edition != user.edition() => Err(IdentityError::Changed),
        _ => Ok(user),
    }
}

/// True if a change in this transaction took the last administrator with a password away. Those of a provider
/// do not count: they cannot log in while it is away.
fn was_last_admin(transaction: &Transaction<'_>, old: &User) -> Result<bool, IdentityError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM users WHERE role = 'admin' AND NOT disabled AND issuer IS NULL)";
    let is_one_left: bool = transaction.query_row(sql, (), |row| row.get(0))?;
    Ok(old.origin == Origin::Local && old.role == Role::Admin && !old.disabled && !is_one_left)
}

/// True if a user's name may have this byte.
pub(crate) fn fits_name(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._@-".contains(&byte)
}

/// Fails if there are as many users as there may be.
pub(crate) fn check_room(transaction: &Transaction<'_>) -> Result<(), IdentityError> {
    let there: i64 = transaction.query_row("SELECT count(*) FROM users", (), |row| row.get(0))?;
    if there >= USERS_MAX {
        return Err(IdentityError::Invalid(format!("there are {USERS_MAX} users; delete some first")));
    }
    Ok(())
}

pub(crate) fn user_named(
    connection: &rusqlite::Connection,
    name: &str,
) -> Result<Option<User>, IdentityError> {
    let sql = format!("SELECT {COLUMNS} FROM users u WHERE name = ?");
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_row([name], user).optional()?)
}

pub(crate) fn user(row: &Row<'_>) -> rusqlite::Result<User> {
    Ok(User {
        id: row.get(0)?,
        name: row.get(1)?,
        role: role(row, 2)?,
        created: row.get(3)?,
        disabled: row.get(4)?,
        totp: row.get(5)?,
        version: row.get(6)?,
        origin: Origin::read(row, 7)?,
        sites: Sites::read(row, 9)?,
    })
}
