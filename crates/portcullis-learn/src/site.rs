//! What the threads that serve a site share: what is known, and what waits to be learned.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::batch::{Batch, Fields, KindIn, KindNews};
use crate::knowledge::Knowledge;
use crate::profile::{Source, option_hash};
use crate::sketch::mix;

/// One site's part of learning that all threads see.
#[derive(Debug, Default)]
pub struct Site {
    knowledge: RwLock<Arc<Knowledge>>,
    waiting: Mutex<Batch>,
    unusual: AtomicU64,
}

impl Site {
    /// What is known.
    pub fn knowledge(&self) -> Arc<Knowledge> {
        Arc::clone(&self.knowledge.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces what is known.
    pub fn publish(&self, knowledge: Knowledge) {
        *self.knowledge.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(knowledge);
    }

    /// Has a request learned that was answered well.
    pub fn observe(&self, source: Source, method: &[u8], path: &[u8], fields: &Fields) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).add(source, method, path, fields);
    }

    /// Has kinds of findings learned that fields of a request carried.
    pub fn observe_kinds(
        &self,
        source: Source,
        method: &[u8],
        path: &[u8],
        found: &[KindIn<'_>],
        news: KindNews,
    ) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.add_kinds(source, method, path, found, news);
    }

    /// The requests that wait.
    pub fn take(&self) -> Batch {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts values that are unlike their field.
    pub fn count_unusual(&self, values: u64) {
        self.unusual.fetch_add(values, Ordering::Relaxed);
    }

    /// The number of values that were unlike their field.
    pub fn unusual(&self) -> u64 {
        self.unusual.load(Ordering::Relaxed)
    }
}

/// The network of a client, as it counts here: 24 bits of an address of IPv4, and 32 of one of IPv6, which
/// are what a provider has.
pub fn network(client: IpAddr) -> u32 {
    let bits = match client.to_canonical() {
        IpAddr::V4(address) => u64::from(address.to_bits() >> 8),
        IpAddr::V6(address) => 1 << 40 | (address.to_bits() >> 96) as u64,
    };
    (mix(bits) >> 32) as u32
}

/// The hash of what a request shows as its session, as it counts here.
pub fn session(shown: &[u8]) -> u32 {
    (option_hash(shown) >> 32) as u32
}
