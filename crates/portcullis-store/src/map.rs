//! The records in memory: shards with a lock each, so that no two requests wait for each other unless they
//! mean the same part of the map.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_engine::{Collections, RecordId, Value, VariableChange};

use crate::link::{Fields, Outgoing};
use crate::metrics::StoreMetrics;
use crate::packed::Variables;
use crate::shard::{Bounds, Effects, Shard};

/// Limits on the records of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Records of all collections. Default: 262,144.
    pub records_max: usize,
    /// Bytes of all records with what they take beside. Default: 64 MiB.
    pub bytes_max: usize,
    /// Bytes of one record. Default: 8 KiB.
    pub record_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { records_max: 262_144, bytes_max: 64 << 20, record_bytes_max: 8 << 10 }
    }
}

const SHARDS_MAX: usize = 64;

/// The map. Everything is counted in its [`StoreMetrics`].
#[derive(Debug)]
pub(crate) struct Map {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    bounds: Bounds,
    pub(crate) metrics: StoreMetrics,
    /// Changes are noted for the disk.
    pub(crate) track: AtomicBool,
    /// Changes are noted for other nodes.
    pub(crate) share: AtomicBool,
}

impl Map {
    pub(crate) fn new(limits: Limits, metrics: StoreMetrics) -> Map {
        let records_max = limits.records_max.max(1);
        let shards = (records_max / 64).clamp(1, SHARDS_MAX).next_power_of_two();
        Map {
            shards: std::iter::repeat_with(Mutex::default).take(shards).collect(),
            hasher: RandomState::new(),
            bounds: Bounds {
                records_max: records_max.div_ceil(shards),
                bytes_max: limits.bytes_max.div_ceil(shards),
                record_bytes_max: limits.record_bytes_max,
            },
            metrics,
            track: AtomicBool::new(false),
            share: AtomicBool::new(false),
        }
    }

    /// Bytes that a record may have.
    pub(crate) fn record_bytes_max(&self) -> usize {
        self.bounds.record_bytes_max
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// A shard, locked. A panic elsewhere while it was locked leaves a shard that is still consistent enough
    /// to serve.
    pub(crate) fn shard(&self, at: usize) -> MutexGuard<'_, Shard> {
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, id: RecordId<'_>) -> (u64, MutexGuard<'_, Shard>) {
        let hash = self.hasher.hash_one((id.name, id.key));
        // The table uses the lowest and the highest bits.
        (hash, self.shard((hash >> 24) as usize & (self.shards.len() - 1)))
    }

    fn count(&self, effects: Effects) {
        if effects != Effects::default() {
            self.metrics.evicted.add(effects.evicted.into());
            self.metrics.changes_dropped.add(effects.dropped.into());
        }
    }

    /// Takes over a record that was stored elsewhere; one that is here already stays.
    pub(crate) fn restore(&self, id: RecordId<'_>, packed: &[u8], now: i64) {
        let expiry = Variables::new(id, packed).find(|(name, _)| *name == b"__expire_KEY");
        let expires_at = expiry.map_or(i64::MAX, |(_, value)| value.to_int());
        if expires_at <= now {
            return;
        }
        let (hash, mut shard) = self.place(id);
        let effects = shard.restore(hash, id, packed, expires_at, (now, false, false), &self.bounds);
        drop(shard);
        self.count(effects);
    }

    /// Drops what has expired in one shard.
    pub(crate) fn sweep(&self, shard: usize, now: i64) {
        self.shard(shard).sweep(now);
    }

    /// Changes of up to `max` records, for other nodes.
    pub(crate) fn take_unsent(&self, max: usize) -> Vec<Outgoing> {
        let mut out = Vec::new();
        for at in 0..self.shards.len() {
            if out.len() < max {
                self.shard(at).take_unsent(max, &mut out);
            }
        }
        out
    }

    /// Forgets the changes that were sent: they have come back, or are lost.
    pub(crate) fn forget_sent(&self) {
        (0..self.shards.len()).for_each(|at| self.shard(at).forget_sent());
    }

    /// Every record is to be sent.
    pub(crate) fn offer_all(&self) {
        (0..self.shards.len()).for_each(|at| self.shard(at).offer_all());
    }

    /// Takes over what Redis says of a record; false if the record is not here and not to be made.
    pub(crate) fn adopt(&self, id: RecordId<'_>, fields: &Fields, own: bool, create: bool, now: i64) -> bool {
        let (hash, mut shard) = self.place(id);
        let track = self.track.load(Relaxed);
        let (adopted, effects) = shard.adopt(hash, id, fields, (own, create), (now, track), &self.bounds);
        drop(shard);
        self.count(effects);
        adopted
    }

    /// Tells the gauges.
    pub(crate) fn measure(&self) {
        let sizes = (0..self.shards.len()).map(|at| self.shard(at).size());
        let unsent: usize = (0..self.shards.len()).map(|at| self.shard(at).unsent()).sum();
        self.metrics.redis_unsent.set(i64::try_from(unsent).unwrap_or(i64::MAX));
        let (records, bytes) = sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
        self.metrics.records.set(i64::try_from(records).unwrap_or(i64::MAX));
        self.metrics.bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

impl Collections for Map {
    fn load(&self, id: RecordId<'_>, now: i64, each: &mut dyn FnMut(&[u8], Value<'_>)) -> bool {
        let (hash, mut shard) = self.place(id);
        shard.load(hash, id, now, each)
    }

    fn save(&self, id: RecordId<'_>, timeout: i64, now: i64, updates: &[VariableChange<'_>]) {
        let (hash, mut shard) = self.place(id);
        let effects = shard.save(
            hash,
            id,
            (timeout, now),
            updates,
            &self.bounds,
            (self.track.load(Relaxed), self.share.load(Relaxed)),
        );
        drop(shard);
        self.count(effects);
    }
}
