//! The time, and by how much local time differs from UTC.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use tz::TimeZone;

/// The time zone of the process, for the `TIME_*` variables of rules and for logs.
#[derive(Debug, Default)]
pub(crate) struct Zone(OnceLock<TimeZone>);

impl Zone {
    /// Seconds by which local time is ahead of UTC at a moment, given in milliseconds since 1970.
    pub(crate) fn utc_offset_seconds(&self, epoch_millis: u64) -> i32 {
        let zone = self.0.get_or_init(|| {
            let zone = match std::env::var("TZ") {
                Ok(name) => TimeZone::from_posix_tz(&name),
                Err(_) => TimeZone::local(),
            };
            zone.unwrap_or_else(|_| TimeZone::utc())
        });
        let seconds = i64::try_from(epoch_millis / 1000).unwrap_or(i64::MAX);
        zone.find_local_time_type(seconds).map_or(0, |found| found.ut_offset())
    }
}

/// Milliseconds since 1970.
pub(crate) fn epoch_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
