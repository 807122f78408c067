//! Audit records and debug lines on their way to files.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use portcullis_audit::{Format, Record};
use portcullis_metrics::{EnumCounters, Registry, catalogue};

use crate::audit_writer::Writer;
use crate::file::{LogFile, Rotation};
use crate::queue::{Queue, QueueLimits, Weigh};
use crate::store::Store;
use crate::{DropReason, StartError};

/// The longest time for which dropping an [`AuditLog`] waits for queued records.
const DROP_DEADLINE: Duration = Duration::from_secs(1);

/// The destination and format of a policy's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// The form of a record.
    pub format: Format,
    /// The file of all records, or the index of concurrent ones. Without it there are no records.
    pub log: Option<PathBuf>,
    /// A second index of concurrent records.
    pub log2: Option<PathBuf>,
    /// For concurrent records: the folder they are stored below.
    pub storage: Option<PathBuf>,
    /// Permissions of folders that are made.
    pub dir_mode: u32,
    /// Permissions of files that are made.
    pub file_mode: u32,
    /// The debug log.
    pub debug_log: Option<PathBuf>,
}

/// Limits on the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditLimits {
    /// The limits of the queue to the writer.
    pub queue: QueueLimits,
    /// A file that would grow beyond this many bytes is put aside as `FILE.1`, which replaces the one before.
    pub rotate_at_bytes: u64,
    /// Files of concurrent records in one folder; the oldest make room.
    pub files_max: u64,
    /// Bytes of all of them together.
    pub stored_bytes_max: u64,
}

impl Default for AuditLimits {
    /// 4,096 records or 64 MiB wait; files of 1 GiB; 100,000 concurrent records of 4 GiB together.
    fn default() -> AuditLimits {
        AuditLimits {
            queue: QueueLimits { events_max: 4096, bytes_max: 64 << 20 },
            rotate_at_bytes: 1 << 30,
            files_max: 100_000,
            stored_bytes_max: 4 << 30,
        }
    }
}

/// The files of audit records and debug lines, and the thread that writes them.
///
/// [`AuditLog::open`] gives a handle for each policy; handles of policies that name the same file share it.
/// The thread starts with the first handle. Nothing here ever makes a request wait: what the queue cannot
/// take is dropped and counted.
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<Shared>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    done: Receiver<()>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) queue: Queue<Item>,
    pub(crate) limits: AuditLimits,
    pub(crate) reopen: AtomicBool,
    pub(crate) stop: AtomicBool,
    files: Mutex<Files>,
}

/// The open files, by path. Files that no policy names any more are closed with their last record.
#[derive(Debug, Default)]
struct Files {
    logs: HashMap<PathBuf, Weak<SharedFile>>,
    stores: HashMap<PathBuf, Weak<Mutex<Store>>>,
}

/// A file that several policies may write to. Only the writer's thread writes.
#[derive(Debug)]
pub(crate) struct SharedFile(Mutex<LogFile>);

impl SharedFile {
    pub(crate) fn lock(&self) -> MutexGuard<'_, LogFile> {
        // A panic while writing leaves at worst an incomplete line.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files of one policy.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) format: Format,
    pub(crate) log: Option<Arc<SharedFile>>,
    pub(crate) log2: Option<Arc<SharedFile>>,
    pub(crate) store: Option<Arc<Mutex<Store>>>,
    pub(crate) debug_log: Option<Arc<SharedFile>>,
}

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) target: Arc<Target>,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Record(Box<Record>),
    Debug(String),
}

impl Weigh for Item {
    fn weight(&self) -> usize {
        match &self.what {
            What::Record(record) => record.size_estimate(),
            What::Debug(lines) => lines.len(),
        }
    }
}

/// The sender of the audit records of one policy's transactions. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AuditSender {
    shared: Arc<Shared>,
    target: Arc<Target>,
}

impl AuditSender {
    /// Hands a record to the writer, or drops and counts it. Never waits.
    pub fn record(&self, record: Record) {
        if self.target.log.is_some() {
            self.push(What::Record(Box::new(record)));
        }
    }

    /// Hands lines to the writer, or drops and counts them. Never waits.
    pub fn debug(&self, lines: String) {
        if self.target.debug_log.is_some() {
            self.push(What::Debug(lines));
        }
    }

    fn push(&self, what: What) {
        self.shared.queue.push(Item { target: Arc::clone(&self.target), what });
    }
}

