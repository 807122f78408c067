//! The chunked transfer coding (RFC 9112, section 7.1), decoded without copying the data.

use super::body::{BodyError, Decoded};
use super::bytes::{CONTROL, class, is_blank};
use super::field::{is_continuation, split_field};
use super::lines::{Found, Lines};
use super::{Limits, semantics};
use crate::message::{Field, Fields};

#[derive(Clone, Debug)]
pub struct Chunked {
    limits: Limits,
    /// Blanks may follow a size.
    padding: bool,
    state: State,
    /// Bytes of the current chunk-size line.
    line_bytes: usize,
    /// Bytes of all extensions so far.
    extension_bytes: usize,
    trailer: Vec<u8>,
    trailer_lines: Lines,
    trailer_fields: Vec<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size { value: u64, digits: u32 },
    Padding { value: u64 },
    Extension { value: u64, quote: Quote },
    SizeEnd { value: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    Trailer,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quote {
    Outside,
    Inside,
    Escaped,
}

impl Chunked {
    pub fn new(limits: Limits, padding: bool) -> Self {
        Chunked {
            limits,
            padding,
            state: State::Size { value: 0, digits: 0 },
            line_bytes: 0,
            extension_bytes: 0,
            trailer: Vec::new(),
            trailer_lines: Lines::default(),
            trailer_fields: Vec::new(),
        }
    }

    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    pub fn saw_extensions(&self) -> bool {
        self.extension_bytes > 0
    }

    pub fn trailers(&self) -> Fields<'_> {
        Fields::new(&self.trailer, &self.trailer_fields)
    }

    pub fn decode<'b>(&mut self, input: &'b [u8]) -> Result<Decoded<'b>, BodyError> {
        let mut at = 0;
        while at < input.len() {
            match self.state {
                State::Data { left } => {
                    let available = input.len() - at;
                    let n = usize::try_from(left).map_or(available, |left| left.min(available));
                    let left = left - n as u64;
                    self.state = if left == 0 { State::DataCr } else { State::Data { left } };
                    return Ok(Decoded { data: &input[at..at + n], consumed: at + n, done: false });
                }
                State::Trailer => {
                    let taken = self.read_trailers(&input[at..])?;
                    return Ok(Decoded { data: &[], consumed: at + taken, done: self.is_done() });
                }
                State::Done => break,
                State::Size { .. }
                | State::Padding { .. }
                | State::Extension { .. }
                | State::SizeEnd { .. }
                | State::DataCr
                | State::DataLf => {
                    self.state = self.step(input[at])?;
                    at += 1;
                }
            }
        }
        Ok(Decoded { data: &[], consumed: at, done: self.is_done() })
    }

    /// One byte outside data and trailers.
    fn step(&mut self, byte: u8) -> Result<State, BodyError> {
        if !matches!(self.state, State::DataCr | State::DataLf) {
            self.line_bytes += 1;
            if self.line_bytes > self.limits.chunk_line_bytes_max {
                return Err(BodyError::ChunkLineTooLong);
            }
        }
        match self.state {
            State::Size { value, digits } => self.size(byte, value, digits),
            State::Padding { value } => match byte {
                b'\r' => Ok(State::SizeEnd { value }),
                b' ' | b'\t' => Ok(State::Padding { value }),
                b'\n' => Err(BodyError::InvalidChunkLineEnd),
                _ => Err(BodyError::InvalidChunkSize),
            },
            State::Extension { value, quote } => self.extension(byte, value, quote),
            State::SizeEnd { value } if byte == b'\n' => {
                self.line_bytes = 0;
                Ok(if value == 0 { State::Trailer } else { State::Data { left: value } })
            }
            State::SizeEnd { .. } => Err(BodyError::InvalidChunkLineEnd),
            State::DataCr if byte == b'\r' => Ok(State::DataLf),
            State::DataLf if byte == b'\n' => Ok(State::Size { value: 0, digits: 0 }),
            State::DataCr | State::DataLf => Err(BodyError::InvalidChunkEnd),
            state @ (State::Data { .. } | State::Trailer | State::Done) => Ok(state),
        }
    }

    fn size(&self, byte: u8, value: u64, digits: u32) -> Result<State, BodyError> {
        if let Some(digit) = char::from(byte).to_digit(16) {
            let value = (value << 4) | u64::from(digit); // at most 16 digits: nothing is shifted out
            if digits == 16 || value > self.limits.content_length_max {
                return Err(BodyError::ChunkTooLarge);
            }
            return Ok(State::Size { value, digits: digits + 1 });
        }
        match byte {
            _ if digits == 0 => Err(BodyError::InvalidChunkSize),
            b'\r' => Ok(State::SizeEnd { value }),
            b'\n' => Err(BodyError::InvalidChunkLineEnd),
            b';' => Ok(State::Extension { value, quote: Quote::Outside }),
            b if is_blank(b) && self.padding => Ok(State::Padding { value }),
            _ => Err(BodyError::InvalidChunkSize),
        }
    }

    fn extension(&mut self, byte: u8, value: u64, quote: Quote) -> Result<State, BodyError> {
        self.extension_bytes += 1;
        if self.extension_bytes > self.limits.chunk_extension_bytes_max {
            return Err(BodyError::ChunkExtensionsTooLong);
        }
        let quote = match (quote, byte) {
            (Quote::Outside, b'\r') => return Ok(State::SizeEnd { value }),
            (Quote::Outside, b'\n') => return Err(BodyError::InvalidChunkLineEnd),
            (_, b) if class(b) & CONTROL != 0 && b != b'\t' => return Err(BodyError::InvalidChunkExtension),
            (Quote::Outside, b'"') | (Quote::Escaped, _) => Quote::Inside,
            (Quote::Inside, b'"') => Quote::Outside,
            (Quote::Inside, b'\\') => Quote::Escaped,
            (same, _) => same,
        };
        Ok(State::Extension { value, quote })
    }

    /// Takes trailer bytes from `input` up to the end of the section; returns how many.
    fn read_trailers(&mut self, input: &[u8]) -> Result<usize, BodyError> {
        let before = self.trailer.len();
        let room = self.limits.trailer_bytes_max.saturating_sub(before);
        self.trailer.extend_from_slice(&input[..input.len().min(room)]);
        loop {
            let left = self.limits.trailer_bytes_max.saturating_sub(self.trailer_lines.start);
            let line = match self.trailer_lines.next(&self.trailer, left) {
                Found::Line(line) => line,
                Found::NeedMore => return Ok(self.trailer.len() - before),
                Found::TooLong => return Err(BodyError::TrailersTooLong),
            };
            if !line.crlf || is_continuation(&self.trailer, line) {
                return Err(BodyError::InvalidTrailer);
            }
            if line.start == line.end {
                self.trailer.truncate(line.next);
                self.state = State::Done;
                return Ok(line.next - before);
            }
            if self.trailer_fields.len() == self.limits.trailer_count_max {
                return Err(BodyError::TrailersTooLong);
            }
            let (field, problem) = split_field(&self.trailer, line);
            if problem.is_some() {
                return Err(BodyError::InvalidTrailer);
            }
            if semantics::forbidden_trailer(field.name.of(&self.trailer)) {
                return Err(BodyError::ForbiddenTrailer);
            }
            self.trailer_fields.push(field);
        }
    }
}
