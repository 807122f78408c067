//! Audit records and debug lines of a process that is not ours: written at the call, without a thread.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use md5::{Digest as _, Md5};
use portcullis_audit::{Record, file_name, index_line};

use crate::StartError;
use crate::audit::{AuditConfig, AuditLimits};
use crate::audit_writer::Boundaries;
use crate::file::LogFile;
use crate::store::Store;

/// Longest wait for the reader of a pipe: requests of the server wait, too.
const PIPE_WAIT: Duration = Duration::from_millis(20);

/// Log files that are open in a process, for rule sets that name the same ones. A rule set that comes later
/// shares the file, which the user of that moment may not be able to open.
#[derive(Debug, Default)]
pub struct OpenFiles(Mutex<Vec<Weak<Mutex<LogFile>>>>);

impl OpenFiles {
    fn open(&self, path: &Path, mode: u32) -> Result<Arc<Mutex<LogFile>>, StartError> {
        let mut open = lock(&self.0);
        open.retain(|file| file.strong_count() > 0);
        if let Some(file) = open.iter().filter_map(Weak::upgrade).find(|file| lock(file).path() == path) {
            // One that was moved away and cannot be opened again is written to where it is.
            let _ = lock(&file).follow();
            return Ok(file);
        }
        let file = LogFile::open_with_mode(path, None, mode)
            .map_err(|error| StartError::Open { path: path.to_owned(), error })?
            .with_pipe_wait(PIPE_WAIT);
        let file = Arc::new(Mutex::new(file));
        open.push(Arc::downgrade(&file));
        Ok(file)
    }
}

/// The audit log and the debug log of a rule set.
///
/// The files are opened when it is made, by the user that the server starts as, and nothing is buffered: a
/// process that forks may use it on both sides, and each record goes out with one call, appended. For that
/// reason files are not rotated and nothing is taken back when a disk is full. The folder of concurrent
/// records is opened with the first record.
#[derive(Debug)]
pub struct DirectAudit {
    config: AuditConfig,
    log: Option<Arc<Mutex<LogFile>>>,
    log2: Option<Arc<Mutex<LogFile>>>,
    debug_log: Option<Arc<Mutex<LogFile>>>,
    limits: AuditLimits,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    boundaries: Boundaries,
    buffer: Vec<u8>,
    store: Option<Store>,
}

impl DirectAudit {
    /// Opens the files that `config` names. Fails if one cannot be opened, so that rules whose records would
    /// be lost are not loaded.
    pub fn open(
        config: AuditConfig,
        limits: AuditLimits,
        files: &OpenFiles,
    ) -> Result<DirectAudit, StartError> {
        let open = |path: Option<&Path>| path.map(|path| files.open(path, config.file_mode)).transpose();
        Ok(DirectAudit {
            log: open(config.log.as_deref())?,
            log2: open(config.log2.as_deref())?,
            debug_log: open(config.debug_log.as_deref())?,
            config,
            limits,
            state: Mutex::new(State { boundaries: Boundaries::new(), buffer: Vec::new(), store: None }),
        })
    }

    /// Opens files anew that were moved away since, as `logrotate` does.
    pub fn follow(&self) -> io::Result<()> {
        let files = [&self.log, &self.log2, &self.debug_log];
        files.into_iter().flatten().try_for_each(|file| lock(file).follow())
    }

    /// Writes a record.
    pub fn record(&self, record: &Record) -> io::Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let mut state = lock(&self.state);
        let State { boundaries, buffer, store } = &mut *state;
        buffer.clear();
        buffer.shrink_to(1 << 20);
        self.config.format.write(record, &boundaries.next(), buffer);
        let Some(folder) = &self.config.storage else {
            if self.config.format.is_native() {
                buffer.push(b'\n');
            }
            return lock(log).write_all(buffer);
        };
        let store = match store {
            Some(store) => store,
            None => {
                store.insert(Store::open(folder, self.config.dir_mode, self.config.file_mode, &self.limits)?)
            }
        };
        let name = file_name(record);
        store.write(&name, buffer)?;
        let line = index_line(record, &name, buffer.len(), &Md5::digest(&*buffer));
        lock(log).write_all(line.as_bytes())?;
        self.log2.as_ref().map_or(Ok(()), |log| lock(log).write_all(line.as_bytes()))
    }

    /// Writes lines to the debug log.
    pub fn debug(&self, lines: &str) -> io::Result<()> {
        self.debug_log.as_ref().map_or(Ok(()), |log| lock(log).write_all(lines.as_bytes()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while writing leaves at worst an incomplete record.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use portcullis_audit::Format;

    use super::*;

    fn config(folder: &Path) -> AuditConfig {
        AuditConfig {
            format: Format::Native,
            log: Some(folder.join("audit.log")),
            log2: None,
            storage: None,
            dir_mode: 0o750,
            file_mode: 0o640,
            debug_log: Some(folder.join("debug.log")),
        }
    }

    #[test]
    fn files_that_were_moved_are_opened_anew() {
        let folder = tempfile::tempdir().unwrap();
        let audit =
            DirectAudit::open(config(folder.path()), AuditLimits::default(), &OpenFiles::default()).unwrap();
        audit.debug("a\n").unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::rename(at("debug.log"), at("debug.log.1")).unwrap();
        audit.debug("b\n").unwrap();
        audit.follow().unwrap();
        audit.debug("c\n").unwrap();
        audit.follow().unwrap();
        audit.debug("d\n").unwrap();
        let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
        assert_eq!((read("debug.log.1").as_str(), read("debug.log").as_str()), ("a\nb\n", "c\nd\n"));
    }

    #[test]
    fn rule_sets_share_a_file_that_could_not_be_opened_again() {
        let (folder, files) = (tempfile::tempdir().unwrap(), OpenFiles::default());
        let open = || DirectAudit::open(config(folder.path()), AuditLimits::default(), &files);
        let first = open().unwrap();
        // The path leads nowhere any more, as for another user.
        std::fs::rename(folder.path(), folder.path().with_extension("moved")).unwrap();
        let second = open().unwrap();
        first.debug("a\n").unwrap();
        second.debug("b\n").unwrap();
        std::fs::rename(folder.path().with_extension("moved"), folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("debug.log")).unwrap(), "a\nb\n");
        drop((first, second));
        assert!(open().is_ok() && lock(&files.0).len() == 2, "closed files are not kept");
    }

    #[test]
    fn what_cannot_be_opened_is_an_error_with_the_path() {
        let config = AuditConfig { log: Some("/nonexistent/a.log".into()), ..config(Path::new("/tmp")) };
        let config = AuditConfig { debug_log: None, ..config };
        let error =
            DirectAudit::open(config, AuditLimits::default(), &OpenFiles::default()).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/a.log"), "{error}");
    }
}
