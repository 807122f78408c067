//! A bucket of the file: two halves, of which the newer one with a good checksum counts.
//!
//! ```text
//! half   = checksum of what follows and the bucket's number, bytes of the records, version, records
//! record = digest of its name and key, when it expires, length, variables; the one that was stored last is the last
//! ```
//!
//! Pure: bytes in, bytes out. Any bytes can be read.

use super::file::{DIGEST_BYTES, Digest};

/// Bytes of a half.
pub(super) const HALF_BYTES: usize = 8 << 10;
/// Bytes of a bucket.
pub(super) const BUCKET_BYTES: usize = 2 * HALF_BYTES;
/// Longest record: two of them always fit.
pub(super) const RECORD_BYTES_MAX: usize = 3 << 10;
const HEAD_BYTES: usize = 16;
/// Bytes of a record before its variables.
const RECORD_HEAD_BYTES: usize = DIGEST_BYTES + 8 + 2;

/// The state of a bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket<'a> {
    /// The half that counts.
    half: usize,
    version: u64,
    records: &'a [u8],
    /// There is something in it, and nothing that can be read.
    pub(super) is_damaged: bool,
}

#[derive(Clone, Copy)]
struct Record<'a> {
    digest: &'a [u8],
    expires_at: i64,
    packed: &'a [u8],
    whole: &'a [u8],
}

impl<'a> Bucket<'a> {
    /// The newest state in the bytes of bucket `at`.
    pub(super) fn newest(at: u32, bytes: &'a [u8]) -> Bucket<'a> {
        let halves = [0, 1].map(|half| bytes.get(half * HALF_BYTES..).and_then(|bytes| read(at, bytes)));
        let half = match halves {
            // Versions may wrap around, whatever a damaged file says.
            [Some((first, _)), Some((second, _))] => usize::from(second.wrapping_sub(first) as i64 > 0),
            [Some(_), None] => 0,
            [None, Some(_)] => 1,
            [None, None] => {
                let is_damaged = bytes.iter().any(|byte| *byte != 0);
                return Bucket { half: 1, version: 0, records: &[], is_damaged };
            }
        };
        let (version, records) = halves[half].unwrap_or_default();
        Bucket { half, version, records, is_damaged: false }
    }

    /// The half to write next.
    pub(super) fn other_half(&self) -> usize {
        1 - self.half
    }

    fn records(&self) -> Records<'a> {
        Records(self.records)
    }

    /// The variables of a record.
    pub(super) fn find(&self, digest: &Digest) -> Option<&'a [u8]> {
        self.records().find(|record| record.digest == digest).map(|record| record.packed)
    }

    /// Writes the half that follows, with this record in it, to `out`: expired records go, then those that
    /// were not stored for the longest time. Returns the number of the latter.
    pub(super) fn with(
        &self,
        at: u32,
        digest: &Digest,
        packed: &[u8],
        (expires_at, now): (i64, i64),
        out: &mut Vec<u8>,
    ) -> u32 {
        let others = || self.records().filter(|record| record.digest != digest && record.expires_at > now);
        let room = HALF_BYTES - HEAD_BYTES - RECORD_HEAD_BYTES - packed.len().min(RECORD_BYTES_MAX);
        let mut bytes: usize = others().map(|record| record.whole.len()).sum();
        let mut evicted = 0;
        out.clear();
        out.resize(HEAD_BYTES, 0);
        for record in others() {
            if bytes > room {
                bytes -= record.whole.len();
                evicted += 1;
            } else {
                out.extend_from_slice(record.whole);
            }
        }
        if packed.len() <= RECORD_BYTES_MAX && expires_at > now {
            out.extend_from_slice(digest);
            out.extend_from_slice(&expires_at.to_le_bytes());
            out.extend_from_slice(&(packed.len() as u16).to_le_bytes());
            out.extend_from_slice(packed);
        }
        let used = (out.len() - HEAD_BYTES) as u32;
        out[4..8].copy_from_slice(&used.to_le_bytes());
        out[8..16].copy_from_slice(&self.version.wrapping_add(1).to_le_bytes());
        let sum = checksum(at, &out[4..]);
        out[..4].copy_from_slice(&sum.to_le_bytes());
        evicted
    }
}

/// Version and records of a half, if its checksum is good.
fn read(at: u32, half: &[u8]) -> Option<(u64, &[u8])> {
    let (sum, rest) = half.split_first_chunk::<4>()?;
    let used = usize::try_from(u32::from_le_bytes(*rest.first_chunk()?)).ok()?;
    if used > HALF_BYTES - HEAD_BYTES {
        return None;
    }
    let body = rest.get(..HEAD_BYTES - 4 + used)?;
    if checksum(at, body) != u32::from_le_bytes(*sum) {
        return None;
    }
    let version = u64::from_le_bytes(*body.get(4..)?.first_chunk()?);
    Some((version, body.get(HEAD_BYTES - 4..)?))
}

