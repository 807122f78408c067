//! Files that a command writes for a person: whole or not at all, and never over one that is there unasked.

use std::io::{self, Write as _};
use std::path::Path;

use crate::cli::Failure;

/// Writes a file aside, then puts it in place in one step; without `force` only where nothing is.
pub fn write(text: &str, output: &Path, force: bool) -> Result<(), Failure> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let wrong =
        |error: &io::Error| Failure::failed(format_args!("cannot write {}: {error}", output.display()));
    let mut file =
        tempfile::Builder::new().prefix(".portcullis-").tempfile_in(folder).map_err(|error| wrong(&error))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.as_file().sync_all())
        .map_err(|error| wrong(&error))?;
    let persisted = if force { file.persist(output) } else { file.persist_noclobber(output) };
    match persisted {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(is_there(output)),
        Err(error) => Err(wrong(&error.error)),
    }
}

/// The file is there, and nobody said that it may go.
pub fn is_there(output: &Path) -> Failure {
    Failure::failed(format_args!(
        "{} is there already, and was left alone\n  help: name another file with --output FILE, or replace it with \
         --force",
        output.display()
    ))
}
