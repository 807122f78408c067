use std::collections::HashMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portcullis_metrics::{Counter, EnumCounters, Registry, catalogue};

/// An uploaded file to be kept.
#[derive(Clone, Debug)]
pub struct Upload {
    /// The folder, which must exist.
    pub folder: Arc<PathBuf>,
    /// Its name there.
    pub name: String,
    /// Permission bits; those to execute are left out.
    pub mode: u32,
    /// The content of the file.
    pub content: Vec<u8>,
}

/// The reason why an upload was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadDrop {
    /// Too many files wait.
    QueueFull,
    /// They are too large together.
    QueueBytes,
    /// It was still queued when the shutdown deadline passed, or came after it.
    Shutdown,
    /// The folder holds as much as it may.
    FolderFull,
    /// The file could not be written.
    WriteError,
}

impl UploadDrop {
    /// Label values of `portcullis_uploads_dropped_total`, in the order of the variants.
    pub const NAMES: &'static [&'static str] =
        &["queue_full", "queue_bytes", "shutdown", "folder_full", "write_error"];
}

/// Limits on waiting uploads, and on the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadLimits {
    /// Files that wait; default 1,024.
    pub files_max: usize,
    /// Bytes that wait; default 64 MiB. A single file may be larger when nothing waits.
    pub bytes_max: usize,
    /// Bytes of all files of a folder; default 1 GiB.
    pub folder_bytes_max: u64,
}

impl Default for UploadLimits {
    fn default() -> Self {
        UploadLimits { files_max: 1024, bytes_max: 64 << 20, folder_bytes_max: 1 << 30 }
    }
}

/// Writes uploads in a thread of its own. Files that do not fit are dropped and counted; no worker waits for
/// a disk.
#[derive(Debug)]
pub struct UploadStore {
    sender: UploadSender,
    done: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

/// The workers' end of the queue of uploads. Cheap to clone.
#[derive(Clone, Debug)]
pub struct UploadSender {
    queue: SyncSender<Message>,
    waiting: Arc<AtomicUsize>,
    bytes_max: usize,
    dropped: EnumCounters,
}

#[derive(Debug)]
enum Message {
    Keep(Upload),
    End,
}

impl UploadStore {
    /// Starts the writer.
    pub fn new(limits: UploadLimits, registry: &Registry) -> io::Result<UploadStore> {
        let (queue, uploads) = sync_channel(limits.files_max.max(1));
        let (finished, done) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let dropped = registry.enum_counters(&catalogue::UPLOADS_DROPPED, &[], UploadDrop::NAMES);
        let mut writer = Writer {
            folders: Folders::new(limits.folder_bytes_max),
            kept: registry.counter(&catalogue::UPLOADS_KEPT, &[]),
            dropped: dropped.clone(),
            waiting: Arc::clone(&waiting),
        };
        let thread = std::thread::Builder::new().name("uploads".to_owned()).spawn(move || {
            writer.run(&uploads);
            let _ = finished.send(());
        })?;
        let sender = UploadSender { queue, waiting, bytes_max: limits.bytes_max, dropped };
        Ok(UploadStore { sender, done, thread: Some(thread) })
    }

    /// A handle for workers.
    pub fn sender(&self) -> UploadSender {
        self.sender.clone()
    }

