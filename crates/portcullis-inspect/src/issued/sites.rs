//! The sites whose cookies are kept, and the memory that they share.
//!
//! A site takes memory as it needs it, while there is any. Where there is none, sites that have more than an
//! equal share lose it: their own old cookies to their new ones, and to the cookies of sites that have less.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use sha2::{Digest as _, Sha256};

use super::{ISSUED_COOKIE_BYTES_MAX, IssuedCookies};

/// The key of the hashes, from which those of signatures are derived: who has it can tell which cookies fall
/// together, make a file of them, and sign cookies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IssuedKey(pub [u8; 32]);

impl fmt::Debug for IssuedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuedKey")
    }
}

impl IssuedKey {
    /// A keyed hash of texts, with their lengths.
    pub(super) fn hash(&self, texts: &[&[u8]]) -> u64 {
        // The digest is cut to a quarter, so it cannot be continued by anyone who does not have the key.
        let mut hash = Sha256::new_with_prefix(self.0);
        for text in texts {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        let digest: [u8; 32] = hash.finalize().into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// The sites of an instance that know what they have issued.
#[derive(Debug)]
pub struct IssuedSites {
    pool: Arc<Pool>,
}

/// State that the sites share.
#[derive(Debug)]
pub(super) struct Pool {
    /// Those in use, by name.
    sites: Mutex<BTreeMap<String, Weak<IssuedCookies>>>,
    count: AtomicUsize,
    key: RwLock<IssuedKey>,
    bytes_max: usize,
    bytes: AtomicUsize,
    is_shared: AtomicBool,
}

impl IssuedSites {
    /// None so far. The hashes of all of them take so many bytes.
    pub fn new(key: IssuedKey, bytes_max: usize) -> IssuedSites {
        let pool = Pool {
            sites: Mutex::default(),
            count: AtomicUsize::new(0),
            key: RwLock::new(key),
            bytes_max,
            bytes: AtomicUsize::new(0),
            is_shared: AtomicBool::new(false),
        };
        IssuedSites { pool: Arc::new(pool) }
    }

    /// The cookies of a site: those in use, or new ones.
    pub fn site(&self, name: &str) -> Arc<IssuedCookies> {
        let mut sites = self.pool.lock();
        sites.retain(|_, site| site.strong_count() > 0);
        if let Some(site) = sites.get(name).and_then(Weak::upgrade) {
            return site;
        }
        let site = Arc::new(IssuedCookies::new(name, &self.pool));
        sites.insert(name.to_owned(), Arc::downgrade(&site));
        site
    }

    /// The sites in use.
    pub fn all(&self) -> Vec<Arc<IssuedCookies>> {
        self.pool.all()
    }

    /// The key of the hashes.
    pub fn key(&self) -> IssuedKey {
        self.pool.key()
    }

    /// Takes another key. What was known is forgotten, as nobody can tell any more what it was.
    pub fn set_key(&self, key: IssuedKey) {
        *self.pool.key.write().unwrap_or_else(PoisonError::into_inner) = key;
        self.all().iter().for_each(|site| site.forget());
    }

    /// True if cookies are gathered for other nodes ([`IssuedCookies::take_fresh`]).
    pub fn set_shared(&self, is_shared: bool) {
        self.pool.is_shared.store(is_shared, Ordering::Relaxed);
    }

    /// Bytes that the hashes of all sites take.
    pub fn bytes(&self) -> usize {
        self.pool.bytes.load(Ordering::Relaxed)
    }
}

impl Default for IssuedSites {
    /// With a key that nobody knows.
    fn default() -> IssuedSites {
        let mut key = [0; 32];
        for part in key.chunks_mut(size_of::<u64>()) {
            part.copy_from_slice(&RandomState::new().hash_one(()).to_le_bytes());
        }
        IssuedSites::new(IssuedKey(key), ISSUED_COOKIE_BYTES_MAX)
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Weak<IssuedCookies>>> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<IssuedCookies>> {
        self.lock().values().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn key(&self) -> IssuedKey {
        *self.key.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(super) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    pub(super) fn join(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// The bytes that a site has whatever others have.
    pub(super) fn share(&self) -> usize {
        self.bytes_max / self.count.load(Ordering::Relaxed).max(1)
    }

    /// Takes bytes, if there are so many.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let most = self.bytes_max;
        let taken = |now: usize| now.checked_add(bytes).filter(|now| *now <= most);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Makes room where a site has more than its share. No part of any site is to be locked.
    pub(super) fn reclaim(&self, bytes: usize) {
        let (share, sites) = (self.share(), self.all());
        let largest = sites.iter().filter(|site| site.bytes() > share).max_by_key(|site| site.bytes());
        if let Some(site) = largest {
            site.give_way(bytes);
        }
    }
}
