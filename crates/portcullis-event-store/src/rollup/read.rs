//! Reading roll-ups: of a stretch of time, from the archive and all segments.

use std::collections::BTreeMap;
use std::ops::Range;

use rusqlite::{Connection, params};

use super::write::{HOUR, MINUTE};
use super::{Archive, Rollup};
use crate::folder::SegmentFile;
use crate::query::{QueryError, Store};
use crate::segment::{Segment, SegmentError};

/// A roll-up and what it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteRollup {
    /// When it begins, in seconds since 1970.
    pub start: u64,
    /// Configured name of the site; empty for requests that no site serves.
    pub site: String,
    /// Sums of the requests.
    pub rollup: Rollup,
}

/// Roll-ups of a stretch of time, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollups {
    /// The roll-ups.
    pub items: Vec<SiteRollup>,
    /// Files that could not be read, and why: what they count is missing.
    pub skipped: Vec<String>,
}

type Sums = BTreeMap<(u64, String), Rollup>;

impl Store {
    /// Roll-ups by minute of those minutes that begin in a range of seconds since 1970.
    pub fn minutes(&self, range: Range<u64>, site: Option<&str>) -> Result<Rollups, QueryError> {
        self.rollups(MINUTE, range, site)
    }

    /// Roll-ups by hour of those hours that begin in a range of seconds since 1970.
    pub fn hours(&self, range: Range<u64>, site: Option<&str>) -> Result<Rollups, QueryError> {
        self.rollups(HOUR, range, site)
    }

    /// Sums of the requests of a range of seconds since 1970, one roll-up for each site: whole hours
    /// from their roll-ups, the rest by minutes.
    pub fn overview(&self, range: Range<u64>, site: Option<&str>) -> Result<Rollups, QueryError> {
        let start = range.start;
        let hours = start.checked_next_multiple_of(HOUR).unwrap_or(u64::MAX)..range.end - range.end % HOUR;
        let parts = match hours.is_empty() {
            true => vec![(MINUTE, range)],
            false => {
                vec![(MINUTE, start..hours.start), (HOUR, hours.clone()), (MINUTE, hours.end..range.end)]
            }
        };
        let mut sites: BTreeMap<String, Rollup> = BTreeMap::new();
        let mut skipped = Vec::new();
        for (span, range) in parts.into_iter().filter(|(_, range)| !range.is_empty()) {
            let found = self.rollups(span, range, site)?;
            for of_site in found.items {
                sites.entry(of_site.site).or_default().merge(&of_site.rollup);
            }
            skipped.extend(found.skipped);
        }
        skipped.sort();
        skipped.dedup();
        let items = sites.into_iter().map(|(site, rollup)| SiteRollup { start, site, rollup }).collect();
        Ok(Rollups { items, skipped })
    }

    fn rollups(&self, span: u64, range: Range<u64>, site: Option<&str>) -> Result<Rollups, QueryError> {
        let mut sums = Sums::new();
        let mut skipped = Vec::new();
        let segments = self.folder_of_segments().segments().map_err(QueryError::Folder)?;
        // What was taken into the archive is in a segment no more, or in one that is about to go.
        let archive = Archive::new(self.folder());
        let mut taken = Vec::new();
        let mut read_archive = || -> Result<(), SegmentError> {
            let Some(connection) = archive.open()? else { return Ok(()) };
            taken = taken_segments(&connection)?;
            read(&connection, span, &range, site, &mut sums)
        };
        if let Err(error) = read_archive() {
            skipped.push(format!("{}: {error}", archive.path().display()));
        }
        for (number, file) in segments.iter().enumerate() {
            let next = segments.get(number + 1).map_or(u64::MAX, |next| next.number);
            if taken.contains(&file.number) || !may_have(file, next, span, &range) {
                continue;
            }
            let read = Segment::open(&file.path)
                .and_then(|segment| read(segment.connection(), span, &range, site, &mut sums));
            match read {
                Ok(()) => {}
                // Dropped since the folder was listed.
                Err(_) if !file.path.exists() => {}
                Err(error) => skipped.push(format!("{}: {error}", file.path.display())),
            }
        }
        let items = sums.into_iter().map(|((start, site), rollup)| SiteRollup { start, site, rollup });
        Ok(Rollups { items: items.collect(), skipped })
    }
}

/// False if the roll-ups of a segment, which was written to from its number to the next, lie outside of the
/// range.
fn may_have(segment: &SegmentFile, next: u64, span: u64, range: &Range<u64>) -> bool {
    // A clock that is set back, or a request counted a moment late, moves them by less than an hour.
    let begins = (segment.number / 1000).saturating_sub(HOUR);
    let ends = (next / 1000).saturating_add(HOUR);
    begins < range.end && ends.saturating_add(span) > range.start
}

fn taken_segments(archive: &Connection) -> Result<Vec<u64>, SegmentError> {
    let mut statement = archive.prepare("SELECT segment FROM taken")?;
    let taken = statement.query_map([], |row| row.get::<_, i64>(0))?;
    Ok(taken.map(|number| number.map(|number| number as u64)).collect::<Result<_, _>>()?)
}

fn read(
    from: &Connection,
    span: u64,
    range: &Range<u64>,
    site: Option<&str>,
    sums: &mut Sums,
) -> Result<(), SegmentError> {
    let select = "SELECT start, site, data FROM rollup WHERE span = ?1 AND start >= ?2 AND start < ?3 \
        AND (?4 IS NULL OR site = ?4)";
    let mut statement = from.prepare(select)?;
    let clip = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![clip(span), clip(range.start), clip(range.end), site])?;
    while let Some(row) = rows.next()? {
        let (start, site, data): (i64, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let rollup = Rollup::decode(&data)?;
        sums.entry((start as u64, site)).or_default().merge(&rollup);
    }
    Ok(())
}
