//! Unpacking of values that are in memory as a whole: parameters, messages in frames.
//!
//! A [`CodingDecoder`](super::CodingDecoder) takes some 100 KB of memory to begin with, for the window and
//! the pieces of a body that comes bit by bit. Whole values are unpacked in a buffer that one thread uses for
//! all of them, so that many short ones cost what their bytes cost.

use std::cell::Cell;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::DecompressorOxide;
use miniz_oxide::inflate::core::decompress;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_COMPUTE_ADLER32, TINFL_FLAG_PARSE_ZLIB_HEADER, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};

use super::CodingLimits;
use super::gzip::{GZIP_TRAILER_BYTES, gzip_header_length};

/// Zeros before the output, as many as a match of DEFLATE reaches back. A match that reaches before the data
/// reads zeros in decoders with a window in memory (that of bodies here, applications in Rust); zlib refuses
/// it.
const WINDOW_BYTES: usize = 32 << 10;
/// Room for the output at first, in bytes.
const ROOM_BYTES_MIN: usize = 4 << 10;
/// Bytes of the largest buffer that is kept for the next value.
const KEPT_BYTES_MAX: usize = 256 << 10;

thread_local! {
    static SPARE: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

struct Buffers {
    state: DecompressorOxide,
    /// The window of zeros, the output for this value, and behind it bytes of earlier values, which no match
    /// can reach.
    out: Vec<u8>,
}

/// The format of a packed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// RFC 1952. As in bodies, the checksum is not looked at.
    Gzip,
    /// RFC 1950.
    Zlib,
    /// RFC 1951, without a frame.
    Deflate,
}

/// Unpacks `packed` as far as the limits and its bytes allow. The second part of the answer is true if that
/// is all of it, with nothing behind its end; if it is false, another reader may read something else. Further
/// members of gzip are unpacked, too: some readers join them (RFC 1952, section 2.2), some stop at the first.
///
/// ```
/// use portcullis_http::coding::{CodingLimits, Packing, unpack};
///
/// let limits = CodingLimits { bytes_max: 1 << 20, ratio_max: 100, free_bytes: 1 << 10 };
/// let stored = b"\x01\x05\x00\xfa\xffhello";
/// assert_eq!(unpack(Packing::Deflate, stored, limits), (b"hello".to_vec(), true));
/// assert_eq!(unpack(Packing::Deflate, &stored[..8], limits), (b"hel".to_vec(), false));
/// ```
pub fn unpack(packing: Packing, packed: &[u8], limits: CodingLimits) -> (Vec<u8>, bool) {
    let allowed = (packed.len() as u64).saturating_mul(limits.ratio_max).max(limits.free_bytes);
    let bytes_max = usize::try_from(limits.bytes_max.min(allowed)).unwrap_or(usize::MAX);
    let (mut unpacked, mut behind) = unpack_one(packing, packed, bytes_max);
    let is_whole = behind.is_some_and(<[u8]>::is_empty);
    // Some readers skip zeros between members.
    while packing == Packing::Gzip
        && let Some(rest) = behind.map(without_zeros).filter(|rest| !rest.is_empty())
    {
        let (member, next) = unpack_one(packing, rest, bytes_max - unpacked.len());
        unpacked.extend(member);
        behind = next;
    }
    (unpacked, is_whole)
}

/// What stands behind the zeros at the start.
fn without_zeros(rest: &[u8]) -> &[u8] {
    &rest[rest.iter().take_while(|b| **b == 0).count()..]
}

/// Unpacks one value or member. The second part of the answer is what stands behind it, if all of it was
/// unpacked.
fn unpack_one(packing: Packing, packed: &[u8], bytes_max: usize) -> (Vec<u8>, Option<&[u8]>) {
    let (header, trailer, flags) = match packing {
        Packing::Gzip => match gzip_header_length(packed) {
            Ok(Some(length)) => (length, GZIP_TRAILER_BYTES, 0),
            Ok(None) | Err(_) => return (Vec::new(), None),
        },
        Packing::Zlib => (0, 0, TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_COMPUTE_ADLER32),
        Packing::Deflate => (0, 0, 0),
    };
    let new = || Box::new(Buffers { state: DecompressorOxide::new(), out: vec![0; WINDOW_BYTES] });
    let mut buffers = SPARE.take().unwrap_or_else(new);
    let Buffers { state, out } = &mut *buffers;
    state.init();
    let end = WINDOW_BYTES.saturating_add(bytes_max);
    // No more than is kept: members are short, and all that follows them is in `packed`.
    let first_room = packed.len().saturating_mul(2).clamp(ROOM_BYTES_MIN, KEPT_BYTES_MAX - WINDOW_BYTES);
    let mut room = WINDOW_BYTES + first_room.min(bytes_max);
    let (mut rest, mut made) = (&packed[header..], WINDOW_BYTES);
    let flags = flags | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let status = loop {
        if out.len() < room {
            out.resize(room, 0);
        }
        let (status, used, more) = decompress(state, rest, &mut out[..room], made, flags);
        (rest, made) = (&rest[used..], made + more);
        if status != TINFLStatus::HasMoreOutput || room == end {
            break status;
        }
        room = room.saturating_mul(2).min(end);
    };
    let unpacked = out[WINDOW_BYTES..made].to_vec();
    if out.len() <= KEPT_BYTES_MAX {
        SPARE.set(Some(buffers));
    }
    let behind = rest.get(trailer..).filter(|_| status == TINFLStatus::Done);
    (unpacked, behind)
}
