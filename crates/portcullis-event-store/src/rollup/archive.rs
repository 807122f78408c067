//! The archive: roll-ups of segments that were dropped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::write::{self, HOUR, MINUTE};
use super::{Rollup, prune};
use crate::codec::Packer;
use crate::folder::{Folder, SegmentFile};
use crate::segment::{BUSY, SegmentError};

/// Its file in the folder of segments.
pub(crate) const NAME: &str = "rollups.db";
const SCHEMA_VERSION: i64 = 2;
/// Roll-ups that are taken away at once where the archive is too large: an eighth.
const SHARE: u64 = 8;

/// The archive's file, opened for each use: segments are dropped rarely.
pub(crate) struct Archive(PathBuf);

/// Retention and size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// Minutes are kept as long as events may be.
    pub(crate) minutes: Duration,
    /// Hours longer.
    pub(crate) hours: Duration,
    /// Bytes of the file.
    pub(crate) bytes: u64,
}

impl Archive {
    pub(crate) fn new(folder: &Path) -> Archive {
        Archive(folder.join(NAME))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Opens it to read; none if no segment was dropped yet.
    pub(crate) fn open(&self) -> Result<Option<Connection>, SegmentError> {
        if !self.0.exists() {
            return Ok(None);
        }
        let connection = Connection::open_with_flags(&self.0, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(BUSY)?;
        Ok(Some(connection))
    }

    /// Takes over the roll-ups of a segment that is about to be dropped. Once for each segment, however often
    /// it is asked: a crash may come between this and the drop.
    pub(crate) fn take_over(&self, segment: &SegmentFile, keep: Keep, now: u64) -> Result<(), SegmentError> {
        let from = Connection::open_with_flags(&segment.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        from.busy_timeout(BUSY)?;
        let mut to = self.create()?;
        let mut packer = Packer::new();
        let transaction = to.transaction()?;
        let insert = "INSERT OR IGNORE INTO taken (segment) VALUES (?1)";
        if transaction.execute(insert, [segment.number as i64])? == 1 {
            let mut rows = from.prepare("SELECT span, start, site, data FROM rollup")?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                let (span, start): (i64, i64) = (row.get(0)?, row.get(1)?);
                let (site, data): (String, Vec<u8>) = (row.get(2)?, row.get(3)?);
                // One that cannot be read is lost with its segment.
                if let Ok(rollup) = Rollup::decode(&data) {
                    write::add(&transaction, (span as u64, start as u64), &site, &rollup, &mut packer)?;
                }
            }
        }
        let seconds = now / 1000;
        prune(&transaction, MINUTE, seconds.saturating_sub(keep.minutes.as_secs()))?;
        prune(&transaction, HOUR, seconds.saturating_sub(keep.hours.as_secs()))?;
        transaction.commit()?;
        self.shrink(&mut to, keep.bytes)
    }

    /// Deletes the oldest roll-ups, minutes before hours, until the file is small enough.
    fn shrink(&self, to: &mut Connection, bytes_max: u64) -> Result<(), SegmentError> {
        to.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        while Folder::bytes(&self.0) > bytes_max {
            let count = "SELECT span, COUNT(*) FROM rollup GROUP BY span ORDER BY span LIMIT 1";
            let Ok((span, rows)) = to.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?))) else {
                break;
            };
            let (span, rows): (i64, i64) = (span, rows);
            let delete = "DELETE FROM rollup WHERE span = ?1 AND start <= \
                (SELECT start FROM rollup WHERE span = ?1 ORDER BY start LIMIT 1 OFFSET ?2)";
            to.execute(delete, params![span, (rows - 1) / SHARE as i64])?;
            to.query_row("PRAGMA incremental_vacuum", [], |_| Ok(())).optional()?;
            to.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        }
        Ok(())
    }

    fn create(&self) -> Result<Connection, SegmentError> {
        portcullis_files::make_private(&self.0).map_err(|error| SegmentError::of_file(&self.0, &error))?;
        let connection = Connection::open(&self.0)?;
        connection.busy_timeout(BUSY)?;
        // Pages of deleted roll-ups are given back a few at a time: a full VACUUM would hold up the writer.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version > SCHEMA_VERSION {
            return Err(SegmentError::TooNew(version));
        }
        connection.execute_batch(write::TABLE)?;
        connection.execute_batch("CREATE TABLE IF NOT EXISTS taken (segment INTEGER PRIMARY KEY)")?;
        connection.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        Ok(connection)
    }
}
