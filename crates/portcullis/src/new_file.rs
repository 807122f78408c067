//! Files that are written whole or not at all: the state of an instance, and those that a command writes for
//! a person, which replace none unasked.

use std::io::{self, Write as _};
use std::path::Path;

use crate::outcome::Failure;

/// Writes a file in one step; without `force` only where nothing is.
pub fn write(text: &str, output: &Path, force: bool) -> Result<(), Failure> {
    put(output, text.as_bytes(), force).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            return is_there(output);
        }
        Failure::failed(format_args!("cannot write {}: {error}", output.display()))
    })
}

/// Writes a file in one step, for its owner alone; without `over` only where nothing is.
pub fn put(path: &Path, bytes: &[u8], over: bool) -> io::Result<()> {
    let folder = parent(path);
    let file = tempfile::Builder::new().prefix(".portcullis-").tempfile_in(folder);
    let mut file = file.map_err(|error| not_made(folder, &error))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    let persisted = if over { file.persist(path) } else { file.persist_noclobber(path) };
    persisted.map(drop).map_err(|error| error.error)
}

/// The folder of a path; the current one if it names none.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The reason why nothing could be made in `folder`, without the temporary name that the library's error has.
pub fn not_made(folder: &Path, error: &io::Error) -> io::Error {
    let (kind, folder) = (error.kind(), folder.display());
    let why = if kind == io::ErrorKind::NotFound {
        format!("there is no folder {folder}; create it first")
    } else {
        format!("{folder}: {kind}")
    };
    io::Error::new(kind, why)
}

/// The file is there, and nobody said that it may go.
pub fn is_there(output: &Path) -> Failure {
    Failure::failed(format_args!(
        "{} is there already, and was left alone\n  help: name another file with --output FILE, or replace it with \
         --force",
        output.display()
    ))
}
