//! Texts as numbers.

use crate::sketch::mix;

/// The hash by which a value of an enumeration is known. The value itself is not kept.
pub(crate) fn option_hash(value: &[u8]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325;
    for chunk in value.chunks(8) {
        hash = mix(hash ^ word(chunk)).wrapping_add(chunk.len() as u64);
    }
    hash.max(1)
}

/// The first eight bytes of a text as a number, little-endian, with zeros behind a shorter one.
#[inline]
pub(crate) fn word(text: &[u8]) -> u64 {
    let four = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    match text.len() {
        0 => 0,
        // The first, the middle and the last one, which may be the same.
        length @ 1..4 => {
            let byte = |at: usize| u64::from(text[at]) << (8 * at);
            byte(0) | byte(length / 2) | byte(length - 1)
        }
        // Two halves that may overlap.
        length @ 4..8 => match (text.first_chunk(), text.last_chunk()) {
            (Some(first), Some(last)) => four(first) | four(last) << (8 * (length - 4)),
            _ => 0,
        },
        _ => text.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
    }
}
