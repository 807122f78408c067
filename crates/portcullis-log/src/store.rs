//! The folder of concurrent audit records, bounded by number and bytes: the oldest make room for the newest.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::audit::AuditLimits;

/// Records in `FOLDER/20260921/20260921-1413/20260921-141320-ID`.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    dir_mode: u32,
    file_mode: u32,
    files: u64,
    bytes: u64,
    files_max: u64,
    bytes_max: u64,
    /// The folder made last: the next record mostly goes there as well.
    made: PathBuf,
}

impl Store {
    /// Opens the folder, which is made if it is missing, and counts what is there.
    pub(crate) fn open(
        folder: &Path,
        dir_mode: u32,
        file_mode: u32,
        limits: &AuditLimits,
    ) -> io::Result<Store> {
        DirBuilder::new().recursive(true).mode(dir_mode).create(folder)?;
        let mut store = Store {
            folder: folder.to_owned(),
            dir_mode,
            file_mode,
            files: 0,
            bytes: 0,
            files_max: limits.files_max.max(1),
            bytes_max: limits.stored_bytes_max.max(1),
            made: PathBuf::new(),
        };
        store.count()?;
        Ok(store)
    }

    fn count(&mut self) -> io::Result<()> {
        (self.files, self.bytes) = (0, 0);
        for minute in self.minutes()? {
            for (_, bytes) in records(&minute)? {
                self.files += 1;
                self.bytes += bytes;
            }
        }
        Ok(())
    }

    /// Writes a record. Returns how many old ones were removed for it.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<u64> {
        let removed = self.make_room(bytes.len() as u64)?;
        let path = self.folder.join(name.trim_start_matches('/'));
        let folder = path.parent().unwrap_or(&self.folder).to_owned();
        if folder != self.made || !folder.is_dir() {
            DirBuilder::new().recursive(true).mode(self.dir_mode).create(&folder)?;
            self.made = folder;
        }
        // Never through a link, never over a file that is there.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(self.file_mode).open(&path)?;
        if let Err(error) = file.write_all(bytes) {
            drop(file);
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        self.files += 1;
        self.bytes += bytes.len() as u64;
        Ok(removed)
    }

    /// Removes the oldest records if `more` bytes go beyond the limits, and a few more, so that it is not
    /// done each time.
    fn make_room(&mut self, more: u64) -> io::Result<u64> {
        if self.files < self.files_max && self.bytes + more <= self.bytes_max {
            return Ok(0);
        }
        // Others may have taken records away.
        self.count()?;
        let files_goal = self.files_max.saturating_sub(1 + self.files_max / 20);
        let bytes_goal = self.bytes_max.saturating_sub(self.bytes_max / 20).saturating_sub(more);
        let mut removed = 0;
        for minute in self.minutes()? {
            if self.files <= files_goal && self.bytes <= bytes_goal {
                break;
            }
            for (record, bytes) in records(&minute)? {
                if self.files <= files_goal && self.bytes <= bytes_goal {
                    break;
                }
                fs::remove_file(&record)?;
                removed += 1;
                self.files -= 1;
                self.bytes -= bytes;
            }
            // Only if they are empty.
            let _ = fs::remove_dir(&minute);
            let _ = minute.parent().map(fs::remove_dir);
        }
        Ok(removed)
    }

    /// The folders of minutes, oldest first.
    fn minutes(&self) -> io::Result<Vec<PathBuf>> {
        let mut minutes = Vec::new();
        for day in listing(&self.folder)? {
            if is_stamp(&day, 8) && day.is_dir() {
                let below = listing(&day)?;
                minutes.extend(below.into_iter().filter(|minute| is_stamp(minute, 13) && minute.is_dir()));
            }
        }
        Ok(minutes)
    }
}

/// The records of a minute with their sizes, oldest first.
fn records(minute: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let named = |path: &PathBuf| name(path).get(..15).is_some_and(stamp_like);
    let with_size = |path: PathBuf| {
        let data = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some((path, data.len()))
    };
    Ok(listing(minute)?.into_iter().filter(named).filter_map(with_size).collect())
}

fn listing(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort_unstable();
    Ok(paths)
}

fn is_stamp(path: &Path, length: usize) -> bool {
    let name = name(path);
    name.len() == length && stamp_like(name)
}

/// Digits, with a `-` after the date.
fn stamp_like(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| if at == 8 { byte == b'-' } else { byte.is_ascii_digit() })
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(folder: &Path, files_max: u64, bytes_max: u64) -> Store {
        let limits = AuditLimits { files_max, stored_bytes_max: bytes_max, ..AuditLimits::default() };
        Store::open(folder, 0o750, 0o640, &limits).unwrap()
    }

    fn name_of(second: u32) -> String {
        format!("/20260921/20260921-14{:02}/20260921-14{:02}{:02}-id", second / 60, second / 60, second % 60)
    }

    #[test]
    fn the_oldest_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = store(folder.path(), 10, 1 << 20);
        let removed: u64 = (0..100).map(|second| store.write(&name_of(second), b"record").unwrap()).sum();
        assert!(store.files <= 10 && removed >= 90, "{} files, {removed} removed", store.files);
        assert!(!folder.path().join(&name_of(0)[1..]).exists());
        assert!(folder.path().join(&name_of(99)[1..]).exists());
    }

    #[test]
    fn bytes_are_bounded_and_counted_again_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = store(folder.path(), 1000, 100);
        for second in 0..50 {
            first.write(&name_of(second), &[b'x'; 10]).unwrap();
        }
        assert!(first.bytes <= 100);
        let again = store(folder.path(), 1000, 100);
        assert_eq!((again.files, again.bytes), (first.files, first.bytes));
    }

    #[test]
    fn what_is_not_ours_stays() {
        let folder = tempfile::tempdir().unwrap();
        let minute = folder.path().join("20200101/20200101-0000");
        fs::create_dir_all(&minute).unwrap();
        for other in ["notes.txt", "20200101-000000"] {
            fs::write(minute.join(other), "x").unwrap();
        }
        fs::write(folder.path().join("other.log"), "x").unwrap();
        let mut store = store(folder.path(), 1, 1 << 20);
        store.write(&name_of(1), b"record").unwrap();
        store.write(&name_of(2), b"record").unwrap();
        assert!(minute.join("notes.txt").exists() && folder.path().join("other.log").exists());
    }

    #[test]
    fn a_record_is_never_written_over_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = store(folder.path(), 10, 1 << 20);
        store.write(&name_of(1), b"record").unwrap();
        assert!(store.write(&name_of(1), b"record").is_err());
    }
}