    /// Writes what waits and ends, but waits no longer than `deadline`.
    pub fn shutdown(mut self, deadline: Duration) {
        let begin = Instant::now();
        let mut message = Message::End;
        while let Err(TrySendError::Full(back)) = self.sender.queue.try_send(message) {
            if begin.elapsed() >= deadline {
                return;
            }
            message = back;
            std::thread::sleep(Duration::from_millis(5));
        }
        match self.done.recv_timeout(deadline.saturating_sub(begin.elapsed())) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                if let Some(thread) = self.thread.take() {
                    let _ = thread.join();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

impl UploadSender {
    /// Hands `upload` to the writer, or drops and counts it. Never waits.
    pub fn submit(&self, upload: Upload) {
        let size = upload.content.len();
        let before = self.waiting.fetch_add(size, AcqRel);
        let reason = if before > 0 && before.saturating_add(size) > self.bytes_max {
            UploadDrop::QueueBytes
        } else {
            match self.queue.try_send(Message::Keep(upload)) {
                Ok(()) => return,
                Err(TrySendError::Full(_)) => UploadDrop::QueueFull,
                Err(TrySendError::Disconnected(_)) => UploadDrop::Shutdown,
            }
        };
        self.waiting.fetch_sub(size, AcqRel);
        self.dropped.inc(reason as usize);
    }
}

/// Writes uploads in the thread that asks, for processes that have no thread of their own to write.
#[derive(Debug)]
pub struct DirectUploads {
    folders: Mutex<Folders>,
}

impl DirectUploads {
    /// A writer that keeps so many bytes in each folder.
    pub fn new(folder_bytes_max: u64) -> DirectUploads {
        DirectUploads { folders: Mutex::new(Folders::new(folder_bytes_max)) }
    }

    /// Writes `upload`, or says why not.
    pub fn keep(&self, upload: &Upload) -> Result<(), UploadError> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).keep(upload)
    }
}

impl Default for DirectUploads {
    fn default() -> DirectUploads {
        DirectUploads::new(UploadLimits::default().folder_bytes_max)
    }
}

/// Why an upload was not written.
#[derive(Debug)]
pub enum UploadError {
    /// The folder holds as much as it may, in bytes.
    FolderFull(u64),
    /// The file could not be written.
    Write(io::Error),
}

impl UploadError {
    /// The reason as metrics name it.
    pub fn reason(&self) -> UploadDrop {
        match self {
            UploadError::FolderFull(_) => UploadDrop::FolderFull,
            UploadError::Write(_) => UploadDrop::WriteError,
        }
    }
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UploadError::FolderFull(most) => write!(f, "the folder may hold {most} bytes"),
            UploadError::Write(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for UploadError {}

struct Writer {
    folders: Folders,
    kept: Counter,
    dropped: EnumCounters,
    waiting: Arc<AtomicUsize>,
}

/// Bytes and files in the folders.
#[derive(Debug)]
struct Folders {
    bytes_max: u64,
    known: HashMap<PathBuf, Folder>,
}

#[derive(Debug)]
struct Folder {
    bytes: u64,
    counted: Instant,
}

/// The age of a count after which a folder is counted again: removing files from it makes room, and other
/// processes may write to it.
const RECOUNT: Duration = Duration::from_secs(10);

impl Writer {
    fn run(&mut self, uploads: &Receiver<Message>) {
        while let Ok(Message::Keep(upload)) = uploads.recv() {
            match self.folders.keep(&upload) {
                Ok(()) => self.kept.inc(),
                Err(error) => self.dropped.inc(error.reason() as usize),
            }
            self.waiting.fetch_sub(upload.content.len(), AcqRel);
        }
        for message in uploads.try_iter() {
            if let Message::Keep(_) = message {
                self.dropped.inc(UploadDrop::Shutdown as usize);
            }
        }
    }
}

impl Folders {
    fn new(bytes_max: u64) -> Folders {
        Folders { bytes_max, known: HashMap::new() }
    }

    fn keep(&mut self, upload: &Upload) -> Result<(), UploadError> {
        let size = upload.content.len() as u64;
        let folder =
            self.known.entry(upload.folder.to_path_buf()).or_insert_with(|| Folder::count(&upload.folder));
        if folder.counted.elapsed() >= RECOUNT {
            *folder = Folder::count(&upload.folder);
        }
        if folder.bytes.saturating_add(size) > self.bytes_max {
            return Err(UploadError::FolderFull(self.bytes_max));
        }
        write(upload).map_err(UploadError::Write)?;
        folder.bytes += size;
        Ok(())
    }
}

impl Folder {
    fn count(folder: &Path) -> Folder {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let sizes = entries.filter_map(|entry| entry.metadata().ok()).filter(fs::Metadata::is_file);
        Folder { bytes: sizes.map(|file| file.len()).sum(), counted: Instant::now() }
    }
}

/// A file is there under its name only once it is whole.
fn write(upload: &Upload) -> io::Result<()> {
    let (part, whole) =
        (upload.folder.join(format!(".{}.part", upload.name)), upload.folder.join(&upload.name));
    let mode = upload.mode & 0o666;
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        file.write_all(&upload.content)?;
        // Whatever the umask is.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        fs::rename(&part, &whole)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upload(folder: &Path, name: &str, size: usize) -> Upload {
        Upload {
            folder: Arc::new(folder.to_owned()),
            name: name.to_owned(),
            mode: 0o777,
            content: vec![b'x'; size],
        }
    }

    fn count(registry: &Registry, series: &str) -> f64 {
        let text = registry.render();
        let line = text.lines().find(|line| line.starts_with(series));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }

    #[test]
    fn keeps_whole_files_with_their_mode_within_the_folder_limit() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("old"), [0; 50]).unwrap();
        let registry = Registry::new();
        let limits = UploadLimits { folder_bytes_max: 100, ..UploadLimits::default() };
        let store = UploadStore::new(limits, &registry).unwrap();
        let sender = store.sender();
        for (name, size) in [("a", 30), ("b", 30), ("c", 20), ("a", 0)] {
            sender.submit(upload(folder.path(), name, size));
        }
        sender.submit(upload(Path::new("/nonexistent/folder"), "d", 1));
        store.shutdown(Duration::from_secs(5));
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "c", "old"], "b does not fit, and nothing is left half written");
        let mode = fs::metadata(folder.path().join("c")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o666, "never executable");
        assert_eq!(count(&registry, "portcullis_uploads_kept_total"), 3.0);
        assert_eq!(count(&registry, "portcullis_uploads_dropped_total{reason=\"folder_full\"}"), 1.0);
        assert_eq!(count(&registry, "portcullis_uploads_dropped_total{reason=\"write_error\"}"), 1.0);
        sender.submit(upload(folder.path(), "late", 1));
        assert_eq!(count(&registry, "portcullis_uploads_dropped_total{reason=\"shutdown\"}"), 1.0);
    }

    #[test]
    fn a_queue_that_is_full_drops_and_does_not_wait() {
        let registry = Registry::new();
        let dropped = registry.enum_counters(&catalogue::UPLOADS_DROPPED, &[], UploadDrop::NAMES);
        let (queue, _uploads) = sync_channel(2);
        let sender = UploadSender { queue, waiting: Arc::default(), bytes_max: 10, dropped: dropped.clone() };
        for size in [20, 1] {
            sender.submit(upload(Path::new("x"), "x", size));
        }
        assert_eq!(dropped.value(UploadDrop::QueueBytes as usize), 1, "the first may be larger");
        let sender = UploadSender { bytes_max: 100, ..sender };
        for _ in 0..3 {
            sender.submit(upload(Path::new("x"), "x", 1));
        }
        assert_eq!(dropped.value(UploadDrop::QueueFull as usize), 2);
    }
}
