//! gzip (RFC 1952) and DEFLATE (RFC 1951, RFC 1950).

use flate2::{Decompress, FlushDecompress, Status};

use super::{CodingError, PIECE_BYTES, Take};

/// Bytes of optional texts in a gzip header: a file name, as `gzip` writes it.
const GZIP_TEXT_BYTES_MAX: usize = 255;
/// The checksum and the length behind the data.
pub(super) const GZIP_TRAILER_BYTES: usize = 8;

/// DEFLATE, with or without the zlib frame.
pub(super) struct Inflate {
    state: Decompress,
    pub(super) ended: bool,
}

impl Inflate {
    /// Memory of the decoder's state: the window of 32 KiB and the tables.
    pub(super) const MEMORY_BYTES: usize = 48 << 10;

    pub(super) fn new(is_zlib: bool) -> Inflate {
        Inflate { state: Decompress::new(is_zlib), ended: false }
    }

    /// Decodes `chunk`; returns the number of its bytes that lie behind the end of the stream.
    pub(super) fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<usize, CodingError> {
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

/// RFC 1952, one member. The checksum is not looked at: readers have given the data to the application before
/// it comes.
pub(super) enum Gzip {
    Header(Vec<u8>),
    Data(Inflate),
    Trailer(usize),
    End,
}

impl Gzip {
    /// Bytes of memory that it takes, about.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Gzip::Header(held) => held.capacity(),
            Gzip::Data(_) => Inflate::MEMORY_BYTES,
            Gzip::Trailer(_) | Gzip::End => 0,
        }
    }

    pub(super) fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), CodingError> {
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
            *self = Gzip::Trailer(GZIP_TRAILER_BYTES);
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
pub(super) fn gzip_header_length(bytes: &[u8]) -> Result<Option<usize>, CodingError> {
    const START: [u8; 3] = [0x1F, 0x8B, 8];
    let (header_crc, extra, name, comment, reserved) = (2, 4, 8, 16, 0xE0);
    let known = bytes.len().min(START.len());
    if bytes[..known] != START[..known] {
        return Err(CodingError::Malformed);
    }
    let Some(&flags) = bytes.get(3) else { return Ok(None) };
    // Extra fields and comments are unused in practice but hold any text.
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
