//! A segment: one SQLite file with the blocks and roll-ups of a stretch of time.
//!
//! Blocks are identified by the number of their first event in the segment. A table holds one column of all
//! blocks, so that a filter reads the columns that it names and no others.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use portcullis_query::Field;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, params};

use crate::block::{Column, Encoded};
use crate::codec::{Damaged, Packer, unpack};
use crate::fields::{Shape, is_late, shape};
use crate::folder::{self, Folder};
use crate::marks::Marks;
use crate::outcomes;
use crate::rollup::{self, Rollup};

/// Version of the tables. A segment of a newer one is left alone; of an older one, migrated when it is opened
/// to write.
pub(crate) const SCHEMA_VERSION: i64 = 2;
/// The ending of a segment's file.
pub(crate) const ENDING: &str = "events";
/// Longest wait for a lock of another process.
pub(crate) const BUSY: Duration = Duration::from_secs(5);
/// Memory for pages of one connection, in KiB.
const CACHE_KIB: i64 = 8 << 10;

/// Why a segment cannot be read or written.
#[derive(Debug)]
pub enum SegmentError {
    /// The file is no segment, or what it holds contradicts itself.
    Damaged(String),
    /// It was written by a newer version.
    TooNew(i64),
    /// No space is left on the device.
    Full,
    /// The file or its folder cannot be made or opened.
    File(String),
    /// SQLite cannot do what was asked.
    Sqlite(rusqlite::Error),
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentError::Damaged(what) => write!(f, "the segment is damaged: {what}"),
            SegmentError::TooNew(version) => write!(
                f,
                "the segment was written by a newer version (schema {version}; this one knows {SCHEMA_VERSION})"
            ),
            SegmentError::Full => write!(f, "no space is left on the device"),
            SegmentError::File(what) => f.write_str(what),
            SegmentError::Sqlite(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SegmentError {}

impl SegmentError {
    /// The error of a file or a folder.
    pub(crate) fn of_file(path: &Path, error: &io::Error) -> SegmentError {
        match matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            true => SegmentError::Full,
            false => SegmentError::File(format!("{}: {error}", path.display())),
        }
    }
}

impl From<rusqlite::Error> for SegmentError {
    fn from(error: rusqlite::Error) -> SegmentError {
        use rusqlite::ErrorCode::*;
        match error.sqlite_error_code() {
            Some(DatabaseCorrupt | NotADatabase) => SegmentError::Damaged(error.to_string()),
            Some(DiskFull) => SegmentError::Full,
            _ => SegmentError::Sqlite(error),
        }
    }
}

impl From<Damaged> for SegmentError {
    fn from(_: Damaged) -> SegmentError {
        SegmentError::Damaged("a block is not what was written".to_owned())
    }
}

/// A block without its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHead {
    /// The number of its first event in the segment.
    pub(crate) first: u64,
    /// The number of its events.
    pub(crate) count: usize,
    /// Times of the earliest and the latest, in milliseconds since 1970.
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
}

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    connection: Connection,
}

/// The fields that have a table.
fn stored_fields() -> impl Iterator<Item = Field> {
    Field::ALL.iter().copied().filter(|&field| shape(field) != Shape::Nowhere)
}

impl Segment {
    /// Makes a segment, or opens one to go on writing.
    pub(crate) fn create(path: &Path) -> Result<Segment, SegmentError> {
        if !path.exists() {
            // Readers find it once it has its schema: one without is taken for a damaged one.
            let making = folder::making(path);
            Folder::remove(&making).map_err(|error| SegmentError::of_file(&making, &error))?;
            drop(Segment::write_to(&making, "DELETE")?);
            std::fs::rename(&making, path).map_err(|error| SegmentError::of_file(path, &error))?;
        }
        Segment::write_to(path, "WAL")
    }

