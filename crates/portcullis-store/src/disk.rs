//! The file of records: read at the start, appended to while records change, written anew when it has grown.
//!
//! ```text
//! collections.log    what is read at the next start
//! collections.new    its successor while that is written; renamed when it is whole
//! collections.lock   locked by the process that writes here
//! collections.damaged   the last file in which something was wrong before its end
//! ```
//!
//! One thread does all of this. Whatever goes wrong, records stay in memory, and writing is tried again
//! later; what is written then is everything, so nothing that was missed stays missed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::frame;
use crate::map::Map;
use crate::notice::Notices;

const LOG: &str = "collections.log";
const NEW: &str = "collections.new";
const LOCK: &str = "collections.lock";
const DAMAGED: &str = "collections.damaged";
/// A file of this size is always good enough.
const SMALL_BYTES: u64 = 4 << 20;
/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;
/// Slots copied while a shard is locked.
const SLOTS_AT_ONCE: usize = 256;
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// The files of the records.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    notices: Notices,
    /// Held while we may write.
    lock: Option<File>,
    /// The old records were read.
    loaded: bool,
    /// Those of another process, which writes them, were looked at.
    peeked: bool,
    state: State,
    buffer: Vec<u8>,
    retry_delay: Duration,
}

#[derive(Debug)]
enum State {
    Writing(Log),
    /// Not now; again at this time.
    Waiting(Instant),
}

#[derive(Debug)]
struct Log {
    file: File,
    bytes: u64,
    /// Its size when it was written anew.
    compact_bytes: u64,
    unsynced: bool,
}

impl Log {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        if written.is_err() {
            // The part that went through would only be torn bytes.
            let _ = self.file.set_len(self.bytes);
            return written;
        }
        self.bytes += bytes.len() as u64;
        self.unsynced = true;
        Ok(())
    }

    /// More than half of it is outdated.
    fn is_large(&self) -> bool {
        self.bytes > SMALL_BYTES + 2 * self.compact_bytes
    }
}

impl Disk {
    /// Reads what `folder` has. Trouble is logged, counted, and never an error.
    pub(crate) fn open(folder: &Path, map: &Map, notices: Notices, now: i64) -> Disk {
        let mut disk = Disk {
            folder: folder.to_path_buf(),
            notices,
            lock: None,
            loaded: false,
            peeked: false,
            state: State::Waiting(Instant::now()),
            buffer: Vec::new(),
            retry_delay: RETRY_FIRST,
        };
        disk.retry(map, now);
        disk
    }

    /// Writes what changed since the last time.
    pub(crate) fn flush(&mut self, map: &Map, now: i64) {
        let result = match &mut self.state {
            State::Waiting(at) if *at > Instant::now() => return,
            State::Waiting(_) => return self.retry(map, now),
            State::Writing(log) => append_changes(map, &mut self.buffer, &mut [log]),
        };
        let large = matches!(&self.state, State::Writing(log) if log.is_large());
        let result = match result {
            Ok(()) if large => self.compact(map),
            result => result,
        };
        if let Err(error) = result {
            self.fail(map, &error);
        }
        self.measure(map);
    }

    /// Makes sure that what was written survives a power failure, too.
    pub(crate) fn sync(&mut self, map: &Map) {
        let State::Writing(log) = &mut self.state else { return };
        if std::mem::take(&mut log.unsynced)
            && let Err(error) = log.file.sync_data()
        {
            self.fail(map, &error);
        }
    }

    fn measure(&self, map: &Map) {
        if let State::Writing(log) = &self.state {
            map.metrics.file_bytes.set(i64::try_from(log.bytes).unwrap_or(i64::MAX));
        }
    }

    fn fail(&mut self, map: &Map, error: &io::Error) {
        map.metrics.persist_errors.inc();
        let text = format!(
            "persistent collections cannot be written to {}, they stay in memory: {error}",
            self.folder.display()
        );
        self.notices.say("disk", &text);
        self.state = State::Waiting(Instant::now() + self.retry_delay);
        self.retry_delay = (self.retry_delay * 2).min(RETRY_MAX);
    }

