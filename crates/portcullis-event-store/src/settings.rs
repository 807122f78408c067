use std::path::PathBuf;
use std::time::Duration;

/// Limits and place of an event store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The folder of its segments.
    pub folder: PathBuf,
    /// Older segments are dropped.
    pub keep: Duration,
    /// The oldest segments are dropped while all files of the folder together have more bytes.
    pub keep_bytes: u64,
    /// Roll-ups by hour are kept so long; those by minute as long as events.
    pub keep_rollups: Duration,
}

impl StoreSettings {
    /// Least of [`keep_bytes`](Self::keep_bytes): some segments.
    pub const KEEP_BYTES_MIN: u64 = 64 << 20;

    /// Thirty days and 10 GiB in this folder, roll-ups by hour for 400 days.
    pub fn new(folder: impl Into<PathBuf>) -> StoreSettings {
        let days = |days: u64| Duration::from_secs(days * 24 * 3600);
        StoreSettings { folder: folder.into(), keep: days(30), keep_bytes: 10 << 30, keep_rollups: days(400) }
    }

    /// The archive of roll-ups has at most this size.
    pub(crate) fn archive_bytes(&self) -> u64 {
        self.keep_bytes / 8
    }

    /// A segment is not written to beyond this size.
    pub(crate) fn segment_bytes(&self) -> u64 {
        (self.keep_bytes / 16).clamp(1 << 20, 1 << 30)
    }
}
