//! Views that a user has saved: places in the console, by name.

use rusqlite::{OptionalExtension, params};

use crate::error::IdentityError;
use crate::file::Identities;

/// Views of a user, at most.
pub const VIEWS_MAX: usize = 100;
/// Characters of a name.
pub const VIEW_NAME_MAX: usize = 100;
/// Bytes of a place.
pub const VIEW_PLACE_MAX: usize = 4096;

/// A saved view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its number, never given twice.
    pub id: i64,
    /// Its name, once for each user.
    pub name: String,
    /// The fragment of the console's URL, from `#/` on: page, filter, columns, range.
    pub place: String,
    /// When it was saved or changed, in seconds since 1970.
    pub saved: u64,
}

impl Identities {
    /// The views of a user, by name.
    pub fn views(&self, user: i64) -> Result<Vec<View>, IdentityError> {
        let connection = self.connection();
        let sql = "SELECT id, name, place, saved FROM views WHERE user = ? ORDER BY name, id";
        let mut statement = connection.prepare_cached(sql)?;
        let views = statement.query_map([user], |row| {
            Ok(View { id: row.get(0)?, name: row.get(1)?, place: row.get(2)?, saved: row.get(3)? })
        })?;
        Ok(views.collect::<Result<_, _>>()?)
    }

    /// Saves a view: `id` names one to change, none a new one. Errors: another view of the user has the name,
    /// the user has no such view, or as many as allowed.
    pub fn save_view(
        &self,
        user: i64,
        id: Option<i64>,
        name: &str,
        place: &str,
        now: u64,
    ) -> Result<View, IdentityError> {
        let name = check_name(name)?;
        check_place(place)?;
        self.change(|transaction| {
            let sql = "SELECT id FROM views WHERE user = ? AND name = ?";
            let known: Option<i64> =
                transaction.query_row(sql, params![user, name], |row| row.get(0)).optional()?;
            if known.is_some() && known != id {
                return Err(IdentityError::ViewExists);
            }
            let id = match id {
                Some(id) => {
                    let sql = "UPDATE views SET name = ?, place = ?, saved = ? WHERE id = ? AND user = ?";
                    if transaction.execute(sql, params![name, place, now as i64, id, user])? == 0 {
                        return Err(IdentityError::NotFound("view"));
                    }
                    id
                }
                None => {
                    let sql = "SELECT count(*) FROM views WHERE user = ?";
                    let count: usize = transaction.query_row(sql, [user], |row| row.get(0))?;
                    if count >= VIEWS_MAX {
                        let message = format!("you have {VIEWS_MAX} saved views; delete one first");
                        return Err(IdentityError::Invalid(message));
                    }
                    let sql = "INSERT INTO views (user, name, place, saved) VALUES (?, ?, ?, ?)";
                    transaction.execute(sql, params![user, name, place, now as i64])?;
                    transaction.last_insert_rowid()
                }
            };
            Ok(View { id, name: name.to_owned(), place: place.to_owned(), saved: now })
        })
    }

    /// Deletes a view of a user.
    pub fn delete_view(&self, user: i64, id: i64) -> Result<(), IdentityError> {
        let sql = "DELETE FROM views WHERE id = ? AND user = ?";
        match self.connection().execute(sql, [id, user])? {
            0 => Err(IdentityError::NotFound("view")),
            _ => Ok(()),
        }
    }
}

fn check_name(name: &str) -> Result<&str, IdentityError> {
    let name = name.trim();
    let length = name.chars().count();
    if (1..=VIEW_NAME_MAX).contains(&length) && !name.chars().any(char::is_control) {
        return Ok(name);
    }
    let message = format!("the name of a view has 1 to {VIEW_NAME_MAX} characters, none of them a control");
    Err(IdentityError::Invalid(message))
}

/// Nothing but a fragment, as browsers write it: a saved view must not lead to another page.
fn check_place(place: &str) -> Result<(), IdentityError> {
    if place.len() <= VIEW_PLACE_MAX
        && place.starts_with("#/")
        && place.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Ok(());
    }
    let message =
        format!("a place begins with `#/` and has at most {VIEW_PLACE_MAX} bytes of ASCII without spaces");
    Err(IdentityError::Invalid(message))
}
