//! Persistent collections (`IP`, `SESSION`, `GLOBAL`, ...) between transactions.
//!
//! ```text
//! initcol, end of a transaction ──> map in memory: shards, each with its lock, bounded
//!                                      │ changed records, 10 times a second
//!                                      ├──> thread "portcullis-store": append to a file, write it anew when it has grown
//!                                      └──> thread "portcullis-redis": changes to Redis, those of other nodes from there
//! ```
//!
//! A request touches memory only. A transaction's changes are applied to the record as it is then, counters
//! as differences, so that transactions at the same time lose nothing of each other. Everything is bounded
//! ([`Limits`]); what is dropped is counted ([`StoreMetrics`]). Without a folder the records end with the
//! process; with one, a crash costs the last tenth of a second, and trouble with the disk costs no request.
//!
//! Processes that fork, such as the workers of a web server, have [`SharedFile`] in place of that: one file
//! in which each change is made under a lock.
//!
//! ```
//! use portcullis_engine::{Change, Collections, RecordId, Sum, VariableChange, Value};
//! use portcullis_store::Store;
//!
//! let store = Store::default();
//! let record = RecordId { name: b"ip", key: b"192.0.2.1" };
//! let add = Change::Add(Sum { delta: 2, decay: 0, seen: 0, value: 2 });
//! for _ in 0..3 {
//!     store.save(record, 3600, 1_700_000_000, &[VariableChange { variable: b"hits", change: add }]);
//! }
//! let mut hits = None;
//! store.load(record, 1_700_000_001, &mut |name, value| {
//!     if name == b"hits" {
//!         hits = Some(value.to_int());
//!     }
//! });
//! assert_eq!(hits, Some(6));
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod disk;
mod frame;
mod keeper;
mod link;
mod map;
mod metrics;
mod notice;
mod packed;
mod record;
mod shard;
mod shared;
mod shared_file;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use map::Map;
use portcullis_engine::{Collections, RecordId, Value, VariableChange};

pub use link::Redis;
pub use map::Limits;
pub use metrics::StoreMetrics;
pub use notice::Say;
pub use shared_file::{SharedFile, check_folder};

/// The settings of a store.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Its limits.
    pub limits: Limits,
    /// The folder of its file; `None`: in memory only.
    pub folder: Option<PathBuf>,
    /// The Redis server over which it is shared with other nodes.
    pub redis: Option<Redis>,
}

/// The records of all collections. Dropped or closed, it writes what is left to write.
#[derive(Debug)]
pub struct Store {
    map: Arc<Map>,
    threads: Mutex<Vec<keeper::Thread>>,
}

impl Default for Store {
    fn default() -> Store {
        Store::in_memory(Limits::default(), StoreMetrics::default())
    }
}

impl Store {
    /// A store in memory without a thread: what has expired goes when room is needed.
    pub fn in_memory(limits: Limits, metrics: StoreMetrics) -> Store {
        Store { map: Arc::new(Map::new(limits, metrics)), threads: Mutex::default() }
    }

    /// Opens a store. Errors of its folder are passed to `say`, counted and retried: it never
    /// keeps the process from serving.
    pub fn open(options: Options, metrics: StoreMetrics, say: Say) -> Store {
        let map = Arc::new(Map::new(options.limits, metrics));
        let keeper = keeper::start(&map, options.folder, &say);
        if keeper.is_none() {
            say("persistent collections: cannot start a thread, so they stay in memory only");
        }
        let link = options.redis.and_then(|redis| link::start(&map, redis, &say));
        Store { map, threads: Mutex::new(link.into_iter().chain(keeper).collect()) }
    }

    /// Writes what is left to write. Changes that come later stay in memory.
    pub fn close(&self) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Collections for Store {
    fn load(&self, record: RecordId<'_>, now: i64, each: &mut dyn FnMut(&[u8], Value<'_>)) -> bool {
        self.map.load(record, now, each)
    }

    fn save(&self, record: RecordId<'_>, timeout: i64, now: i64, updates: &[VariableChange<'_>]) {
        self.map.save(record, timeout, now, updates);
    }
}
