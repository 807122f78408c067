//! Values that are packed with gzip or zlib.

use portcullis_http::coding::{Coding, CodingDecoder, CodingLimits};

/// How much more may come out than goes in, beyond [`FREE_BYTES`]; above that it is a bomb, and what came out
/// by then is looked at.
const RATIO_MAX: u64 = 20;
/// So much may come out of any value.
const FREE_BYTES: u64 = 64 << 10;

/// `packed` unpacked, up to `bytes_max`, if it begins as gzip or zlib does, and whether that was all of it:
/// what is not may be something else to another reader.
pub(crate) fn inflate(packed: &[u8], bytes_max: u64) -> Option<(Vec<u8>, bool)> {
    let coding = coding(packed)?;
    let mut out = Vec::new();
    let limits = CodingLimits { bytes_max, ratio_max: RATIO_MAX, free_bytes: FREE_BYTES };
    let mut decoder = CodingDecoder::new(&[coding], limits);
    let fed = decoder.feed(packed, &mut |piece| out.extend_from_slice(piece));
    let is_whole = fed.is_ok() && decoder.finish().is_ok();
    (!out.is_empty()).then_some((out, is_whole))
}

/// True if it begins as gzip or zlib does.
pub(super) fn is_packed(bytes: &[u8]) -> bool {
    coding(bytes).is_some()
}

fn coding(bytes: &[u8]) -> Option<Coding> {
    match bytes {
        [0x1F, 0x8B, ..] => Some(Coding::Gzip),
        [0x78, 0x01 | 0x5E | 0x9C | 0xDA, ..] => Some(Coding::Deflate),
        _ => None,
    }
}
