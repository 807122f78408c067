//! Collections of several processes of one machine, such as the workers of a web server, in one file.
//!
//! ```text
//! FOLDER/portcullis.collections = head | bucket 0 | bucket 1 | ...
//! bucket                        = half | half: the newer one with a good checksum counts
//! ```
//!
//! A record's place follows from a hash of its name and key with a secret of the file. To change it, a
//! process locks the bucket, reads it, and writes the other half, so that one that is killed meanwhile leaves
//! the half that was there, and its lock goes with it. Nothing is mapped into memory and nothing is kept in
//! it: a file that is cut short or overwritten costs records, never the process.
//!
//! The file is opened by the first request of each process, since servers read their rules as another user
//! and fork afterwards. A request waits at most [`LOCK_WAIT_MAX`] for the lock of a bucket, beside what the
//! disk takes. Whenever the file cannot be used, the collections are those of the process alone, in memory,
//! from what the file says on, and this is logged.

mod bucket;
mod file;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_engine::{Collections, RecordId, Value, VariableChange};

use crate::Limits;
use crate::map::Map;
use crate::metrics::StoreMetrics;
use crate::notice::{Notices, Say};
use crate::record::{self, Live};
use bucket::{BUCKET_BYTES, Bucket, RECORD_BYTES_MAX};
use file::{Digest, File, Locked, Trouble};

pub use file::check_folder;

/// Longest time that a request waits for the lock of a bucket.
///
/// A process has a lock for some microseconds, but on a machine that is overloaded it may have to wait while
/// it has it: with 10 ms, and five processes for each core, some waits failed.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(100);
/// After a lock was not obtained, its neighbours are waited for only [`LOCK_WAIT_SHORT`] during this time: a
/// process that was stopped while it held one costs each of the others one long wait a second.
const IMPATIENT_TIME: Duration = Duration::from_secs(1);
/// Long enough for what another process does with a lock.
const LOCK_WAIT_SHORT: Duration = Duration::from_millis(2);
/// Opening a file that could not be opened is tried again after this time; and whether the name still means
/// the file that is open is asked as often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Locks between the threads of a process. Locks on a file do not keep them apart.
const STRIPES: usize = 64;

/// Collections in a file that processes of one user share.
#[derive(Debug)]
pub struct SharedFile {
    folder: PathBuf,
    opened: Mutex<Opened>,
    stripes: Box<[Mutex<Buffers>]>,
    /// The records of this process while the file cannot be used.
    own: Map,
    has_own: AtomicBool,
    metrics: StoreMetrics,
    notices: Mutex<Notices>,
}

#[derive(Debug, Default)]
struct Opened {
    file: Option<std::sync::Arc<File>>,
    /// The process that has looked, and when it looks again.
    looked: Option<(u32, Instant)>,
}

/// Buffers of one operation, kept for the next.
#[derive(Debug, Default)]
struct Buffers {
    bucket: Vec<u8>,
    packed: Vec<u8>,
    out: Vec<u8>,
    impatient_until: Option<Instant>,
}

/// Locks a bucket; after a wait that failed, the following waits are short.
fn locked<'f>(file: &'f File, at: u32, impatient: &mut Option<Instant>) -> Result<Locked<'f>, Trouble> {
    let is_impatient = impatient.is_some_and(|until| Instant::now() < until);
    let locked = file.lock(at, if is_impatient { LOCK_WAIT_SHORT } else { LOCK_WAIT_MAX });
    if matches!(locked, Err(Trouble::Locked)) && !is_impatient {
        *impatient = Some(Instant::now() + IMPATIENT_TIME);
    }
    locked
}

