use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};

use portcullis_engine::{Collections, Entries};
use portcullis_types::Variable;

const SHARDS: usize = 16;

/// Persistent collections in memory: shared by all workers, bounded, gone with the process.
///
/// A record expires [`MemoryCollections::TIMEOUT_SECONDS`] after it was last written (`SecCollectionTimeout`'s
/// default). A full shard drops its oldest record for a new one.
#[derive(Debug, Default)]
pub struct MemoryCollections {
    shards: [Mutex<Records>; SHARDS],
    hasher: RandomState,
}

type Records = HashMap<(Variable, Vec<u8>), Record>;

#[derive(Debug)]
struct Record {
    written: i64,
    entries: Entries,
}

impl MemoryCollections {
    /// Seconds a record lives after it was last written.
    pub const TIMEOUT_SECONDS: i64 = 3_600;
    /// Records in all.
    pub const RECORDS_MAX: usize = 65_536;

    fn shard(&self, collection: Variable, key: &[u8]) -> &Mutex<Records> {
        &self.shards[self.hasher.hash_one((collection, key)) as usize % SHARDS]
    }
}

impl Collections for MemoryCollections {
    fn load(&self, collection: Variable, key: &[u8], epoch_seconds: i64) -> Entries {
        let shard = self.shard(collection, key).lock().unwrap_or_else(PoisonError::into_inner);
        shard
            .get(&(collection, key.to_vec()))
            .filter(|record| epoch_seconds - record.written < Self::TIMEOUT_SECONDS)
            .map(|record| record.entries.clone())
            .unwrap_or_default()
    }

    fn save(&self, collection: Variable, key: &[u8], epoch_seconds: i64, entries: Entries) {
        let mut shard = self.shard(collection, key).lock().unwrap_or_else(PoisonError::into_inner);
        if shard.len() >= Self::RECORDS_MAX / SHARDS {
            shard.retain(|_, record| epoch_seconds - record.written < Self::TIMEOUT_SECONDS);
        }
        let name = (collection, key.to_vec());
        if shard.len() >= Self::RECORDS_MAX / SHARDS && !shard.contains_key(&name) {
            let oldest = shard.iter().min_by_key(|(_, record)| record.written).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| shard.remove(&oldest));
        }
        shard.insert(name, Record { written: epoch_seconds, entries });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_expire_and_stay_bounded() {
        let store = MemoryCollections::default();
        store.save(Variable::Ip, b"a", 100, vec![(b"n".to_vec(), b"1".to_vec())]);
        assert_eq!(store.load(Variable::Ip, b"a", 200).len(), 1);
        assert_eq!(store.load(Variable::Global, b"a", 200).len(), 0);
        assert_eq!(store.load(Variable::Ip, b"a", 100 + MemoryCollections::TIMEOUT_SECONDS).len(), 0);
        for n in 0..(MemoryCollections::RECORDS_MAX as u32 + 5_000) {
            store.save(Variable::Ip, &n.to_be_bytes(), 300, Vec::new());
        }
        let kept: usize = store.shards.iter().map(|shard| shard.lock().unwrap().len()).sum();
        assert!(kept <= MemoryCollections::RECORDS_MAX);
    }
}
