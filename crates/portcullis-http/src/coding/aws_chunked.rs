//! `aws-chunked`: the framing in which clients of S3 send objects, with a signature for each chunk or a
//! checksum behind the last one.
//!
//! ```text
//! size in hex [";chunk-signature=" signature] CRLF data CRLF ... "0" [";chunk-signature=" signature] CRLF
//! [name ":" value line end]* [CRLF]
//! ```
//!
//! Nothing may stand in the frame that could be a text to an application which does not know the coding: a
//! chunk has no other extension than its signature, and what follows the last one are fields of S3.

use super::{CodingError, Take};

/// Bytes of the line before a chunk: 16 digits and a signature of 256 bytes.
const LINE_BYTES_MAX: usize = 300;
/// Bytes behind the last chunk.
const TRAILERS_BYTES_MAX: usize = 4 << 10;
const SIGNATURE: &[u8] = b"chunk-signature=";

#[derive(Debug)]
enum State {
    /// In the line before a chunk.
    Size,
    /// So many bytes of the chunk are to come.
    Data(u64),
    /// In the line end behind a chunk.
    DataEnd,
    /// Behind the last chunk.
    Trailers,
}

/// Takes the frame off.
#[derive(Debug)]
pub(super) struct AwsChunked {
    state: State,
    /// The line that has begun.
    line: Vec<u8>,
    trailers_bytes: usize,
    data_bytes: u64,
}

impl AwsChunked {
    pub(super) fn new() -> AwsChunked {
        AwsChunked { state: State::Size, line: Vec::new(), trailers_bytes: 0, data_bytes: 0 }
    }

    pub(super) fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), CodingError> {
        let mut rest = chunk;
        while !rest.is_empty() {
            match &mut self.state {
                State::Size => {
                    let Some(line) = next_line(&mut self.line, &mut rest, LINE_BYTES_MAX)? else { break };
                    self.state = match size(&line).ok_or(CodingError::Malformed)? {
                        0 => State::Trailers,
                        size => State::Data(size),
                    };
                }
                State::Data(left) => {
                    let here = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    let (data, behind) = rest.split_at(here);
                    rest = behind;
                    *left -= here as u64;
                    self.data_bytes += here as u64;
                    if *left == 0 {
                        self.state = State::DataEnd;
                    }
                    take(data)?;
                }
                State::DataEnd => {
                    let Some(line) = next_line(&mut self.line, &mut rest, 2)? else { break };
                    if line != b"\r\n" {
                        return Err(CodingError::Malformed);
                    }
                    self.state = State::Size;
                }
                State::Trailers => {
                    let before = rest.len();
                    let line = next_line(&mut self.line, &mut rest, LINE_BYTES_MAX)?;
                    self.trailers_bytes += before - rest.len();
                    if self.trailers_bytes > TRAILERS_BYTES_MAX || !line.is_none_or(|line| is_trailer(&line))
                    {
                        return Err(CodingError::Malformed);
                    }
                }
            }
        }
        Ok(())
    }

    /// Bytes that were in the frame.
    pub(super) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// The last chunk has come, and no line behind it is open.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.state, State::Trailers) && self.line.is_empty()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.line.capacity()
    }
}

/// The line that ends in `rest`, with its earlier part in `held`; none if it does not end there.
fn next_line(held: &mut Vec<u8>, rest: &mut &[u8], bytes_max: usize) -> Result<Option<Vec<u8>>, CodingError> {
    let end = memchr::memchr(b'\n', rest).map(|at| at + 1);
    let (here, behind) = rest.split_at(end.unwrap_or(rest.len()));
    if held.len() + here.len() > bytes_max {
        return Err(CodingError::Malformed);
    }
    held.extend_from_slice(here);
    *rest = behind;
    Ok(end.map(|_| std::mem::take(held)))
}

/// The size that the line before a chunk names.
fn size(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(b"\r\n")?;
    let (digits, extension) = match memchr::memchr(b';', line) {
        Some(at) => (&line[..at], Some(&line[at + 1..])),
        None => (line, None),
    };
    let is_signed = extension.is_none_or(|text| {
        // A signature by an elliptic curve is filled up with asterisks.
        let is_sign = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'*';
        text.strip_prefix(SIGNATURE).is_some_and(|text| !text.is_empty() && text.iter().all(is_sign))
    });
    if !is_signed || !(1..=16).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// A checksum or signature of S3, or an empty line. Clients end these lines in different ways.
fn is_trailer(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let Some(at) = memchr::memchr(b':', line) else { return line.is_empty() };
    let (name, value) = (&line[..at], line[at + 1..].trim_ascii());
    let is_name = name.len() > 6 && name[..6].eq_ignore_ascii_case(b"x-amz-");
    is_name
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=*-_".contains(byte))
}
