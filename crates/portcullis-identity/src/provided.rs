//! Users of an OpenID Connect provider: stored at their first login, with the role that each login gives.

use rusqlite::{OptionalExtension, Transaction, params};

use crate::audit::{Actor, record};
use crate::error::IdentityError;
use crate::file::Identities;
use crate::role::Role;
use crate::sites::Sites;
use crate::tokens::granted;
use crate::users::{COLUMNS, NAME_MAX, User, check_room, fits_name, object, user, user_named};

/// The name of a user whose own has no character that names have here.
const NAMELESS: &str = "oidc";
/// Users who would have the same name.
const SAME_NAME_MAX: u32 = 1000;
/// Bytes of the number behind a name that is taken: `-999`.
const NUMBER_MAX: usize = 4;

/// A user as their provider has just told us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provided {
    /// The provider.
    pub issuer: String,
    /// The user's name there, never given to another one.
    pub subject: String,
    /// The name that they would like to have here; any text.
    pub name: String,
    /// The role that the provider's groups give.
    pub role: Role,
    /// The sites that the provider's groups give; none: they say nothing of sites, and what an administrator
    /// has set stays.
    pub sites: Option<Sites>,
}

impl Identities {
    /// The user whom a provider has told us, for a session: created at the first login, under a name that no
    /// other user has, and with the role of this login. Fails for one who is disabled.
    pub fn admit(
        &self,
        who: &Provided,
        address: Option<String>,
        now: u64,
    ) -> Result<(User, Actor), IdentityError> {
        self.change(|transaction| {
            let known = user_of(transaction, &who.issuer, &who.subject)?;
            let name = match &known {
                Some(user) if user.disabled => return Err(IdentityError::Disabled),
                Some(user) => user.name.clone(),
                None => free_name(transaction, who)?,
            };
            let by = Actor { name: format!("user:{name}"), address };
            let kept = known.as_ref().map(|user| user.sites.clone());
            let sites = who.sites.clone().or(kept).unwrap_or_default();
            match known {
                Some(user) if user.role == who.role && sites == user.sites => return Ok((user, by)),
                Some(user) => {
                    let sql = "UPDATE users SET role = ?, sites = ?, version = version + 1 WHERE id = ?";
                    transaction.execute(sql, params![who.role.name(), sites.stored(), user.id])?;
                    let (before, after) = (granted(user.role, &user.sites), granted(who.role, &sites));
                    let detail = format!("role {before} to {after}, by the groups at the provider");
                    record(transaction, &by, "user.change", &object(&name), &detail, now)?;
                }
                None => {
                    check_room(transaction)?;
                    let sql = "INSERT INTO users (name, role, password, created, issuer, subject, sites)
                        VALUES (?, ?, '', ?, ?, ?, ?)";
                    transaction.execute(
                        sql,
                        params![name, who.role.name(), now as i64, who.issuer, who.subject, sites.stored()],
                    )?;
                    let detail = format!("{}, {} of {}", granted(who.role, &sites), who.subject, who.issuer);
                    record(transaction, &by, "user.create", &object(&name), &detail, now)?;
                }
            }
            let user = user_named(transaction, &name)?.ok_or(IdentityError::NotFound("user"))?;
            Ok((user, by))
        })
    }

    /// Ends the sessions of a provider's user who has no role any more, and returns their name if they have
    /// one here.
    pub fn dismiss(&self, issuer: &str, subject: &str) -> Result<Option<String>, IdentityError> {
        self.change(|transaction| {
            let Some(user) = user_of(transaction, issuer, subject)? else { return Ok(None) };
            transaction.execute("DELETE FROM sessions WHERE user = ?", [user.id])?;
            Ok(Some(user.name))
        })
    }
}

fn user_of(
    transaction: &Transaction<'_>,
    issuer: &str,
    subject: &str,
) -> Result<Option<User>, IdentityError> {
    let sql = format!("SELECT {COLUMNS} FROM users u WHERE issuer = ? AND subject = ?");
    let mut statement = transaction.prepare_cached(&sql)?;
    Ok(statement.query_row([issuer, subject], user).optional()?)
}

/// The name that a user asks for in the form of names here, with a number if another one has it: a provider's
/// users do not become the local ones whose names they bear.
fn free_name(transaction: &Transaction<'_>, who: &Provided) -> Result<String, IdentityError> {
    let bytes = who.name.to_ascii_lowercase().into_bytes().into_iter().filter(|byte| fits_name(*byte));
    let mut name: String = bytes.take(NAME_MAX - NUMBER_MAX).map(char::from).collect();
    if name.is_empty() {
        name = NAMELESS.to_owned();
    }
    for number in 1..SAME_NAME_MAX {
        let candidate = if number == 1 { name.clone() } else { format!("{name}-{number}") };
        if user_named(transaction, &candidate)?.is_none() {
            return Ok(candidate);
        }
    }
    Err(IdentityError::Exists)
}
