//! Clients that are refused for a time because of what they did.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Places that a client may have.
const WAYS: usize = 8;
/// Doublings after which a ban is as long as it can be in any case.
const DOUBLINGS_MAX: u32 = 40;

/// The conditions and durations of bans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BanPolicy {
    score: u64,
    window: u64,
    first: u64,
    longest: u64,
    memory: u64,
}

impl BanPolicy {
    /// A client is banned when its points of the last `window` come to `score`. They are summed up by
    /// windows: those of the one before count for the part of it that is not older than `window`, as if they
    /// had come evenly. The ban takes `first`, and twice as long as the one before if that ended less than
    /// `memory` ago, `longest` at most.
    pub fn new(
        score: u32,
        window: Duration,
        first: Duration,
        longest: Duration,
        memory: Duration,
    ) -> BanPolicy {
        BanPolicy {
            score: score.max(1).into(),
            window: nanoseconds(window).max(1),
            first: nanoseconds(first),
            longest: nanoseconds(longest),
            memory: nanoseconds(memory),
        }
    }

    fn length(&self, count: u32) -> u64 {
        let doubled = self.first.saturating_mul(1 << count.saturating_sub(1).min(DOUBLINGS_MAX));
        doubled.min(self.longest.max(self.first))
    }
}

/// Clients with points and bans, in a table of fixed size.
///
/// An entry without points, ban or remembered ban is free. When all eight places that a client may have are
/// in use, the one that is free first makes room, those of banned clients after all others; which clients
/// compete is secret.
#[derive(Debug)]
pub struct Bans {
    sets: Box<[Mutex<[Entry; WAYS]>]>,
    hasher: RandomState,
    /// No ban ends later. Most requests need to know no more.
    last_end: AtomicU64,
    changes: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    client: IpAddr,
    points: Points,
    /// The end of its ban.
    until: u64,
    /// Bans in a row.
    count: u32,
    /// Until then they count as being in a row.
    remembered: u64,
}

/// Points of a window and of the one before.
#[derive(Clone, Copy, Debug)]
struct Points {
    began: u64,
    /// Until then they count for something.
    until: u64,
    now: u64,
    before: u64,
}

impl Points {
    const NONE: Points = Points { began: 0, until: 0, now: 0, before: 0 };

    /// Adds some: how many there are.
    fn add(&mut self, policy: &BanPolicy, points: u32, now: u64) -> u64 {
        let age = now.saturating_sub(self.began);
        if age / policy.window >= 2 || self.until == 0 {
            *self = Points { began: now, ..Points::NONE };
        } else if age >= policy.window {
            *self = Points { began: self.began + policy.window, before: self.now, now: 0, ..*self };
        }
        self.now = self.now.saturating_add(points.into());
        self.until = self.began.saturating_add(policy.window).saturating_add(policy.window);
        let left = policy.window - (now - self.began).min(policy.window);
        let share = u128::from(self.before) * u128::from(left) / u128::from(policy.window);
        self.now.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

const FREE: Entry = Entry {
    client: IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
    points: Points::NONE,
    until: 0,
    count: 0,
    remembered: 0,
};

/// A client that is banned, or was not long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ban {
    /// The client.
    pub client: IpAddr,
    /// The remaining time; zero if it is over.
    pub left: Duration,
    /// Bans in a row, this one with them.
    pub count: u32,
    /// The time until the next ban counts as the first again.
    pub remembered: Duration,
}

/// The outcome of an offence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offence {
    /// The client is banned from now on, for so long.
    pub banned: Option<Duration>,
    /// The number of the ban in a row.
    pub count: u32,
    /// Another client's points or ban were forgotten.
    pub evicted: bool,
}

impl Bans {
    /// A table for at least `clients`.
    pub fn new(clients: usize) -> Bans {
        let sets = clients.max(WAYS).div_ceil(WAYS).next_power_of_two();
        Bans {
            sets: std::iter::repeat_with(|| Mutex::new([FREE; WAYS])).take(sets).collect(),
            hasher: RandomState::new(),
            last_end: AtomicU64::new(0),
            changes: AtomicU64::new(0),
        }
    }

    /// Returns the remaining time of a client's ban; none if it is not banned. `now` is in nanoseconds of a
    /// clock that does not go back.
    pub fn left(&self, client: IpAddr, now: u64) -> Option<Duration> {
        if self.last_end.load(Relaxed) <= now {
            return None;
        }
        let set = self.set(client);
        let entry = set.iter().find(|entry| entry.client == client)?;
        (entry.until > now).then(|| Duration::from_nanos(entry.until - now))
    }

