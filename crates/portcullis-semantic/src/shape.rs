//! The groups of bytes in a value: the cheapest gate.

/// A set of byte groups: every ASCII sign, and the space, is a group of its own; letters, digits, other white
/// space, NUL, other control bytes and bytes from 0x80 are one group each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteGroups(u64);

const LETTERS: u64 = 1;
const DIGITS: u64 = 1 << 1;
const SPACES: u64 = 1 << 2;
const NUL: u64 = 1 << 3;
const CONTROLS: u64 = 1 << 4;
const HIGH: u64 = 1 << 5;
const FIRST_SIGN: u32 = 6;

const TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut sign = FIRST_SIGN;
    let mut b = 0usize;
    while b < 256 {
        let byte = b as u8;
        table[b] = if byte.is_ascii_alphabetic() {
            LETTERS
        } else if byte.is_ascii_digit() {
            DIGITS
        } else if byte >= 0x80 {
            HIGH
        } else if byte == 0 {
            NUL
        } else if byte >= 9 && byte <= 13 {
            SPACES
        } else if byte < 0x20 || byte == 0x7F {
            CONTROLS
        } else {
            sign += 1;
            1 << (sign - 1)
        };
        b += 1;
    }
    table
};

/// Bytes that are looked at together.
const BLOCK_BYTES: usize = 32;

/// The groups of a block that has nothing but letters, digits, spaces, dots and commas. The loop has neither
/// a branch nor a table in it, so that the compiler looks at many bytes at once.
const fn of_prose(block: &[u8; BLOCK_BYTES]) -> Option<u64> {
    let (mut letters, mut digits, mut spaces, mut dots, mut commas) = (false, false, false, false, false);
    let mut is_prose = true;
    let mut i = 0;
    while i < BLOCK_BYTES {
        let b = block[i];
        let (letter, digit) = ((b | 0x20).wrapping_sub(b'a') < 26, b.wrapping_sub(b'0') < 10);
        let (space, dot, comma) = (b == b' ', b == b'.', b == b',');
        letters |= letter;
        digits |= digit;
        spaces |= space;
        dots |= dot;
        commas |= comma;
        is_prose &= letter | digit | space | dot | comma;
        i += 1;
    }
    if !is_prose {
        return None;
    }
    let signs = [(spaces, b' '), (dots, b'.'), (commas, b','), (letters, b'a'), (digits, b'0')];
    let mut groups = 0;
    let mut i = 0;
    while i < signs.len() {
        let (is_there, sign) = signs[i];
        groups |= is_there as u64 * TABLE[sign as usize];
        i += 1;
    }
    Some(groups)
}

impl ByteGroups {
    /// No group.
    pub const NONE: ByteGroups = ByteGroups(0);
    /// Every group.
    pub const ANY: ByteGroups = ByteGroups(u64::MAX);
    /// Letters and digits.
    pub const ALPHANUMERIC: ByteGroups = ByteGroups(LETTERS | DIGITS);

    /// The groups of the bytes of `bytes`.
    pub const fn of(bytes: &[u8]) -> ByteGroups {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        let mut groups = ByteGroups::by_table(rest).0;
        let mut i = 0;
        while i < blocks.len() {
            groups |= match of_prose(&blocks[i]) {
                Some(of_block) => of_block,
                None => ByteGroups::by_table(&blocks[i]).0,
            };
            i += 1;
        }
        ByteGroups(groups)
    }

    const fn by_table(bytes: &[u8]) -> ByteGroups {
        let mut groups = 0;
        let (fours, rest) = bytes.as_chunks::<4>();
        let mut i = 0;
        while i < fours.len() {
            let [a, b, c, d] = fours[i];
            groups |= TABLE[a as usize] | TABLE[b as usize] | TABLE[c as usize] | TABLE[d as usize];
            i += 1;
        }
        let mut i = 0;
        while i < rest.len() {
            groups |= TABLE[rest[i] as usize];
            i += 1;
        }
        ByteGroups(groups)
    }

    /// True if one has a group of the other.
    pub const fn intersects(self, other: ByteGroups) -> bool {
        self.0 & other.0 != 0
    }

    /// True if all groups of `self` are in `other`.
    pub const fn is_within(self, other: ByteGroups) -> bool {
        self.0 & !other.0 == 0
    }

    /// Both together.
    pub const fn union(self, other: ByteGroups) -> ByteGroups {
        ByteGroups(self.0 | other.0)
    }

    /// The groups, each by a number below 64.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let group = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (group < 64).then_some(group)
        })
    }

    /// True if `byte`'s group is in it.
    pub const fn has(self, byte: u8) -> bool {
        self.0 & TABLE[byte as usize] != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// The result for a block at once is the result byte by byte.
        #[test]
        fn blocks_tell_what_bytes_tell(
            prose in "[a-zA-Z0-9 ,.]{0,100}",
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80),
            at in 0usize..100,
        ) {
            let mut text = prose.into_bytes();
            proptest::prop_assert_eq!(ByteGroups::of(&text), ByteGroups::by_table(&text));
            let at = at.min(text.len());
            text.splice(at..at, bytes);
            proptest::prop_assert_eq!(ByteGroups::of(&text), ByteGroups::by_table(&text));
        }
    }

    #[test]
    fn signs_are_told_apart() {
        let groups = ByteGroups::of(b"it's 5\n");
        for byte in 0x20..0x7F {
            let letter_or_digit = (byte as u8).is_ascii_alphanumeric();
            assert_eq!(
                groups.has(byte as u8),
                letter_or_digit || matches!(byte as u8, b'\'' | b' '),
                "{byte}"
            );
        }
        assert!(groups.has(b'\t') && !groups.has(0) && !groups.has(0x80) && !groups.has(1));
        assert!(ByteGroups::of(b"ab1").is_within(ByteGroups::ALPHANUMERIC));
    }
}
