//! Encoders of content codings, fed piece by piece.

use std::io::{self, Write as _};

use portcullis_config::{Coding, CompressionLevel};

/// The window of brotli and of zstd, as a power of two: memory for each response is bounded, and clients can be sure to have room
/// (RFC 8878 asks for 8 MiB, RFC 9659 for no more).
const WINDOW_BITS: u32 = 18;
const BROTLI_BUFFER_BYTES: usize = 4096;

/// Puts a body into a content coding.
pub(crate) enum Encoder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Br(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
    /// It has ended.
    Done,
}

/// Bytes that an encoder takes, about.
pub(crate) fn memory(coding: Coding) -> usize {
    match coding {
        Coding::Gzip => 320 << 10,
        Coding::Br | Coding::Zstd => 2 << 20,
    }
}

impl Encoder {
    pub(crate) fn new(coding: Coding, level: CompressionLevel) -> io::Result<Encoder> {
        use CompressionLevel::{Best, Fast, Medium};
        Ok(match coding {
            Coding::Gzip => {
                let level = match level {
                    Fast => 1,
                    Medium => 5,
                    Best => 9,
                };
                Encoder::Gzip(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level)))
            }
            Coding::Br => {
                let quality = match level {
                    Fast => 1,
                    Medium => 4,
                    Best => 8,
                };
                let writer =
                    brotli::CompressorWriter::new(Vec::new(), BROTLI_BUFFER_BYTES, quality, WINDOW_BITS);
                Encoder::Br(Box::new(writer))
            }
            Coding::Zstd => {
                let level = match level {
                    Fast => 1,
                    Medium => 3,
                    Best => 12,
                };
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), level)?;
                encoder.window_log(WINDOW_BITS)?;
                Encoder::Zstd(Box::new(encoder))
            }
        })
    }

    pub(crate) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        match self {
            Encoder::Gzip(writer) => writer.write_all(data),
            Encoder::Br(writer) => writer.write_all(data),
            Encoder::Zstd(writer) => writer.write_all(data),
            Encoder::Done => Err(io::Error::other("the body has ended")),
        }
    }

    /// All that was written can be read from what has come out.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Encoder::Gzip(writer) => writer.flush(),
            Encoder::Br(writer) => writer.flush(),
            Encoder::Zstd(writer) => writer.flush(),
            Encoder::Done => Ok(()),
        }
    }

    /// Ends the body: the rest of it.
    pub(crate) fn finish(&mut self) -> io::Result<Vec<u8>> {
        match std::mem::replace(self, Encoder::Done) {
            Encoder::Gzip(writer) => writer.finish(),
            Encoder::Br(writer) => Ok(writer.into_inner()),
            Encoder::Zstd(writer) => writer.finish(),
            Encoder::Done => Ok(Vec::new()),
        }
    }

    /// What has come out and was not taken yet.
    pub(crate) fn out(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Encoder::Gzip(writer) => Some(writer.get_mut()),
            Encoder::Br(writer) => Some(writer.get_mut()),
            Encoder::Zstd(writer) => Some(writer.get_mut()),
            Encoder::Done => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn what_goes_in_comes_out_at_each_flush_and_at_the_end() {
        let parts: [&[u8]; 4] = [b"", b"hello, ", &[b'x'; 300_000], b"end"];
        for coding in [Coding::Gzip, Coding::Br, Coding::Zstd] {
            for level in [CompressionLevel::Fast, CompressionLevel::Medium, CompressionLevel::Best] {
                let mut encoder = Encoder::new(coding, level).unwrap();
                let mut coded = Vec::new();
                for part in parts {
                    encoder.write(part).unwrap();
                    encoder.flush().unwrap();
                    coded.append(encoder.out().unwrap());
                }
                coded.extend(encoder.finish().unwrap());
                assert!(encoder.finish().unwrap().is_empty() && encoder.write(b"x").is_err());
                assert_eq!(decoded(coding, &coded), parts.concat(), "{coding:?} {level:?}");
            }
        }
    }

    fn decoded(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match coding {
            Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out),
            Coding::Br => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out),
            Coding::Zstd => zstd::stream::read::Decoder::new(bytes).unwrap().read_to_end(&mut out),
        }
        .unwrap();
        out
    }
}
