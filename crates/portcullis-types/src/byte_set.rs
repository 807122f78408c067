/// A set of byte values: 256 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// No byte.
    pub const EMPTY: ByteSet = ByteSet([0; 4]);
    /// Every byte.
    pub const FULL: ByteSet = ByteSet([u64::MAX; 4]);

    /// The bytes that occur in `bytes`.
    pub const fn of(bytes: &[u8]) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        let mut i = 0;
        while i < bytes.len() {
            set = set.with(bytes[i]);
            i += 1;
        }
        set
    }

    /// The bytes `low` to `high`, both included.
    pub const fn range(low: u8, high: u8) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        if low > high {
            return set;
        }
        let (first, last) = ((low >> 6) as usize, (high >> 6) as usize);
        let mut word = first;
        while word <= last {
            set.0[word] = u64::MAX;
            word += 1;
        }
        set.0[first] &= u64::MAX << (low & 63);
        set.0[last] &= u64::MAX >> (63 - (high & 63));
        set
    }

    /// The set whose members are the bits that are set, byte 0 the lowest of the first word.
    pub const fn from_words(words: [u64; 4]) -> ByteSet {
        ByteSet(words)
    }

    /// A bit for each byte, as [`ByteSet::from_words`] takes them.
    pub const fn words(&self) -> [u64; 4] {
        self.0
    }

    /// This set and `byte`.
    pub const fn with(mut self, byte: u8) -> ByteSet {
        self.0[(byte >> 6) as usize] |= 1 << (byte & 63);
        self
    }

    /// This set but for `byte`.
    pub const fn without(mut self, byte: u8) -> ByteSet {
        self.0[(byte >> 6) as usize] &= !(1 << (byte & 63));
        self
    }

    /// Every byte of either.
    pub const fn union(self, other: ByteSet) -> ByteSet {
        ByteSet([
            self.0[0] | other.0[0],
            self.0[1] | other.0[1],
            self.0[2] | other.0[2],
            self.0[3] | other.0[3],
        ])
    }

    /// Every byte of both.
    pub const fn intersection(self, other: ByteSet) -> ByteSet {
        ByteSet([
            self.0[0] & other.0[0],
            self.0[1] & other.0[1],
            self.0[2] & other.0[2],
            self.0[3] & other.0[3],
        ])
    }

    /// Every byte that is not in this set.
    pub const fn complement(self) -> ByteSet {
        ByteSet([!self.0[0], !self.0[1], !self.0[2], !self.0[3]])
    }

    /// The set with both cases of each of its ASCII letters.
    pub const fn in_both_cases(mut self) -> ByteSet {
        const UPPER: u64 = ByteSet::range(b'A', b'Z').0[1];
        let letters = self.0[1] & (UPPER | UPPER << 32);
        self.0[1] |= (letters & UPPER) << 32 | letters >> 32;
        self
    }

    /// True if `byte` is in the set.
    pub const fn contains(&self, byte: u8) -> bool {
        self.0[(byte >> 6) as usize] >> (byte & 63) & 1 == 1
    }

    /// True if the two sets share a byte.
    pub const fn intersects(&self, other: &ByteSet) -> bool {
        self.0[0] & other.0[0] | self.0[1] & other.0[1] | self.0[2] & other.0[2] | self.0[3] & other.0[3] != 0
    }

    /// True if no byte is in the set.
    pub const fn is_empty(&self) -> bool {
        self.0[0] | self.0[1] | self.0[2] | self.0[3] == 0
    }

    /// The members in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        [0u8, 64, 128, 192].into_iter().zip(self.0).flat_map(|(base, mut word)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as u8;
                word &= word.wrapping_sub(1);
                (bit < 64).then(|| base + bit)
            })
        })
    }
}

impl std::fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter().map(|b| std::ascii::escape_default(b).to_string())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_members_and_cases_of_every_set() {
        for low in 0..=255u8 {
            for high in 0..=255u8 {
                let set = ByteSet::range(low, high);
                assert!(set.iter().eq(low..=high), "{low} {high}");
                let both = set.in_both_cases();
                for byte in 0..=255u8 {
                    assert_eq!(set.contains(byte), (low..=high).contains(&byte));
                    let other = byte ^ 0x20;
                    let cased = byte.is_ascii_alphabetic() && set.contains(other);
                    assert_eq!(both.contains(byte), set.contains(byte) || cased, "{low} {high} {byte}");
                }
            }
        }
    }
}
