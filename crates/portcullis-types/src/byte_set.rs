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
        let mut b = low as u16;
        while b <= high as u16 {
            set = set.with(b as u8);
            b += 1;
        }
        set
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
        (0..=255).filter(|&b| self.contains(b))
    }
}

impl std::fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter().map(|b| std::ascii::escape_default(b).to_string())).finish()
    }
}
