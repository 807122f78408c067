//! What is known, as it is kept and handed on.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::store::{Limits, Store, Written};

const FORMAT: &str = "portcullis-learned";
const VERSION: u32 = 1;

/// Why a text is not one of what was learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateError {
    /// It is no JSON of this form; the message says where.
    Damaged(String),
    /// It is something else.
    Format,
    /// It was written by a newer version of the program.
    Version(u32),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::Damaged(why) => write!(f, "what was learned is damaged: {why}"),
            StateError::Format => f.write_str("this is no export of `portcullis learned`"),
            StateError::Version(version) => {
                write!(
                    f,
                    "version {version} of what was learned is newer than the one that is read, {VERSION}"
                )
            }
        }
    }
}

impl std::error::Error for StateError {}

#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Document {
    format: String,
    version: u32,
    learned: Written,
}

impl Store {
    /// The store as text.
    pub fn to_text(&self) -> String {
        let document = Document { format: FORMAT.to_owned(), version: VERSION, learned: self.to_written() };
        // Strings, numbers, lists and maps with keys of strings: nothing that could not be written.
        serde_json::to_string(&document).unwrap_or_default()
    }

    /// The store that a text tells of, within `limits`.
    pub fn from_text(text: &[u8], limits: Limits) -> Result<Store, StateError> {
        let damaged = |error: serde_json::Error| StateError::Damaged(error.to_string());
        let value: serde_json::Value = serde_json::from_slice(text).map_err(damaged)?;
        let head: Head = Head::deserialize(&value).map_err(|_| StateError::Format)?;
        if head.format != FORMAT {
            return Err(StateError::Format);
        }
        if head.version != VERSION {
            return Err(StateError::Version(head.version));
        }
        let document: Document = serde_json::from_value(value).map_err(damaged)?;
        Store::from_written(document.learned, limits).map_err(StateError::Damaged)
    }
}
