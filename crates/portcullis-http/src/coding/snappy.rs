//! `snappy`: the block format, as Prometheus sends it, and the framing format.
//!
//! ```text
//! block   length of the data (varint), then literals and copies of what came before
//! frames  "sNaPpY" chunk, then chunks of at most 64 KiB of data: a block each, or the data itself
//! ```
//!
//! The checksums of frames are not looked at, as in gzip. Chunks that decoders skip are refused: they could
//! hold anything.

use super::{CodingError, PIECE_BYTES, Take};

/// The chunk with which a stream in frames begins. It is no block: its first copy reaches before the data.
const IDENTIFIER: &[u8] = b"\xFF\x06\x00\x00sNaPpY";
/// Data of one frame.
const FRAME_BYTES_MAX: usize = 64 << 10;
/// Type, length and checksum.
const FRAME_HEAD_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;

/// A stream in either format.
#[derive(Debug)]
pub(super) enum Snappy {
    /// Not enough of it has come to tell.
    Start {
        held: Vec<u8>,
        must_be_frames: bool,
    },
    Block(Block),
    Frames(Frames),
}

impl Snappy {
    /// `must_be_frames`: the name of the coding is that of the framing format.
    pub(super) fn new(must_be_frames: bool) -> Snappy {
        Snappy::Start { held: Vec::new(), must_be_frames }
    }

    pub(super) fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), CodingError> {
        match self {
            Snappy::Block(block) => block.feed(chunk, take),
            Snappy::Frames(frames) => frames.feed(chunk, take),
            Snappy::Start { held, must_be_frames } => {
                held.extend_from_slice(chunk);
                let known = held.len().min(IDENTIFIER.len());
                let may_be_frames = held[..known] == IDENTIFIER[..known];
                if may_be_frames && known < IDENTIFIER.len() {
                    return Ok(());
                }
                let start = std::mem::take(held);
                if may_be_frames {
                    *self = Snappy::Frames(Frames::default());
                } else if *must_be_frames {
                    return Err(CodingError::Malformed);
                } else {
                    *self = Snappy::Block(Block::default());
                }
                self.feed(&start, take)
            }
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        match self {
            // A block without data is one byte long.
            Snappy::Start { .. } => false,
            Snappy::Block(block) => block.is_complete(),
            Snappy::Frames(frames) => frames.held.is_empty(),
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Snappy::Start { held, .. } => held.capacity(),
            Snappy::Block(block) => block.held_bytes(),
            Snappy::Frames(frames) => frames.held.capacity(),
        }
    }
}

/// The block format. All of the data is kept: a copy may reach back to its beginning.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Bytes of the data.
    length: Option<usize>,
    data: Vec<u8>,
    /// Bytes of the data that were handed over.
    taken: usize,
    /// The beginning of an element, or of the length.
    held: Vec<u8>,
    /// Bytes of a literal that are to come.
    literal: usize,
}

/// An element without the bytes of its literal.
enum Element {
    Literal(usize),
    Copy { length: usize, offset: usize },
}

impl Block {
    fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), CodingError> {
        let mut rest = chunk;
        while !rest.is_empty() {
            if self.literal > 0 {
                let (here, behind) = rest.split_at(rest.len().min(self.literal));
                rest = behind;
                self.literal -= here.len();
                for piece in here.chunks(PIECE_BYTES) {
                    self.data.extend_from_slice(piece);
                    self.hand_over(take)?;
                }
                continue;
            }
            let [next, behind @ ..] = rest else { break };
            rest = behind;
            self.held.push(*next);
            let Some(length) = self.length else {
                self.length = length_of(&self.held)?;
                if self.length.is_some() {
                    self.held.clear();
                }
                continue;
            };
            let Some(element) = element(&self.held) else { continue };
            self.held.clear();
            let (Element::Literal(more) | Element::Copy { length: more, .. }) = element;
            if more > length - self.data.len() {
                return Err(CodingError::Malformed);
            }
            match element {
                Element::Literal(bytes) => self.literal = bytes,
                Element::Copy { length, offset } => {
                    let from = self.data.len().checked_sub(offset).filter(|_| offset > 0);
                    let from = from.ok_or(CodingError::Malformed)?;
                    if offset >= length {
                        self.data.extend_from_within(from..from + length);
                    } else {
                        // It repeats what it makes.
                        (from..from + length).for_each(|at| self.data.push(self.data[at]));
                    }
                    if self.data.len() - self.taken >= PIECE_BYTES {
                        self.hand_over(take)?;
                    }
                }
            }
        }
        self.hand_over(take)
    }

    fn hand_over(&mut self, take: Take<'_>) -> Result<(), CodingError> {
        let from = std::mem::replace(&mut self.taken, self.data.len());
        self.data[from..].chunks(PIECE_BYTES).try_for_each(take)
    }

    fn is_complete(&self) -> bool {
        self.length == Some(self.data.len()) && self.held.is_empty() && self.literal == 0
    }

    fn held_bytes(&self) -> usize {
        self.data.capacity() + self.held.capacity()
    }
}

