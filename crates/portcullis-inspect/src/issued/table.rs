//! A set of hashes, and a part of the table of a site: two generations of them.

/// Slots of the smallest table.
pub(super) const SLOTS_MIN: usize = 64;
/// Counters of networks in a shard; networks that share one share its part.
pub(super) const NETWORKS: usize = 256;

/// A set of hashes with open addressing; no hash in it is 0.
#[derive(Debug, Default)]
pub(super) struct Table {
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

    pub(super) fn has(&self, hash: u64) -> bool {
        !self.slots.is_empty() && self.slots[self.slot(hash)] == hash
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.slots.as_slice())
    }

    pub(super) fn is_full(&self, slots_max: usize) -> bool {
        self.len >= capacity(slots_max)
    }

    /// Bytes that one more hash takes.
    pub(super) fn growth(&self) -> usize {
        match self.len >= capacity(self.slots.len()) {
            true => self.bytes().max(SLOTS_MIN * size_of::<u64>()),
            false => 0,
        }
    }

    /// Adds a hash that it does not have.
    pub(super) fn add(&mut self, hash: u64) {
        if self.growth() > 0 {
            let wider = vec![0; (self.slots.len() * 2).max(SLOTS_MIN)];
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

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.slots.iter().copied().filter(|hash| *hash != 0)
    }
}

/// Hashes in a table of so many slots.
pub(super) fn capacity(slots: usize) -> usize {
    slots / 4 * 3
}

/// A part of a site's table.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) young: Table,
    pub(super) old: Table,
    /// The begin of the young generation, in milliseconds since 1970.
    pub(super) since: u64,
    /// Cookies of the young generation, by client network.
    pub(super) networks: Box<[u16; NETWORKS]>,
}

impl Default for Shard {
    fn default() -> Shard {
        Shard { young: Table::default(), old: Table::default(), since: 0, networks: Box::new([0; NETWORKS]) }
    }
}

impl Shard {
    pub(super) fn has(&self, hash: u64) -> bool {
        self.young.has(hash) || self.old.has(hash)
    }

    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.young.bytes() + self.old.bytes()
    }

    /// The young generation becomes the old one.
    pub(super) fn rotate(&mut self, now: u64) {
        self.old = std::mem::take(&mut self.young);
        self.since = now;
        self.networks.fill(0);
    }
}
