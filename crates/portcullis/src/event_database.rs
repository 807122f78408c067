//! The database of events that `events.read_from` names.

use std::io;

use portcullis_clickhouse::Database;
use portcullis_config::{Config, EventDatabase};
use portcullis_metrics::Registry;

use crate::outcome::Failure;

/// The database of these settings; nothing is asked yet.
pub fn open(settings: &EventDatabase, registry: &Registry) -> Result<Database, Failure> {
    let explain = |error: io::Error| Failure::failed(format_args!("events.read_from: {error}"));
    Database::new(settings, registry).map_err(explain)
}

/// Returns the error that would prevent its use.
pub fn check(config: &Config) -> Option<String> {
    let settings = config.event_database.as_ref()?;
    Database::new(settings, &Registry::new()).err().map(|error| error.to_string())
}
