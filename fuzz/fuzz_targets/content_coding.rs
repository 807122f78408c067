//! Byte 0: the codings; byte 1: the size of the chunks; the rest: a coded body. Any chunking gives the same
//! bytes and the same result, the limits hold, and values have second readings that are no longer than three
//! times as long. The same body is decoded from a character set, whole and in chunks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_http::body::second_reading;
use portcullis_http::body::transcode::{Foreign, Transcoder};
use portcullis_http::coding::{CodingDecoder, CodingError, CodingLimits, codings};

const LIMITS: CodingLimits = CodingLimits { bytes_max: 1 << 20, ratio_max: 100, free_bytes: 1 << 20 };

fn decode(header: &[u8], body: &[u8], chunk: usize) -> (Vec<u8>, Result<(), CodingError>) {
    let mut decoder = CodingDecoder::new(&codings([header]).unwrap_or_default(), LIMITS);
    let mut out = Vec::new();
    let mut result = body.chunks(chunk).try_for_each(|chunk| decoder.feed(chunk, &mut |data| out.extend_from_slice(data)));
    result = result.and_then(|()| decoder.finish());
    (out, result)
}

fuzz_target!(|data: &[u8]| {
    let [header, chunk, body @ ..] = data else { return };
    let headers: [&[u8]; 11] = [
        b"gzip",
        b"deflate",
        b"br",
        b"gzip, br",
        b"deflate, gzip",
        b"zstd",
        b"zstd, gzip",
        b"snappy",
        b"snappy, gzip",
        b"aws-chunked",
        b"aws-chunked, snappy",
    ];
    let header = headers[usize::from(*header) % headers.len()];
    let (whole, result) = decode(header, body, body.len().max(1));
    let (pieces, same) = decode(header, body, usize::from(*chunk) + 1);
    assert!(whole.len() as u64 <= LIMITS.bytes_max);
    if result.is_ok() {
        assert_eq!((whole, result), (pieces, same));
    }
    if let Some(reading) = second_reading(body, None) {
        assert!(reading.len() <= 3 * body.len() && reading != body);
    }
    let labels: [&[u8]; 6] = [b"utf-7", b"utf-16", b"utf-16be", b"utf-32", b"ibm037", b"ibm500"];
    let Some(foreign) = Foreign::from_label(labels[usize::from(*chunk) % labels.len()]) else { return };
    let text = foreign.decode(body);
    let (mut pieces, mut transcoder) = (Vec::new(), Transcoder::new(foreign));
    body.chunks(usize::from(*chunk) + 1).for_each(|chunk| transcoder.feed(chunk, &mut pieces));
    transcoder.finish(&mut pieces);
    assert_eq!(text, pieces);
    assert!(text.len() <= 3 * body.len() + 3 && std::str::from_utf8(&text).is_ok());
});