/// With the bucket's number, so that a piece of the file that got elsewhere does not count there.
fn checksum(at: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    // Not zero for zeros: a hole in the file is no half.
    hasher.update(&at.wrapping_add(1).to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let bytes = self.0;
        let (digest, rest) = bytes.split_at_checked(DIGEST_BYTES)?;
        let (expires_at, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let packed = rest.get(..usize::from(u16::from_le_bytes(*length)))?;
        let (whole, behind) = bytes.split_at_checked(RECORD_HEAD_BYTES + packed.len())?;
        self.0 = behind;
        Some(Record { digest, expires_at: i64::from_le_bytes(*expires_at), packed, whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FOREVER: (i64, i64) = (i64::MAX, 0);

    fn digest(number: u64) -> Digest {
        let mut digest = [7; DIGEST_BYTES];
        digest[..8].copy_from_slice(&number.to_le_bytes());
        digest
    }

    /// The bytes of a bucket after `record` was stored.
    fn stored(bytes: &mut [u8], number: u64, packed: &[u8], times: (i64, i64)) -> u32 {
        let mut out = Vec::new();
        let bucket = Bucket::newest(3, bytes);
        let evicted = bucket.with(3, &digest(number), packed, times, &mut out);
        let from = bucket.other_half() * HALF_BYTES;
        assert!(out.len() <= HALF_BYTES, "{}", out.len());
        bytes[from..from + out.len()].copy_from_slice(&out);
        evicted
    }

    #[test]
    fn records_replace_each_other_and_the_oldest_go() {
        let mut bytes = vec![0; BUCKET_BYTES];
        assert!(!Bucket::newest(3, &bytes).is_damaged);
        for round in 0..3u8 {
            assert_eq!(stored(&mut bytes, 1, &[round; 60], FOREVER), 0);
            assert_eq!(stored(&mut bytes, 2, &[round; 50], FOREVER), 0);
        }
        let bucket = Bucket::newest(3, &bytes);
        assert_eq!(bucket.records().count(), 2);
        assert_eq!(bucket.find(&digest(1)), Some(&[2; 60][..]));
        let evicted: u32 = (10..200).map(|number| stored(&mut bytes, number, &[1; 100], FOREVER)).sum();
        let bucket = Bucket::newest(3, &bytes);
        assert_eq!((bucket.find(&digest(1)), bucket.find(&digest(2))), (None, None));
        assert_eq!(bucket.records().count() + evicted as usize, 192);
        let kept: Vec<u64> = (10..200).filter(|number| bucket.find(&digest(*number)).is_some()).collect();
        assert_eq!(kept, (200 - kept.len() as u64..200).collect::<Vec<_>>(), "the last ones");
    }

    #[test]
    fn what_has_expired_makes_room_first() {
        let mut bytes = vec![0; BUCKET_BYTES];
        stored(&mut bytes, 1, &[1; RECORD_BYTES_MAX], (i64::MAX, 0));
        stored(&mut bytes, 2, &[2; RECORD_BYTES_MAX], (100, 0));
        assert_eq!(stored(&mut bytes, 3, &[3; RECORD_BYTES_MAX], (i64::MAX, 100)), 0);
        let bucket = Bucket::newest(3, &bytes);
        assert!(bucket.find(&digest(1)).is_some() && bucket.find(&digest(2)).is_none());
    }

    proptest! {
        #[test]
        fn a_half_that_is_torn_leaves_the_one_before(cut in 0usize..100) {
            let mut bytes = vec![0; BUCKET_BYTES];
            stored(&mut bytes, 1, &[1; 60], FOREVER);
            stored(&mut bytes, 1, &[2; 60], FOREVER);
            let mut out = Vec::new();
            let bucket = Bucket::newest(3, &bytes);
            bucket.with(3, &digest(1), &[3; 61], FOREVER, &mut out);
            let (from, cut) = (bucket.other_half() * HALF_BYTES, cut.min(out.len() - 1));
            bytes[from..from + cut].copy_from_slice(&out[..cut]);
            let bucket = Bucket::newest(3, &bytes);
            prop_assert_eq!(bucket.find(&digest(1)), Some(&[2; 60][..]));
        }

        #[test]
        fn any_bytes_can_be_read_and_written_over(
            garbage in prop::collection::vec(any::<u8>(), 0..300), at in 0..BUCKET_BYTES
        ) {
            let mut bytes = vec![0; BUCKET_BYTES];
            stored(&mut bytes, 1, &[1; 60], FOREVER);
            let end = (at + garbage.len()).min(BUCKET_BYTES);
            bytes[at..end].copy_from_slice(&garbage[..end - at]);
            stored(&mut bytes, 2, &[2; 60], FOREVER);
            prop_assert_eq!(Bucket::newest(3, &bytes).find(&digest(2)), Some(&[2; 60][..]));
        }

        #[test]
        fn records_of_a_half_with_a_good_checksum_may_be_nonsense(
            version: u64, records in prop::collection::vec(any::<u8>(), 0..400)
        ) {
            let mut half = vec![0; 4];
            half.extend_from_slice(&(records.len() as u32).to_le_bytes());
            half.extend_from_slice(&version.to_le_bytes());
            half.extend_from_slice(&records);
            let sum = checksum(3, &half[4..]);
            half[..4].copy_from_slice(&sum.to_le_bytes());
            let mut bytes = vec![0; BUCKET_BYTES];
            bytes[..half.len()].copy_from_slice(&half);
            for number in 0..3 {
                stored(&mut bytes, number, &[number as u8; 60], FOREVER);
                let found = Bucket::newest(3, &bytes);
                prop_assert_eq!(found.find(&digest(number)), Some(&[number as u8; 60][..]));
            }
        }
    }
}