    fn retry(&mut self, map: &Map, now: i64) {
        match self.start(map, now) {
            Ok(()) => {
                self.retry_delay = RETRY_FIRST;
                if self.notices.was_said("disk") {
                    self.notices.forget("disk");
                    self.notices.say("disk again", "persistent collections are written to disk again");
                }
            }
            Err(error) => self.fail(map, &error),
        }
        self.measure(map);
    }

    fn start(&mut self, map: &Map, now: i64) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        if self.lock.is_none() {
            let lock = open(&self.folder.join(LOCK), |options| options.write(true).create(true))?;
            match lock.try_lock() {
                Ok(()) => self.lock = Some(lock),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) => {
                    // We may be about to take over from it. What it has written until now is a good
                    // beginning; the rest is read when it has gone.
                    if !std::mem::replace(&mut self.peeked, true) {
                        let _ = self.read(map, now);
                    }
                    return Err(io::Error::other("another process uses this folder"));
                }
            }
        }
        if !self.loaded {
            self.load(map, now)?;
            self.loaded = true;
        }
        self.compact(map)
    }

    /// Takes the records of the file into memory; none if there is no file.
    fn read(&self, map: &Map, now: i64) -> io::Result<Option<frame::Found>> {
        let file = match File::open(self.folder.join(LOG)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        // Of several frames of one record the last counts, and a record that is in memory already is newer
        // than all.
        let mut records = std::collections::HashMap::new();
        let found = frame::read(file, &mut |id, packed| {
            records.insert(crate::shard::joined(id), packed.to_vec());
        })?;
        for (id, packed) in records {
            map.restore(crate::shard::split(&id), &packed, now);
        }
        Ok(Some(found))
    }

    fn load(&mut self, map: &Map, now: i64) -> io::Result<()> {
        let path = self.folder.join(LOG);
        let Some(found) = self.read(map, now)? else { return Ok(()) };
        let lost = found.damaged_bytes + found.torn_bytes;
        if found.foreign || found.damaged_bytes > 0 {
            std::fs::rename(&path, self.folder.join(DAMAGED))?;
        }
        if found.foreign {
            let text = format!("{} is not a file of collections; renamed to {DAMAGED}", path.display());
            self.notices.say("damaged", &text);
        } else if lost > 0 {
            map.metrics.lost_bytes.add(lost);
            let kept = if found.damaged_bytes > 0 {
                format!("; the file is kept as {DAMAGED}")
            } else {
                String::new()
            };
            let text = format!(
                "{}: {} records read, {} damaged bytes in the middle and {} torn bytes at the end are lost{kept}",
                path.display(),
                found.frames,
                found.damaged_bytes,
                found.torn_bytes,
            );
            self.notices.say("damaged", &text);
        }
        Ok(())
    }

    /// Writes all records to a new file, which then takes the place of the old one. Changes that come
    /// meanwhile go to both: until the new one is whole, the old one is what a crash leaves.
    fn compact(&mut self, map: &Map) -> io::Result<()> {
        let path = self.folder.join(NEW);
        let file = open(&path, |options| options.append(true).create(true))?;
        file.set_len(0)?;
        let mut new = Log { file, bytes: 0, compact_bytes: 0, unsynced: true };
        new.append(frame::MAGIC)?;
        for shard in 0..map.shards() {
            let mut from = 0;
            loop {
                self.buffer.clear();
                let more = map.shard(shard).each_from(from, SLOTS_AT_ONCE, &mut |id, packed| {
                    frame::push(&mut self.buffer, id, packed);
                });
                new.append(&self.buffer)?;
                let Some(next) = more else { break };
                from = next;
            }
            match &mut self.state {
                State::Writing(old) => append_changes(map, &mut self.buffer, &mut [old, &mut new])?,
                State::Waiting(_) => append_changes(map, &mut self.buffer, &mut [&mut new])?,
            }
        }
        new.file.sync_data()?;
        std::fs::rename(&path, self.folder.join(LOG))?;
        // The name is safe only when the folder is.
        File::open(&self.folder)?.sync_all()?;
        new.compact_bytes = new.bytes;
        self.state = State::Writing(new);
        Ok(())
    }
}

