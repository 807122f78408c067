//! One part of the map: its records, which of them to drop when room is needed, which of them changed.

use hashbrown::HashTable;
use portcullis_engine::{RecordId, Value, VariableChange};

use crate::link::{Fields, Outgoing};
use crate::packed::Variables;
use crate::record::{self, Live};
use crate::shared::{Shared, Waiting, spelled, text};

/// The memory of a record beside its bytes.
const OVERHEAD_BYTES: usize = 96;

/// Bounds of one shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) records_max: usize,
    pub(crate) bytes_max: usize,
    pub(crate) record_bytes_max: usize,
}

/// The side effects of storing a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// Records dropped before their time.
    pub(crate) evicted: u32,
    /// Variables that did not fit into the record.
    pub(crate) dropped: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Shard {
    table: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The position at which the search for the next victim begins.
    hand: usize,
    bytes: usize,
    /// Slots that changed since they were last taken for the disk; each at most once.
    changed: Vec<u32>,
    /// Slots with changes that other nodes do not know; each at most once.
    unsent: Vec<u32>,
    scratch: Vec<u8>,
}

#[derive(Debug, Default)]
struct Slot {
    live: bool,
    hash: u64,
    /// Length of the name, name, key.
    id: Box<[u8]>,
    packed: Vec<u8>,
    expires_at: i64,
    /// Read or stored again since the hand last passed.
    used: bool,
    /// Listed in [`Shard::changed`].
    listed: bool,
    /// Listed in [`Shard::unsent`].
    unsent: bool,
    /// The changes that other nodes do not know.
    shared: Option<Box<Shared>>,
}

impl Slot {
    fn id(&self) -> RecordId<'_> {
        split(&self.id)
    }

    fn bytes(&self) -> usize {
        self.id.len() + self.packed.capacity() + OVERHEAD_BYTES
    }
}

/// Name and key in one piece. A longer name than a directive can hold does not occur; it would be cut.
pub(crate) fn joined(id: RecordId<'_>) -> Box<[u8]> {
    let name = &id.name[..id.name.len().min(usize::from(u16::MAX))];
    [(name.len() as u16).to_be_bytes().as_slice(), name, id.key].concat().into()
}

/// Undoes [`joined`].
pub(crate) fn split(id: &[u8]) -> RecordId<'_> {
    let length = usize::from(u16::from_be_bytes([id[0], id[1]]));
    RecordId { name: &id[2..2 + length], key: &id[2 + length..] }
}

impl Shard {
    fn find(&self, hash: u64, id: RecordId<'_>) -> Option<usize> {
        self.table.find(hash, |&at| self.slots[at as usize].id() == id).map(|&at| at as usize)
    }

