//! Values that are packed with gzip, zlib or raw DEFLATE.

use portcullis_http::coding::{CodingLimits, Packing, unpack};

use super::{is_mostly_text, serialised};
use crate::limits::INFLATED_VALUE_BYTES_MAX;

/// How much more may come out than goes in, beyond [`FREE_BYTES`]; above that it is a bomb, and what came
/// out by then is looked at. In Base64 that is 18 times the value, which is more than decoded forms may have:
/// a text that is cut here blocks.
const RATIO_MAX: u64 = 24;
/// So much may come out of any value.
const FREE_BYTES: u64 = 64 << 10;

fn limits(bytes_max: u64) -> CodingLimits {
    CodingLimits { bytes_max, ratio_max: RATIO_MAX, free_bytes: FREE_BYTES }
}

/// `packed` unpacked, up to `bytes_max`, if it begins as gzip or zlib does, and whether that was all of it:
/// what is not may be something else to another reader.
pub(crate) fn inflate(packed: &[u8], bytes_max: u64) -> Option<(Vec<u8>, bool)> {
    let unpacked = unpack(marked_as(packed)?, packed, limits(bytes_max));
    (!unpacked.0.is_empty()).then_some(unpacked)
}

/// The text or serialised object that a value is packed from, as far as it can be unpacked. DEFLATE has no
/// mark, so that of it short texts count only if they are whole.
pub(super) fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let tells = |bytes: &Vec<u8>| is_mostly_text(bytes) || serialised::is_object(bytes);
    let marked = inflate(packed, INFLATED_VALUE_BYTES_MAX).map(|(text, _)| text).filter(tells);
    // The mark of zlib may be the beginning of a block, too.
    marked.or_else(|| raw(packed).filter(tells))
}

/// True if [`unpacked`] has to read it all to know that it is nothing.
pub(super) fn may_be_packed(bytes: &[u8]) -> bool {
    marked_as(bytes).is_some() || may_be_raw(bytes)
}

/// A text cut off there, or with something behind its end, is one that some decoders read.
const CUT_BYTES_MIN: usize = 16;

fn raw(packed: &[u8]) -> Option<Vec<u8>> {
    if packed.len() < RAW_BYTES_MIN || !may_be_raw(packed) {
        return None;
    }
    let (text, is_whole) = unpack(Packing::Deflate, packed, limits(INFLATED_VALUE_BYTES_MAX));
    (is_whole && !text.is_empty() || text.len() >= CUT_BYTES_MIN).then_some(text)
}

/// Shorter values are not tried as raw DEFLATE: unpacking costs some microseconds before the first byte, and
/// a message has room for many of them. No request of SAML is shorter.
const RAW_BYTES_MIN: usize = 64;

/// True if the first block of `bytes` begins as one of DEFLATE with a text does, which about one of a hundred
/// random values does: unpacking takes memory to begin with.
fn may_be_raw(bytes: &[u8]) -> bool {
    let Some(head) = bytes.first_chunk::<16>() else { return false };
    let bits = u128::from_le_bytes(*head);
    match bits >> 1 & 3 {
        0 => is_stored(bytes),
        1 => begins_as_text(bits >> 3),
        // The code of the lengths of codes leaves nothing over.
        2 => {
            let lengths = 4 + (bits >> 13 & 15) as u32;
            let parts = (0..lengths).map(|at| (bits >> (17 + 3 * at) & 7) as u32);
            parts.filter(|len| *len > 0).map(|len| 128 >> len).sum::<u32>() == 128
        }
        _ => false,
    }
}

/// Symbols of a block with fixed codes that are looked at.
const SYMBOLS: usize = 8;

/// True if the first symbols of a block with fixed codes (RFC 1951, section 3.2.6) are letters of a text, or
/// repeat what has come. The bits are those behind the block's kind.
fn begins_as_text(bits: u128) -> bool {
    let (mut at, mut length) = (0, 0);
    // Codes stand in the bits with their first one lowest.
    let next = |at: u32| ((bits >> at) as u8).reverse_bits();
    for _ in 0..SYMBOLS {
        let code = next(at);
        let (symbol, width) = match code {
            0x30..=0xBF => {
                if matches!(code - 0x30, 0..=8 | 11 | 12 | 14..=31 | 127) {
                    return false;
                }
                (at, length) = (at + 8, length + 1);
                continue;
            }
            0xC8.. => {
                (at, length) = (at + 9, length + 1);
                continue;
            }
            0..=0x2F => (u32::from(code >> 1), 7),
            _ => (24 + u32::from(code - 0xC0), 8),
        };
        // The end of the block: another one may follow.
        if symbol == 0 {
            return true;
        }
        if symbol > 29 {
            return false;
        }
        at += width + if matches!(symbol, 9..29) { (symbol - 5) / 4 } else { 0 };
        let distance = u32::from(next(at) >> 3);
        let extra = (distance / 2).saturating_sub(1);
        let distance_min = if distance < 4 { distance + 1 } else { ((2 + (distance & 1)) << extra) + 1 };
        if distance_min > length {
            return false;
        }
        (at, length) = (at + 5 + extra, length + 3);
    }
    true
}

/// True if `bytes` begin as a block of DEFLATE does that is not packed: after its kind comes its length, and
/// the same with all bits turned.
pub(super) fn is_stored(bytes: &[u8]) -> bool {
    let [kind, low, high, turned_low, turned_high, ..] = *bytes else { return false };
    kind & 6 == 0 && low ^ turned_low == 0xFF && high ^ turned_high == 0xFF
}

/// The way of packing that `bytes` begin with the mark of.
fn marked_as(bytes: &[u8]) -> Option<Packing> {
    match bytes {
        [0x1F, 0x8B, ..] => Some(Packing::Gzip),
        [0x78, 0x01 | 0x5E | 0x9C | 0xDA, ..] => Some(Packing::Zlib),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;

    fn packed(text: &[u8], level: u32) -> Vec<u8> {
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::new(level));
        packer.write_all(text).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn texts_are_tried() {
        let long = "<a href='/some/where'>there</a> and <b>here</b>, é.".repeat(40);
        for text in [
            "<r>1</r> and some more text",
            "<?xml version=\"1.0\"?><!DOCTYPE r [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><r>&x;</r>",
            "          aaaaaaaaaaaaaaaaaaaaaaaabababababababab",
            "\n\t ñandú, über, und so weiter",
            &long,
        ] {
            for level in 0..=9 {
                let bytes = packed(text.as_bytes(), level);
                let expected = (bytes.len() >= RAW_BYTES_MIN).then_some(text.as_bytes());
                assert_eq!(unpacked(&bytes).as_deref(), expected, "{level} {text}");
            }
        }
    }

    #[test]
    fn few_random_values_are_tried() {
        let mut state = 1u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let tried = (0..100_000).filter(|_| {
            let bytes: Vec<u8> = (0..8).flat_map(|_| random().to_le_bytes()).collect();
            may_be_raw(&bytes)
        });
        let tried = tried.count();
        assert!(tried < 2_000, "{tried} of 100,000");
    }
}
