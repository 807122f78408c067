//! The folder of segments: their names, their order, and the lock of the one process that writes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis_event::Timestamp;
use rustix::fs::FlockOperation;

use crate::segment::ENDING;

/// The file whose lock says that a process writes here.
const LOCK: &str = "writer.lock";
/// Begins the ending of a segment that has no schema yet; the process that makes it follows.
const MAKING: &str = "making-";
/// Time after which what is being made was left by a process that ended.
const MAKING_MAX: Duration = Duration::from_secs(60);
/// The ending of a segment that was set aside.
const DAMAGED: &str = "damaged";

/// The folder of the segments of one store.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

/// A segment's file; the number is the time at which it was begun, in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Folder {
        Folder(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder, for its owner alone: events tell what people sent.
    pub(crate) fn create(&self) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }

    /// The lock of the writer; none while another process has it. It ends with the file.
    pub(crate) fn lock(&self) -> io::Result<Option<File>> {
        let path = self.0.join(LOCK);
        portcullis_files::make_private(&path)?;
        let file = File::options().write(true).open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                self.remove_unmade()?;
                Ok(Some(file))
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The segments, oldest first.
    pub(crate) fn segments(&self) -> io::Result<Vec<SegmentFile>> {
        self.files(ENDING)
    }

    /// Deletes what processes that ended were making.
    fn remove_unmade(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let is_making = |path: &Path| path.extension()?.to_str()?.starts_with(MAKING).then_some(());
            let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
            if is_making(&entry.path()).is_some() && age > MAKING_MAX {
                Folder::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// The segments that were set aside, oldest first.
    pub(crate) fn damaged(&self) -> io::Result<Vec<SegmentFile>> {
        self.files(DAMAGED)
    }

    fn files(&self, ending: &str) -> io::Result<Vec<SegmentFile>> {
        let mut segments = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let path = entry?.path();
            if path.extension().is_some_and(|found| found == ending)
                && let Some(number) = number(&path)
            {
                segments.push(SegmentFile { number, path });
            }
        }
        segments.sort();
        Ok(segments)
    }

    /// A name for a segment that is begun now.
    pub(crate) fn name(&self, now: u64) -> SegmentFile {
        let mut number = now;
        loop {
            let time = Timestamp::from_epoch_millis(number).rfc3339().replace([':', '-'], "");
            let path = self.0.join(format!("{number:013}-{time}.{ENDING}"));
            if !path.exists() {
                return SegmentFile { number, path };
            }
            number += 1;
        }
    }

    /// Bytes of a segment with the log beside it.
    pub(crate) fn bytes(segment: &Path) -> u64 {
        files(segment).iter().filter_map(|path| fs::metadata(path).ok()).map(|meta| meta.len()).sum()
    }

    /// Deletes a segment.
    pub(crate) fn remove(segment: &Path) -> io::Result<()> {
        // Files that SQLite keeps next to it go last, or a crash in between would leave a file without it.
        for path in files(segment) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Sets a damaged segment aside, where nobody reads it.
    pub(crate) fn set_aside(segment: &Path) -> io::Result<PathBuf> {
        let aside = segment.with_extension(DAMAGED);
        fs::rename(segment, &aside)?;
        for path in files(segment).iter().skip(1) {
            let _ = fs::remove_file(path);
        }
        Ok(aside)
    }
}

/// Temporary path of a segment before it has its name.
pub(crate) fn making(segment: &Path) -> PathBuf {
    segment.with_extension(format!("{MAKING}{}", std::process::id()))
}

/// The file, and what SQLite keeps beside it.
fn files(segment: &Path) -> [PathBuf; 3] {
    let beside = |ending: &str| {
        let mut name = segment.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    [segment.to_owned(), beside("-wal"), beside("-shm")]
}

fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}
