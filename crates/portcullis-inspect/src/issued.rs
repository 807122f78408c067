//! The cookies that the upstreams of a site have set: two generations of keyed hashes in a bounded table.
//!
//! ```text
//! Set-Cookie > note ──> young ──(full, or old enough)──> old ──(again)──> forgotten
//! Cookie > has ───────> young, old; found in old, it is young again
//! ```
//!
//! A hash is of name and value, with a random key of the process: nobody outside knows which cookies fall
//! together. A cookie that was forgotten is judged as one that nobody has set, until it is set again.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_http::message::ResponseHead;
use portcullis_semantic::Issuer;

/// Bytes of memory for the hashes of a site, both generations together.
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
const TABLE_SLOTS_MIN: usize = 64;
/// Counters of networks in a shard; networks that share one share its part.
const NETWORKS: usize = 256;

/// The cookies that a site has issued. One for all inspections of the site.
#[derive(Debug)]
pub struct IssuedCookies {
    keys: RandomState,
    shards: Box<[Mutex<Shard>]>,
    slots_max: usize,
    declined: AtomicU64,
    rotations: AtomicU64,
    held: AtomicU64,
}

/// How the cookies of a site are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IssuedStatistics {
    /// Cookies that are known.
    pub held: u64,
    /// Cookies that were not noted, as the client's network had filled its part.
    pub declined: u64,
    /// Generations that were forgotten, each of one part of the table.
    pub rotations: u64,
}

#[derive(Debug)]
struct Shard {
    young: Table,
    old: Table,
    /// The begin of the young generation, in milliseconds since 1970.
    since: u64,
    /// Cookies of the young generation, by client network.
    networks: Box<[u32; NETWORKS]>,
}

/// A set of hashes with open addressing; no hash in it is 0.
#[derive(Debug, Default)]
struct Table {
    slots: Vec<u64>,
    len: usize,
}

impl Table {
    /// The slot that has `hash`, or is free for it. Linear probing ends: a quarter is free.
    fn slot(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 && self.slots[at] != hash {
            at = (at + 1) & mask;
        }
        at
    }

    fn has(&self, hash: u64) -> bool {
        !self.slots.is_empty() && self.slots[self.slot(hash)] == hash
    }

    fn is_full(&self, slots_max: usize) -> bool {
        self.len >= capacity(slots_max)
    }

    /// Adds a hash that it does not have, where it is not full.
    fn add(&mut self, hash: u64) {
        if self.len >= capacity(self.slots.len()) {
            let wider = vec![0; (self.slots.len() * 2).max(TABLE_SLOTS_MIN)];
            let known = std::mem::replace(&mut self.slots, wider);
            for hash in known.into_iter().filter(|hash| *hash != 0) {
                let at = self.slot(hash);
                self.slots[at] = hash;
            }
        }
        let at = self.slot(hash);
        self.slots[at] = hash;
        self.len += 1;
    }
}

/// Hashes in a table of so many slots.
fn capacity(slots: usize) -> usize {
    slots / 4 * 3
}

impl Shard {
    /// Ends generations that are over; returns how many.
    fn age(&mut self, now: u64) -> u64 {
        let age = now.saturating_sub(self.since);
        if age < ISSUED_COOKIE_MILLIS || self.young.len + self.old.len == 0 {
            return 0;
        }
        self.rotate(now);
        match age < 2 * ISSUED_COOKIE_MILLIS {
            true => 1,
            false => {
                self.old = Table::default();
                2
            }
        }
    }

    fn rotate(&mut self, now: u64) {
        self.old = std::mem::take(&mut self.young);
        self.since = now;
        self.networks.fill(0);
    }
}

impl Default for IssuedCookies {
    fn default() -> IssuedCookies {
        IssuedCookies::with_bytes(ISSUED_COOKIE_BYTES_MAX)
    }
}

