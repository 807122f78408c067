//! The frames in a stream of bytes, cut anywhere: their headers, and the beginning of their payload. What
//! they mean is the library's; this only tells what kinds come, and how many.

/// Length of a frame header (RFC 9113, section 4.1).
const HEADER_BYTES: usize = 9;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const END_STREAM: u8 = 1;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) length: usize,
    pub(super) stream: u32,
}

/// The position in the stream.
pub(super) struct Frames {
    /// Bytes before the first frame that are none: the preface of a client.
    skip: usize,
    header: [u8; HEADER_BYTES],
    have: usize,
    /// Bytes of the payload that are still to come.
    left: usize,
    /// Bytes of a payload that are kept.
    keep: usize,
    payload: Vec<u8>,
    told: bool,
}

impl Frames {
    /// `skip` bytes precede the first frame; of each payload `keep` bytes are shown.
    pub(super) fn new(skip: usize, keep: usize) -> Self {
        Frames { skip, header: [0; HEADER_BYTES], have: 0, left: 0, keep, payload: Vec::new(), told: true }
    }

    /// Looks at the next `bytes`, and tells of each frame once its header and what is kept of its payload
    /// have come.
    pub(super) fn scan(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Frame, &[u8])) {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() || !self.told {
            if self.told && self.left == 0 {
                let taken = (HEADER_BYTES - self.have).min(bytes.len());
                self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
                self.have += taken;
                bytes = &bytes[taken..];
                if self.have < HEADER_BYTES {
                    return;
                }
                self.have = 0;
                self.left = self.frame().length;
                self.told = false;
                self.payload.clear();
            }
            let taken = self.left.min(bytes.len());
            let kept = (self.keep - self.payload.len()).min(taken);
            self.payload.extend_from_slice(&bytes[..kept]);
            self.left -= taken;
            bytes = &bytes[taken..];
            if !self.told {
                if self.payload.len() < self.keep.min(self.frame().length) {
                    return;
                }
                self.told = true;
                tell(self.frame(), &self.payload);
            }
        }
    }

    fn frame(&self) -> Frame {
        let [a, b, c, kind, flags, stream @ ..] = self.header;
        Frame {
            kind,
            flags,
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_the_bytes_are_cut() {
        let mut bytes = b"PRI".to_vec();
        bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
        bytes.extend([0, 0, 5, 0, 1, 0x80, 0, 0, 7]);
        bytes.extend(b"hello");
        bytes.extend([0, 0, 4, 3, 0, 0, 0, 0, 7, 0, 0, 0, 8]);
        for keep in [0, 4, 64] {
            let expected = |kind, flags, stream, payload: &[u8]| {
                let frame = Frame { kind, flags, length: payload.len(), stream };
                (frame, payload[..payload.len().min(keep)].to_vec())
            };
            let expected = [
                expected(4, 0, 0, b""),
                expected(DATA, END_STREAM, 7, b"hello"),
                expected(RST_STREAM, 0, 7, &[0, 0, 0, 8]),
            ];
            for size in 1..=bytes.len() {
                let (mut frames, mut seen) = (Frames::new(3, keep), Vec::new());
                for piece in bytes.chunks(size) {
                    frames.scan(piece, |frame, payload| seen.push((frame, payload.to_vec())));
                }
                assert_eq!(seen, expected, "pieces of {size}, {keep} kept");
            }
        }
    }
}
