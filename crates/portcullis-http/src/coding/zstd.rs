//! zstd (RFC 8878), one frame without a dictionary, its window within what RFC 9659 asks of readers.
//!
//! The decoder takes blocks that are whole, so one block at most (128 KiB) waits here for its end. It hands
//! out what has left the window, and the rest when the frame ends. Skippable frames and what stands behind
//! the first frame are refused: readers differ in what they make of them.

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::{CodingError, PIECE_BYTES, Take};

/// RFC 9659, section 3.
const WINDOW_BYTES_MAX: u64 = 8 << 20;
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
/// RFC 8878, section 3.1.1.2.4.
const BLOCK_BYTES_MAX: usize = 128 << 10;
const BLOCK_HEADER_BYTES: usize = 3;
const CHECKSUM_BYTES: usize = 4;
/// Tables of the decoder.
const TABLE_BYTES: usize = 32 << 10;

/// One frame.
pub(super) struct Zstd {
    state: State,
    /// The part of the header or block that has come.
    held: Vec<u8>,
    decoder: FrameDecoder,
    has_checksum: bool,
    /// Limit on the output that the decoder keeps for later blocks to refer to.
    window_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Header,
    Blocks,
    End,
}

impl Zstd {
    pub(super) fn new() -> Zstd {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_BYTES_MAX);
        Zstd { state: State::Header, held: Vec::new(), decoder, has_checksum: false, window_bytes: 0 }
    }

    /// Bytes of memory that it takes, about: the window, a block, and tables.
    pub(super) fn held_bytes(&self) -> usize {
        let window = match self.state {
            State::Header | State::End => 0,
            State::Blocks => self.window_bytes as usize + BLOCK_BYTES_MAX,
        };
        window + self.held.capacity() + TABLE_BYTES
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state == State::End
    }

    pub(super) fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), CodingError> {
        let mut rest = chunk;
        while !rest.is_empty() {
            let length = match self.state {
                State::Header => header_bytes(&self.held)?,
                State::Blocks => block_bytes(&self.held, self.has_checksum)?,
                State::End => return Err(CodingError::Malformed),
            };
            let missing = length - self.held.len();
            let (now, later) = rest.split_at(missing.min(rest.len()));
            self.held.extend_from_slice(now);
            rest = later;
            if now.len() < missing {
                return Ok(());
            }
            self.step(take)?;
        }
        Ok(())
    }

    /// Takes `held`, if it is whole: what its first bytes say may have made it longer.
    fn step(&mut self, take: Take<'_>) -> Result<(), CodingError> {
        match self.state {
            State::Header if header_bytes(&self.held)? == self.held.len() => {
                self.has_checksum = self.held[MAGIC.len()] & 4 != 0;
                // A window that is too large, or a dictionary: both may be sound.
                self.decoder.init(self.held.as_slice()).map_err(|_| CodingError::Unsupported)?;
                self.window_bytes = window_bytes(&self.held);
                self.state = State::Blocks;
            }
            State::Blocks if block_bytes(&self.held, self.has_checksum)? == self.held.len() => {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let ends = self.decoder.decode_blocks(self.held.as_slice(), one);
                if ends.map_err(|_| CodingError::Malformed)? {
                    self.state = State::End;
                }
                self.hand_out(take)?;
            }
            State::Header | State::Blocks | State::End => return Ok(()),
        }
        self.held.clear();
        Ok(())
    }

    fn hand_out(&mut self, take: Take<'_>) -> Result<(), CodingError> {
        let mut piece = [0; PIECE_BYTES];
        loop {
            match self.decoder.read(&mut piece).map_err(|_| CodingError::Malformed)? {
                0 => return Ok(()),
                made => take(&piece[..made])?,
            }
        }
    }
}

/// The window that a whole frame header asks for, at most [`WINDOW_BYTES_MAX`] (RFC 8878, section 3.1.1.1.2).
fn window_bytes(header: &[u8]) -> u64 {
    let Some(&[descriptor, ref rest @ ..]) = header.get(MAGIC.len()..) else { return 0 };
    let bytes = match (descriptor & 0x20 != 0, rest) {
        (false, [window, ..]) => {
            let base = 1u64 << (10 + (window >> 3));
            base + base / 8 * u64::from(window & 7)
        }
        // One segment: the window is the content.
        (true, rest) => {
            let field = &rest[rest.len() - content_size_bytes(descriptor).min(rest.len())..];
            let mut bytes = [0; 8];
            bytes[..field.len().min(8)].copy_from_slice(&field[..field.len().min(8)]);
            u64::from_le_bytes(bytes) + if field.len() == 2 { 256 } else { 0 }
        }
        _ => 0,
    };
    bytes.min(WINDOW_BYTES_MAX)
}

/// Length of the field that says how much comes out.
fn content_size_bytes(descriptor: u8) -> usize {
    match descriptor >> 6 {
        0 => usize::from(descriptor & 0x20 != 0),
        flag => 1 << flag,
    }
}

/// Length of the frame header that begins with `held`, as far as that tells.
fn header_bytes(held: &[u8]) -> Result<usize, CodingError> {
    let known = held.len().min(MAGIC.len());
    if held[..known] != MAGIC[..known] {
        return Err(CodingError::Malformed);
    }
    let Some(&descriptor) = held.get(MAGIC.len()) else { return Ok(MAGIC.len() + 1) };
    let is_single = descriptor & 0x20 != 0;
    let has_reserved = descriptor & 8 != 0;
    if has_reserved {
        return Err(CodingError::Malformed);
    }
    let window = usize::from(!is_single);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    Ok(MAGIC.len() + 1 + window + dictionary + content_size_bytes(descriptor))
}

/// Length of the block that begins with `held`, with the checksum behind the last one, as far as that tells.
fn block_bytes(held: &[u8], has_checksum: bool) -> Result<usize, CodingError> {
    let [a, b, c, ..] = *held else { return Ok(BLOCK_HEADER_BYTES) };
    let header = u32::from_le_bytes([a, b, c, 0]);
    let (is_last, kind, size) = (header & 1 == 1, header >> 1 & 3, (header >> 3) as usize);
    if size > BLOCK_BYTES_MAX {
        return Err(CodingError::Malformed);
    }
    const RLE: u32 = 1;
    let content = if kind == RLE { 1 } else { size };
    let checksum = if is_last && has_checksum { CHECKSUM_BYTES } else { 0 };
    Ok(BLOCK_HEADER_BYTES + content + checksum)
}