impl IssuedCookies {
    /// None so far; their hashes may take so many bytes. Memory is taken as it is needed.
    pub fn with_bytes(bytes: usize) -> IssuedCookies {
        let slots = bytes / size_of::<u64>() / 2 / SHARDS;
        let shard = || Shard {
            young: Table::default(),
            old: Table::default(),
            since: 0,
            networks: Box::new([0; NETWORKS]),
        };
        IssuedCookies {
            keys: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
            // The largest power of two in it.
            slots_max: (slots / 2 + 1).next_power_of_two().max(TABLE_SLOTS_MIN),
            declined: AtomicU64::new(0),
            rotations: AtomicU64::new(0),
            held: AtomicU64::new(0),
        }
    }

    /// The counts so far.
    pub fn statistics(&self) -> IssuedStatistics {
        IssuedStatistics {
            held: self.held.load(Ordering::Relaxed),
            declined: self.declined.load(Ordering::Relaxed),
            rotations: self.rotations.load(Ordering::Relaxed),
        }
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
        let mut shard = self.shard(hash, now);
        if !shard.young.has(hash) {
            self.add(&mut shard, hash, client, now);
        }
    }

    /// True if this cookie was noted. One of the old generation is noted again.
    pub fn has(&self, name: &[u8], value: &[u8], client: IpAddr, now: u64) -> bool {
        let hash = self.hash(name, value);
        let mut shard = self.shard(hash, now);
        if shard.young.has(hash) {
            return true;
        }
        let is_old = shard.old.has(hash);
        if is_old {
            self.add(&mut shard, hash, client, now);
        }
        is_old
    }

    fn add(&self, shard: &mut Shard, hash: u64, client: IpAddr, now: u64) {
        let before = shard.young.len + shard.old.len;
        if shard.young.is_full(self.slots_max) {
            shard.rotate(now);
            self.rotations.fetch_add(1, Ordering::Relaxed);
        }
        if shard.young.len == 0 {
            shard.since = now;
        }
        let network = self.keys.hash_one(network(client)) as usize % NETWORKS;
        if shard.networks[network] as usize >= capacity(self.slots_max) / ISSUED_COOKIE_SHARES {
            self.declined.fetch_add(1, Ordering::Relaxed);
        } else {
            shard.networks[network] += 1;
            shard.young.add(hash);
        }
        self.count(before, shard);
    }

    /// The shard of `hash`, without generations that are over.
    fn shard(&self, hash: u64, now: u64) -> MutexGuard<'_, Shard> {
        // Nothing here leaves it half changed, so a poisoned lock holds good data.
        let mut shard = self.shards[(hash >> 60) as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let before = shard.young.len + shard.old.len;
        let rotations = shard.age(now);
        if rotations > 0 {
            self.rotations.fetch_add(rotations, Ordering::Relaxed);
            self.count(before, &shard);
        }
        shard
    }

    /// The number of hashes in a shard was `before`.
    fn count(&self, before: usize, shard: &Shard) {
        let now = (shard.young.len + shard.old.len) as u64;
        // Wraps where it sinks, and so does what it is added to.
        self.held.fetch_add(now.wrapping_sub(before as u64), Ordering::Relaxed);
    }

    fn hash(&self, name: &[u8], value: &[u8]) -> u64 {
        self.keys.hash_one((name, value)).max(1)
    }
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
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_700_000_000_000;
    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn client(number: u32) -> IpAddr {
        IpAddr::V4((number << 8).into())
    }

    #[test]
    fn what_a_browser_sends_back_of_a_set_cookie_field() {
        for (field, expected) in [
            ("a=1", Some(("a", "1"))),
            ("session=eyJ.x; Path=/; HttpOnly; Max-Age=9", Some(("session", "eyJ.x"))),
            (" a \t=  b=c ;x", Some(("a", "b=c"))),
            ("a=\"b c\"; Secure", Some(("a", "\"b c\""))),
            ("a=%3Cb%3E", Some(("a", "%3Cb%3E"))),
            ("A=1", Some(("A", "1"))),
            ("a=; Max-Age=0", None),
            ("=b", None),
            ("a", None),
            ("; a=1", None),
            ("", None),
        ] {
            let expected = expected.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            assert_eq!(set_cookie(field.as_bytes()), expected, "{field}");
        }
        assert_eq!(set_cookie(&[b"a=".as_slice(), &[b'x'; SET_COOKIE_BYTES_MAX + 1]].concat()), None);
    }

