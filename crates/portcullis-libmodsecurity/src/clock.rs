//! The time, and by how much local time differs from UTC.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use portcullis_exchange::LocalTime;

/// The time zone of the process, for the `TIME_*` variables of rules and for logs.
#[derive(Debug, Default)]
pub(crate) struct Zone(OnceLock<LocalTime>);

impl Zone {
    /// Seconds by which local time is ahead of UTC at a moment, given in milliseconds since 1970.
    pub(crate) fn utc_offset_seconds(&self, epoch_millis: u64) -> i32 {
        let zone = self.0.get_or_init(LocalTime::of_process);
        zone.utc_offset_seconds(i64::try_from(epoch_millis / 1000).unwrap_or(i64::MAX))
    }
}

/// Milliseconds since 1970.
pub(crate) fn epoch_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