    /// Shows a record; false if there is none, or no more.
    pub(crate) fn load(
        &mut self,
        hash: u64,
        id: RecordId<'_>,
        now: i64,
        each: &mut dyn FnMut(&[u8], Value<'_>),
    ) -> bool {
        let Some(at) = self.find(hash, id) else { return false };
        let slot = &self.slots[at];
        match Live::new(id, &slot.packed, now) {
            Some(live) => record::load(&live, now, each),
            None => {
                self.remove(at);
                return false;
            }
        }
        self.slots[at].used = true;
        true
    }

    /// Applies `updates` to a record.
    pub(crate) fn save(
        &mut self,
        hash: u64,
        id: RecordId<'_>,
        (timeout, now): (i64, i64),
        updates: &[VariableChange<'_>],
        bounds: &Bounds,
        (track, share): (bool, bool),
    ) -> Effects {
        let mut effects = Effects::default();
        let known = self.find(hash, id);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let old = known.and_then(|at| Live::new(id, &self.slots[at].packed, now));
        let saved =
            record::save(old.as_ref(), id, timeout, now, updates, bounds.record_bytes_max, &mut scratch);
        effects.dropped = saved.dropped;
        let last_update = old.as_ref().and_then(|old| old.get(b"LAST_UPDATE_TIME")).map(Value::to_int);
        let renewed = old.is_none();
        let at = match known {
            Some(at) => {
                self.slots[at].used = true;
                at
            }
            None => {
                effects.evicted +=
                    self.make_room(1, OVERHEAD_BYTES + id.key.len() + scratch.len(), now, bounds);
                self.insert(hash, joined(id))
            }
        };
        self.replace(at, &scratch, saved.expires_at, track);
        self.scratch = scratch;
        if share {
            let shared = self.slots[at].shared.get_or_insert_default();
            if renewed {
                // The waiting changes belonged to a record that has expired.
                **shared = Shared::default();
            }
            if !shared.note(updates, last_update) {
                effects.dropped += 1;
            }
            self.list_unsent(at);
        }
        if self.bytes > bounds.bytes_max {
            effects.evicted += self.make_room(0, 0, now, bounds);
        }
        effects
    }

    /// Takes over a record as it was stored elsewhere. One that is here already stays, unless `replace`.
    pub(crate) fn restore(
        &mut self,
        hash: u64,
        id: RecordId<'_>,
        packed: &[u8],
        expires_at: i64,
        (now, replace, track): (i64, bool, bool),
        bounds: &Bounds,
    ) -> Effects {
        let mut effects = Effects::default();
        let at = match self.find(hash, id) {
            Some(_) if !replace => return effects,
            Some(at) => at,
            None => {
                effects.evicted =
                    self.make_room(1, OVERHEAD_BYTES + id.key.len() + packed.len(), now, bounds);
                self.insert(hash, joined(id))
            }
        };
        self.replace(at, packed, expires_at, track);
        effects
    }

    fn insert(&mut self, hash: u64, id: Box<[u8]>) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[at as usize];
        (slot.live, slot.hash, slot.id, slot.used) = (true, hash, id, false);
        self.bytes += slot.bytes();
        let slots = &self.slots;
        self.table.insert_unique(hash, at, |&at| slots[at as usize].hash);
        at as usize
    }

    fn replace(&mut self, at: usize, packed: &[u8], expires_at: i64, track: bool) {
        let slot = &mut self.slots[at];
        let before = slot.bytes();
        slot.packed.clear();
        if slot.packed.capacity() < packed.len() || slot.packed.capacity() > 4 * packed.len() + 64 {
            // A little room, so that a counter may grow by a digit.
            slot.packed = Vec::with_capacity(packed.len() + 8);
        }
        slot.packed.extend_from_slice(packed);
        slot.expires_at = expires_at;
        self.bytes = self.bytes + slot.bytes() - before;
        if track && !std::mem::replace(&mut slot.listed, true) {
            self.changed.push(at as u32);
        }
    }

    fn remove(&mut self, at: usize) {
        let hash = self.slots[at].hash;
        if let Ok(entry) = self.table.find_entry(hash, |&known| known as usize == at) {
            entry.remove();
        }
        let slot = &mut self.slots[at];
        self.bytes -= slot.bytes();
        slot.live = false;
        slot.id = Box::default();
        slot.packed = Vec::new();
        slot.shared = None;
        self.free.push(at as u32);
    }

    /// Drops records until `records` more with `bytes` fit: the expired ones first met, and those that were
    /// not used since the hand last came by. The count is of those that had not expired.
    fn make_room(&mut self, records: usize, bytes: usize, now: i64, bounds: &Bounds) -> u32 {
        let mut evicted = 0;
        let over = |shard: &Shard| {
            shard.table.len() + records > bounds.records_max || shard.bytes + bytes > bounds.bytes_max
        };
        // Twice round at most: the first time may only take away marks.
        let mut steps = 2 * self.slots.len();
        while over(self) && !self.table.is_empty() && steps > 0 {
            steps -= 1;
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            let slot = &mut self.slots[self.hand];
            if !slot.live {
                continue;
            }
            let expired = slot.expires_at <= now;
            if expired || !std::mem::take(&mut slot.used) {
                self.remove(self.hand);
                evicted += u32::from(!expired);
            }
        }
        evicted
    }

    /// Drops what has expired.
    pub(crate) fn sweep(&mut self, now: i64) {
        for at in 0..self.slots.len() {
            if self.slots[at].live && self.slots[at].expires_at <= now {
                self.remove(at);
            }
        }
    }

    /// Records and bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.table.len(), self.bytes)
    }

