//! The socket's file: made, put in place, and taken away.

use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Why a listener cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// A user that may send is not known to the system.
    NoUser(String),
    /// Another process listens there.
    InUse(PathBuf),
    /// There is a file that is no socket.
    NoSocket(PathBuf),
    /// The system refused.
    Io(PathBuf, io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NoUser(name) => write!(f, "there is no user `{name}` who could send events"),
            OpenError::InUse(path) => {
                write!(
                    f,
                    "{}: another process takes events there; give this one another path",
                    path.display()
                )
            }
            OpenError::NoSocket(path) => {
                write!(f, "{}: there is a file that is no socket; remove it", path.display())
            }
            OpenError::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}

/// The file of a socket. Dropped, it is gone, unless another process has put its own in place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    id: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if id(&self.path).is_ok_and(|id| id == self.id) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at `path`. A socket that nobody serves is replaced, and with `takes_over` one that is served: by
/// the predecessor of an upgrade, which keeps its connections.
pub(crate) fn bind(
    path: &Path,
    mode: u32,
    takes_over: bool,
) -> Result<(UnixListener, SocketFile), OpenError> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(OpenError::NoSocket(path.to_owned())),
        Ok(_) if !takes_over && UnixStream::connect(path).is_ok() => {
            return Err(OpenError::InUse(path.to_owned()));
        }
        _ => {}
    }
    put(path, mode).map_err(|error| OpenError::Io(path.to_owned(), error))
}

/// Under another name first, so that senders find the old socket or the new one, with its mode.
fn put(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(name);
    let _ = fs::remove_file(&new);
    let listener = UnixListener::bind(&new)?;
    let placed = listener
        .set_nonblocking(true)
        .and_then(|()| fs::set_permissions(&new, Permissions::from_mode(mode)))
        .and_then(|()| fs::rename(&new, path))
        .and_then(|()| id(path));
    match placed {
        Ok(id) => Ok((listener, SocketFile { path: path.to_owned(), id })),
        Err(error) => {
            let _ = fs::remove_file(&new);
            Err(error)
        }
    }
}

fn id(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}