/// The length of the data, once `bytes` has all of it.
fn length_of(bytes: &[u8]) -> Result<Option<usize>, CodingError> {
    match bytes {
        [.., last] if last & 0x80 != 0 => match bytes.len() {
            5.. => Err(CodingError::Malformed),
            _ => Ok(None),
        },
        _ => {
            let digits = bytes.iter().rev().map(|byte| u64::from(byte & 0x7F));
            let length = digits.fold(0, |all, digit| all << 7 | digit);
            let length = u32::try_from(length).map_err(|_| CodingError::Malformed)?;
            Ok(Some(length as usize))
        }
    }
}

/// The element whose bytes are these; none if there are more of it.
fn element(bytes: &[u8]) -> Option<Element> {
    let (&tag, more) = bytes.split_first()?;
    let number = |count: usize| -> Option<usize> {
        let little_endian = more.get(..count)?.iter().rev();
        Some(little_endian.fold(0, |all, byte| all << 8 | usize::from(*byte)))
    };
    let upper = usize::from(tag >> 2);
    Some(match tag & 3 {
        0 if upper < 60 => Element::Literal(upper + 1),
        0 => Element::Literal(number(upper - 59)?.saturating_add(1)),
        1 => Element::Copy { length: (upper & 7) + 4, offset: usize::from(tag >> 5) << 8 | number(1)? },
        2 => Element::Copy { length: upper + 1, offset: number(2)? },
        _ => Element::Copy { length: upper + 1, offset: number(4)? },
    })
}

/// The framing format.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The beginning of a frame.
    held: Vec<u8>,
}

impl Frames {
    fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), CodingError> {
        let mut rest = chunk;
        while !rest.is_empty() {
            let head = FRAME_HEAD_BYTES.saturating_sub(self.held.len()).min(rest.len());
            self.held.extend_from_slice(&rest[..head]);
            rest = &rest[head..];
            let [kind, a, b, c, ..] = *self.held.as_slice() else { break };
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            // A block is at most a sixth longer than its data.
            let length_max = CHECKSUM_BYTES + FRAME_BYTES_MAX + FRAME_BYTES_MAX / 6 + 32;
            if length > length_max {
                return Err(CodingError::Malformed);
            }
            let missing = (FRAME_HEAD_BYTES + length - self.held.len()).min(rest.len());
            self.held.extend_from_slice(&rest[..missing]);
            rest = &rest[missing..];
            if self.held.len() < FRAME_HEAD_BYTES + length {
                break;
            }
            let frame = std::mem::take(&mut self.held);
            self.frame(kind, &frame[FRAME_HEAD_BYTES..], take)?;
        }
        Ok(())
    }

    fn frame(&self, kind: u8, frame: &[u8], take: Take<'_>) -> Result<(), CodingError> {
        match (kind, frame.get(CHECKSUM_BYTES..)) {
            (0xFF, _) if *frame == IDENTIFIER[FRAME_HEAD_BYTES..] => Ok(()),
            (0, Some(data)) => {
                let mut block = Block::default();
                block.feed(data, take)?;
                let is_long = block.length.is_none_or(|length| length > FRAME_BYTES_MAX);
                if is_long || !block.is_complete() { Err(CodingError::Malformed) } else { Ok(()) }
            }
            (1, Some(data)) if data.len() <= FRAME_BYTES_MAX => data.chunks(PIECE_BYTES).try_for_each(take),
            _ => Err(CodingError::Malformed),
        }
    }
}
