//! `Content-Encoding` undone for inspection: gzip, deflate and br, in any number up to [`CODINGS_MAX`], under limits.
//!
//! ```text
//! chunks ──feed──> [br] ──> [gzip] ──> pieces of at most 16 KiB
//!                    └────────┴── CodingError: malformed, or over a limit
//! ```
//!
//! The output is bounded in bytes and in relation to the input, so that a small body cannot become a large one; memory
//! is bounded by the window of the coding (32 KiB, for br 4 MiB) whatever the body is. What a lenient reader might read
//! from the coded bytes themselves is refused: data behind the end of the stream, and long texts in a gzip header.

use std::fmt;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};

/// Codings one message may have.
pub const CODINGS_MAX: usize = 2;
/// Bytes of output that are never too many in relation to the input.
const RATIO_FREE_BYTES: u64 = 1 << 20;
/// Bytes of optional texts in a gzip header: a file name, as `gzip` writes it.
const GZIP_TEXT_BYTES_MAX: usize = 255;
/// Largest window of br, 4 MiB: what encoders use unless told otherwise.
const BROTLI_WINDOW_BITS_MAX: u8 = 22;
const PIECE_BYTES: usize = 16 << 10;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `gzip`, `x-gzip`
    Gzip,
    /// `deflate`: zlib, or without its header as some clients send it.
    Deflate,
    /// `br`
    Brotli,
}

/// Why a body in a content coding cannot be inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodingError {
    /// A coding that is not undone here, or more than [`CODINGS_MAX`].
    Unsupported,
    /// Not what the coding says.
    Malformed,
    /// Ends inside.
    Truncated,
    /// More bytes than [`CodingLimits::bytes_max`].
    TooLarge,
    /// Grows more than [`CodingLimits::ratio_max`] times.
    Bomb,
}

impl fmt::Display for CodingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CodingError::Unsupported => "the content coding is not supported",
            CodingError::Malformed => "the body is not in its content coding",
            CodingError::Truncated => "the body ends before its content coding does",
            CodingError::TooLarge => "the decoded body is over the limit",
            CodingError::Bomb => "the decoded body grows out of proportion",
        })
    }
}

/// Limits of what may come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodingLimits {
    /// Bytes.
    pub bytes_max: u64,
    /// Bytes of output for each byte of input; the first MiB is free.
    pub ratio_max: u64,
}

/// The codings named by all `Content-Encoding` fields of a message, in the order in which they were applied.
pub fn codings<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Coding>, CodingError> {
    let names = fields.into_iter().flat_map(|field| field.split(|&b| b == b',')).map(<[u8]>::trim_ascii);
    let mut out = Vec::new();
    for name in names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity")) {
        let coding = match name.to_ascii_lowercase().as_slice() {
            b"gzip" | b"x-gzip" => Coding::Gzip,
            b"deflate" => Coding::Deflate,
            b"br" => Coding::Brotli,
            _ => return Err(CodingError::Unsupported),
        };
        if out.len() == CODINGS_MAX {
            return Err(CodingError::Unsupported);
        }
        out.push(coding);
    }
    Ok(out)
}

/// Undoes the codings of one body.
#[derive(Debug)]
pub struct CodingDecoder {
    /// The last coding applied comes first.
    stages: Vec<Stage>,
    limits: CodingLimits,
    bytes_in: u64,
    bytes_out: u64,
}

impl CodingDecoder {
    /// A decoder for a body with these codings, in the order of the header.
    pub fn new(codings: &[Coding], limits: CodingLimits) -> CodingDecoder {
        let stages = codings.iter().rev().map(|coding| Stage::new(*coding)).collect();
        CodingDecoder { stages, limits, bytes_in: 0, bytes_out: 0 }
    }

    /// Bytes decoded so far.
    pub fn bytes_out(&self) -> u64 {
        self.bytes_out
    }