impl AuditLog {
    /// A log without files yet.
    pub fn new(limits: AuditLimits, registry: &Registry) -> AuditLog {
        let queued = registry.gauge(&catalogue::AUDIT_QUEUED, &[]);
        let dropped: EnumCounters =
            registry.enum_counters(&catalogue::AUDIT_DROPPED, &["queue"], DropReason::NAMES);
        let shared = Shared {
            queue: Queue::new(limits.queue, queued, dropped),
            limits,
            reopen: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            files: Mutex::default(),
        };
        AuditLog { shared: Arc::new(shared), running: Mutex::new(None) }
    }

    /// Opens the files that `config` names. Fails if one cannot be opened, so that a policy whose records
    /// would be lost is not loaded.
    pub fn open(&self, config: &AuditConfig, registry: &Registry) -> Result<AuditSender, StartError> {
        let target = {
            let mut files = self.shared.files.lock().unwrap_or_else(PoisonError::into_inner);
            let limits = &self.shared.limits;
            let mut open = |path: &Option<PathBuf>| {
                path.as_deref().map(|path| files.log(path, config.file_mode, limits)).transpose()
            };
            let (log, log2, debug_log) = (open(&config.log)?, open(&config.log2)?, open(&config.debug_log)?);
            let store = config.storage.as_deref().filter(|_| log.is_some());
            let store = store.map(|path| files.store(path, config, limits)).transpose()?;
            Target { format: config.format, log, log2, store, debug_log }
        };
        self.start(registry)?;
        Ok(AuditSender { shared: Arc::clone(&self.shared), target: Arc::new(target) })
    }

    fn start(&self, registry: &Registry) -> Result<(), StartError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_some() {
            return Ok(());
        }
        let writer = Writer::new(Arc::clone(&self.shared), registry);
        let (finished, done): (Sender<()>, _) = channel();
        let thread = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || writer.run(&finished))
            .map_err(StartError::Thread)?;
        self.shared.queue.set_writer(thread.thread().clone());
        *running = Some(Running { done, thread });
        Ok(())
    }

    /// Asks the writer to open its files again at their paths. Returns at once.
    pub fn reopen(&self) {
        self.shared.reopen.store(true, Release);
        self.shared.queue.wake();
    }

    /// Writes what is queued and ends, but waits no longer than `deadline`. Returns how much was lost.
    pub fn shutdown(&self, deadline: Duration) -> u64 {
        self.stop(deadline)
    }

    fn stop(&self, deadline: Duration) -> u64 {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(running) = running else { return 0 };
        self.shared.queue.close();
        self.shared.stop.store(true, Release);
        self.shared.queue.wake();
        match running.done.recv_timeout(deadline) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => drop(running.thread.join()),
            // A file blocks: the thread is left behind.
            Err(RecvTimeoutError::Timeout) => {}
        }
        self.shared.queue.abandon()
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.stop(DROP_DEADLINE);
    }
}

impl Shared {
    /// Opens every file again at its path. Returns what went wrong.
    pub(crate) fn reopen_files(&self) -> Vec<io::Error> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.logs.retain(|_, file| file.strong_count() > 0);
        files.stores.retain(|_, store| store.strong_count() > 0);
        let open = files.logs.values().filter_map(Weak::upgrade);
        open.filter_map(|file| file.lock().reopen().err()).collect()
    }
}

impl Files {
    fn log(&mut self, path: &Path, mode: u32, limits: &AuditLimits) -> Result<Arc<SharedFile>, StartError> {
        if let Some(file) = self.logs.get(path).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let rotation = Rotation { bytes_max: limits.rotate_at_bytes, keep: 1 };
        let file = LogFile::open_with_mode(path, Some(rotation), mode)
            .map_err(|error| StartError::Open { path: path.to_owned(), error })?;
        let file = Arc::new(SharedFile(Mutex::new(file)));
        self.logs.insert(path.to_owned(), Arc::downgrade(&file));
        Ok(file)
    }

    fn store(
        &mut self,
        path: &Path,
        config: &AuditConfig,
        limits: &AuditLimits,
    ) -> Result<Arc<Mutex<Store>>, StartError> {
        if let Some(store) = self.stores.get(path).and_then(Weak::upgrade) {
            return Ok(store);
        }
        let store = Store::open(path, config.dir_mode, config.file_mode, limits)
            .map_err(|error| StartError::Open { path: path.to_owned(), error })?;
        let store = Arc::new(Mutex::new(store));
        self.stores.insert(path.to_owned(), Arc::downgrade(&store));
        Ok(store)
    }
}