    proptest! {
        /// It knows what was noted, and nothing else, whatever ends of names and values meet.
        #[test]
        fn it_is_a_set(
            noted in prop::collection::vec(("[a-c]{1,3}", "[a-c=\"%]{1,4}"), 0..400),
            asked in prop::collection::vec(("[a-cA-C]{1,3}", "[a-c=\"%]{1,4}"), 0..400),
        ) {
            let cookies = IssuedCookies::default();
            for (name, value) in &noted {
                cookies.note(name.as_bytes(), value.as_bytes(), CLIENT, NOW);
            }
            let known: HashSet<_> = noted.iter().collect();
            prop_assert_eq!(cookies.statistics().held, known.len() as u64);
            for pair in noted.iter().chain(&asked) {
                let has = cookies.has(pair.0.as_bytes(), pair.1.as_bytes(), CLIENT, NOW);
                prop_assert_eq!(has, known.contains(pair), "{:?}", pair);
            }
        }
    }

    /// A million cookies of many networks: the bytes stay within the limit, the last ones are known.
    #[test]
    fn a_flood_takes_no_more_than_its_bytes() {
        let bytes = 1 << 20;
        let cookies = IssuedCookies::with_bytes(bytes);
        for number in 0..1_000_000u32 {
            cookies.note(b"id", &number.to_be_bytes(), client(number % 5_000), NOW);
        }
        let tables = cookies.shards.iter().map(|shard| {
            let shard = shard.lock().unwrap();
            shard.young.slots.len() + shard.old.slots.len()
        });
        assert!(tables.sum::<usize>() * size_of::<u64>() <= bytes);
        let IssuedStatistics { held, rotations, .. } = cookies.statistics();
        assert!(rotations > 16 && held > bytes as u64 / 8 / 4 && held < bytes as u64 / 8, "{held}");
        let known = (999_000..1_000_000u32).filter(|n| cookies.has(b"id", &n.to_be_bytes(), CLIENT, NOW));
        assert_eq!(known.count(), 1_000);
        assert!(!cookies.has(b"id", &7u32.to_be_bytes(), CLIENT, NOW));
    }

    /// One network fills its part and pushes out nobody else's.
    #[test]
    fn one_network_cannot_fill_it() {
        let cookies = IssuedCookies::with_bytes(1 << 18);
        cookies.note(b"session", b"theirs", client(1), NOW);
        for number in 0..100_000u32 {
            cookies.note(b"id", &number.to_be_bytes(), client(2), NOW);
        }
        assert!(cookies.has(b"session", b"theirs", client(1), NOW));
        let IssuedStatistics { held, declined, rotations } = cookies.statistics();
        assert_eq!((held + declined, rotations), (100_001, 0));
        assert!(held as usize <= 1 + SHARDS * capacity(cookies.slots_max) / ISSUED_COOKIE_SHARES, "{held}");
    }

    #[test]
    fn a_cookie_is_forgotten_unless_it_comes_back() {
        let cookies = IssuedCookies::default();
        for name in [b"seen", b"left"] {
            cookies.note(name, b"1", CLIENT, NOW);
        }
        let week = ISSUED_COOKIE_MILLIS;
        assert!(cookies.has(b"seen", b"1", CLIENT, NOW + week + week / 2));
        assert!(cookies.has(b"seen", b"1", CLIENT, NOW + 3 * week - 1));
        assert!(!cookies.has(b"left", b"1", CLIENT, NOW + 2 * week));
        // A clock that is set back forgets nothing.
        assert!(cookies.has(b"seen", b"1", CLIENT, NOW - week));
        assert!(!cookies.has(b"seen", b"1", CLIENT, NOW + 9 * week));
    }

    /// Hashes are those of one process.
    #[test]
    fn keys_differ() {
        let hashes: HashSet<u64> = (0..8).map(|_| IssuedCookies::default().hash(b"a", b"b")).collect();
        assert!(hashes.len() > 6);
    }
}