    /// Takes the next coded bytes and hands over what they decode to. Nothing may be fed after an error.
    pub fn feed(&mut self, chunk: &[u8], take: &mut dyn FnMut(&[u8])) -> Result<(), CodingError> {
        self.bytes_in += chunk.len() as u64;
        let CodingDecoder { stages, limits, bytes_in, bytes_out } = self;
        let allowed = bytes_in.saturating_mul(limits.ratio_max).max(RATIO_FREE_BYTES);
        let mut limited = |piece: &[u8]| {
            *bytes_out += piece.len() as u64;
            if *bytes_out > limits.bytes_max {
                return Err(CodingError::TooLarge);
            }
            if *bytes_out > allowed {
                return Err(CodingError::Bomb);
            }
            take(piece);
            Ok(())
        };
        match stages.as_mut_slice() {
            [] => limited(chunk),
            [only] => only.feed(chunk, &mut limited),
            [outer, inner @ ..] => {
                // CODINGS_MAX is two. What lies between the two is bounded, too.
                let mut between = 0;
                let most = limits.bytes_max.min(allowed);
                outer.feed(chunk, &mut |piece| {
                    between += piece.len() as u64;
                    if between > most {
                        return Err(CodingError::Bomb);
                    }
                    inner.iter_mut().try_for_each(|stage| stage.feed(piece, &mut limited))
                })
            }
        }
    }

    /// The body is complete. An empty body is no error.
    pub fn finish(&self) -> Result<(), CodingError> {
        match self.bytes_in == 0 || self.stages.iter().all(Stage::is_complete) {
            true => Ok(()),
            false => Err(CodingError::Truncated),
        }
    }
}

type Take<'t> = &'t mut dyn FnMut(&[u8]) -> Result<(), CodingError>;

/// One coding.
enum Stage {
    Gzip(Gzip),
    /// zlib or raw, once the first two bytes tell.
    Deflate {
        start: Vec<u8>,
        inflate: Option<Inflate>,
    },
    Brotli(Box<Brotli>),
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Gzip(_) => "Gzip",
            Stage::Deflate { .. } => "Deflate",
            Stage::Brotli(_) => "Brotli",
        })
    }
}

impl Stage {
    fn new(coding: Coding) -> Stage {
        match coding {
            Coding::Gzip => Stage::Gzip(Gzip::Header(Vec::new())),
            Coding::Deflate => Stage::Deflate { start: Vec::new(), inflate: None },
            Coding::Brotli => Stage::Brotli(Box::new(Brotli::new())),
        }
    }

    fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), CodingError> {
        match self {
            Stage::Gzip(gzip) => gzip.feed(chunk, take),
            Stage::Brotli(brotli) => brotli.feed(chunk, take),
            Stage::Deflate { start, inflate } => {
                let rest = match inflate {
                    Some(inflate) => inflate.feed(chunk, take)?,
                    None => {
                        start.extend_from_slice(chunk);
                        let [first, second, ..] = *start.as_slice() else { return Ok(()) };
                        let is_zlib =
                            first & 0x0F == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31);
                        let held = std::mem::take(start);
                        inflate.insert(Inflate::new(is_zlib)).feed(&held, take)?
                    }
                };
                if rest == 0 { Ok(()) } else { Err(CodingError::Malformed) }
            }
        }
    }

    fn is_complete(&self) -> bool {
        match self {
            Stage::Gzip(gzip) => matches!(gzip, Gzip::End),
            Stage::Deflate { inflate, .. } => inflate.as_ref().is_some_and(|inflate| inflate.ended),
            Stage::Brotli(brotli) => brotli.ended,
        }
    }
}

/// DEFLATE, with or without the zlib frame.
struct Inflate {
    state: Decompress,
    ended: bool,
}

impl Inflate {
    fn new(is_zlib: bool) -> Inflate {
        Inflate { state: Decompress::new(is_zlib), ended: false }
    }

    /// How many bytes of `chunk` lie behind the end of the stream.
    fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<usize, CodingError> {
        let mut piece = [0; PIECE_BYTES];
        let mut rest = chunk;
        while !self.ended {
            let (before_in, before_out) = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(rest, &mut piece, FlushDecompress::None);
            let status = status.map_err(|_| CodingError::Malformed)?;
            let used = (self.state.total_in() - before_in) as usize;
            let made = (self.state.total_out() - before_out) as usize;
            rest = &rest[used..];
            if made > 0 {
                take(&piece[..made])?;
            }
            self.ended = status == Status::StreamEnd;
            if used == 0 && made == 0 || rest.is_empty() && made < PIECE_BYTES {
                break;
            }
        }
        Ok(rest.len())
    }
}

/// RFC 1952, one member. The checksum is not looked at: readers have given the data to the application before it comes.
enum Gzip {
    Header(Vec<u8>),
    Data(Inflate),
    Trailer(usize),
    End,
}

impl Gzip {
    const TRAILER_BYTES: usize = 8;

    fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), CodingError> {
        let mut rest = chunk;
        if let Gzip::Header(held) = self {
            held.extend_from_slice(rest);
            let Some(length) = gzip_header_length(held)? else { return Ok(()) };
            let held = std::mem::take(held);
            *self = Gzip::Data(Inflate::new(false));
            return self.feed(&held[length..], take);
        }
        if let Gzip::Data(inflate) = self {
            let behind = inflate.feed(rest, take)?;
            if !inflate.ended {
                return Ok(());
            }
            rest = &rest[rest.len() - behind..];
            *self = Gzip::Trailer(Self::TRAILER_BYTES);
        }
        if let Gzip::Trailer(missing) = self {
            let here = rest.len().min(*missing);
            rest = &rest[here..];
            *missing -= here;
            if *missing == 0 {
                *self = Gzip::End;
            }
        }
        // A second member, or padding: some readers take it, some do not.
        if rest.is_empty() { Ok(()) } else { Err(CodingError::Malformed) }
    }
}

/// Length of a gzip header; `None` if there is not enough of it yet.
fn gzip_header_length(bytes: &[u8]) -> Result<Option<usize>, CodingError> {
    const START: [u8; 3] = [0x1F, 0x8B, 8];
    let (header_crc, extra, name, comment, reserved) = (2, 4, 8, 16, 0xE0);
    let known = bytes.len().min(START.len());
    if bytes[..known] != START[..known] {
        return Err(CodingError::Malformed);
    }
    let Some(&flags) = bytes.get(3) else { return Ok(None) };
    // Extra fields and comments are written by nobody but hold any text.
    if flags & (reserved | extra | comment) != 0 {
        return Err(CodingError::Malformed);
    }
    let mut length = 10;
    if flags & name != 0 {
        let Some(text) = bytes.get(length..) else { return Ok(None) };
        let window = &text[..text.len().min(GZIP_TEXT_BYTES_MAX + 1)];
        match memchr::memchr(0, window) {
            // A name that could be a form or markup to a reader of the coded bytes.
            Some(end) if memchr::memchr3(b'&', b'=', b'<', &text[..end]).is_some() => {
                return Err(CodingError::Malformed);
            }
            Some(end) => length += end + 1,
            None if text.len() > GZIP_TEXT_BYTES_MAX => return Err(CodingError::Malformed),
            None => return Ok(None),
        }
    }
    if flags & header_crc != 0 {
        length += 2;
    }
    Ok((bytes.len() >= length).then_some(length))
}

/// RFC 7932.
struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    begun: bool,
    ended: bool,
}

impl Brotli {
    fn new() -> Brotli {
        let alloc = StandardAlloc::default;
        let state = BrotliState::new_strict(alloc(), alloc(), alloc());
        Brotli { state, begun: false, ended: false }
    }

    fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), CodingError> {
        let Some(first) = chunk.first() else { return Ok(()) };
        if !std::mem::replace(&mut self.begun, true) && window_bits(*first) > BROTLI_WINDOW_BITS_MAX {
            return Err(CodingError::Unsupported);
        }
        if self.ended {
            return Err(CodingError::Malformed);
        }
        let mut piece = [0; PIECE_BYTES];
        let (mut left, mut at) = (chunk.len(), 0);
        loop {
            let (mut room, mut made, mut total) = (piece.len(), 0, 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut at,
                chunk,
                &mut room,
                &mut made,
                &mut piece,
                &mut total,
                &mut self.state,
            );
            if made > 0 {
                take(&piece[..made])?;
            }
            match result {
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => return Ok(()),
                BrotliResult::ResultFailure => return Err(CodingError::Malformed),
                BrotliResult::ResultSuccess => {
                    self.ended = true;
                    return if left == 0 { Ok(()) } else { Err(CodingError::Malformed) };
                }
            }
        }
    }
}

/// The window that the first byte of a br stream asks for; 0x11 is the escape to "large windows", which nobody sends.
fn window_bits(first: u8) -> u8 {
    match (first & 1, first >> 1 & 7, first >> 4 & 7) {
        (0, _, _) => 16,
        (_, 0, 0) => 17,
        (_, 0, 1) => u8::MAX,
        (_, 0, n) => 8 + n,
        (_, n, _) => 17 + n,
    }
}

#[cfg(test)]
#[path = "coding_tests.rs"]
mod tests;
