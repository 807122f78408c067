//! The data folder (`--data`, `data.folder`): what a running instance keeps on disk.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Makes the folder, for its owner alone.
pub fn create(data: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(data)
}

/// Makes the folder if it is missing. An error if it cannot be written now, through no fault of the settings:
/// its file system is read-only or full, or belongs to somebody else.
pub fn check_writable(data: &Path) -> io::Result<()> {
    let written = create(data).and_then(|()| Ok(access(data, Access::WRITE_OK | Access::EXEC_OK)?));
    match written {
        Err(error) if may_pass(error.kind()) => Err(error),
        _ => Ok(()),
    }
}

fn may_pass(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::*;
    matches!(kind, ReadOnlyFilesystem | PermissionDenied | StorageFull | QuotaExceeded)
}

/// The folder of the event store.
pub fn events(data: &Path) -> PathBuf {
    data.join("events")
}

/// The folder of the sample of requests that passed.
pub fn sample(data: &Path) -> PathBuf {
    data.join("sample")
}
