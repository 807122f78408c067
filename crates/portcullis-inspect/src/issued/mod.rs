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
/// Cookies of a site that wait for other nodes to be told.
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

/// How the cookies of a site are kept.
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

/// What became of a cookie.
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

    /// Lets cookies wait for other nodes again, of which these could not be told.
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

    /// Takes the memory for one more hash. A site that has its share gives way to itself.
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
            // The clock was set back. By the old time the generation would last until that comes again.
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
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_700_000_000_000;
    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    /// The cookies of one site, which has so many bytes.
    fn within(bytes: usize) -> Arc<IssuedCookies> {
        IssuedSites::new(IssuedKey([7; 32]), bytes).site("a")
    }

    fn cookies() -> Arc<IssuedCookies> {
        within(ISSUED_COOKIE_BYTES_MAX)
    }

    fn knows(cookies: &IssuedCookies, number: u32) -> bool {
        cookies.has(b"id", &number.to_be_bytes(), CLIENT, NOW)
    }

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
            let cookies = cookies();
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
        let cookies = within(bytes);
        for number in 0..1_000_000u32 {
            cookies.note(b"id", &number.to_be_bytes(), client(number % 5_000), NOW);
        }
        let tables = cookies.shards.iter().map(|shard| {
            let shard = shard.lock().unwrap();
            shard.bytes()
        });
        let taken = tables.sum::<usize>();
        assert!(taken <= bytes && taken == cookies.bytes());
        let IssuedStatistics { held, rotations, .. } = cookies.statistics();
        assert!(rotations > 16 && held > bytes as u64 / 8 / 4 && held < bytes as u64 / 8, "{held}");
        let known = (999_000..1_000_000u32).filter(|n| cookies.has(b"id", &n.to_be_bytes(), CLIENT, NOW));
        assert_eq!(known.count(), 1_000);
        assert!(!cookies.has(b"id", &7u32.to_be_bytes(), CLIENT, NOW));
    }

    /// One network fills its part and pushes out nobody else's.
    #[test]
    fn one_network_cannot_fill_it() {
        let cookies = within(1 << 18);
        cookies.note(b"session", b"theirs", client(1), NOW);
        for number in 0..100_000u32 {
            cookies.note(b"id", &number.to_be_bytes(), client(2), NOW);
        }
        assert!(cookies.has(b"session", b"theirs", client(1), NOW));
        let IssuedStatistics { held, declined, rotations, .. } = cookies.statistics();
        assert_eq!((held + declined, rotations), (100_001, 0));
        assert!(held as usize <= 1 + SHARDS * capacity(cookies.slots_max) / ISSUED_COOKIE_SHARES, "{held}");
    }

    #[test]
    fn a_cookie_is_forgotten_unless_it_comes_back() {
        let cookies = cookies();
        for name in [b"seen", b"left"] {
            cookies.note(name, b"1", CLIENT, NOW);
        }
        let week = ISSUED_COOKIE_MILLIS;
        assert!(cookies.has(b"seen", b"1", CLIENT, NOW + week + week / 2));
        assert!(cookies.has(b"seen", b"1", CLIENT, NOW + 3 * week - 1));
        assert!(!cookies.has(b"left", b"1", CLIENT, NOW + 2 * week));
        // A clock that is set back forgets nothing, and generations end by the new time.
        assert!(cookies.has(b"seen", b"1", CLIENT, NOW - 9 * week));
        assert!(cookies.has(b"seen", b"1", CLIENT, NOW - 8 * week));
        assert!(!cookies.has(b"seen", b"1", CLIENT, NOW - 5 * week));
    }

    /// The same cookie of two sites, or with two keys, has two hashes.
    #[test]
    fn hashes_are_those_of_a_site_and_a_key() {
        let sites = [1, 2].map(|key| IssuedSites::new(IssuedKey([key; 32]), 1 << 20));
        let cookies: Vec<_> =
            sites.iter().flat_map(|sites| ["a", "b"].map(|name| sites.site(name))).collect();
        let hashes: HashSet<u64> = cookies.iter().map(|cookies| cookies.hash(b"a", b"b")).collect();
        assert_eq!(hashes.len(), 4);
        assert_ne!(IssuedSites::default().key(), IssuedSites::default().key());
        cookies[0].note(b"a", b"b", CLIENT, NOW);
        assert!(cookies[0].has(b"a", b"b", CLIENT, NOW) && !cookies[1].has(b"a", b"b", CLIENT, NOW));
    }

    /// Whatever one site is told to remember, all together take no more than their bytes, and another site
    /// has the room of its share.
    #[test]
    fn a_site_cannot_starve_others() {
        let bytes = 1 << 20;
        let sites = IssuedSites::new(IssuedKey([7; 32]), bytes);
        let [greedy, quiet, late] = ["greedy", "quiet", "late"].map(|name| sites.site(name));
        (0..1_000).for_each(|number| quiet.note(b"id", &u32::to_be_bytes(number), client(number), NOW));
        for number in 0..200_000u32 {
            greedy.note(b"id", &number.to_be_bytes(), client(number % 5_000), NOW);
        }
        assert!(sites.bytes() <= bytes && greedy.bytes() > bytes / 2, "{}", greedy.bytes());
        assert!((0..1_000).all(|number| knows(&quiet, number)));
        // What is left of the share is there, although the memory is full.
        let own = 8_000;
        for number in 0..own {
            late.note(b"id", &u32::to_be_bytes(number), client(number), NOW);
            greedy.note(b"id", &(200_000 + number).to_be_bytes(), client(number), NOW);
            assert!(sites.bytes() <= bytes);
        }
        assert_eq!((0..own).filter(|number| knows(&late, *number)).count(), own as usize);
        assert!((0..1_000).all(|number| knows(&quiet, number)));
        let counts = [&greedy, &quiet, &late].map(|site| site.statistics());
        assert!(counts[0].rotations > 0 && counts[1].rotations == 0 && counts[2].rotations == 0);
        assert_eq!(counts.iter().map(|site| site.bytes).sum::<usize>(), sites.bytes());
        drop((greedy, quiet));
        assert_eq!(sites.bytes(), late.bytes());
    }

    /// Many sites at once, from several threads: never more bytes than there are.
    #[test]
    fn the_bytes_hold_whoever_takes_them() {
        let bytes = 1 << 18;
        let sites = IssuedSites::new(IssuedKey([7; 32]), bytes);
        let all: Vec<_> = (0..40).map(|number| sites.site(&number.to_string())).collect();
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let (all, sites) = (&all, &sites);
                scope.spawn(move || {
                    for number in 0..40_000u32 {
                        let site = &all[(number * 7 + thread) as usize % all.len()];
                        site.note(b"id", &(number << 2 | thread).to_be_bytes(), client(number), NOW);
                        assert!(sites.bytes() <= bytes);
                    }
                });
            }
        });
        assert!(all.iter().all(|site| site.statistics().held > 0));
        assert_eq!(all.iter().map(|site| site.bytes()).sum::<usize>(), sites.bytes());
    }

    #[test]
    fn what_is_kept_is_known_again() {
        let cookies = within(1 << 18);
        let week = ISSUED_COOKIE_MILLIS;
        for number in 0..3_000u32 {
            cookies.note(b"old", &number.to_be_bytes(), client(number), NOW - week);
        }
        for number in 0..3_000u32 {
            cookies.note(b"id", &number.to_be_bytes(), client(2), NOW);
        }
        let state = cookies.state();
        let again = within(1 << 18);
        again.take_over(&state, NOW).unwrap();
        assert_eq!(again.statistics().held, cookies.statistics().held);
        // Taken over twice, nothing is there twice.
        again.take_over(&state, NOW).unwrap();
        assert_eq!(again.statistics().held, cookies.statistics().held);
        for number in 0..3_000u32 {
            assert_eq!(knows(&again, number), knows(&cookies, number));
            assert!(again.has(b"old", &number.to_be_bytes(), client(number), NOW), "{number}");
        }
        // The part of a network, and the time, are those of before.
        for number in 0..30_000u32 {
            again.note(b"more", &number.to_be_bytes(), client(2), NOW);
        }
        let of_network = SHARDS * capacity(again.slots_max) / ISSUED_COOKIE_SHARES;
        let young = again.shards.iter().map(|shard| lock(shard).young.len()).sum::<usize>();
        assert!(young <= 3_000 + of_network, "{young}");
        assert!(!knows(&again, 3_001) && !again.has(b"id", &1u32.to_be_bytes(), CLIENT, NOW + 2 * week));
    }

    /// What is taken over costs nothing of what is known, whichever parts of the table the two are in.
    #[test]
    fn what_is_kept_adds_up() {
        for number in 0..200u32 {
            let tables = [(); 2].map(|()| within(1 << 18));
            for (table, name) in tables.iter().zip([b"one", b"two"]) {
                table.note(name, &number.to_be_bytes(), CLIENT, NOW);
            }
            tables[0].take_over(&tables[1].state(), NOW).unwrap();
            for name in [b"one", b"two"] {
                assert!(tables[0].has(name, &number.to_be_bytes(), CLIENT, NOW), "{number}");
            }
        }
    }

    /// Less memory than there was, or a clock that was wrong.
    #[test]
    fn what_is_kept_is_known_as_far_as_there_is_room_and_time() {
        let cookies = within(1 << 20);
        for number in 0..20_000u32 {
            cookies.note(b"id", &number.to_be_bytes(), client(number), NOW + 40 * ISSUED_COOKIE_MILLIS);
        }
        let small = within(1 << 15);
        small.take_over(&cookies.state(), NOW).unwrap();
        assert!(small.bytes() <= 1 << 15 && small.statistics().held > 1_000);
        let again = within(1 << 20);
        again.take_over(&cookies.state(), NOW).unwrap();
        assert!(knows(&again, 7));
        assert!(!again.has(b"id", &8u32.to_be_bytes(), CLIENT, NOW + 2 * ISSUED_COOKIE_MILLIS));
    }

    /// Cut at each byte, changed in each byte, of another site or key: nothing of it counts.
    #[test]
    fn a_damaged_state_is_refused_as_a_whole() {
        let cookies = within(1 << 18);
        for number in 0..20u32 {
            cookies.note(b"id", &number.to_be_bytes(), client(number), NOW);
        }
        let state = cookies.state();
        let again = within(1 << 18);
        for end in 0..state.len() {
            assert_eq!(again.take_over(&state[..end], NOW), Err(IssuedStateError::Damaged), "{end}");
        }
        for at in 0..state.len() {
            let mut changed = state.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(again.take_over(&changed, NOW).is_err(), "{at}");
        }
        assert!(again.take_over(&[&state[..], b"x"].concat(), NOW).is_err());
        let sites = IssuedSites::new(IssuedKey([7; 32]), 1 << 18);
        assert_eq!(sites.site("b").take_over(&state, NOW), Err(IssuedStateError::Damaged));
        let sites = IssuedSites::new(IssuedKey([8; 32]), 1 << 18);
        assert_eq!(sites.site("a").take_over(&state, NOW), Err(IssuedStateError::OtherKey));
        assert_eq!((again.statistics().held, again.bytes()), (0, 0));
    }

    /// What one node notes another one knows, and it does not come back.
    #[test]
    fn nodes_tell_each_other() {
        let nodes = [(); 2].map(|()| IssuedSites::new(IssuedKey([7; 32]), 1 << 20));
        let [first, second] = [0, 1].map(|node| nodes[node].site("a"));
        first.note(b"id", b"before", CLIENT, NOW);
        nodes.iter().for_each(|node| node.set_shared(true));
        first.note(b"id", b"after", CLIENT, NOW);
        first.note(b"id", b"after", CLIENT, NOW);
        let fresh = first.take_fresh();
        assert_eq!(fresh.len(), 1);
        assert!(fresh.iter().all(|one| second.learn(*one, NOW) && !second.learn(*one, NOW)));
        assert!(second.has(b"id", b"after", CLIENT, NOW) && !second.has(b"id", b"before", CLIENT, NOW));
        assert!(second.take_fresh().is_empty() && first.take_fresh().is_empty());
        first.offer_all();
        assert_eq!(first.take_fresh().iter().filter(|one| second.learn(**one, NOW)).count(), 1);
        assert!(second.has(b"id", b"before", CLIENT, NOW));
        // A node that nobody listens to keeps no more than can wait.
        for number in 0..40_000u32 {
            first.note(b"id", &number.to_be_bytes(), client(number), NOW);
        }
        let unshared = first.statistics().unshared;
        assert!(
            unshared > 0
                && first.take_fresh().len() as u64 + unshared + first.statistics().declined >= 40_000
        );
        // Another key: nothing is known.
        nodes[0].set_key(IssuedKey([9; 32]));
        assert_eq!((first.statistics().held, nodes[0].bytes()), (0, 0));
    }
}
