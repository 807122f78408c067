//! Encoders of content codings, fed piece by piece.

use std::io::{self, Write as _};

use portcullis_config::{Coding, CompressionLevel};

/// The window of brotli and of zstd, as a power of two: memory for each response is bounded, and clients can
/// be sure to have room (RFC 8878 asks for 8 MiB, RFC 9659 for no more).
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

/// Tables of zstd, as powers of two: its levels ask for more the higher they are, as if windows were.
const ZSTD_TABLE_BITS_MAX: u32 = 17;

/// Bytes that an encoder takes at most.
pub(crate) fn memory(coding: Coding, level: CompressionLevel) -> usize {
    use CompressionLevel::{Best, Fast, Medium};
    match (coding, level) {
        (Coding::Gzip, _) => 512 << 10,
        (Coding::Br, Fast | Medium) => 2 << 20,
        (Coding::Zstd, Fast) => 3 << 19,
        (Coding::Zstd, Medium) => 2 << 20,
        (Coding::Br, Best) => 6 << 20,
        (Coding::Zstd, Best) => 3 << 20,
    }
}

fn zstd_level(level: CompressionLevel) -> i32 {
    match level {
        CompressionLevel::Fast => 1,
        CompressionLevel::Medium => 3,
        CompressionLevel::Best => 12,
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
                    // Each one more doubles the table, 2 MiB here, for some thousandths of the size.
                    Best => 6,
                };
                let writer =
                    brotli::CompressorWriter::new(Vec::new(), BROTLI_BUFFER_BYTES, quality, WINDOW_BITS);
                Encoder::Br(Box::new(writer))
            }
            Coding::Zstd => {
                let level = zstd_level(level);
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), level)?;
                encoder.window_log(WINDOW_BITS)?;
                if level == zstd_level(Best) {
                    encoder.set_parameter(zstd::zstd_safe::CParameter::HashLog(ZSTD_TABLE_BITS_MAX))?;
                    encoder.set_parameter(zstd::zstd_safe::CParameter::ChainLog(ZSTD_TABLE_BITS_MAX))?;
                }
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

    /// The number of coded bytes that were not taken yet.
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

    /// Memory of the process, in bytes.
    fn resident() -> usize {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    /// Memory of each of several encoders that have seen all of `text`.
    fn taken_by_each(coding: Coding, level: CompressionLevel, text: &[u8]) -> usize {
        let before = resident();
        let mut encoders: Vec<Encoder> = Vec::new();
        for _ in 0..16 {
            let mut encoder = Encoder::new(coding, level).unwrap();
            for piece in text.chunks(16 << 10) {
                encoder.write(piece).unwrap();
                drop(encoder.out().map(std::mem::take));
            }
            encoders.push(encoder);
        }
        resident().saturating_sub(before) / encoders.len()
    }

    #[test]
    fn no_encoder_takes_more_than_is_charged() {
        // What compresses little fills every table.
        let mut state = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b"abcdefghijklmnop"[(state >> 60) as usize]
        })
        .take(1 << 20)
        .collect();
        for coding in [Coding::Gzip, Coding::Br, Coding::Zstd] {
            for level in [CompressionLevel::Fast, CompressionLevel::Medium, CompressionLevel::Best] {
                let charged = memory(coding, level);
                // Other tests take memory meanwhile, but not each time.
                let mut each = usize::MAX;
                for _ in 0..5 {
                    each = each.min(taken_by_each(coding, level, &noise));
                    if each <= charged + charged / 4 {
                        break;
                    }
                }
                assert!(each <= charged + charged / 4, "{coding:?} {level:?}: {each} of {charged} bytes");
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
