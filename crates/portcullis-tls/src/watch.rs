//! Files that are read again when they change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Some files that are read together.
pub struct Watch {
    files: Box<dyn Fn() -> Vec<PathBuf> + Send + Sync>,
    seen: Mutex<Seen>,
}

/// The mark by which a change of a file is known; none while it cannot be found. Symbolic links are followed.
type Stamp = Option<(SystemTime, u64, u64)>;

type Stamps = Vec<(PathBuf, Stamp)>;

struct Seen {
    /// Those of the files that were read last.
    read: Stamps,
    /// The contents that were read then could not be used.
    failed: bool,
    /// Those of files that may still be written to.
    unread: Option<Stamps>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries((self.files)()).finish()
    }
}

impl Watch {
    /// Call it before the files are read, so that no change between is missed.
    pub fn new(files: Vec<PathBuf>) -> Self {
        Watch::listing(move || files.clone())
    }

    /// The same for files that may come and go: `files` lists them at each look.
    pub fn listing(files: impl Fn() -> Vec<PathBuf> + Send + Sync + 'static) -> Self {
        let read = stamps(files());
        Watch { files: Box::new(files), seen: Mutex::new(Seen { read, failed: false, unread: None }) }
    }

    /// True if the files have not changed since they were read.
    pub fn is_current(&self) -> bool {
        let stamps = stamps((self.files)());
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        !seen.failed && seen.read == stamps
    }

    /// Reads the files again if they have changed since, and not since the last look: who writes them may not
    /// be done.
    pub fn refresh<T, E>(&self, read: impl FnOnce() -> Result<T, E>) -> Option<Result<T, E>> {
        let stamps = stamps((self.files)());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if stamps == seen.read {
            seen.unread = None;
            return None;
        }
        if seen.unread.as_ref() != Some(&stamps) {
            seen.unread = Some(stamps);
            return None;
        }
        let result = read();
        *seen = Seen { read: stamps, failed: result.is_err(), unread: None };
        Some(result)
    }
}

fn stamps(files: Vec<PathBuf>) -> Stamps {
    let stamped = |path: PathBuf| {
        let stamp = stamp(&path);
        (path, stamp)
    };
    files.into_iter().map(stamped).collect()
}

fn stamp(path: &Path) -> Stamp {
    use std::os::unix::fs::MetadataExt as _;
    let file = portcullis_files::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len(), file.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_change_is_read_at_the_second_look_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "1").unwrap();
        let watch = Watch::new(vec![path.clone()]);
        let look = || watch.refresh(|| fs::read_to_string(&path));
        assert!(look().is_none() && watch.is_current());
        fs::write(&path, "22").unwrap();
        assert!(look().is_none() && !watch.is_current());
        fs::write(&path, "333").unwrap();
        assert!(look().is_none(), "it is still being written to");
        assert_eq!(look().unwrap().unwrap(), "333");
        assert!(look().is_none() && watch.is_current());
        fs::remove_file(&path).unwrap();
        assert!(look().is_none());
        assert!(look().unwrap().is_err());
        assert!(look().is_none() && !watch.is_current());
    }
}
