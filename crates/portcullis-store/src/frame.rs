//! The file of records: a line that says what it is, then one frame for each record as it was stored, newest
//! last.
//!
//! ```text
//! frame = marker, length of what follows the checksum, its CRC-32, name, key, variables
//! ```
//!
//! A frame that was cut by a crash or damaged later is skipped: reading continues at the next marker with a
//! valid frame.

use std::io::{self, Read};

use portcullis_engine::RecordId;

use crate::packed::{is_whole, push_number, take_bytes};

/// First bytes of the file.
pub(crate) const MAGIC: &[u8] = b"portcullis collections 1\n";
const MARKER: [u8; 4] = [0xc0, 0x11, 0xec, 0x7e];
const HEAD_BYTES: usize = 12;
/// Longer frames are never written.
const FRAME_BYTES_MAX: usize = 4 << 20;
/// Bytes of frames that turned out bad, after which the rest is given up: reading stays linear.
const BAD_BYTES_MAX: usize = 1 << 30;

/// Appends a frame.
pub(crate) fn push(out: &mut Vec<u8>, id: RecordId<'_>, packed: &[u8]) {
    let start = out.len();
    out.extend_from_slice(&MARKER);
    out.extend_from_slice(&[0; HEAD_BYTES - MARKER.len()]);
    push_number(out, id.name.len() as u64);
    out.extend_from_slice(id.name);
    push_number(out, id.key.len() as u64);
    out.extend_from_slice(id.key);
    out.extend_from_slice(packed);
    let body = &out[start + HEAD_BYTES..];
    let (length, sum) = (body.len(), crc32fast::hash(body));
    if length > FRAME_BYTES_MAX {
        return out.truncate(start);
    }
    out[start + 4..start + 8].copy_from_slice(&(length as u32).to_le_bytes());
    out[start + 8..start + 12].copy_from_slice(&sum.to_le_bytes());
}

/// The result of reading a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Good frames.
    pub(crate) frames: u64,
    /// Bytes in the middle that belong to no good frame.
    pub(crate) damaged_bytes: u64,
    /// Bytes after the last good frame.
    pub(crate) torn_bytes: u64,
    /// The file does not begin as ours do.
    pub(crate) foreign: bool,
}

/// Reads a file from its beginning and shows each good record, later ones of a key after earlier ones.
pub(crate) fn read(mut file: impl Read, each: &mut dyn FnMut(RecordId<'_>, &[u8])) -> io::Result<Found> {
    let mut found = Found::default();
    let mut window = Window { bytes: Vec::new(), start: 0, ended: false };
    window.fill(&mut file, MAGIC.len())?;
    if window.rest() != MAGIC && !window.rest().starts_with(MAGIC) {
        found.foreign = !window.rest().is_empty();
        return Ok(found);
    }
    window.start += MAGIC.len();
    let (mut skipped, mut bad_bytes) = (0u64, 0usize);
    loop {
        window.fill(&mut file, HEAD_BYTES)?;
        if window.rest().len() < HEAD_BYTES {
            break;
        }
        let (good, tried) = match length(window.rest()) {
            Some(length) => {
                window.fill(&mut file, HEAD_BYTES + length)?;
                (frame(window.rest(), length, each), length)
            }
            None => (false, 0),
        };
        if good {
            found.frames += 1;
            found.damaged_bytes += std::mem::take(&mut skipped);
            window.start += HEAD_BYTES + tried;
            continue;
        }
        bad_bytes += tried;
        if bad_bytes > BAD_BYTES_MAX {
            break;
        }
        let rest = window.rest();
        let next = rest[1..].windows(MARKER.len()).position(|bytes| bytes == MARKER);
        // Without one, the last bytes may be the beginning of a marker.
        let step = next.map_or(rest.len() - (MARKER.len() - 1), |at| at + 1);
        skipped += step as u64;
        window.start += step;
    }
    found.torn_bytes = skipped + window.rest().len() as u64;
    Ok(found)
}

fn length(head: &[u8]) -> Option<usize> {
    let length = head.strip_prefix(&MARKER)?.first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    (length <= FRAME_BYTES_MAX).then_some(length)
}

fn frame(bytes: &[u8], length: usize, each: &mut dyn FnMut(RecordId<'_>, &[u8])) -> bool {
    let (Some(sum), Some(body)) = (bytes.get(8..12), bytes.get(HEAD_BYTES..HEAD_BYTES + length)) else {
        return false;
    };
    if crc32fast::hash(body).to_le_bytes() != sum {
        return false;
    }
    let mut rest = body;
    let (Some(name), Some(key)) = (take_bytes(&mut rest), take_bytes(&mut rest)) else { return false };
    let id = RecordId { name, key };
    let whole = is_whole(id, rest);
    if whole {
        each(id, rest);
    }
    whole
}

/// The part of the file that is looked at.
struct Window {
    bytes: Vec<u8>,
    start: usize,
    ended: bool,
}

impl Window {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Reads on until `wanted` bytes are there or the file ends.
    fn fill(&mut self, file: &mut impl Read, wanted: usize) -> io::Result<()> {
        const STEP: usize = 256 << 10;
        while self.rest().len() < wanted && !self.ended {
            self.bytes.drain(..self.start);
            self.start = 0;
            let read = file.by_ref().take(STEP as u64).read_to_end(&mut self.bytes)?;
            self.ended = read < STEP;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(keys: &[String]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for key in keys {
            push(&mut out, RecordId { name: b"ip", key: key.as_bytes() }, &[1, 0, 2]);
        }
        out
    }

    fn keys(file: &[u8]) -> (Vec<String>, Found) {
        let mut keys = Vec::new();
        let found = read(file, &mut |id, packed| {
            assert_eq!((id.name, packed), (b"ip".as_slice(), [1, 0, 2].as_slice()));
            keys.push(String::from_utf8_lossy(id.key).into_owned());
        });
        (keys, found.unwrap())
    }

    #[test]
    fn a_whole_file() {
        let all: Vec<String> = (0..40_000).map(|n| format!("192.0.2.{n}")).collect();
        let (read, found) = keys(&file(&all));
        assert_eq!(read, all);
        assert_eq!(found, Found { frames: 40_000, ..Found::default() });
        assert_eq!(keys(b"").1, Found::default());
        assert!(keys(b"SQLite format 3\0 and so on and so on").1.foreign);
    }

    proptest! {
        #[test]
        fn a_torn_tail_costs_only_the_last(count in 1usize..6, cut in 1usize..20) {
            let all: Vec<String> = (0..count).map(|n| format!("key {n}")).collect();
            let whole = file(&all);
            let (read, found) = keys(&whole[..whole.len() - cut]);
            prop_assert_eq!(&read[..], &all[..count - 1]);
            prop_assert_eq!(found.damaged_bytes, 0);
            prop_assert!(found.torn_bytes > 0);
        }

        #[test]
        fn damage_costs_what_it_hits(at in 25usize..400, byte: u8) {
            let all: Vec<String> = (0..20).map(|n| format!("key {n}")).collect();
            let mut bytes = file(&all);
            let at = at.min(bytes.len() - 1);
            let same = bytes[at] == byte;
            bytes[at] = byte;
            let (read, found) = keys(&bytes);
            prop_assert!(read.len() >= 19, "{:?}", read);
            prop_assert!(same || found.damaged_bytes + found.torn_bytes > 0);
            prop_assert!(read.iter().all(|key| all.contains(key)));
        }

        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let bytes = [MAGIC, &bytes].concat();
            read(bytes.as_slice(), &mut |_, _| {}).unwrap();
        }
    }
}
