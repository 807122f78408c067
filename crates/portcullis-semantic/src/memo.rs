//! Header fields that come again and again: what a browser says of itself is the same in each of its requests.
//!
//! What is found in a field depends on its bytes, its place and the detectors, and on nothing else. So it is remembered; nothing is
//! taken for known that is not the same in every byte.

use std::sync::{Arc, Mutex, MutexGuard};

use portcullis_types::{Place, may_hold_secret};

use crate::{Detectors, Finding, Value};

/// Fields that are remembered; a power of two.
const FIELDS: usize = 256;
/// Longer ones are not: they are few.
const FIELD_BYTES_MAX: usize = 512;
/// Nor are those in which more is found: they are attacks.
const FINDINGS_MAX: usize = 8;

/// What the analyses of one thread remember together; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Memo(Arc<Mutex<Known>>);

/// Fields, each at the place that its hash gives.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Of the detectors that looked. Held, so that no others can have the same address.
    detectors: Option<Arc<()>>,
    fields: Vec<Field>,
}

#[derive(Clone, Debug, Default)]
struct Field {
    /// Hash of the last one that was not known. It is remembered when it comes again, so that those which come once cost little.
    missed: u32,
    name_len: u32,
    /// Place, name and value.
    text: Box<[u8]>,
    seen: Seen,
}

/// What came of looking at a field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// What it was charged.
    pub work: u64,
    pub findings: Box<[Finding]>,
    /// The values with findings; those are told apart by their number in it.
    pub values: Box<[Value]>,
}

/// What is known of a field.
pub(crate) enum Memory<'k> {
    Known(&'k Seen),
    /// It came before.
    Again,
    New,
}

impl Memo {
    /// What is known by `detectors`; nothing while another thread has it.
    pub(crate) fn of(&self, detectors: &Detectors) -> Option<MutexGuard<'_, Known>> {
        let mut known = self.0.try_lock().ok()?;
        if !known.detectors.as_ref().is_some_and(|id| Arc::ptr_eq(id, detectors.id())) {
            known.detectors = Some(Arc::clone(detectors.id()));
            known.fields.clear();
            known.fields.resize(FIELDS, Field::default());
        }
        Some(known)
    }
}

impl Known {
    pub fn find(&mut self, place: Place, name: &[u8], value: &[u8]) -> Memory<'_> {
        if name.len() + value.len() > FIELD_BYTES_MAX {
            return Memory::New;
        }
        let hash = hash(place, name, value);
        let field = &mut self.fields[hash as usize % FIELDS];
        let is_it = || {
            let (kept_place, text) = field.text.split_first()?;
            let (kept_name, kept_value) = text.split_at_checked(field.name_len as usize)?;
            Some(*kept_place == place as u8 && kept_name == name && kept_value == value)
        };
        if is_it() == Some(true) {
            return Memory::Known(&field.seen);
        }
        match std::mem::replace(&mut field.missed, hash) == hash {
            true => Memory::Again,
            false => Memory::New,
        }
    }

    /// Remembers what came of a field, if it may be kept; forgets what had the same place.
    pub fn enter(&mut self, place: Place, name: &[u8], value: &[u8], seen: Seen) {
        if may_hold_secret(name) || seen.findings.len() > FINDINGS_MAX {
            return;
        }
        let hash = hash(place, name, value);
        let text = [&[place as u8], name, value].concat().into_boxed_slice();
        self.fields[hash as usize % FIELDS] = Field { missed: 0, name_len: name.len() as u32, text, seen };
    }
}

/// A bad one costs time, no more: fields are compared.
fn hash(place: Place, name: &[u8], value: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = place as u64 | (name.len() as u64) << 16;
    for text in [name, value] {
        let (words, rest) = text.as_chunks::<8>();
        for word in words {
            hash = (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        }
        let rest = rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        hash = (hash.rotate_left(23) ^ rest).wrapping_mul(FACTOR);
    }
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: u64 = 7;

    fn seen() -> Seen {
        Seen { work: WORK, ..Seen::default() }
    }

    fn is_known(memory: Memory<'_>) -> bool {
        matches!(memory, Memory::Known(Seen { work: WORK, .. }))
    }

    #[test]
    fn fields_are_remembered_when_they_come_again() {
        let (memo, detectors) = (Memo::default(), Detectors::of(Vec::new()).unwrap());
        let mut known = memo.of(&detectors).unwrap();
        assert!(memo.clone().of(&detectors).is_none(), "another thread has it");
        assert!(matches!(known.find(Place::Header, b"accept", b"*/*"), Memory::New));
        assert!(matches!(known.find(Place::Header, b"accept", b"*/*"), Memory::Again));
        known.enter(Place::Header, b"accept", b"*/*", seen());
        assert!(is_known(known.find(Place::Header, b"accept", b"*/*")));
        // The same bytes, but cut elsewhere, or at another place.
        assert!(!is_known(known.find(Place::Header, b"accept*", b"/*")));
        assert!(!is_known(known.find(Place::ResponseHeader, b"accept", b"*/*")));
        drop(known);
        // Other detectors may find something.
        let others = Detectors::of(Vec::new()).unwrap();
        assert!(!is_known(memo.of(&others).unwrap().find(Place::Header, b"accept", b"*/*")));
    }

    #[test]
    fn what_is_secret_or_long_is_not_kept() {
        let (memo, detectors) = (Memo::default(), Detectors::of(Vec::new()).unwrap());
        let mut known = memo.of(&detectors).unwrap();
        let mut keeps = |name: &str, value: &[u8]| {
            known.enter(Place::Header, name.as_bytes(), value, seen());
            is_known(known.find(Place::Header, name.as_bytes(), value))
        };
        for name in
            ["Cookie", "AUTHORIZATION", "proxy-authorization", "X-Api-Key", "X-CSRF-Token", "Set-Cookie"]
        {
            assert!(!keeps(name, b"x"), "{name}");
        }
        assert!(keeps("User-Agent", b"x") && !keeps("User-Agent", &[b'x'; FIELD_BYTES_MAX]));
    }
}