    /// Adds to the points of a client. Those of one that is banned already change nothing.
    pub fn offend(&self, policy: &BanPolicy, client: IpAddr, points: u32, now: u64) -> Offence {
        let mut offence = Offence::default();
        if points == 0 {
            return offence;
        }
        let mut set = self.set(client);
        let (entry, evicted) = place(&mut set, client, now);
        offence.evicted = evicted;
        if entry.until > now {
            return offence;
        }
        if entry.points.add(policy, points, now) < policy.score {
            return offence;
        }
        let count = if entry.remembered > now { entry.count.saturating_add(1) } else { 1 };
        let length = policy.length(count);
        let until = now.saturating_add(length);
        *entry = Entry {
            client,
            points: Points::NONE,
            until,
            count,
            remembered: until.saturating_add(policy.memory),
        };
        drop(set);
        self.last_end.fetch_max(until, Relaxed);
        self.changes.fetch_add(1, Relaxed);
        Offence { banned: Some(Duration::from_nanos(length)), count, ..offence }
    }

    /// Bans a client whatever it did, for so long at least: a ban that ends later stays. It does not make the
    /// next ban longer. True if another client's points or ban were forgotten.
    pub fn impose(&self, client: IpAddr, length: Duration, now: u64) -> bool {
        let mut set = self.set(client);
        let (entry, evicted) = place(&mut set, client, now);
        let until = now.saturating_add(nanoseconds(length)).max(entry.until);
        let count = if entry.remembered > now { entry.count } else { 0 };
        let remembered = entry.remembered.max(until);
        *entry = Entry { client, points: Points::NONE, until, count: count.max(1), remembered };
        drop(set);
        self.last_end.fetch_max(until, Relaxed);
        self.changes.fetch_add(1, Relaxed);
        evicted
    }

    /// Forgets all about a client. False if it was not banned.
    pub fn lift(&self, client: IpAddr, now: u64) -> bool {
        let mut set = self.set(client);
        let Some(entry) = set.iter_mut().find(|entry| entry.client == client) else { return false };
        let was_banned = entry.until > now;
        *entry = FREE;
        self.changes.fetch_add(1, Relaxed);
        was_banned
    }

    /// Clients that are banned, and those whose bans are not forgotten yet.
    pub fn list(&self, now: u64) -> Vec<Ban> {
        let mut found = Vec::new();
        for set in &self.sets {
            let set = *lock(set);
            found.extend(set.iter().filter(|entry| entry.remembered.max(entry.until) > now).map(|entry| {
                Ban {
                    client: entry.client,
                    left: Duration::from_nanos(entry.until.saturating_sub(now)),
                    count: entry.count,
                    remembered: Duration::from_nanos(entry.remembered.saturating_sub(now)),
                }
            }));
        }
        found
    }

    /// Takes over what [`list`](Bans::list) said, in this process or an earlier one.
    pub fn restore(&self, ban: &Ban, now: u64) {
        let mut set = self.set(ban.client);
        let (entry, _) = place(&mut set, ban.client, now);
        let until = now.saturating_add(nanoseconds(ban.left));
        entry.count = ban.count;
        entry.until = until;
        entry.remembered = now.saturating_add(nanoseconds(ban.remembered)).max(until);
        self.last_end.fetch_max(until, Relaxed);
    }

    /// Rises with each ban that begins or is lifted.
    pub fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// Clients there is room for.
    pub fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    fn set(&self, client: IpAddr) -> MutexGuard<'_, [Entry; WAYS]> {
        let hash = self.hasher.hash_one(client);
        lock(&self.sets[hash as usize & (self.sets.len() - 1)])
    }
}

/// The client's entry, made if there is none, and whether another client lost its entry for it.
fn place(set: &mut [Entry; WAYS], client: IpAddr, now: u64) -> (&mut Entry, bool) {
    let rank = |entry: &Entry| {
        let relevant = entry.points.until.max(entry.until).max(entry.remembered);
        if relevant > now { (1 + u8::from(entry.until > now), relevant) } else { (0, 0) }
    };
    let known = set.iter().position(|entry| entry.client == client && rank(entry).0 > 0);
    if let Some(at) = known {
        return (&mut set[at], false);
    }
    let mut victim = 0;
    for at in 0..WAYS {
        // A stale entry of the same client would be found first.
        if set[at].client == client {
            victim = at;
            break;
        }
        if rank(&set[at]) < rank(&set[victim]) {
            victim = at;
        }
    }
    let evicted = rank(&set[victim]).0 > 0;
    set[victim] = Entry { client, ..FREE };
    (&mut set[victim], evicted)
}

fn lock(set: &Mutex<[Entry; WAYS]>) -> MutexGuard<'_, [Entry; WAYS]> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
