//! Files of the operator: regular ones, read within bounds of size and time.
//!
//! ```text
//!  path ──> thread: open, not waiting ──> a regular file? not too large? ──> read ──> bytes
//!    └── waits 20 s at most ──> an error that says so; the thread stays until the file answers
//! ```
//!
//! A path in a configuration file may lead to anything: a pipe that nobody writes to, a device without an
//! end, a file on a server that does not answer. A program that reads it the plain way does not start, or
//! does not reload, and says nothing. So everything that reads a file which the operator names goes through
//! [`read`] or [`read_text`].
//!
//! ```
//! let error = portcullis_files::read("/dev/zero".as_ref(), 1 << 20).unwrap_err();
//! assert_eq!(error.to_string(), "it is not a regular file");
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

use std::ffi::OsString;
use std::fs::{Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// For one file, from opening it to its last byte.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Threads that wait for files which have not answered in time, at most.
const LATE_MAX: usize = 16;

/// Threads that wait for files which have not answered in time. It is of the process, as threads are:
/// otherwise each new attempt would add one.
static LATE: AtomicUsize = AtomicUsize::new(0);

/// The content of a regular file of at most `bytes_max` bytes.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let path = path.to_owned();
    within(TIME_MAX, move || read_now(&path, bytes_max))
}

/// The same of a file that holds text in UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// Attributes of what a path leads to.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    let path = path.to_owned();
    within(TIME_MAX, move || std::fs::metadata(path))
}

/// Makes a file for its owner alone, before a library opens it that knows no modes; one that is there is
/// restricted to its owner.
pub fn make_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(PRIVATE).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        result => return result.map(drop),
    }
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mode = file.metadata()?.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { file.set_permissions(Permissions::from_mode(PRIVATE)) }
}

/// The mode of a file for its owner alone.
pub const PRIVATE: u32 = 0o600;

/// Names of the entries of a folder, so many at most, sorted.
pub fn entries(folder: &Path, entries_max: usize) -> io::Result<Vec<OsString>> {
    let folder = folder.to_owned();
    within(TIME_MAX, move || {
        let entries = std::fs::read_dir(folder)?.take(entries_max).map(|entry| Ok(entry?.file_name()));
        let mut names = entries.collect::<io::Result<Vec<OsString>>>()?;
        names.sort();
        Ok(names)
    })
}

fn read_now(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    // A pipe is opened without a writer; regular files do not know the flag.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let too_large = || {
        let message = format!("it has more than {bytes_max} bytes");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    if found.len() > bytes_max {
        return Err(too_large());
    }
    let mut content = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
    // Files of /proc say that they are empty, and a file may grow.
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > bytes_max { Err(too_large()) } else { Ok(content) }
}

/// Does `work` on a thread and waits so long at most. There is no way to end a thread that the system has
/// stopped, so it stays until the system goes on.
fn within<T: Send + 'static>(
    time_max: Duration,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    if LATE.load(Ordering::Relaxed) >= LATE_MAX {
        let message = format!("{LATE_MAX} files do not answer; no more are opened meanwhile");
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
    }
    let state = Arc::new(AtomicU8::new(RUNNING));
    let shared = Arc::clone(&state);
    let (sender, receiver) = sync_channel(1);
    let work = move || {
        let result = work();
        if shared.swap(DONE, Ordering::AcqRel) == GIVEN_UP {
            LATE.fetch_sub(1, Ordering::Relaxed);
        }
        // Nobody may be there any more.
        let _ = sender.send(result);
    };
    thread::Builder::new().name("portcullis-file".to_owned()).spawn(work)?;
    match receiver.recv_timeout(time_max) {
        Ok(result) => result,
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("reading it failed")),
        Err(RecvTimeoutError::Timeout) => {
            LATE.fetch_add(1, Ordering::Relaxed);
            if state.compare_exchange(RUNNING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // It was done at the last moment.
                LATE.fetch_sub(1, Ordering::Relaxed);
            }
            Err(late(time_max))
        }
    }
}

/// States of a thread that reads.
const RUNNING: u8 = 0;
const GIVEN_UP: u8 = 1;
const DONE: u8 = 2;

fn late(time_max: Duration) -> io::Error {
    let seconds = time_max.as_secs();
    let message = format!("no answer within {seconds} s: the file system that it is on may hang");
    io::Error::new(io::ErrorKind::TimedOut, message)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    /// Whatever a path leads to: content or an error, and soon.
    fn a_path_may_lead_to_anything() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "abc").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        let why = |path: &Path| read(path, 3).map_err(|error| error.to_string());
        assert_eq!(why(&at("file")), Ok(b"abc".to_vec()));
        assert_eq!(why(&at("link")), Ok(b"abc".to_vec()));
        assert_eq!(why(&at("pipe")).unwrap_err(), "it is not a regular file");
        assert_eq!(why(Path::new("/dev/zero")).unwrap_err(), "it is not a regular file");
        assert_eq!(why(folder.path()).unwrap_err(), "it is a folder");
        assert!(why(&at("socket")).is_err() && why(&at("loop")).is_err() && why(&at("none")).is_err());
        // A file that does not say how long it is.
        assert_eq!(why(Path::new("/proc/self/status")).unwrap_err(), "it has more than 3 bytes");
        std::fs::write(at("file"), "abcd").unwrap();
        assert_eq!(why(&at("file")).unwrap_err(), "it has more than 3 bytes");
        std::fs::write(at("file"), b"\xff").unwrap();
        assert_eq!(read_text(&at("file"), 3).unwrap_err().to_string(), "it is not text in UTF-8");
        assert!(entries(folder.path(), 3).unwrap().len() == 3 && metadata(&at("link")).unwrap().is_file());
    }

    /// Files that do not answer cost a bounded number of threads, and others are read again when they answer.
    #[test]
    fn files_that_do_not_answer() {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let hang = || {
            let held = Arc::clone(&held);
            within(Duration::from_millis(1), move || {
                let _ = held.lock().unwrap().recv();
                Ok(())
            })
        };
        let errors: Vec<io::ErrorKind> = (0..=LATE_MAX).map(|_| hang().unwrap_err().kind()).collect();
        let (last, late) = errors.split_last().unwrap();
        assert!(late.iter().all(|kind| *kind == io::ErrorKind::TimedOut), "{errors:?}");
        assert_eq!(*last, io::ErrorKind::ResourceBusy);
        drop(release);
        while LATE.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        a_path_may_lead_to_anything();
    }
}
