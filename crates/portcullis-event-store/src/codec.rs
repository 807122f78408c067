//! Numbers and bytes in the blobs of a block, little-endian, and their compression.

use std::cell::RefCell;

/// Smaller blobs are kept as they are.
const COMPRESS_MIN: usize = 256;
/// The fastest level of zstd that still finds the repeated keys of JSON.
const LEVEL: i32 = 1;
/// No blob of a block is larger once it is unpacked; what claims to be is damaged.
const UNPACKED_MAX: usize = 64 << 20;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// A blob that is not what a writer of this version makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// Packs blobs; its working memory goes from one to the next.
pub(crate) struct Packer(Option<zstd::bulk::Compressor<'static>>);

impl Packer {
    /// Where there is no memory for a compressor, blobs are kept as they are.
    pub(crate) fn new() -> Packer {
        Packer(zstd::bulk::Compressor::new(LEVEL).ok())
    }

    /// The bytes as they are stored.
    pub(crate) fn pack(&mut self, bytes: &[u8]) -> Vec<u8> {
        let packed = match &mut self.0 {
            Some(compressor) if bytes.len() >= COMPRESS_MIN => compressor.compress(bytes).ok(),
            _ => None,
        };
        match packed.filter(|packed| packed.len() + 5 < bytes.len()) {
            Some(packed) => {
                let mut out = Vec::with_capacity(packed.len() + 5);
                out.push(ZSTD);
                put_u32(&mut out, bytes.len() as u32);
                out.extend_from_slice(&packed);
                out
            }
            None => plain(bytes),
        }
    }
}

/// The form of bytes that are read far too often to be packed.
pub(crate) fn plain(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 1);
    out.push(PLAIN);
    out.extend_from_slice(bytes);
    out
}

thread_local! {
    /// Working memory: to make it takes longer than to unpack the index of a block.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn decompress(packed: &[u8], length: usize) -> Result<Vec<u8>, Damaged> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = zstd::bulk::Decompressor::new().ok();
        }
        let unpacked = kept.as_mut().map(|decompressor| decompressor.decompress(packed, length));
        unpacked.and_then(Result::ok).ok_or(Damaged)
    })
}

/// The bytes that were packed.
pub(crate) fn unpack(stored: &[u8]) -> Result<Vec<u8>, Damaged> {
    match stored.split_first() {
        Some((&PLAIN, bytes)) => Ok(bytes.to_vec()),
        Some((&ZSTD, rest)) => {
            let mut rest = Reader(rest);
            let length = rest.u32()? as usize;
            if length > UNPACKED_MAX {
                return Err(Damaged);
            }
            let bytes = decompress(rest.0, length)?;
            if bytes.len() == length { Ok(bytes) } else { Err(Damaged) }
        }
        _ => Err(Damaged),
    }
}

pub(crate) fn put_u16(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Bytes with their length before them.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

/// Reads what the `put` functions have written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'b>(pub(crate) &'b [u8]);

impl<'b> Reader<'b> {
    pub(crate) fn take(&mut self, length: usize) -> Result<&'b [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Damaged> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Damaged> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'b [u8], Damaged> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Result<&'b str, Damaged> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Damaged)
    }

    pub(crate) fn end(self) -> Result<(), Damaged> {
        if self.0.is_empty() { Ok(()) } else { Err(Damaged) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(bytes in prop::collection::vec(0u8..4, 0..2000)) {
            prop_assert_eq!(unpack(&Packer::new().pack(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn damaged_bytes_are_told_apart_or_unpacked_within_bounds(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(unpacked) = unpack(&bytes) {
                prop_assert!(unpacked.len() <= UNPACKED_MAX);
            }
        }
    }
}