    /// Shows the records that changed since the last time.
    pub(crate) fn take_changed(&mut self, each: &mut dyn FnMut(RecordId<'_>, &[u8])) {
        let mut changed = std::mem::take(&mut self.changed);
        for at in changed.drain(..) {
            let slot = &mut self.slots[at as usize];
            slot.listed = false;
            if slot.live {
                each(slot.id(), &slot.packed);
            }
        }
        self.changed = changed;
    }

    /// Shows the records of `count` slots from `from` on. Returns where to continue, if there is more.
    pub(crate) fn each_from(
        &self,
        from: usize,
        count: usize,
        each: &mut dyn FnMut(RecordId<'_>, &[u8]),
    ) -> Option<usize> {
        for slot in self.slots.iter().skip(from).take(count).filter(|slot| slot.live) {
            each(slot.id(), &slot.packed);
        }
        let next = from + count;
        (next < self.slots.len()).then_some(next)
    }

    fn list_unsent(&mut self, at: usize) {
        if !std::mem::replace(&mut self.slots[at].unsent, true) {
            self.unsent.push(at as u32);
        }
    }

    /// Records with changes that wait to be sent.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// Takes the changes of records until `out` has `max` of them.
    pub(crate) fn take_unsent(&mut self, max: usize, out: &mut Vec<Outgoing>) {
        let mut list = std::mem::take(&mut self.unsent);
        list.retain(|&at| {
            let slot = &mut self.slots[at as usize];
            let Some(shared) = slot.shared.as_mut().filter(|_| slot.live) else {
                slot.unsent = false;
                return false;
            };
            if out.len() >= max || !shared.is_ready() {
                return true;
            }
            slot.unsent = false;
            let id = split(&slot.id);
            let variables = || Variables::new(id, &slot.packed);
            let lower = |name: &[u8]| Box::from(name.to_ascii_lowercase());
            let base = shared.base(variables().map(|(name, value)| (lower(name), text(value))));
            let mut changes = shared.send().clone();
            if !changes.is_empty() {
                // These go with every change.
                for name in [b"LAST_UPDATE_TIME".as_slice(), b"__expire_KEY"] {
                    if let Some((_, value)) = variables().find(|(known, _)| *known == name) {
                        changes.push((lower(name), Waiting::Set(text(value))));
                    }
                }
            }
            out.push(Outgoing { id: slot.id.clone(), base, changes });
            false
        });
        self.unsent = list;
    }

    /// Everything that was sent has come back, or is lost.
    pub(crate) fn forget_sent(&mut self) {
        for shared in self.slots.iter_mut().filter_map(|slot| slot.shared.as_mut()) {
            shared.sent.clear();
        }
    }

    /// Lists every record to be sent, changed or not.
    pub(crate) fn offer_all(&mut self) {
        for at in 0..self.slots.len() {
            if self.slots[at].live {
                self.slots[at].shared.get_or_insert_default().offered = true;
                self.list_unsent(at);
            }
        }
    }

    /// Takes over variables of a record as Redis has them, with our own changes on top that are not in them.
    /// `own`: they are what came of our last changes. False if the record is not here, unless `create`.
    pub(crate) fn adopt(
        &mut self,
        hash: u64,
        id: RecordId<'_>,
        fields: &Fields,
        (own, create): (bool, bool),
        (now, track): (i64, bool),
        bounds: &Bounds,
    ) -> (bool, Effects) {
        let known = self.find(hash, id).filter(|&at| Live::new(id, &self.slots[at].packed, now).is_some());
        if known.is_none() && !create {
            return (false, Effects::default());
        }
        let nothing = Shared::default();
        let slot = known.map(|at| &mut self.slots[at]);
        let (packed, shared) = match slot {
            Some(slot) => {
                if let (true, Some(shared)) = (own, &mut slot.shared) {
                    shared.sent.clear();
                }
                (slot.packed.as_slice(), slot.shared.as_deref().unwrap_or(&nothing))
            }
            None => (b"".as_slice(), &nothing),
        };
        let mut values = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            // Ours are later than theirs.
            let ours = matches!(name.as_slice(), b"last_update_time" | b"__expire_key");
            if !(ours && known.is_some() && !shared.waiting.is_empty()) {
                values.push((spelled(name), shared.over(name, value.clone())));
            }
        }
        let values: Vec<(&[u8], Option<Value<'_>>)> =
            values.iter().map(|(name, value)| (*name, value.as_deref().map(Value::of))).collect();
        let live = Live::new(id, packed, now);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let expires_at = record::overlay(live.as_ref(), id, &values, bounds.record_bytes_max, &mut scratch);
        let mut effects = Effects::default();
        match known {
            Some(at) => self.replace(at, &scratch, expires_at, track),
            None if expires_at > now => {
                effects = self.restore(hash, id, &scratch, expires_at, (now, true, track), bounds);
            }
            None => {}
        }
        self.scratch = scratch;
        (true, effects)
    }
}
