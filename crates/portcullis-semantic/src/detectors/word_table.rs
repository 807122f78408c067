//! Words that are looked up for each name of a text: a hash table that is asked a million times a second.

use super::name_filter::NameFilter;

/// A table of words and what each means. What is asked must be written as the words are.
#[derive(Debug)]
pub(super) struct WordTable<T> {
    /// Most names are not in the list.
    filter: NameFilter,
    /// Open addressing; a power of two, at most half full.
    slots: Vec<Option<(&'static [u8], T)>>,
}

impl<T: Copy> WordTable<T> {
    /// A table of `words`, each of 1 to 63 bytes. Of a word that comes twice the last meaning counts.
    pub fn new(words: impl IntoIterator<Item = (&'static [u8], T)>) -> WordTable<T> {
        let words: Vec<(&'static [u8], T)> = words.into_iter().collect();
        let mut table = WordTable {
            filter: NameFilter::new(words.iter().map(|(word, _)| *word)),
            slots: vec![None; (2 * words.len() + 1).next_power_of_two()],
        };
        for (word, meaning) in words {
            debug_assert!((1..64).contains(&word.len()), "{}", word.escape_ascii());
            let slot = table.slot(word);
            table.slots[slot] = Some((word, meaning));
        }
        table
    }

    /// False if `word` is certainly not in the list.
    pub fn may_have(&self, word: &[u8]) -> bool {
        self.filter.may_have(word)
    }

    /// What `word` means.
    pub fn get(&self, word: &[u8]) -> Option<T> {
        if !self.filter.may_have(word) {
            return None;
        }
        self.slots[self.slot(word)].map(|(_, meaning)| meaning)
    }

    /// Where `word` stands, or would.
    fn slot(&self, word: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash(word) & mask;
        while self.slots[at].is_some_and(|(known, _)| known != word) {
            at = (at + 1) & mask;
        }
        at
    }
}

/// The words are fixed, so nobody can choose some that collide.
fn hash(word: &[u8]) -> usize {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = word.len() as u64;
    for &b in word {
        hash = (hash ^ u64::from(b)).wrapping_mul(FACTOR);
    }
    (hash >> 40) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_its_words_and_no_others() {
        let words: Vec<&'static [u8]> = vec![b"a", b"select", b"from", b"SELECT", b"fromage", b"selecs"];
        let table = WordTable::new(words.iter().enumerate().map(|(at, word)| (*word, at)));
        for (at, word) in words.iter().enumerate() {
            assert_eq!(table.get(word), Some(at));
            assert!(table.may_have(word) && table.may_have(&word.to_ascii_uppercase()));
        }
        for other in [&b""[..], b"b", b"selec", b"Select", b"fromages", &[b'a'; 70]] {
            assert_eq!(table.get(other), None);
        }
        assert_eq!(WordTable::new([(&b"x"[..], 1), (b"x", 2)]).get(b"x"), Some(2));
        assert_eq!(WordTable::<u8>::new([]).get(b"x"), None);
    }
}