impl SharedFile {
    /// The store of `folder`. Nothing is opened before the first request of a process.
    pub fn new(folder: &Path, metrics: StoreMetrics, say: Say) -> SharedFile {
        SharedFile {
            folder: folder.to_owned(),
            opened: Mutex::default(),
            stripes: std::iter::repeat_with(Mutex::default).take(STRIPES).collect(),
            own: Map::new(
                Limits { record_bytes_max: RECORD_BYTES_MAX, ..Limits::default() },
                metrics.clone(),
            ),
            has_own: AtomicBool::new(false),
            metrics,
            notices: Mutex::new(Notices::new(say)),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file, opened by this process; none if that has failed lately.
    fn file(&self) -> Option<std::sync::Arc<File>> {
        let mut opened = lock(&self.opened);
        let (process, now) = (std::process::id(), Instant::now());
        let is_own = opened.looked.is_some_and(|(by, _)| by == process);
        if is_own && opened.looked.is_some_and(|(_, until)| now < until) {
            return opened.file.clone();
        }
        // A file that was opened before the fork shares its locks with the parent.
        let known = opened.file.take().filter(|file| is_own && file.is_current(&self.folder));
        opened.looked = Some((process, now + LOOK_EVERY));
        opened.file = match known {
            Some(file) => Some(file),
            None => match File::open(&self.folder, LOCK_WAIT_MAX) {
                Ok((file, remark)) => {
                    self.works();
                    if let Some(remark) = remark {
                        lock(&self.notices).say("foreign", &remark);
                    }
                    Some(std::sync::Arc::new(file))
                }
                Err(trouble) => {
                    self.fail(&trouble);
                    None
                }
            },
        };
        opened.file.clone()
    }

    /// Runs `work` on the bucket of a record, with its lock unless it only reads.
    fn on_bucket<T>(
        &self,
        id: RecordId<'_>,
        work: impl FnOnce(&File, u32, &Digest, &mut Buffers) -> Result<T, Trouble>,
    ) -> Option<T> {
        let file = self.file()?;
        let digest = file.digest(id);
        let at = file.bucket(&digest);
        let mut buffers = lock(&self.stripes[at as usize % STRIPES]);
        let done = work(&file, at, &digest, &mut buffers);
        drop(buffers);
        done.map_err(|trouble| self.fail(&trouble)).ok()
    }

    /// Changes a record in the file and shows it as it is then; `None` if the file cannot be used.
    fn change(
        &self,
        id: RecordId<'_>,
        (timeout, now): (i64, i64),
        updates: &[VariableChange<'_>],
        each: &mut dyn FnMut(&[u8], Value<'_>),
    ) -> Option<bool> {
        let (is_there, was_damaged, evicted, dropped) = self.on_bucket(id, |file, at, digest, buffers| {
            let Buffers { bucket, packed, out, impatient_until } = buffers;
            let _locked = locked(file, at, impatient_until)?;
            file.read(at, bucket)?;
            let found = Bucket::newest(at, bucket);
            let old = found.find(digest).and_then(|stored| Live::new(id, stored, now));
            packed.clear();
            let saved = record::save(old.as_ref(), id, timeout, now, updates, RECORD_BYTES_MAX, packed);
            let evicted = found.with(at, digest, packed, (saved.expires_at, now), out);
            file.write(at, found.other_half(), out)?;
            let live = Live::new(id, packed, now);
            if let Some(live) = &live {
                record::load(live, now, each);
            }
            Ok((live.is_some(), found.is_damaged, evicted, saved.dropped))
        })?;
        // A reader of the log may be slow: nothing is logged while a lock is held.
        if was_damaged {
            self.lost(BUCKET_BYTES);
        }
        if evicted > 0 {
            self.metrics.evicted.add(evicted.into());
            let text = format!(
                "{}: the file of collections is full: {} records of this process went before their time",
                self.folder.display(),
                self.metrics.evicted.value()
            );
            lock(&self.notices).say("full", &text);
        }
        if dropped > 0 {
            self.metrics.changes_dropped.add(dropped.into());
            let text = format!(
                "a record of a collection is full ({RECORD_BYTES_MAX} bytes): {} changes of variables were dropped",
                self.metrics.changes_dropped.value()
            );
            lock(&self.notices).say("record", &text);
        }
        Some(is_there)
    }

    /// The collections of this process, with the record as the file has it, if that can still be read.
    fn own(&self, id: RecordId<'_>, now: i64) -> &Map {
        self.has_own.store(true, Relaxed);
        if self.own_update(id, now).is_none() {
            self.on_bucket(id, |file, at, digest, buffers| {
                file.read(at, &mut buffers.bucket)?;
                if let Some(stored) = Bucket::newest(at, &buffers.bucket).find(digest) {
                    self.own.restore(id, stored, now);
                }
                Ok(())
            });
        }
        &self.own
    }

    /// When this process stored a record for itself.
    fn own_update(&self, id: RecordId<'_>, now: i64) -> Option<i64> {
        let mut at = None;
        self.own.load(id, now, &mut |name, value| {
            if name == b"LAST_UPDATE_TIME" {
                at = Some(value.to_int());
            }
        });
        at
    }

    fn lost(&self, bytes: usize) {
        self.metrics.lost_bytes.add(bytes as u64);
        let text = format!("{}: damaged records of collections are lost", self.folder.display());
        lock(&self.notices).say("damaged", &text);
    }

    fn fail(&self, trouble: &Trouble) {
        self.metrics.persist_errors.inc();
        let text = format!(
            "collections cannot be shared in {}: {trouble}; meanwhile those of this process count alone",
            self.folder.display()
        );
        lock(&self.notices).say("trouble", &text);
    }

    fn works(&self) {
        let mut notices = lock(&self.notices);
        if notices.was_said("trouble") {
            notices.forget("trouble");
            notices.say("again", "collections are shared between processes again");
        }
    }
}

impl Collections for SharedFile {
    fn load(&self, id: RecordId<'_>, now: i64, each: &mut dyn FnMut(&[u8], Value<'_>)) -> bool {
        // Of a record that is here, too, since the file could not be written, the younger one counts.
        let own = self.has_own.load(Relaxed).then(|| self.own_update(id, now)).flatten();
        let found = self.on_bucket(id, |file, at, digest, buffers| {
            file.read(at, &mut buffers.bucket)?;
            let mut found = Bucket::newest(at, &buffers.bucket);
            if found.is_damaged {
                // Perhaps it was only being written.
                let _locked = locked(file, at, &mut buffers.impatient_until)?;
                file.read(at, &mut buffers.bucket)?;
                found = Bucket::newest(at, &buffers.bucket);
            }
            let live = found.find(digest).and_then(|stored| Live::new(id, stored, now));
            let live = live.filter(|live| {
                own.is_none_or(|own| {
                    live.get(b"LAST_UPDATE_TIME").is_some_and(|stored| stored.to_int() >= own)
                })
            });
            if let Some(live) = &live {
                record::load(live, now, each);
            }
            Ok(live.is_some())
        });
        found == Some(true) || (own.is_some() && self.own.load(id, now, each))
    }

    fn save(&self, id: RecordId<'_>, timeout: i64, now: i64, updates: &[VariableChange<'_>]) {
        if self.change(id, (timeout, now), updates, &mut |_, _| {}).is_none() {
            self.own(id, now).save(id, timeout, now, updates);
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn save_and_load(
        &self,
        id: RecordId<'_>,
        timeout: i64,
        now: i64,
        updates: &[VariableChange<'_>],
        each: &mut dyn FnMut(&[u8], Value<'_>),
    ) -> bool {
        match self.change(id, (timeout, now), updates, each) {
            Some(is_there) => is_there,
            None => {
                let own = self.own(id, now);
                own.save(id, timeout, now, updates);
                own.load(id, now, each)
            }
        }
    }
}

/// A panic elsewhere leaves buffers and notices that are good enough to go on with.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::sync::Arc;

    use portcullis_engine::{Change, Sum};

    use super::*;

    const NAME: &str = "portcullis.collections";

    struct Process {
        file: SharedFile,
        said: Arc<Mutex<Vec<String>>>,
    }

    impl Process {
        /// Like another process: it opens the file for itself.
        fn new(folder: &Path) -> Process {
            let said = Arc::<Mutex<Vec<String>>>::default();
            let keep = Arc::clone(&said);
            let say = Arc::new(move |line: &str| lock(&keep).push(line.to_owned()));
            Process { file: SharedFile::new(folder, StoreMetrics::default(), say), said }
        }

        /// Counts a record up and says what it is then.
        fn add(&self, key: &[u8], now: i64) -> Option<i64> {
            let sum = Sum { delta: 1, decay: 0, seen: 0, value: 1 };
            let update = VariableChange { variable: b"n", change: Change::Add(sum) };
            let mut seen = None;
            self.file
                .save_and_load(id(key), 60, now, &[update], &mut |name, value| keep(&mut seen, name, value));
            seen
        }

        fn get(&self, key: &[u8], now: i64) -> Option<i64> {
            let mut seen = None;
            self.file.load(id(key), now, &mut |name, value| keep(&mut seen, name, value));
            seen
        }

        fn said(&self) -> Vec<String> {
            lock(&self.said).clone()
        }

        /// It looks at the file anew with its next request.
        fn look_again(&self) {
            lock(&self.file.opened).looked = Some((std::process::id(), Instant::now()));
        }
    }

    fn id(key: &[u8]) -> RecordId<'_> {
        RecordId { name: b"ip", key }
    }

    fn keep(seen: &mut Option<i64>, name: &[u8], value: Value<'_>) {
        if name == b"n" {
            *seen = Some(value.to_int());
        }
    }

    #[test]
    fn two_processes_count_together_and_a_third_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (Process::new(folder.path()), Process::new(folder.path()));
        for number in 0..10 {
            assert_eq!(one.add(b"a", 100), Some(2 * number + 1));
            assert_eq!(two.add(b"a", 100), Some(2 * number + 2));
        }
        assert_eq!((one.get(b"a", 100), two.get(b"a", 100), one.get(b"b", 100)), (Some(20), Some(20), None));
        drop((one, two));
        let third = Process::new(folder.path());
        assert_eq!((third.get(b"a", 159), third.get(b"a", 160)), (Some(20), None), "it expires");
        // A clock that goes back changes nothing for what is stored.
        assert_eq!((third.add(b"a", 10), third.get(b"a", 69)), (Some(21), Some(21)));
        assert_eq!(third.said(), Vec::<String>::new());
        let found = fs::metadata(folder.path().join(NAME)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_process_that_was_stopped_with_a_lock_holds_up_one_request_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let one = Process::new(folder.path());
        assert_eq!(one.add(b"a", 100), Some(1));
        let (stopped, _) = File::open(folder.path(), LOCK_WAIT_MAX).unwrap();
        let at = stopped.bucket(&stopped.digest(id(b"a")));
        let held = stopped.lock(at, LOCK_WAIT_MAX).unwrap();
        let begin = Instant::now();
        assert_eq!(one.get(b"a", 100), Some(1), "reading takes no lock");
        let mut waits = Vec::new();
        for number in 0..30 {
            let begin = Instant::now();
            assert_eq!(one.add(b"a", 100), Some(number + 2), "from what the file says on");
            waits.push(begin.elapsed());
        }
        assert!(waits[0] >= LOCK_WAIT_MAX, "{waits:?}");
        assert!(begin.elapsed() < IMPATIENT_TIME, "{waits:?}");
        assert_eq!(one.said().len(), 1, "{:?}", one.said());
        assert_eq!((one.add(b"a", 101), one.get(b"a", 101)), (Some(32), Some(32)), "the younger one counts");
        drop(held);
        // What was counted alone is not added.
        assert_eq!(one.add(b"a", 100), Some(2));
    }

    #[test]
    fn garbage_in_the_file_costs_what_it_hits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let one = Process::new(folder.path());
        let keys: Vec<String> = (0..500).map(|number| format!("192.0.2.{number}")).collect();
        keys.iter().for_each(|key| assert_eq!(one.add(key.as_bytes(), 100), Some(1)));
        // All of it but the head.
        let mut seed = 1u32;
        let garbage: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        })
        .take(64 << 20)
        .collect();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &garbage, 4096).unwrap();
        for key in &keys {
            assert_eq!(one.get(key.as_bytes(), 100), None);
            assert_eq!(one.add(key.as_bytes(), 100), Some(1));
            assert_eq!(one.get(key.as_bytes(), 100), Some(1));
        }
        assert!(one.said().iter().any(|line| line.contains("damaged")), "{:?}", one.said());
        // Cut short, to a part of a bucket and to nothing: the process goes on.
        for bytes in [1_000_000, 4096 + 100, 0] {
            file.set_len(bytes).unwrap();
            for key in keys.iter().map(String::as_bytes) {
                let is_kept = || one.add(key, 100).is_some() && one.get(key, 100).is_some();
                // Between the two the process may see that the file was cut, and begin a new one.
                assert!(is_kept() || is_kept());
            }
        }
        // Without a head it is a new file for those that open it, with another secret.
        assert_eq!(Process::new(folder.path()).add(b"192.0.2.1", 100), Some(1));
    }

