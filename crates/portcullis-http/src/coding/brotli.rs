//! br (RFC 7932).

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{CodingError, PIECE_BYTES, Take};

/// Largest window, 4 MiB: what encoders use unless told otherwise.
const BROTLI_WINDOW_BITS_MAX: u8 = 22;

/// Tables beside the window.
const STATE_BYTES: usize = 64 << 10;

/// RFC 7932.
pub(super) struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    begun: bool,
    window_bits: u8,
    pub(super) ended: bool,
}

impl Brotli {
    pub(super) fn new() -> Brotli {
        let alloc = StandardAlloc::default;
        let state = BrotliState::new_strict(alloc(), alloc(), alloc());
        Brotli { state, begun: false, window_bits: 0, ended: false }
    }

    /// Bytes of memory that it takes, about: the window, and tables that grow with the stream's.
    pub(super) fn held_bytes(&self) -> usize {
        match self.begun {
            true => (1 << self.window_bits) + STATE_BYTES,
            false => STATE_BYTES,
        }
    }

    pub(super) fn feed(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), CodingError> {
        let Some(first) = chunk.first() else { return Ok(()) };
        if !std::mem::replace(&mut self.begun, true) {
            self.window_bits = window_bits(*first);
            if self.window_bits > BROTLI_WINDOW_BITS_MAX {
                return Err(CodingError::Unsupported);
            }
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

/// The window that the first byte of a br stream asks for; 0x11 is the escape to "large windows", which
/// no client sends.
fn window_bits(first: u8) -> u8 {
    match (first & 1, first >> 1 & 7, first >> 4 & 7) {
        (0, _, _) => 16,
        (_, 0, 0) => 17,
        (_, 0, 1) => u8::MAX,
        (_, 0, n) => 8 + n,
        (_, n, _) => 17 + n,
    }
}
