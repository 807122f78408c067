//! Roll-ups in the tables of a segment or of the archive.

use rusqlite::{Connection, OptionalExtension, params};

use super::Rollup;
use crate::codec::Packer;
use crate::segment::SegmentError;

/// Lengths of roll-ups in seconds.
pub(crate) const MINUTE: u64 = 60;
pub(crate) const HOUR: u64 = 3600;

/// Creates the table of roll-ups.
pub(crate) const TABLE: &str = "CREATE TABLE IF NOT EXISTS rollup (\
    span INTEGER NOT NULL, start INTEGER NOT NULL, site TEXT NOT NULL, data BLOB NOT NULL, \
    PRIMARY KEY (span, start, site)) WITHOUT ROWID;";

/// Adds a roll-up to what stands there for its site and time.
pub(crate) fn add(
    to: &Connection,
    (span, start): (u64, u64),
    site: &str,
    rollup: &Rollup,
    packer: &mut Packer,
) -> Result<(), SegmentError> {
    let select = "SELECT data FROM rollup WHERE span = ?1 AND start = ?2 AND site = ?3";
    let key = params![span as i64, start as i64, site];
    let known: Option<Vec<u8>> = to.prepare_cached(select)?.query_row(key, |row| row.get(0)).optional()?;
    let mut sum = known.as_deref().map(Rollup::decode).transpose()?.unwrap_or_default();
    sum.merge(rollup);
    let insert = "INSERT OR REPLACE INTO rollup (span, start, site, data) VALUES (?1, ?2, ?3, ?4)";
    let data = sum.encode(packer);
    to.prepare_cached(insert)?.execute(params![span as i64, start as i64, site, data])?;
    Ok(())
}

/// Deletes roll-ups of a length that began before a time, in seconds since 1970.
pub(crate) fn prune(from: &Connection, span: u64, before: u64) -> Result<(), SegmentError> {
    let delete = "DELETE FROM rollup WHERE span = ?1 AND start < ?2";
    from.prepare_cached(delete)?.execute([span as i64, before as i64])?;
    Ok(())
}
