//! Keys and times in a fixed number of atomic words.

use std::hash::{BuildHasher as _, DefaultHasher, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Entries that a key may be in: two cache lines.
const WAYS: usize = 8;
/// No key has this value; an entry that is being changed to another key has it for a moment.
const BUSY: u64 = 1;
const FREE: u64 = 0;

/// A hashed key. Its hash is secret, so that no client can choose keys that push each other out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

/// A key on its way.
#[derive(Clone, Debug)]
pub struct Keying {
    hasher: DefaultHasher,
    /// The bytes hashed so far, if another process needs them.
    bytes: Option<Vec<u8>>,
}

/// A time for each key, in a table of fixed size without locks.
///
/// An entry counts until its time has passed; then it is as if it were not there. If all entries that a key
/// may have are in use, the one whose time passes first makes room. With times that lie further ahead the
/// more a client has done, as those of rate limits do, that is the one whose loss changes least: to have its
/// own entry forgotten a client needs eight others, in a place it does not know, that have each done more.
#[derive(Debug)]
pub struct Table {
    sets: Box<[Set]>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Set {
    keys: [AtomicU64; WAYS],
    times: [AtomicU64; WAYS],
}

/// The result of [`Table::update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The time there is now; 0 if the key has no entry.
    pub time: u64,
    /// Another key lost its entry before its time.
    pub evicted: bool,
}

impl Table {
    /// A table for at least `entries`, 16 bytes each.
    pub fn new(entries: usize) -> Table {
        let sets = entries.max(WAYS).div_ceil(WAYS).next_power_of_two();
        Table { sets: std::iter::repeat_with(Set::default).take(sets).collect(), hasher: RandomState::new() }
    }

    /// Entries it has.
    pub fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// The key of some byte strings.
    pub fn key<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Key {
        parts.into_iter().fold(self.keying(), Keying::part).key()
    }

    /// A key that is put together part by part.
    pub fn keying(&self) -> Keying {
        Keying { hasher: self.hasher.build_hasher(), bytes: None }
    }

    /// The time of a key, if it has not passed.
    pub fn get(&self, key: Key, now: u64) -> Option<u64> {
        let set = self.set(key);
        let at = set.find(key)?;
        let time = set.times[at].load(Acquire);
        // The entry may have become another key's since.
        (time > now && set.keys[at].load(Acquire) == key.0).then_some(time)
    }

    /// Lets `change` say what a key's time is to be, given what it is: 0 without an entry. `None` leaves it
    /// as it is. It may be asked several times, when others change the same entry; the last answer counts.
    pub fn update(&self, key: Key, now: u64, mut change: impl FnMut(u64) -> Option<u64>) -> Updated {
        let set = self.set(key);
        loop {
            if let Some(at) = set.find(key) {
                let before = set.times[at].load(Acquire);
                let Some(after) = change(before) else { return Updated { time: before, evicted: false } };
                let changed = set.times[at].compare_exchange(before, after, AcqRel, Relaxed).is_ok();
                // A change that hit another key, which took the entry in between, is an error of one request.
                // It is done again in the right place, so that it never is to the client's advantage.
                if changed && set.keys[at].load(Acquire) == key.0 {
                    return Updated { time: after, evicted: false };
                }
                continue;
            }
            let Some(after) = change(0) else { return Updated { time: 0, evicted: false } };
            if let Some(evicted) = set.insert(key, after, now) {
                return Updated { time: after, evicted };
            }
        }
    }

    /// The times of all entries, unless they have passed. Changes made meanwhile may be in it or not.
    pub fn times(&self, now: u64) -> impl Iterator<Item = u64> {
        let entries = self.sets.iter().flat_map(|set| set.keys.iter().zip(&set.times));
        let times = entries
            .filter(|(key, _)| !matches!(key.load(Acquire), FREE | BUSY))
            .map(|(_, time)| time.load(Acquire));
        times.filter(move |time| *time > now)
    }

    /// Takes a key's entry away. False if there was none.
    pub fn remove(&self, key: Key) -> bool {
        let set = self.set(key);
        set.find(key).is_some_and(|at| set.keys[at].compare_exchange(key.0, FREE, AcqRel, Relaxed).is_ok())
    }

    fn set(&self, key: Key) -> &Set {
        // The low bits choose the set, and all bits are compared there.
        &self.sets[key.0 as usize & (self.sets.len() - 1)]
    }
}

impl Keying {
    /// Adds a byte string.
    pub fn part(mut self, bytes: &[u8]) -> Keying {
        self.hasher.write_usize(bytes.len());
        self.hasher.write(bytes);
        if let Some(kept) = &mut self.bytes {
            kept.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            kept.extend_from_slice(bytes);
        }
        self
    }

    /// Keeps what goes in from now on.
    pub fn keep(self) -> Keying {
        Keying { bytes: Some(Vec::new()), ..self }
    }

    /// Returns the bytes hashed since, the same in every process for the same parts.
    pub fn bytes(&mut self) -> Vec<u8> {
        self.bytes.take().unwrap_or_default()
    }

    /// The key.
    pub fn key(&self) -> Key {
        Key(match self.hasher.finish() {
            FREE | BUSY => 2,
            hash => hash,
        })
    }
}

impl Set {
    fn find(&self, key: Key) -> Option<usize> {
        self.keys.iter().position(|entry| entry.load(Acquire) == key.0)
    }

    /// Gives the key an entry: whether another lost its own for it, or none if another thread was faster and
    /// all is to be looked at again. All who look at the same set choose the same entry, so that a key does
    /// not get two.
    fn insert(&self, key: Key, time: u64, now: u64) -> Option<bool> {
        let mut victim = (0, BUSY, u64::MAX);
        for (at, (entry, time)) in self.keys.iter().zip(&self.times).enumerate() {
            let (entry, time) = (entry.load(Acquire), time.load(Acquire));
            let rank = if entry == FREE { 0 } else { time };
            if entry != BUSY && rank < victim.2 {
                victim = (at, entry, rank);
            }
        }
        let (at, entry, rank) = victim;
        if entry == BUSY {
            std::hint::spin_loop();
            return None;
        }
        self.keys[at].compare_exchange(entry, BUSY, AcqRel, Relaxed).ok()?;
        self.times[at].store(time, Release);
        self.keys[at].store(key.0, Release);
        Some(entry != FREE && rank > now)
    }
}