/// Only for us, and no link to somewhere else.
fn open(path: &Path, how: impl FnOnce(&mut OpenOptions) -> &mut OpenOptions) -> io::Result<File> {
    how(OpenOptions::new().mode(0o600).custom_flags(libc::O_NOFOLLOW)).open(path)
}

fn append_changes(map: &Map, buffer: &mut Vec<u8>, logs: &mut [&mut Log]) -> io::Result<()> {
    buffer.clear();
    for at in 0..map.shards() {
        map.shard(at).take_changed(&mut |id, packed| frame::push(buffer, id, packed));
        if buffer.len() > BUFFER_BYTES || at + 1 == map.shards() {
            for log in logs.iter_mut() {
                log.append(buffer)?;
            }
            buffer.clear();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use portcullis_engine::{Change, Collections, RecordId, Value, VariableChange};

    use super::*;
    use crate::{Limits, StoreMetrics};

    fn map() -> Map {
        let map = Map::new(Limits::default(), StoreMetrics::default());
        map.track.store(true, Relaxed);
        map
    }

    fn notices() -> Notices {
        Notices::new(Arc::new(|_| {}))
    }

    fn set(map: &Map, key: &str, number: i64) {
        let update = VariableChange { variable: b"n", change: Change::Set(Value::Int(number)) };
        map.save(RecordId { name: b"ip", key: key.as_bytes() }, 3600, 1_000, &[update]);
    }

    fn get(map: &Map, key: &str) -> Option<i64> {
        let mut number = None;
        map.load(RecordId { name: b"ip", key: key.as_bytes() }, 1_000, &mut |name, value| {
            if name == b"n" {
                number = Some(value.to_int());
            }
        });
        number
    }

    #[test]
    fn a_full_disk_costs_nothing_that_memory_has() {
        let folder = tempfile::tempdir().unwrap();
        let map = map();
        let mut disk = Disk::open(folder.path(), &map, notices(), 1_000);
        set(&map, "before", 1);
        disk.flush(&map, 1_000);
        let State::Writing(log) = &mut disk.state else { panic!("not writing") };
        log.file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        set(&map, "meanwhile", 2);
        disk.flush(&map, 1_000);
        assert_eq!(map.metrics.persist_errors.value(), 1);
        assert!(matches!(disk.state, State::Waiting(_)));
        set(&map, "later", 3);
        disk.flush(&map, 1_000);
        assert_eq!(get(&map, "meanwhile"), Some(2));
        // Space again.
        disk.state = State::Waiting(Instant::now());
        disk.flush(&map, 1_000);
        assert!(matches!(disk.state, State::Writing(_)));
        drop(disk);
        let other = self::map();
        Disk::open(folder.path(), &other, notices(), 1_000);
        assert_eq!(
            [get(&other, "before"), get(&other, "meanwhile"), get(&other, "later")],
            [Some(1), Some(2), Some(3)]
        );
    }

    #[test]
    fn the_file_is_written_anew_when_it_has_grown() {
        let folder = tempfile::tempdir().unwrap();
        let map = map();
        let mut disk = Disk::open(folder.path(), &map, notices(), 1_000);
        let mut largest = 0;
        for round in 0..400 {
            for key in 0..200 {
                set(&map, &format!("192.0.2.{key}"), round);
            }
            disk.flush(&map, 1_000);
            largest = largest.max(std::fs::metadata(folder.path().join(LOG)).unwrap().len());
        }
        let last = std::fs::metadata(folder.path().join(LOG)).unwrap().len();
        assert!(largest <= SMALL_BYTES + 200_000, "{largest}");
        assert!(last < largest, "{last}");
        drop(disk);
        let other = self::map();
        Disk::open(folder.path(), &other, notices(), 1_000);
        assert_eq!(get(&other, "192.0.2.7"), Some(399));
    }
}
