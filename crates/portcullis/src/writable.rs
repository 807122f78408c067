//! Files and folders that a configuration has us write to: whether we could, without writing.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use portcullis_config::Config;
use portcullis_log::AuditConfig;
use rustix::fs::{Access, OFlags, access};

/// Returns the paths that a start could not write, a line each.
pub fn check(config: &Config) -> Vec<String> {
    let files = config.access_log_files();
    let socket = config.event_socket.iter().filter_map(|socket| socket.path.parent());
    let files = files.iter().chain(config.events.as_ref().map(|events| &events.file));
    let files = files.chain(&config.error_log).chain(&config.plan_cache).chain(&config.ban_file);
    let folders = config.store.folder.iter();
    files
        .filter_map(|file| file_error(file))
        .chain(folders.filter_map(|folder| folder_error(folder)))
        .chain(socket.filter_map(socket_error))
        .collect()
}

/// The same of the logs that a set of rules asks for.
pub fn check_audit(config: &AuditConfig) -> Vec<String> {
    let logs =
        [("SecAuditLog", &config.log), ("SecAuditLog2", &config.log2), ("SecDebugLog", &config.debug_log)];
    let logs = logs.into_iter().filter_map(|(name, path)| Some((name, file_error(path.as_deref()?)?)));
    let storage = config.storage.as_deref().filter(|_| config.log.is_some()).and_then(folder_error);
    logs.chain(storage.map(|error| ("SecAuditLogStorageDir", error)))
        .map(|(name, error)| format!("{name} {error}"))
        .collect()
}

fn file_error(path: &Path) -> Option<String> {
    let shown = path.display();
    // Opening a pipe waits for its reader otherwise.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    match OpenOptions::new().append(true).custom_flags(flags).open(path) {
        Ok(_) => None,
        Err(error) if is_pipe(path) && error.kind() != io::ErrorKind::PermissionDenied => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
                _ => PathBuf::from("."),
            };
            let why = unwritable(&folder)?;
            Some(format!("{shown}: the file cannot be made: the folder {} {why}", folder.display()))
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Some(format!("{shown}: the user that Portcullis runs as may not write the file"))
        }
        Err(error) => Some(format!("{shown}: the file cannot be written: {error}")),
    }
}

/// A pipe is written to also where nobody reads from it yet.
fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// A folder that is made at the start if it is missing.
fn folder_error(path: &Path) -> Option<String> {
    let mut there = path;
    while !there.exists() {
        match there.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => there = parent,
            _ => there = Path::new("."),
        }
    }
    let why = unwritable(there)?;
    Some(format!("{}: the folder cannot be used: {} {why}", path.display(), there.display()))
}

/// The folder of a socket, which is not made.
fn socket_error(folder: &Path) -> Option<String> {
    let why = unwritable(folder)?;
    Some(format!("{}: there can be no socket: the folder {why}", folder.display()))
}

fn unwritable(folder: &Path) -> Option<String> {
    match std::fs::metadata(folder) {
        Ok(found) if !found.is_dir() => return Some("is not a folder".to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some("does not exist".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Some("cannot be searched by the user that Portcullis runs as".to_owned());
        }
        Err(error) => return Some(format!("cannot be examined: {error}")),
    }
    match access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => None,
        Err(rustix::io::Errno::ROFS) => Some("is on a read-only file system".to_owned()),
        Err(_) => Some("cannot be written by the user that Portcullis runs as".to_owned()),
    }
}
