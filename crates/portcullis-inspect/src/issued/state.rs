//! State of a site on disk: the hashes of its cookies, by part and generation, with times.
//!
//! ```text
//! magic | check of the key | 16 times (begin, networks, young, old) | keyed hash of all before
//! ```
//!
//! Numbers are little endian; lists have their length before them. A text that is not whole, or was made
//! with another key, is refused as a whole.

use std::fmt;

use super::table::NETWORKS;
use super::{IssuedCookies, SHARDS, Shard, lock};

const MAGIC: &[u8; 8] = b"pccook01";
const CHECK_BYTES: usize = size_of::<u64>();

/// The reason why a text is not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuedStateError {
    /// It is not whole, or not our format.
    Damaged,
    /// It was made with another key.
    OtherKey,
}

impl fmt::Display for IssuedStateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IssuedStateError::Damaged => "the file is damaged",
            IssuedStateError::OtherKey => "the file was written with another key",
        })
    }
}

impl std::error::Error for IssuedStateError {}

/// A shard that was read.
struct Kept {
    since: u64,
    networks: Vec<(u8, u16)>,
    young: Vec<u64>,
    old: Vec<u64>,
}

impl IssuedCookies {
    /// What is known, as bytes.
    pub fn state(&self) -> Vec<u8> {
        let mut out = [&MAGIC[..], &self.key_check().to_le_bytes()].concat();
        for shard in &self.shards {
            lock(shard).write_to(&mut out);
        }
        let check = self.check(&out);
        out.extend_from_slice(&check.to_le_bytes());
        out
    }

    /// Adds what was known then, as far as there is room; `now` is in milliseconds since 1970.
    pub fn take_over(&self, state: &[u8], now: u64) -> Result<(), IssuedStateError> {
        for (at, kept) in self.read(state)?.into_iter().enumerate() {
            let Kept { since, networks, young, old } = kept;
            if young.is_empty() && old.is_empty() {
                // Its time is none.
                continue;
            }
            let mut shard = lock(&self.shards[at]);
            self.change(&mut shard, |shard| {
                // A time that is to come is one of a clock that was wrong.
                let since = since.min(now);
                shard.since = if shard.len() == 0 { since } else { shard.since.min(since) };
                for hash in young {
                    self.restore(shard, hash, true);
                }
                for hash in old {
                    self.restore(shard, hash, false);
                }
                for (network, count) in networks {
                    let known = &mut shard.networks[usize::from(network)];
                    *known = (*known).max(count);
                }
            });
        }
        Ok(())
    }

    /// Adds a hash where there is memory, at the cost of no other.
    fn restore(&self, shard: &mut Shard, hash: u64, is_young: bool) {
        if hash == 0 || shard.has(hash) {
            return;
        }
        let slots_max = self.slots_max;
        let table = if is_young { &mut shard.young } else { &mut shard.old };
        if !table.is_full(slots_max) && self.take(table.growth()) {
            table.add(hash);
        }
    }

    fn read(&self, state: &[u8]) -> Result<Vec<Kept>, IssuedStateError> {
        let damaged = IssuedStateError::Damaged;
        let (text, check) =
            state.len().checked_sub(CHECK_BYTES).map(|end| state.split_at(end)).ok_or(damaged)?;
        let mut bytes = Bytes(text);
        if bytes.take::<8>().ok_or(damaged)? != *MAGIC {
            return Err(damaged);
        }
        if bytes.number().ok_or(damaged)? != self.key_check() {
            return Err(IssuedStateError::OtherKey);
        }
        if check != self.check(text).to_le_bytes() {
            return Err(damaged);
        }
        let shards = (0..SHARDS).map(|_| Kept::read(&mut bytes)).collect::<Option<_>>().ok_or(damaged)?;
        if bytes.0.is_empty() { Ok(shards) } else { Err(damaged) }
    }

    fn key_check(&self) -> u64 {
        self.pool.key().hash(&[MAGIC.as_slice()])
    }

    /// That of another site's cookies is another one.
    fn check(&self, text: &[u8]) -> u64 {
        self.pool.key().hash(&[MAGIC.as_slice(), self.site.as_bytes(), text])
    }
}

impl Shard {
    fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.since.to_le_bytes());
        let networks = (0..=u8::MAX).zip(self.networks.iter().copied()).filter(|(_, count)| *count > 0);
        let networks: Vec<_> = networks.collect();
        out.extend_from_slice(&(networks.len() as u64).to_le_bytes());
        for (network, count) in networks {
            out.push(network);
            out.extend_from_slice(&count.to_le_bytes());
        }
        for table in [&self.young, &self.old] {
            out.extend_from_slice(&(table.len() as u64).to_le_bytes());
            table.iter().for_each(|hash| out.extend_from_slice(&hash.to_le_bytes()));
        }
    }
}

impl Kept {
    fn read(bytes: &mut Bytes<'_>) -> Option<Kept> {
        let since = bytes.number()?;
        let count = bytes.number().filter(|count| *count <= NETWORKS as u64)?;
        let one = |bytes: &mut Bytes<'_>| {
            let [network, low, high] = bytes.take()?;
            Some((network, u16::from_le_bytes([low, high])))
        };
        let networks = (0..count).map(|_| one(bytes)).collect::<Option<_>>()?;
        Some(Kept { since, networks, young: bytes.hashes()?, old: bytes.hashes()? })
    }
}

/// Bytes that are left.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn hashes(&mut self) -> Option<Vec<u64>> {
        let count = usize::try_from(self.number()?).ok()?;
        let (taken, rest) = self.0.split_at_checked(count.checked_mul(size_of::<u64>())?)?;
        self.0 = rest;
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
        taken.chunks_exact(size_of::<u64>()).map(number).collect()
    }
}
