//! Where stored events are: in a data folder, or in the database that a document names.

use std::path::Path;

use portcullis_clickhouse::Database;
use portcullis_config::Config;
use portcullis_event_store::{EventSource, Store};
use portcullis_metrics::Registry;

use crate::outcome::Failure;
use crate::{data_folder, event_database};

/// The store of a data folder.
pub fn store(data: &Path) -> Result<Store, Failure> {
    let folder = data_folder::events(data);
    match std::fs::read_dir(&folder) {
        Ok(_) => Ok(Store::new(&folder)),
        Err(error) => Err(Failure::failed(format_args!(
            "no event store at {}: {error}; `portcullis run --data {}` makes one",
            folder.display(),
            data.display()
        ))),
    }
}

/// The sample of requests that passed, in a data folder; none if there is none.
pub fn sample(data: &Path) -> Option<Store> {
    let folder = data_folder::sample(data);
    folder.is_dir().then(|| Store::new(&folder))
}

/// Stored events.
pub enum Stored {
    /// Those of one node.
    Folder(Store),
    /// Those of many nodes.
    Database(Box<Database>),
}

impl Stored {
    /// Those of a data folder.
    pub fn in_folder(data: &Path) -> Result<Stored, Failure> {
        store(data).map(Stored::Folder)
    }

    /// Those that the console of this document shows.
    pub fn of_document(path: &Path) -> Result<Stored, Failure> {
        let config = Config::from_file(path).map_err(Failure::failed)?;
        match (&config.event_database, &config.data) {
            (Some(settings), _) => {
                let database = event_database::open(settings, &Registry::new())?;
                Ok(Stored::Database(Box::new(database)))
            }
            (None, Some(data)) => Stored::in_folder(data),
            (None, None) => Err(Failure::failed(format_args!(
                "{} names no stored events: add `data = {{ folder = \"...\" }}` or `events.read_from`",
                path.display()
            ))),
        }
    }

    pub fn events(&self) -> &dyn EventSource {
        match self {
            Stored::Folder(store) => store,
            Stored::Database(database) => &**database,
        }
    }

    /// The store of a folder: only what one node records can be followed.
    pub fn folder(&self) -> Option<&Store> {
        match self {
            Stored::Folder(store) => Some(store),
            Stored::Database(_) => None,
        }
    }
}
