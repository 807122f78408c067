//! A bounded table of results for repeated texts.

use crate::may_hold_secret;

/// Cached results for texts that messages repeat: header fields, names, methods.
///
/// A table of so many places, each for the texts of one hash. A result is admitted when its text is seen for
/// the second time in a row at its place, so that texts which come once cost a comparison and displace
/// nothing. A hit has the same bytes; a bad hash costs time, no more. Long texts are not kept, nor are values
/// under names that may hold a secret ([`may_hold_secret`]).
///
/// ```
/// use portcullis_types::{Recent, RecentKey, Sight};
///
/// let mut recent = Recent::new(16, 64);
/// let key = RecentKey { kind: 1, name: b"accept", text: b"*/*" };
/// assert_eq!(recent.find(&key), Sight::New);
/// assert_eq!(recent.find(&key), Sight::Again);
/// recent.enter(&key, "a result");
/// assert_eq!(recent.find(&key), Sight::Known(&"a result"));
/// ```
#[derive(Clone, Debug)]
pub struct Recent<T> {
    entries: Box<[Entry<T>]>,
    /// Name and text of a key have no more bytes together.
    bytes_max: usize,
}

/// A text with what tells it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentKey<'k> {
    /// The reader or the place of the text: anything that changes the result.
    pub kind: u32,
    /// The name that the text stands under; empty if it has none.
    pub name: &'k [u8],
    /// The text.
    pub text: &'k [u8],
}

/// The result of a look-up in the table.
#[derive(Debug, PartialEq, Eq)]
pub enum Sight<'r, T> {
    /// Its result.
    Known(&'r T),
    /// It was the last one at its place, and its result can be entered.
    Again,
    /// Nothing.
    New,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    /// Hash of the last key that was not known; 0 for none.
    missed: u32,
    /// That key was seen twice.
    is_due: bool,
    kept: Option<Kept<T>>,
}

#[derive(Clone, Debug)]
struct Kept<T> {
    kind: u32,
    name_len: u32,
    /// Name and text.
    bytes: Box<[u8]>,
    result: T,
}

impl<T> Recent<T> {
    /// A table of at least `places` places for keys of at most `bytes_max` bytes.
    pub fn new(places: usize, bytes_max: usize) -> Recent<T> {
        let entry = || Entry { missed: 0, is_due: false, kept: None };
        let places = places.next_power_of_two();
        Recent { entries: std::iter::repeat_with(entry).take(places).collect(), bytes_max }
    }

    /// Looks up the result for `key`, and notes that the key was seen.
    pub fn find(&mut self, key: &RecentKey<'_>) -> Sight<'_, T> {
        if !self.takes(key) {
            return Sight::New;
        }
        let hash = key.hash();
        let places = self.entries.len();
        let entry = &mut self.entries[hash as usize & (places - 1)];
        match &entry.kept {
            Some(kept) if kept.is_of(key) => Sight::Known(&kept.result),
            _ => {
                entry.is_due = std::mem::replace(&mut entry.missed, hash) == hash;
                if entry.is_due { Sight::Again } else { Sight::New }
            }
        }
    }

    /// Keeps the result for `key` in place of another, if the key was seen twice and may be kept.
    pub fn enter(&mut self, key: &RecentKey<'_>, result: T) {
        if !self.takes(key) || may_hold_secret(key.name) {
            return;
        }
        let hash = key.hash();
        let places = self.entries.len();
        let entry = &mut self.entries[hash as usize & (places - 1)];
        if entry.is_due && entry.missed == hash {
            let bytes = [key.name, key.text].concat().into_boxed_slice();
            let kept = Kept { kind: key.kind, name_len: key.name.len() as u32, bytes, result };
            *entry = Entry { missed: 0, is_due: false, kept: Some(kept) };
        }
    }

    fn takes(&self, key: &RecentKey<'_>) -> bool {
        key.name.len() + key.text.len() <= self.bytes_max
    }
}

impl<T> Kept<T> {
    #[inline]
    fn is_of(&self, key: &RecentKey<'_>) -> bool {
        let parts = self.bytes.split_at_checked(self.name_len as usize);
        self.kind == key.kind && parts == Some((key.name, key.text))
    }
}

impl RecentKey<'_> {
    /// Never 0.
    #[inline]
    fn hash(&self) -> u32 {
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut hash = u64::from(self.kind) | (self.name.len() as u64) << 32;
        for text in [self.name, self.text] {
            let (words, rest) = text.as_chunks::<8>();
            for word in words {
                hash = (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
            }
            let rest = rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
            hash = (hash.rotate_left(23) ^ rest).wrapping_mul(FACTOR);
        }
        (hash >> 32) as u32 | 1 << 31
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key<'k>(name: &'k [u8], text: &'k [u8]) -> RecentKey<'k> {
        RecentKey { kind: 0, name, text }
    }

    #[test]
    fn keys_that_differ_in_anything_are_other_keys() {
        let mut recent = Recent::new(8, 64);
        let known = RecentKey { kind: 3, name: b"accept", text: b"*/*" };
        recent.find(&known);
        recent.find(&known);
        recent.enter(&known, ());
        assert_eq!(recent.find(&known), Sight::Known(&()));
        for other in [
            RecentKey { kind: 4, ..known },
            RecentKey { name: b"accept*", text: b"/*", ..known },
            RecentKey { name: b"", text: b"accept*/*", ..known },
            RecentKey { text: b"*/* ", ..known },
        ] {
            assert_ne!(recent.find(&other), Sight::Known(&()), "{other:?}");
        }
    }

    #[test]
    fn secrets_and_long_texts_are_never_kept() {
        let mut recent = Recent::new(8, 16);
        for (name, text) in
            [("Cookie", "a"), ("AUTHORIZATION", "a"), ("x-api-key", "a"), ("accept", "12345678901")]
        {
            let key = key(name.as_bytes(), text.as_bytes());
            for _ in 0..3 {
                assert_ne!(recent.find(&key), Sight::Known(&()), "{name}");
                recent.enter(&key, ());
            }
        }
        assert!(recent.entries.iter().all(|entry| entry.kept.is_none()));
    }

    proptest! {
        /// Against a list of everything that was entered: a hit is the result of the same bytes, nothing is
        /// known before its second sight, and the table does not grow.
        #[test]
        fn a_hit_is_what_was_entered(keys in prop::collection::vec(("[ab]{0,3}", "[ab]{0,6}"), 1..400)) {
            const BYTES_MAX: usize = 7;
            let mut recent = Recent::new(4, BYTES_MAX);
            let mut seen = std::collections::HashMap::new();
            for (number, (name, text)) in keys.iter().enumerate() {
                let key = key(name.as_bytes(), text.as_bytes());
                let (sights, entered) = seen.entry((name, text)).or_insert((0, None));
                let may_enter = match recent.find(&key) {
                    Sight::Known(result) => {
                        prop_assert_eq!(Some(*result), *entered);
                        false
                    }
                    Sight::Again => true,
                    Sight::New => false,
                };
                prop_assert!(!may_enter || *sights > 0);
                *sights += 1;
                recent.enter(&key, number);
                if may_enter {
                    *entered = Some(number);
                    prop_assert_eq!(recent.find(&key), Sight::Known(&number));
                }
                let held: usize = recent.entries.iter().flat_map(|entry| &entry.kept).map(|kept| kept.bytes.len()).sum();
                prop_assert!(recent.entries.len() == 4 && held <= 4 * BYTES_MAX);
            }
        }
    }
}