    fn write_to(path: &Path, journal: &str) -> Result<Segment, SegmentError> {
        // Files that SQLite keeps next to it get its mode.
        portcullis_files::make_private(path).map_err(|error| SegmentError::of_file(path, &error))?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        // The file's pages are the blobs' alone: larger ones chain less.
        connection.pragma_update(None, "page_size", 8192)?;
        connection.pragma_update(None, "journal_mode", journal)?;
        // A crash of the process loses nothing that was committed; one of the machine, what the system had
        // not written.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version > SCHEMA_VERSION {
            return Err(SegmentError::TooNew(version));
        }
        match version {
            0 => connection.execute_batch(&schema())?,
            SCHEMA_VERSION => {}
            _ => connection.execute_batch(&migration())?,
        }
        Ok(Segment { connection })
    }

    /// Opens a segment to read it.
    pub(crate) fn open(path: &Path) -> Result<Segment, SegmentError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.set_prepared_statement_cache_capacity(64);
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match version {
            0 => Err(SegmentError::Damaged("it has no schema".to_owned())),
            version if version > SCHEMA_VERSION => Err(SegmentError::TooNew(version)),
            _ => Ok(Segment { connection }),
        }
    }

    pub(crate) fn into_connection(self) -> Connection {
        self.connection
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The number that the next event gets.
    pub(crate) fn next_event(&self) -> Result<u64, SegmentError> {
        let last = "SELECT first + events FROM block ORDER BY first DESC LIMIT 1";
        let next: Option<i64> = self.connection.query_row(last, [], |row| row.get(0)).optional()?;
        u64::try_from(next.unwrap_or(0)).map_err(|_| Damaged.into())
    }

    /// Runs `write` in one transaction.
    pub(crate) fn transact<T>(
        &mut self,
        write: impl FnOnce(&Writing<'_>) -> Result<T, SegmentError>,
    ) -> Result<T, SegmentError> {
        let transaction = self.connection.transaction()?;
        let result = write(&Writing(&transaction))?;
        transaction.commit()?;
        Ok(result)
    }

    /// Blocks that may have events of these times, newest first, from the one that holds the event `before`
    /// downwards.
    pub(crate) fn blocks(
        &self,
        before: u64,
        (first_ms, last_ms): (u64, u64),
    ) -> Result<Vec<BlockHead>, SegmentError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT first, events, first_ms, last_ms FROM block \
             WHERE first < ?1 AND last_ms >= ?2 AND first_ms <= ?3 ORDER BY first DESC",
        )?;
        let clip = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![clip(before), clip(first_ms), clip(last_ms)], |row| {
            let number = |at| row.get::<_, i64>(at).map(|number| number as u64);
            Ok(BlockHead {
                first: number(0)?,
                count: number(1)? as usize,
                first_ms: number(2)?,
                last_ms: number(3)?,
            })
        })?;
        let blocks = rows.collect::<Result<Vec<_>, _>>()?;
        let is_wrong = |block: &BlockHead| {
            block.count > crate::block::EVENTS_MAX || block.first > i64::MAX as u64 - block.count as u64
        };
        if blocks.iter().any(is_wrong) {
            return Err(Damaged.into());
        }
        Ok(blocks)
    }

    pub(crate) fn column(&self, block: &BlockHead, field: Field) -> Result<Column, SegmentError> {
        let stored = match is_late(field) && !self.has_column(field)? {
            true => None,
            false => {
                self.blob(&format!("SELECT data FROM c_{} WHERE first = ?1", field.name()), block.first)?
            }
        };
        match stored {
            Some(stored) => Ok(Column::read(field, &stored, block.count)?),
            None if is_late(field) => Ok(Column::Words(outcomes::of_block(self, block)?)),
            None => Err(Damaged.into()),
        }
    }

    fn has_column(&self, field: Field) -> Result<bool, SegmentError> {
        let mut statement = self.connection.prepare_cached("SELECT 1 FROM sqlite_master WHERE name = ?1")?;
        Ok(statement.exists([format!("c_{}", field.name())])?)
    }

    pub(crate) fn terms(&self, block: &BlockHead) -> Result<Marks, SegmentError> {
        self.marks("SELECT data FROM i_terms WHERE first = ?1", block)
    }

    pub(crate) fn text(&self, block: &BlockHead) -> Result<Marks, SegmentError> {
        self.marks("SELECT data FROM i_text WHERE first = ?1", block)
    }

    fn marks(&self, select: &str, block: &BlockHead) -> Result<Marks, SegmentError> {
        let stored = self.blob(select, block.first)?.ok_or(Damaged)?;
        Ok(Marks::read(&unpack(&stored)?)?)
    }

    fn blob(&self, select: &str, first: u64) -> Result<Option<Vec<u8>>, SegmentError> {
        let mut statement = self.connection.prepare_cached(select)?;
        Ok(statement.query_row([first as i64], |row| row.get(0)).optional()?)
    }

    /// The chunk with this event, and the number of the chunk's first.
    pub(crate) fn chunk(&self, event: u64) -> Result<(u64, Vec<u8>), SegmentError> {
        let select = "SELECT first, data FROM payload WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(select)?;
        let found = statement
            .query_row([event as i64], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?)))
            .optional()?;
        Ok(found.ok_or(Damaged)?)
    }

    /// The chunks of a block, and the number of the first event of each.
    pub(crate) fn chunks(&self, block: &BlockHead) -> Result<Vec<(u64, Vec<u8>)>, SegmentError> {
        let select = "SELECT first, data FROM payload WHERE first >= ?1 AND first < ?2 ORDER BY first";
        let mut statement = self.connection.prepare_cached(select)?;
        let range = [block.first as i64, (block.first + block.count as u64) as i64];
        let rows = statement.query_map(range, |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Writes the log that SQLite keeps beside the file into it, as far as no reader is in the way.
    pub(crate) fn checkpoint(&self) -> Result<(), SegmentError> {
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }
}

/// A transaction that writes.
pub(crate) struct Writing<'t>(pub(crate) &'t Transaction<'t>);

impl Writing<'_> {
    /// Adds a block whose first event has this number.
    pub(crate) fn add(&self, first: u64, block: &Encoded) -> Result<(), SegmentError> {
        let put = |into: &str, first: u64, data: &[u8]| -> Result<(), SegmentError> {
            let insert = format!("INSERT INTO {into} (first, data) VALUES (?1, ?2)");
            self.0.prepare_cached(&insert)?.execute(params![first as i64, data])?;
            Ok(())
        };
        let insert = "INSERT INTO block (first, events, first_ms, last_ms) VALUES (?1, ?2, ?3, ?4)";
        self.0.prepare_cached(insert)?.execute(params![
            first as i64,
            block.count as i64,
            block.first_ms as i64,
            block.last_ms as i64
        ])?;
        for (field, data) in &block.columns {
            put(&format!("c_{}", field.name()), first, data)?;
        }
        put("i_terms", first, &block.terms)?;
        put("i_text", first, &block.text)?;
        for (row, chunk) in &block.chunks {
            put("payload", first + *row as u64, chunk)?;
        }
        Ok(())
    }

    /// Adds what the requests of a site came to in a minute.
    pub(crate) fn add_rollup(
        &self,
        minute: u64,
        site: &str,
        rollup: &Rollup,
        packer: &mut Packer,
    ) -> Result<(), SegmentError> {
        rollup::add(self.0, (rollup::MINUTE, minute), site, rollup, packer)?;
        let hour = minute - minute % rollup::HOUR;
        rollup::add(self.0, (rollup::HOUR, hour), site, rollup, packer)
    }

    /// Takes away the blocks with the events from `first` on.
    pub(crate) fn remove_from(&self, first: u64) -> Result<(), SegmentError> {
        let tables = stored_fields().map(|field| format!("c_{}", field.name()));
        let others = ["block", "i_terms", "i_text", "payload"].map(str::to_owned);
        for table in tables.chain(others) {
            let delete = format!("DELETE FROM {table} WHERE first >= ?1");
            self.0.prepare_cached(&delete)?.execute([first as i64])?;
        }
        Ok(())
    }
}

/// To this version from an earlier one.
fn migration() -> String {
    let tables: String = stored_fields().filter(|field| is_late(*field)).map(table_of).collect();
    format!("BEGIN; {tables} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
}

fn table_of(field: Field) -> String {
    format!("CREATE TABLE IF NOT EXISTS c_{} (first INTEGER PRIMARY KEY, data BLOB NOT NULL);", field.name())
}

fn schema() -> String {
    let mut schema = "BEGIN;\
        CREATE TABLE block (first INTEGER PRIMARY KEY, events INTEGER NOT NULL, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL);\
        CREATE TABLE i_terms (first INTEGER PRIMARY KEY, data BLOB NOT NULL);\
        CREATE TABLE i_text (first INTEGER PRIMARY KEY, data BLOB NOT NULL);\
        CREATE TABLE payload (first INTEGER PRIMARY KEY, data BLOB NOT NULL);\
        "
        .to_owned();
    schema += rollup::TABLE;
    schema.extend(stored_fields().map(table_of));
    schema + &format!("PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
}
