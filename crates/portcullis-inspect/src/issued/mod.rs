//! The cookies that the upstreams of sites have set: two generations of keyed hashes in a bounded table.
//!
//! ```text
//! Set-Cookie > note ──> young ──(full, or old enough)──> old ──(again)──> forgotten
//! Cookie > has ───────> young, old; found in old, it is young again
//! ```
//!
//! A hash is of site, name and value, with a key: nobody outside knows which cookies fall together. A cookie
//! that was forgotten is judged as one that nobody has set, until it is set again. [`state`] is what is kept
//! of a site on disk; other nodes take over what [`IssuedCookies::take_fresh`] gives.

mod signing;
mod sites;
mod state;
mod table;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_http::message::ResponseHead;
use portcullis_semantic::Issuer;

pub use signing::{
    COOKIE_BYTES_MAX, COOKIE_KEY_MILLIS, COOKIE_KEYS_KEPT, CheckedCookies, CookieCheck, CookieSigner,
    ForeignCookie, SIGNED_COOKIES_MAX, SignedCookie,
};
pub use sites::{IssuedKey, IssuedSites};
pub use state::IssuedStateError;

use sites::Pool;
use table::{NETWORKS, SLOTS_MIN, Shard, capacity};

/// Bytes of memory for the hashes of all sites, both generations together.
pub const ISSUED_COOKIE_BYTES_MAX: usize = 16 << 20;
/// A generation ends after this time, so that a cookie is known at least as long after it was set or seen.
pub const ISSUED_COOKIE_MILLIS: u64 = 7 * 24 * 3600 * 1000;
/// The part of a generation that answers to one client network may fill is one in this.
pub const ISSUED_COOKIE_SHARES: usize = 8;
/// `Set-Cookie` fields of an answer that are noted, and bytes of the value of one. Browsers keep no longer
/// ones.
const SET_COOKIES_MAX: usize = 64;
const SET_COOKIE_BYTES_MAX: usize = 8 << 10;

/// Parts that are locked one by one.
const SHARDS: usize = 16;
/// Cookies of a site that have yet to be sent to other nodes.
const FRESH_MAX: usize = 16 << 10;
/// Times that room is made for a cookie; others may take it.
const RECLAIMS_MAX: usize = 4;

/// The cookies that a site has issued. One for all inspections of the site.
#[derive(Debug)]
pub struct IssuedCookies {
    site: String,
    pool: Arc<Pool>,
    shards: Box<[Mutex<Shard>]>,
    slots_max: usize,
    bytes: AtomicUsize,
    declined: AtomicU64,
    rotations: AtomicU64,
    held: AtomicU64,
    /// Rises with each change of what is known.
    version: AtomicU64,
    fresh: Mutex<Vec<Fresh>>,
    unshared: AtomicU64,
}

/// A cookie for other nodes: its hash, and the network of the client that it was set for.
pub type Fresh = (u64, u8);

/// Storage of the cookies of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IssuedStatistics {
    /// Cookies that are known.
    pub held: u64,
    /// Bytes that they take.
    pub bytes: usize,
    /// Cookies that were not noted, as the client's network had filled its part, or there was no memory.
    pub declined: u64,
    /// Generations that were forgotten, each of one part of the table.
    pub rotations: u64,
    /// Cookies of which other nodes were not told, as too many waited.
    pub unshared: u64,
}

/// Result for a cookie.
enum Added {
    Done,
    /// So many bytes are missing.
    NoRoom(usize),
}

impl IssuedCookies {
    fn new(site: &str, pool: &Arc<Pool>) -> IssuedCookies {
        pool.join();
        let slots = pool.bytes_max() / size_of::<u64>() / 2 / SHARDS;
        IssuedCookies {
            site: site.to_owned(),
            pool: Arc::clone(pool),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            slots_max: power_within(slots),
            bytes: AtomicUsize::new(0),
            declined: AtomicU64::new(0),
            rotations: AtomicU64::new(0),
            held: AtomicU64::new(0),
            version: AtomicU64::new(0),
            fresh: Mutex::default(),
            unshared: AtomicU64::new(0),
        }
    }

    /// The name of the site.
    pub fn site(&self) -> &str {
        &self.site
    }

    /// The counts so far.
    pub fn statistics(&self) -> IssuedStatistics {
        IssuedStatistics {
            held: self.held.load(Ordering::Relaxed),
            bytes: self.bytes(),
            declined: self.declined.load(Ordering::Relaxed),
            rotations: self.rotations.load(Ordering::Relaxed),
            unshared: self.unshared.load(Ordering::Relaxed),
        }
    }

