//! The inventory as it is kept.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::inventory::{Beyond, Inventory, Limits, TEMPLATE_BYTES_MAX};

const FORMAT: &str = "portcullis-discovery";
const VERSION: u32 = 1;

/// Why a text is no inventory.
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
            StateError::Damaged(why) => write!(f, "the inventory is damaged: {why}"),
            StateError::Format => f.write_str("this is no inventory of a site"),
            StateError::Version(version) => {
                write!(f, "version {version} of the inventory is newer than the one that is read, {VERSION}")
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
    since_s: Option<u64>,
    beyond: Beyond,
    endpoints: Vec<Kept>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    method: String,
    path: String,
    endpoint: Endpoint,
}

impl Inventory {
    /// The inventory as text.
    pub fn to_text(&self) -> String {
        let kept = self.endpoints().map(|found| Kept {
            method: found.method.to_owned(),
            path: found.path,
            endpoint: found.endpoint.clone(),
        });
        let document = Document {
            format: FORMAT.to_owned(),
            version: VERSION,
            since_s: self.since_s(),
            beyond: self.beyond(),
            endpoints: kept.collect(),
        };
        // Strings, numbers, lists and maps with keys of strings: nothing that could not be written.
        serde_json::to_string(&document).unwrap_or_default()
    }

    /// The inventory that a text tells of, within `limits`.
    pub fn from_text(text: &[u8], limits: Limits) -> Result<Inventory, StateError> {
        let damaged = |error: serde_json::Error| StateError::Damaged(error.to_string());
        let head: Head = match serde_json::from_slice(text) {
            Ok(head) => head,
            Err(error) if error.is_data() => return Err(StateError::Format),
            Err(error) => return Err(damaged(error)),
        };
        if head.format != FORMAT {
            return Err(StateError::Format);
        }
        if head.version != VERSION {
            return Err(StateError::Version(head.version));
        }
        let document: Document = serde_json::from_slice(text).map_err(damaged)?;
        let mut inventory = Inventory::restored(document.since_s, document.beyond, limits);
        for Kept { method, path, mut endpoint } in document.endpoints {
            if path.len() > TEMPLATE_BYTES_MAX + 1 || !path.starts_with('/') || method.len() > 16 {
                return Err(StateError::Damaged(format!("`{method} {path}` is no endpoint")));
            }
            if let Some(mistake) = endpoint.mistake() {
                return Err(StateError::Damaged(format!("{method} {path}: {mistake}")));
            }
            inventory.put(&path, &method, endpoint);
        }
        inventory.settle();
        Ok(inventory)
    }
}
