//! Copies of a store, consistent while it is written to.

use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use crate::folder::Folder;
use crate::query::Store;
use crate::rollup::Archive;
use crate::segment::{Segment, SegmentError};

/// Pages that are copied between two chances for the writer.
const PAGES: std::ffi::c_int = 4096;

/// Amount that was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Segments.
    pub segments: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Files that could not be copied, and why.
    pub skipped: Vec<String>,
}

impl Store {
    /// Copies all segments and the archive of roll-ups into a folder, which must not exist yet or be empty.
    /// Each file is copied as it was at one moment.
    pub fn backup(&self, to: &Path) -> io::Result<Copied> {
        let folder = Folder::new(to);
        folder.create()?;
        if std::fs::read_dir(to)?.next().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} is not empty; name a new folder", to.display()),
            ));
        }
        let mut copied = Copied::default();
        // The archive first: a segment that is dropped meanwhile is then in neither, not in both.
        let archive = Archive::new(self.folder());
        let segments = self.folder_of_segments().segments()?;
        let segments = segments.iter().map(|segment| &*segment.path);
        for path in std::iter::once(archive.path()).chain(segments).filter(|path| path.exists()) {
            let target = to.join(path.file_name().unwrap_or_default());
            match copy(path, &target) {
                Ok(()) => {
                    copied.segments += u64::from(path != archive.path());
                    copied.bytes += Folder::bytes(&target);
                }
                // Dropped since the folder was listed.
                Err(_) if !path.exists() => drop(Folder::remove(&target)),
                Err(error) => {
                    let _ = Folder::remove(&target);
                    copied.skipped.push(format!("{}: {error}", path.display()));
                }
            }
        }
        Ok(copied)
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), SegmentError> {
    let source = match from.ends_with(crate::rollup::ARCHIVE) {
        true => Connection::open_with_flags(from, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        false => Segment::open(from)?.into_connection(),
    };
    portcullis_files::make_private(to).map_err(|error| SegmentError::of_file(to, &error))?;
    let mut target = Connection::open(to)?;
    Backup::new(&source, &mut target)?.run_to_completion(PAGES, Duration::ZERO, None)?;
    Ok(())
}