    /// A number that is another one after each change of what is known.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.load(Ordering::Relaxed) == 0
    }

    /// Notes the cookies that an answer to `client` sets; `now` is in milliseconds since 1970.
    pub(crate) fn note_answer(&self, head: &ResponseHead, client: SocketAddr, now: u64) {
        for field in head.header("set-cookie").take(SET_COOKIES_MAX) {
            if let Some((name, value)) = set_cookie(field) {
                self.note(name, value, client.ip(), now);
            }
        }
    }

    /// Notes a cookie.
    pub fn note(&self, name: &[u8], value: &[u8], client: IpAddr, now: u64) {
        let hash = self.hash(name, value);
        let is_new = !self.shard(hash, now).young.has(hash);
        if is_new && self.add(hash, self.network(client), now) {
            self.tell(hash, client);
        }
    }

    /// True if this cookie was noted. One of the old generation is noted again.
    pub fn has(&self, name: &[u8], value: &[u8], client: IpAddr, now: u64) -> bool {
        let hash = self.hash(name, value);
        let shard = self.shard(hash, now);
        if shard.young.has(hash) {
            return true;
        }
        let is_old = shard.old.has(hash);
        drop(shard);
        if is_old && self.add(hash, self.network(client), now) {
            self.tell(hash, client);
        }
        is_old
    }

    /// Takes over a cookie that another node has noted. False if it was known.
    pub fn learn(&self, (hash, network): Fresh, now: u64) -> bool {
        let is_new = hash != 0 && !self.shard(hash, now).has(hash);
        if is_new {
            self.add(hash, network, now);
        }
        is_new
    }

    /// The cookies that were noted since the last time, for other nodes.
    pub fn take_fresh(&self) -> Vec<Fresh> {
        std::mem::take(&mut *self.fresh.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts back cookies that could not be sent to other nodes.
    pub fn put_back(&self, fresh: &[Fresh]) {
        fresh.iter().for_each(|one| self.queue(*one));
    }

    /// Offers all cookies of the young generation to other nodes, as many as can wait.
    pub fn offer_all(&self) {
        for shard in &self.shards {
            let shard = lock(shard);
            // Which network each was for is not known any more; nobody's part is what they fill there.
            shard.young.iter().for_each(|hash| self.queue((hash, 0)));
        }
    }

    fn tell(&self, hash: u64, client: IpAddr) {
        if self.pool.is_shared() {
            self.queue((hash, self.network(client)));
        }
    }

    fn queue(&self, one: Fresh) {
        let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        match fresh.len() < FRESH_MAX {
            true => fresh.push(one),
            false => {
                self.unshared.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Adds a hash that is not young; false if there is no room for it.
    fn add(&self, hash: u64, network: u8, now: u64) -> bool {
        for _ in 0..RECLAIMS_MAX {
            let mut shard = self.shard(hash, now);
            if shard.young.has(hash) {
                return true;
            }
            if usize::from(shard.networks[usize::from(network)]) >= self.network_max() {
                break;
            }
            let added = self.change(&mut shard, |shard| self.add_to(shard, hash, network, now));
            drop(shard);
            match added {
                Added::Done => return true,
                Added::NoRoom(bytes) => self.pool.reclaim(bytes),
            }
        }
        self.declined.fetch_add(1, Ordering::Relaxed);
        false
    }

    fn add_to(&self, shard: &mut Shard, hash: u64, network: u8, now: u64) -> Added {
        if shard.young.is_full(self.slots_max) {
            self.rotate(shard, now);
        }
        if !self.grow(shard, now) {
            return Added::NoRoom(shard.young.growth());
        }
        if shard.young.len() == 0 {
            shard.since = now;
        }
        let count = &mut shard.networks[usize::from(network)];
        *count = count.saturating_add(1);
        shard.young.add(hash);
        Added::Done
    }

    /// Takes the memory for one more hash. A site that has its share makes room by dropping its own cookies.
    fn grow(&self, shard: &mut Shard, now: u64) -> bool {
        let bytes = shard.young.growth();
        if self.take(bytes) {
            return true;
        }
        if self.bytes() + bytes <= self.pool.share() {
            return false;
        }
        self.rotate(shard, now);
        if self.take(shard.young.growth()) {
            return true;
        }
        self.drop_old(shard);
        self.take(shard.young.growth())
    }

    fn take(&self, bytes: usize) -> bool {
        let is_taken = bytes == 0 || self.pool.take(bytes);
        if is_taken {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        is_taken
    }

    fn rotate(&self, shard: &mut Shard, now: u64) {
        self.drop_old(shard);
        shard.rotate(now);
        self.rotations.fetch_add(1, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    fn drop_old(&self, shard: &mut Shard) {
        let old = std::mem::take(&mut shard.old);
        self.bytes.fetch_sub(old.bytes(), Ordering::Relaxed);
        self.pool.give_back(old.bytes());
    }

    /// Frees so many bytes for others, of the old generation before the young one.
    pub(super) fn give_way(&self, bytes: usize) {
        let mut freed = 0;
        for is_young in [false, true] {
            for shard in &self.shards {
                if freed >= bytes {
                    return;
                }
                let mut shard = lock(shard);
                let before = shard.bytes();
                self.change(&mut shard, |shard| {
                    if is_young && shard.young.len() > 0 {
                        self.rotate(shard, shard.since);
                    } else if shard.old.len() > 0 {
                        self.rotations.fetch_add(1, Ordering::Relaxed);
                    }
                    self.drop_old(shard);
                });
                freed += before - shard.bytes();
            }
        }
    }

    /// Forgets all.
    pub(super) fn forget(&self) {
        self.give_way(usize::MAX);
        self.take_fresh();
    }

    /// Bytes that the hashes take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Cookies of one network in a shard's generation: a part of what the site has in any case.
    fn network_max(&self) -> usize {
        let slots = power_within(self.pool.share() / size_of::<u64>() / 2 / SHARDS);
        capacity(slots.min(self.slots_max)) / ISSUED_COOKIE_SHARES
    }

    /// The shard of `hash`, without generations that are over.
    fn shard(&self, hash: u64, now: u64) -> MutexGuard<'_, Shard> {
        let mut shard = lock(&self.shards[(hash >> 60) as usize]);
        if now < shard.since {
            // The clock was set back. By the old time the generation would last until that time is reached
            // again.
            shard.since = now;
        }
        let age = now - shard.since;
        if age >= ISSUED_COOKIE_MILLIS && shard.len() > 0 {
            self.change(&mut shard, |shard| {
                self.rotate(shard, now);
                if age >= 2 * ISSUED_COOKIE_MILLIS {
                    self.rotate(shard, now);
                }
            });
        }
        shard
    }

    /// Changes a shard, and counts what is in it then.
    fn change<T>(&self, shard: &mut Shard, by: impl FnOnce(&mut Shard) -> T) -> T {
        let before = shard.len() as u64;
        let result = by(shard);
        // Wraps where it sinks, and so does what it is added to.
        let more = (shard.len() as u64).wrapping_sub(before);
        if more != 0 {
            self.held.fetch_add(more, Ordering::Relaxed);
            self.version.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    fn hash(&self, name: &[u8], value: &[u8]) -> u64 {
        self.pool.key().hash(&[self.site.as_bytes(), name, value]).max(1)
    }

    fn network(&self, client: IpAddr) -> u8 {
        (self.pool.key().hash(&[&network(client)]) % NETWORKS as u64) as u8
    }
}

impl Drop for IssuedCookies {
    fn drop(&mut self) {
        self.pool.give_back(self.bytes());
        self.pool.leave();
    }
}

/// Nothing here leaves a shard half changed, so a poisoned lock holds good data.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The largest power of two within `slots`, but no less than a table has.
fn power_within(slots: usize) -> usize {
    (slots / 2 + 1).next_power_of_two().max(SLOTS_MIN)
}

/// The cookies that a site has issued, at the time of a request and for its client.
#[derive(Debug)]
pub(crate) struct IssuedTo {
    pub(crate) cookies: Arc<IssuedCookies>,
    pub(crate) client: IpAddr,
    pub(crate) now: u64,
}

impl Issuer for IssuedTo {
    fn has_issued(&self, name: &[u8], value: &[u8]) -> bool {
        self.cookies.has(name, value, self.client, self.now)
    }
}

/// Name and value of a `Set-Cookie` field, as a browser sends them back (RFC 6265, 5.2); none where there is
/// nothing to come back.
fn set_cookie(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let pair = field.split(|&b| b == b';').next()?;
    let equals = pair.iter().position(|&b| b == b'=')?;
    let (name, value) = (trimmed(&pair[..equals]), trimmed(&pair[equals + 1..]));
    (!name.is_empty() && !value.is_empty() && value.len() <= SET_COOKIE_BYTES_MAX).then_some((name, value))
}

fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// The network of a client: a /24 of IPv4, a /48 of IPv6.
fn network(client: IpAddr) -> [u8; 7] {
    match client.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            [4, a, b, c, 0, 0, 0]
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, e, f, ..] = address.octets();
            [a, b, c, d, e, f, 6]
        }
    }
}

#[cfg(test)]
mod tests;
