/// Finds names in any ASCII case: a table of hashes, worked out at compile time. `PLACES` is a power of two
/// above the number of names, at most 256 of which there are.
///
/// ```
/// use portcullis_types::NameTable;
///
/// const NAMES: &[&str] = &["allow", "block", "deny"];
/// static TABLE: NameTable<8> = NameTable::new(NAMES);
/// assert_eq!(TABLE.find(NAMES, "Block"), Some(1));
/// assert_eq!(TABLE.find(NAMES, "blocks"), None);
/// ```
#[derive(Debug)]
pub struct NameTable<const PLACES: usize>([u8; PLACES]);

/// Of a place that no name has.
const FREE: u8 = u8::MAX;

impl<const PLACES: usize> NameTable<PLACES> {
    /// The table for `names`.
    ///
    /// # Panics
    ///
    /// At compile time, if there are too many of them.
    pub const fn new(names: &[&str]) -> Self {
        assert!(PLACES.is_power_of_two() && names.len() < PLACES && names.len() <= FREE as usize);
        let mut places = [FREE; PLACES];
        let mut at = 0;
        while at < names.len() {
            let mut place = hash(names[at].as_bytes()) % PLACES;
            while places[place] != FREE {
                place = (place + 1) % PLACES;
            }
            places[place] = at as u8;
            at += 1;
        }
        NameTable(places)
    }

    /// Returns the index of `name` in `names`, for which the table was made.
    pub fn find(&self, names: &[&str], name: &str) -> Option<usize> {
        let mut place = hash(name.as_bytes()) % PLACES;
        // A place is free, so that this ends.
        while self.0[place] != FREE {
            let at = usize::from(self.0[place]);
            if names.get(at).is_some_and(|known| known.eq_ignore_ascii_case(name)) {
                return Some(at);
            }
            place = (place + 1) % PLACES;
        }
        None
    }
}

/// Of the length and of three bytes, which is enough to tell most names apart.
const fn hash(name: &[u8]) -> usize {
    let length = name.len();
    if length == 0 {
        return 0;
    }
    let (first, middle, last) = (name[0] | 0x20, name[length / 2] | 0x20, name[length - 1] | 0x20);
    let sum = length * 7 + first as usize * 31 + middle as usize * 113 + last as usize * 5;
    sum ^ (sum >> 5)
}

#[cfg(test)]
mod tests {
    use crate::{NameTable, Variable};

    #[test]
    fn every_name_is_found_and_no_other() {
        const NAMES: &[&str] = &["", "a", "b", "ab", "ba", "abc", "acb", "cab"];
        static TABLE: NameTable<16> = NameTable::new(NAMES);
        for (at, name) in NAMES.iter().enumerate() {
            assert_eq!(TABLE.find(NAMES, &name.to_uppercase()), Some(at));
        }
        for other in ["c", "bac", "aB ", "\u{e9}"] {
            assert_eq!(TABLE.find(NAMES, other), None, "{other}");
        }
        assert_eq!(Variable::from_name("ARGSX"), None);
    }
}
