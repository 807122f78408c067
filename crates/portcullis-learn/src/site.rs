//! What the threads that serve a site share: what is known, and what waits to be learned.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::batch::{Batch, Fields, KindIn, KindNews};
use crate::hash::option_hash;
use crate::knowledge::Knowledge;
use crate::session::Session;
use crate::sketch::mix;
use crate::source::{Source, Standing};

/// One site's part of learning that all threads see.
#[derive(Debug, Default)]
pub struct Site {
    knowledge: RwLock<Arc<Knowledge>>,
    waiting: Mutex<Batch>,
    unusual: AtomicU64,
    recent: Recent,
    /// What an operator teaches by hand, and whether one does.
    session: RwLock<Option<Arc<Session>>>,
    is_taught: AtomicBool,
}

/// What was handed on of late, and how often it came again since.
#[derive(Debug)]
struct Recent {
    /// Nobody outside can tell what takes the place of what.
    key: u64,
    slots: Box<[AtomicU64]>,
}

/// Slots of what was handed on. What takes the place of something else is handed on.
const RECENT: usize = 8_192;
/// Of requests that show nothing new one in so many is handed on, and stands for all of them.
pub const USUAL_SHARE: u32 = 16;

impl Default for Recent {
    fn default() -> Self {
        let key = RandomState::new().hash_one(0u8);
        Recent { key, slots: (0..RECENT).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Recent {
    /// How many requests one with fields of this number stands for, if it is to be handed on.
    fn weight(&self, fields: u64, source: Source) -> Option<u32> {
        const COUNT: u64 = USUAL_SHARE as u64 - 1;
        let session = source.session.map_or(1 << 32, u64::from);
        let place = mix(self.key ^ fields ^ u64::from(source.network) << 32 ^ u64::from(source.day));
        let number = mix(place ^ session);
        let (slot, number) = (&self.slots[(number >> 32) as usize % RECENT], number & !COUNT);
        let before = slot.load(Ordering::Relaxed);
        // Where two threads meet, nothing is lost but a count.
        if before & !COUNT != number {
            slot.store(number, Ordering::Relaxed);
            return Some(1);
        }
        let count = (before & COUNT) + 1;
        slot.store(number | count & COUNT, Ordering::Relaxed);
        (count > COUNT).then_some(USUAL_SHARE)
    }
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

    /// Has a request learned that was answered well. Where its fields show nothing new, and the same network
    /// and session have shown the same on the same day, one in [`USUAL_SHARE`] is handed on: all that the
    /// others would change is the number of values, and networks, sessions and days are counted in full.
    pub fn observe(&self, source: Source, method: &[u8], path: &[u8], fields: &Fields) {
        let weight = match fields.usual() {
            Some(number) if source.standing != Standing::Trusted => self.recent.weight(number, source),
            _ => Some(1),
        };
        if let Some(weight) = weight {
            self.hand_on(source, (method, path), fields, weight);
        }
    }

    #[inline(never)]
    fn hand_on(&self, source: Source, (method, path): (&[u8], &[u8]), fields: &Fields, weight: u32) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.add(source, method, path, fields, weight);
    }

    /// Begins a session, in place of the one before, or ends it.
    pub fn set_session(&self, session: Option<Arc<Session>>) {
        let is_taught = session.is_some();
        *self.session.write().unwrap_or_else(PoisonError::into_inner) = session;
        self.is_taught.store(is_taught, Ordering::Release);
    }

    /// The session that a request of this client and time teaches, if there is one.
    pub fn session(&self, client: IpAddr, standing: Standing, millis: u64) -> Option<Arc<Session>> {
        if !self.is_taught.load(Ordering::Acquire) {
            return None;
        }
        let session = self.session.read().unwrap_or_else(PoisonError::into_inner);
        session.as_ref().filter(|session| session.covers(client, standing, millis)).map(Arc::clone)
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
