//! The data folder (`--data`, `data.folder`): what a running instance keeps on disk.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Makes the folder, for its owner alone.
pub fn create(data: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(data)
}

/// The folder of the event store.
pub fn events(data: &Path) -> PathBuf {
    data.join("events")
}

/// The folder of the sample of requests that passed.
pub fn sample(data: &Path) -> PathBuf {
    data.join("sample")
}
