//! `Content-Encoding` undone for inspection: gzip, deflate, br, zstd, snappy and the framing `aws-chunked`,
//! in any number up to [`CODINGS_MAX`], under limits.
//!
//! ```text
//! chunks ──feed──> [br] ──> [gzip] ──> pieces of at most 16 KiB
//!                    └────────┴── CodingError: malformed, or over a limit
//! ```
//!
//! The output is bounded in bytes and in relation to the input, so that a small body cannot become a large
//! one; memory is bounded by the window of the coding (32 KiB, for br 4 MiB, for zstd 8 MiB, for snappy what
//! comes out) whatever the body is. Data that a lenient reader might read from the coded bytes themselves is
//! refused: bytes behind the end of the stream, and long texts in a gzip header.

mod aws_chunked;
mod brotli;
mod gzip;
mod snappy;
mod whole;
mod zstd;

use std::fmt;

use self::aws_chunked::AwsChunked;
use self::brotli::Brotli;
use self::gzip::{Gzip, Inflate};
use self::snappy::Snappy;
pub use self::whole::{Packing, unpack};
use self::zstd::Zstd;

/// Codings one message may have.
pub const CODINGS_MAX: usize = 2;
/// Bytes of output that are never too many in relation to the input.
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
    /// `zstd`
    Zstd,
    /// `snappy`: the block format, or frames as some clients send it.
    Snappy,
    /// `x-snappy-framed`
    SnappyFramed,
    /// `aws-chunked`: no compression but a frame.
    AwsChunked,
}

impl Coding {
    /// The coding of this name, in any case.
    pub fn from_name(name: &[u8]) -> Option<Coding> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"gzip" | b"x-gzip" => Coding::Gzip,
            b"deflate" => Coding::Deflate,
            b"br" => Coding::Brotli,
            b"zstd" => Coding::Zstd,
            b"snappy" => Coding::Snappy,
            b"x-snappy-framed" => Coding::SnappyFramed,
            b"aws-chunked" => Coding::AwsChunked,
            _ => return None,
        })
    }
}

/// The reason why a body in a content coding cannot be inspected.
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
    /// Bytes of output for each byte of input, beyond [`free_bytes`](CodingLimits::free_bytes).
    pub ratio_max: u64,
    /// Bytes of output that are never too many in relation to the input.
    pub free_bytes: u64,
}

/// The names in all `Content-Encoding` fields of a message, without `identity`.
pub fn coding_names<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    let names = fields.into_iter().flat_map(|field| field.split(|&b| b == b',')).map(<[u8]>::trim_ascii);
    names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity"))
}

/// The codings named by all `Content-Encoding` fields of a message, in the order in which they were applied.
/// The frame of S3 is around all others, wherever clients name it.
pub fn codings<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Coding>, CodingError> {
    let mut out = Vec::new();
    for name in coding_names(fields) {
        let coding = Coding::from_name(name).ok_or(CodingError::Unsupported)?;
        if out.len() == CODINGS_MAX || coding == Coding::AwsChunked && out.contains(&coding) {
            return Err(CodingError::Unsupported);
        }
        out.push(coding);
    }
    out.sort_by_key(|coding| *coding == Coding::AwsChunked);
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

    /// Bytes of memory that it takes, about: the windows of its codings, for the most part.
    pub fn held_bytes(&self) -> usize {
        self.stages.iter().map(Stage::held_bytes).sum()
    }

    /// Bytes that were in the frame of S3; none if there is no such frame.
    pub fn framed_bytes(&self) -> Option<u64> {
        match self.stages.first() {
            Some(Stage::AwsChunked(frame)) => Some(frame.data_bytes()),
            _ => None,
        }
    }

    /// Takes the next coded bytes and hands over what they decode to. Nothing may be fed after an error.
    pub fn feed(&mut self, chunk: &[u8], take: &mut dyn FnMut(&[u8])) -> Result<(), CodingError> {
        self.bytes_in += chunk.len() as u64;
        let CodingDecoder { stages, limits, bytes_in, bytes_out } = self;
        let allowed = bytes_in.saturating_mul(limits.ratio_max).max(limits.free_bytes);
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
                // CODINGS_MAX is two. Data between the two is bounded, too.
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
        // What is framed has at least its last chunk.
        let may_be_empty = !matches!(self.stages.first(), Some(Stage::AwsChunked(_)));
        match may_be_empty && self.bytes_in == 0 || self.stages.iter().all(Stage::is_complete) {
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
    Zstd(Box<Zstd>),
    Snappy(Snappy),
    AwsChunked(AwsChunked),
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Gzip(_) => "Gzip",
            Stage::Deflate { .. } => "Deflate",
            Stage::Brotli(_) => "Brotli",
            Stage::Zstd(_) => "Zstd",
            Stage::Snappy(_) => "Snappy",
            Stage::AwsChunked(_) => "AwsChunked",
        })
    }
}

impl Stage {
    fn new(coding: Coding) -> Stage {
        match coding {
            Coding::Gzip => Stage::Gzip(Gzip::Header(Vec::new())),
            Coding::Deflate => Stage::Deflate { start: Vec::new(), inflate: None },
            Coding::Brotli => Stage::Brotli(Box::new(Brotli::new())),
            Coding::Zstd => Stage::Zstd(Box::new(Zstd::new())),
            Coding::Snappy => Stage::Snappy(Snappy::new(false)),
            Coding::SnappyFramed => Stage::Snappy(Snappy::new(true)),
            Coding::AwsChunked => Stage::AwsChunked(AwsChunked::new()),
        }
    }

    fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), CodingError> {
        match self {
            Stage::Gzip(gzip) => gzip.feed(chunk, take),
            Stage::Brotli(brotli) => brotli.feed(chunk, take),
            Stage::Zstd(zstd) => zstd.feed(chunk, take),
            Stage::Snappy(snappy) => snappy.feed(chunk, take),
            Stage::AwsChunked(frame) => frame.feed(chunk, take),
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

    fn held_bytes(&self) -> usize {
        match self {
            Stage::Gzip(gzip) => gzip.held_bytes(),
            Stage::Deflate { start, inflate } => {
                start.capacity() + inflate.as_ref().map_or(0, |_| Inflate::MEMORY_BYTES)
            }
            Stage::Brotli(brotli) => brotli.held_bytes(),
            Stage::Zstd(zstd) => zstd.held_bytes(),
            Stage::Snappy(snappy) => snappy.held_bytes(),
            Stage::AwsChunked(frame) => frame.held_bytes(),
        }
    }

    fn is_complete(&self) -> bool {
        match self {
            Stage::Gzip(gzip) => matches!(gzip, Gzip::End),
            Stage::Deflate { inflate, .. } => inflate.as_ref().is_some_and(|inflate| inflate.ended),
            Stage::Brotli(brotli) => brotli.ended,
            Stage::Zstd(zstd) => zstd.has_ended(),
            Stage::Snappy(snappy) => snappy.is_complete(),
            Stage::AwsChunked(frame) => frame.is_complete(),
        }
    }
}

#[cfg(test)]
#[path = "coding_tests.rs"]
mod tests;
