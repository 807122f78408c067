//! The thread that looks after the map: drops what has expired, writes what changed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::disk::Disk;
use crate::map::Map;
use crate::notice::{Notices, Say};

/// Between what a crash may cost and the next.
pub(crate) const FLUSH_EVERY: Duration = Duration::from_millis(100);
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// A thread that can be stopped; dropped, it is.
#[derive(Debug)]
pub(crate) struct Thread {
    stop: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    /// Runs `work` with a flag that tells it to end. `None` if there can be no thread.
    pub(crate) fn start(name: &str, work: impl FnOnce(&AtomicBool) + Send + 'static) -> Option<Thread> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let handle = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&asked)).ok()?;
        Some(Thread { stop, handle: Some(handle) })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(handle) = self.handle.take() {
            handle.thread().unpark();
            // A panic there is reported by the panic message.
            let _ = handle.join();
        }
    }
}

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Reads what the disk has, and starts the thread.
pub(crate) fn start(map: &Arc<Map>, folder: Option<PathBuf>, say: &Say) -> Option<Thread> {
    let mut disk = folder.map(|folder| {
        let disk = Disk::open(&folder, map, Notices::new(Arc::clone(say)), now());
        map.track.store(true, Relaxed);
        disk
    });
    map.measure();
    let map = Arc::clone(map);
    Thread::start("portcullis-store", move |stop| {
        let (mut shard, mut synced) = (0, Instant::now());
        while !stop.load(Relaxed) {
            std::thread::park_timeout(FLUSH_EVERY);
            // One part of the map at a time: no request waits long for a sweep.
            map.sweep(shard, now());
            shard = (shard + 1) % map.shards();
            map.measure();
            let Some(disk) = &mut disk else { continue };
            disk.flush(&map, now());
            if synced.elapsed() >= SYNC_EVERY {
                disk.sync(&map);
                synced = Instant::now();
            }
        }
        if let Some(disk) = &mut disk {
            disk.flush(&map, now());
            disk.sync(&map);
        }
    })
}