    #[test]
    fn what_is_no_such_file_is_put_aside_and_one_that_is_gone_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        fs::write(folder.path().join("collections.log"), "of somebody else").unwrap();
        fs::write(&path, "SQLite format 3\0 and so on").unwrap();
        let (one, two) = (Process::new(folder.path()), Process::new(folder.path()));
        assert_eq!((one.add(b"a", 100), two.add(b"a", 100)), (Some(1), Some(2)));
        assert_eq!(one.said().len(), 1, "{:?}", one.said());
        let aside = folder.path().join("portcullis.collections.damaged");
        assert!(fs::read_to_string(aside).unwrap().starts_with("SQLite"));
        fs::remove_file(&path).unwrap();
        one.look_again();
        assert_eq!(one.add(b"a", 100), Some(1));
        two.look_again();
        assert_eq!(two.add(b"a", 100), Some(2));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        // Emptied, it is another one: processes that open it now and those that had it open count together
        // again.
        fs::write(&path, "").unwrap();
        let three = Process::new(folder.path());
        assert_eq!(three.add(b"a", 100), Some(1));
        one.look_again();
        assert_eq!((one.add(b"a", 100), three.add(b"a", 100)), (Some(2), Some(3)));
    }

    #[test]
    fn without_the_file_each_process_counts_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let make: [&dyn Fn(); 4] = [
            &|| fs::create_dir(&path).unwrap(),
            &|| symlink("/etc/hostname", &path).unwrap(),
            &|| {
                fs::write(folder.path().join("other"), "").unwrap();
                fs::hard_link(folder.path().join("other"), &path).unwrap();
            },
            &|| {
                assert_eq!(nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU), Ok(()));
            },
        ];
        for make in make {
            make();
            let (one, two) = (Process::new(folder.path()), Process::new(folder.path()));
            for number in 1..4 {
                assert_eq!((one.add(b"a", 100), two.add(b"a", 100)), (Some(number), Some(number)));
            }
            assert_eq!(one.get(b"a", 100), Some(3));
            assert_eq!(one.said().len(), 1, "{:?}", one.said());
            if path.is_dir() { fs::remove_dir(&path) } else { fs::remove_file(&path) }.unwrap();
            // It is there later.
            one.look_again();
            assert_eq!(one.add(b"a", 100), Some(1));
            assert!(one.said().iter().any(|line| line.ends_with("again")), "{:?}", one.said());
            fs::remove_file(&path).unwrap();
        }
        let gone = Process::new(&folder.path().join("gone"));
        assert_eq!((gone.add(b"a", 100), gone.add(b"a", 100)), (Some(1), Some(2)));
    }

    #[test]
    fn keys_and_values_of_any_length() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (Process::new(folder.path()), Process::new(folder.path()));
        for length in [0, 1, 511, 512, 70_000, 1 << 20] {
            let key = vec![b'k'; length];
            assert_eq!((one.add(&key, 100), two.add(&key, 100)), (Some(1), Some(2)), "{length}");
            let mut shown = None;
            one.file.load(id(&key), 100, &mut |name, value| {
                if name == b"KEY" {
                    shown = Some(matches!(value, Value::Text(text) if text == key));
                }
            });
            assert_eq!(shown, Some(true), "{length}");
        }
        for length in [1, RECORD_BYTES_MAX - 100, RECORD_BYTES_MAX, 1 << 20] {
            let text = vec![b'v'; length];
            let update = VariableChange { variable: b"v", change: Change::Set(Value::Text(&text)) };
            one.file.save(id(b"value"), 60, 100, &[update]);
            assert!(one.add(b"value", 100).is_some(), "{length}: the rest of the record stays");
        }
        assert_eq!(one.said().len(), 1, "{:?}", one.said());
    }

    #[test]
    fn many_keys_push_out_the_oldest_and_the_file_stays_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let one = Process::new(folder.path());
        let keys = if cfg!(debug_assertions) { 100_000 } else { 600_000 };
        for key in 0..keys {
            assert_eq!(one.add(format!("client {key}").as_bytes(), 100), Some(1));
        }
        let missing =
            (0..keys).filter(|key| one.get(format!("client {key}").as_bytes(), 100).is_none()).count();
        assert_eq!(missing as u64, one.file.metrics.evicted.value());
        if keys <= 100_000 {
            assert_eq!(missing, 0, "they all fit");
        }
        let found = fs::metadata(folder.path().join(NAME)).unwrap();
        assert!(found.len() <= (64 << 20) + 4096 && found.blocks() * 512 <= (65 << 20), "{found:?}");
    }
}
