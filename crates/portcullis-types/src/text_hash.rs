use std::hash::{BuildHasherDefault, Hasher};

/// For maps whose keys come from rule files: fast, and nothing that protects against keys chosen to collide,
/// which only the author of the rules could do.
///
/// ```
/// use std::collections::HashMap;
///
/// let mut numbers: HashMap<&[u8], u32, portcullis_types::TextHash> = HashMap::default();
/// numbers.insert(b"select", 1);
/// assert_eq!(numbers.get(b"select".as_slice()), Some(&1));
/// ```
pub type TextHash = BuildHasherDefault<TextHasher>;

/// The hasher of [`TextHash`].
#[derive(Clone, Debug, Default)]
pub struct TextHasher(u64);

impl TextHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for TextHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            self.add(rest.iter().fold(rest.len() as u64, |word, &byte| word << 8 | u64::from(byte)));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn finish(&self) -> u64 {
        // Maps take the highest and the lowest bits.
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::TextHash;

    #[test]
    fn texts_that_differ_a_little_have_other_hashes() {
        let texts: Vec<String> = (0..20_000).map(|number| format!("prefix{number}suffix")).collect();
        let hash = |text: &String| TextHash::default().hash_one(text.as_bytes());
        // Their spread over a table of 32,768 places: as many places in use as chance has it, 45 in 100.
        let mut places: Vec<u64> = texts.iter().map(|text| hash(text) & 0x7fff).collect();
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 13_000, "{}", places.len());
        let nothing = TextHash::default();
        assert_ne!(nothing.hash_one([b"ab".as_slice(), b"c"]), nothing.hash_one([b"a".as_slice(), b"bc"]));
    }
}
