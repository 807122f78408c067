//! The data folder (`--data`, `data.folder`): what a running instance keeps on disk.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::geteuid;

use crate::outcome::Failure;

/// The settings of a start with flags, which are kept in the data folder.
pub const DOCUMENT: &str = "portcullis.toml";
/// What the flags said at the last start.
pub const FLAGS: &str = "flags.toml";
/// One of these is in each data folder that was used.
const OURS: [&str; 5] = ["events", "identities.db", "revisions.db", "learned", FLAGS];
/// Entries of a folder that are looked at, and that a message names.
const ENTRIES_MAX: usize = 10_000;
const NAMED_MAX: usize = 3;

/// Makes the folder, for its owner alone.
pub fn create(data: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(data)
}

/// Makes the folder if it is missing. An error if it cannot be written now, through no fault of the settings:
/// its file system is read-only or full, or belongs to another user.
pub fn check_writable(data: &Path) -> io::Result<()> {
    let written = create(data).and_then(|()| Ok(access(data, Access::WRITE_OK | Access::EXEC_OK)?));
    match written {
        Err(error) if may_pass(error.kind()) => Err(error),
        _ => Ok(()),
    }
}

/// True if the folder has something that Portcullis keeps.
pub fn is_ours(data: &Path) -> bool {
    OURS.iter().any(|name| data.join(name).exists())
}

/// Checks that a folder named on the command line can be the data folder: a new or empty one, or one that we
/// made.
pub fn check_named(data: &Path) -> Result<(), Failure> {
    let found = match std::fs::metadata(data) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return create(data).map_err(|error| wrong(data, &error));
        }
        Err(error) => return Err(wrong(data, &error)),
        Ok(found) => found,
    };
    if !found.is_dir() {
        return Err(wrong(data, &io::Error::from(io::ErrorKind::NotADirectory)));
    }
    let names = portcullis_files::entries(data, ENTRIES_MAX).map_err(|error| wrong(data, &error))?;
    let is_ours = names.iter().any(|name| OURS.iter().any(|ours| name == ours));
    let own = geteuid();
    if found.uid() != own.as_raw() && is_ours {
        return Err(Failure::failed(format_args!(
            "--data {}: the folder belongs to another user (uid {}), and this is uid {}\n  help: run it as that user \
             (`sudo -u #{1} portcullis ...`), or name a folder of your own",
            data.display(),
            found.uid(),
            own.as_raw()
        )));
    }
    // What a file system or a shell puts everywhere says nothing.
    let foreign = names
        .iter()
        .filter_map(|name| name.to_str())
        .filter(|name| !name.starts_with('.') && *name != "lost+found");
    let mut foreign: Vec<&str> = foreign.collect();
    if !is_ours && !foreign.is_empty() {
        foreign.sort_unstable();
        foreign.truncate(NAMED_MAX);
        return Err(Failure::failed(format_args!(
            "--data {}: the folder has other things in it ({}), and nothing of Portcullis\n  help: name a new or empty \
             folder, such as --data {}",
            data.display(),
            foreign.join(", "),
            data.join("portcullis-data").display()
        )));
    }
    access(data, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| wrong(data, &error.into()))
}

/// A data folder of the command line that cannot be used, with a fix.
#[expect(clippy::wildcard_enum_match_arm, reason = "the system's other errors speak for themselves")]
pub fn wrong(data: &Path, error: &io::Error) -> Failure {
    let (shown, own) = (data.display(), geteuid().as_raw());
    let (what, help) = match error.kind() {
        io::ErrorKind::NotADirectory => (
            "this is a file, or below one".to_owned(),
            "the data folder holds events, users and settings: name a new or empty folder",
        ),
        io::ErrorKind::PermissionDenied => (
            format!("the user with the uid {own} may not write there"),
            "name a folder of your own, or run Portcullis as the user that the folder belongs to",
        ),
        io::ErrorKind::ReadOnlyFilesystem => {
            ("the file system is read-only".to_owned(), "name a folder on another file system")
        }
        _ => (error.to_string(), "name a new or empty folder on a file system that can be written"),
    };
    Failure::failed(format_args!("--data {shown}: {what}\n  help: {help}"))
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
