//! Message bodies: no input panics, no way of cutting it changes what is decoded or where the body ends, and
//! a body chunked by us decodes to itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_http::h1::{BodyDecoder, BodyError, BodyFraming, CHUNK_END, LAST_CHUNK, Limits, write_chunk_size};

const LIMITS: Limits = Limits {
    request_line_bytes_max: 64,
    header_bytes_max: 64,
    head_bytes_max: 256,
    header_count_max: 8,
    empty_lines_max: 1,
    content_length_max: 1 << 40,
    chunk_line_bytes_max: 32,
    chunk_extension_bytes_max: 48,
    trailer_bytes_max: 64,
    trailer_count_max: 2,
};

// Byte 0: which framing. Byte 1: the size of the pieces. The rest: the input.
fuzz_target!(|data: &[u8]| {
    let [mode, size, input @ ..] = data else { return };
    let framing = match mode & 7 {
        0 => BodyFraming::None,
        1 => BodyFraming::Length(u64::from(mode >> 3)),
        2 => BodyFraming::UntilClose,
        _ => BodyFraming::Chunked,
    };
    let decoder = match mode & 8 {
        0 => BodyDecoder::request(framing, &LIMITS),
        _ => BodyDecoder::response(framing, &LIMITS),
    };
    let whole = decode(decoder.clone(), [input]);
    let pieces = decode(decoder.clone(), input.chunks(usize::from(*size).max(1)));
    assert_eq!(whole, pieces);
    assert_eq!(whole, decode(decoder, input.chunks(1)));

    let mut chunked = Vec::new();
    for piece in input.chunks(usize::from(*size).max(1)) {
        write_chunk_size(piece.len(), &mut chunked);
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(CHUNK_END);
    }
    chunked.extend_from_slice(LAST_CHUNK);
    let len = chunked.len();
    chunked.extend_from_slice(input);
    let again = decode(BodyDecoder::request(BodyFraming::Chunked, &LIMITS), [&chunked[..]]);
    assert_eq!((&again.body[..], again.end), (input, Ok(Some(len))));
});

#[derive(Debug, PartialEq)]
struct Outcome {
    body: Vec<u8>,
    /// Where the body ends, if it does.
    end: Result<Option<usize>, BodyError>,
    trailers: Vec<(Vec<u8>, Vec<u8>)>,
}

fn decode<'a>(mut decoder: BodyDecoder, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let (mut body, mut consumed) = (Vec::new(), 0);
    let mut failed = None;
    'pieces: for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() && !decoder.is_done() {
            match decoder.decode(rest) {
                Ok(step) => {
                    assert!(step.consumed > 0, "progress");
                    body.extend_from_slice(step.data);
                    consumed += step.consumed;
                    rest = &rest[step.consumed..];
                }
                Err(error) => {
                    failed = Some(error);
                    assert_eq!(decoder.decode(rest), Err(error), "an error stays");
                    break 'pieces;
                }
            }
        }
    }
    assert_eq!(decoder.decoded_len(), body.len() as u64);
    let trailers = match failed {
        None if decoder.is_done() => decoder.trailers().map(|(name, value)| (name.to_vec(), value.to_vec())).collect(),
        _ => Vec::new(),
    };
    let end = match failed {
        Some(error) => Err(error),
        None => Ok(decoder.is_done().then_some(consumed)),
    };
    Outcome { body, end, trailers }
}
