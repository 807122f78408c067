//! Files whose meaning is kept, and read again when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use portcullis_metrics::EnumCounters;

use crate::StartError;
use portcullis_tls::Watch;

/// Label values of what counts readings.
pub(crate) const RESULTS: [&str; 2] = ["ok", "failed"];

/// Reads a file. The error says where it is wrong.
pub(crate) type Read<T> = fn(&Path) -> Result<T, String>;

/// A file, and what it said when it was last read.
pub(crate) struct Watched<T> {
    path: PathBuf,
    read: Read<T>,
    value: ArcSwap<T>,
    watch: Watch,
    reloads: EnumCounters,
}

impl<T> Watched<T> {
    pub(crate) fn open(path: &Path, read: Read<T>, reloads: EnumCounters) -> Result<Watched<T>, StartError> {
        let watch = Watch::new(vec![path.to_path_buf()]);
        let value = read(path).map_err(StartError::new)?;
        Ok(Watched { path: path.to_path_buf(), read, value: ArcSwap::from_pointee(value), watch, reloads })
    }

    /// The value that was read from the file.
    pub(crate) fn get(&self) -> Guard<Arc<T>> {
        self.value.load()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True if the file has not changed since it was read.
    pub(crate) fn is_current(&self) -> bool {
        self.watch.is_current()
    }

    /// Reads the file again if it has changed since, and not since the last look: who writes it may not be
    /// done. Whatever is wrong with it, what was there before stays. True if there is something new.
    pub(crate) fn refresh(&self, what: &str, say: &(dyn Fn(&str) + Send + Sync)) -> bool {
        let Some(read) = self.watch.refresh(|| (self.read)(&self.path)) else { return false };
        self.reloads.inc(usize::from(read.is_err()));
        match read {
            Ok(value) => {
                self.value.store(Arc::new(value));
                true
            }
            Err(message) => {
                say(&format!("{message}; keeping the previous {what}"));
                false
            }
        }
    }
}
