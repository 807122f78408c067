//! The sites that an identity may see.

use std::collections::BTreeSet;
use std::fmt;

use rusqlite::Row;
use rusqlite::types::Type;

use crate::error::IdentityError;

/// Sites of an identity.
const SITES_MAX: usize = 100;
/// Bytes of a site's name.
const NAME_MAX: usize = 200;

/// The sites that an identity may see and work on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sites {
    /// All, and what belongs to none.
    #[default]
    All,
    /// Only those of these names; never empty.
    Named(BTreeSet<String>),
}

impl Sites {
    /// Only the sites of these names: 1 to 100 of them. A name may be that of a site to come.
    pub fn named(names: impl IntoIterator<Item = String>) -> Result<Sites, IdentityError> {
        let names: BTreeSet<String> = names.into_iter().collect();
        let fits =
            |name: &String| (1..=NAME_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
        match (1..=SITES_MAX).contains(&names.len()) && names.iter().all(fits) {
            true => Ok(Sites::Named(names)),
            false => Err(IdentityError::Invalid(format!(
                "an identity is limited to 1 to {SITES_MAX} sites, each with a name of 1 to {NAME_MAX} bytes"
            ))),
        }
    }

    /// True for all sites.
    pub fn is_all(&self) -> bool {
        *self == Sites::All
    }

    /// True if a site of this name is one of them.
    pub fn admit(&self, site: &str) -> bool {
        match self {
            Sites::All => true,
            Sites::Named(names) => names.contains(site),
        }
    }

    /// The names; none: all sites.
    pub fn names(&self) -> Option<Vec<String>> {
        match self {
            Sites::All => None,
            Sites::Named(names) => Some(names.iter().cloned().collect()),
        }
    }

    /// As the file has it: a name in each line. No name has a control character.
    pub(crate) fn stored(&self) -> Option<String> {
        self.names().map(|names| names.join("\n"))
    }

    /// From a column. A text that names none is an error: it must not stand for all.
    pub(crate) fn read(row: &Row<'_>, column: usize) -> rusqlite::Result<Sites> {
        let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(Sites::All) };
        let names = Sites::named(text.split('\n').map(str::to_owned));
        names.map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into()))
    }
}

impl fmt::Display for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sites::All => f.write_str("all sites"),
            Sites::Named(names) => {
                write!(f, "the sites {}", names.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
            }
        }
    }
}
