//! Finding the first byte that can make a transformation act.

use portcullis_types::ByteSet;

/// The set of bytes to scan for, in the form that is fastest to search.
#[derive(Clone, Copy)]
pub(crate) enum Scan {
    /// The transformation may act on any input, the empty one included.
    Always,
    One(u8),
    Two(u8, u8),
    Three(u8, u8, u8),
    /// Both ends included.
    Range(u8, u8),
    Set(&'static Table),
}

impl Scan {
    /// Returns the offset of the first such byte; none if the input has none.
    #[inline]
    pub(crate) fn find(self, input: &[u8]) -> Option<usize> {
        match self {
            Scan::Always => Some(0),
            Scan::One(a) => memchr::memchr(a, input),
            Scan::Two(a, b) => memchr::memchr2(a, b, input),
            Scan::Three(a, b, c) => memchr::memchr3(a, b, c, input),
            Scan::Range(low, high) => find_range(low, high, input),
            Scan::Set(table) => input.iter().position(|&b| table.has(b)),
        }
    }

    /// The same as a set.
    pub(crate) const fn set(self) -> ByteSet {
        match self {
            Scan::Always => ByteSet::FULL,
            Scan::One(a) => ByteSet::of(&[a]),
            Scan::Two(a, b) => ByteSet::of(&[a, b]),
            Scan::Three(a, b, c) => ByteSet::of(&[a, b, c]),
            Scan::Range(low, high) => ByteSet::range(low, high),
            Scan::Set(table) => table.0,
        }
    }
}

/// A byte class with a table for look-ups of one byte.
pub(crate) struct Table(ByteSet, [bool; 256]);

impl Table {
    pub(crate) const fn of(set: ByteSet) -> Table {
        let mut table = [false; 256];
        let mut i = 0;
        while i < 256 {
            table[i] = set.contains(i as u8);
            i += 1;
        }
        Table(set, table)
    }

    #[inline]
    pub(crate) const fn has(&self, byte: u8) -> bool {
        self.1[byte as usize]
    }
}

/// Blocks without the byte are skipped whole, in a loop without branches that the compiler turns into vector
/// code.
fn find_range(low: u8, high: u8, input: &[u8]) -> Option<usize> {
    let within = |b: u8| b.wrapping_sub(low) <= high - low;
    let mut at = 0;
    for block in input.chunks(32) {
        if block.iter().fold(false, |any, &b| any | within(b)) {
            return block.iter().position(|&b| within(b)).map(|found| at + found);
        }
        at += block.len();
    }
    None
}

/// Returns true for the white space of `isspace` in the C locale.
#[inline]
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

/// The values of the hexadecimal digits; a bit above them for every other byte.
static HEX: [u8; 256] = {
    let mut values = [0x10; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// The value of a hexadecimal digit.
#[inline]
pub(crate) fn hex_digit(byte: u8) -> Option<u8> {
    let value = HEX[usize::from(byte)];
    (value < 0x10).then_some(value)
}

/// The byte that two hexadecimal digits at the start of `text` spell.
#[inline]
pub(crate) fn hex_pair(text: &[u8]) -> Option<u8> {
    let &[high, low, ..] = text else { return None };
    let (high, low) = (HEX[usize::from(high)], HEX[usize::from(low)]);
    ((high | low) < 0x10).then_some(high << 4 | low)
}

/// `HHHH` at the start of `text`, as `%u` and `\u` read it without a map: the low byte; full-width ASCII
/// (FF01 to FF5E) becomes the ASCII character it looks like.
pub(crate) fn wide(text: &[u8]) -> Option<u8> {
    let high = hex_pair(text)?;
    let low = hex_pair(text.get(2..)?)?;
    Some(if high == 0xff { full_width(low) } else { low })
}

/// The ASCII character for the low byte of a full-width one; other bytes as they are.
#[inline]
pub(crate) const fn full_width(low: u8) -> u8 {
    if low > 0 && low < 0x5f { low + 0x20 } else { low }
}
