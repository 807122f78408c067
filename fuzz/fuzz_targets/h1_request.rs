//! Request heads: no input panics, no way of cutting it changes the outcome, and what is accepted goes
//! upstream as a head that the strict parser takes and reads alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_http::h1::{
    BodyFraming, Compat, Limits, Parsed, RequestHead, RequestParser, RequestRewrite, Version, write_request,
};

/// Small enough for inputs of a few hundred bytes to run into each.
const TIGHT: Limits = Limits {
    request_line_bytes_max: 64,
    header_bytes_max: 48,
    head_bytes_max: 256,
    header_count_max: 8,
    empty_lines_max: 1,
    content_length_max: 1 << 20,
    chunk_line_bytes_max: 32,
    chunk_extension_bytes_max: 48,
    trailer_bytes_max: 64,
    trailer_count_max: 2,
};

// Bytes 0 and 1: mode and the place of the cut. The rest: the input.
fuzz_target!(|data: &[u8]| {
    let [mode, cut, input @ ..] = data else { return };
    let compat = if mode & 1 == 0 { Compat::Strict } else { Compat::Apache };
    let limits = if mode & 2 == 0 { Limits::default() } else { TIGHT };

    let whole = RequestParser::new(limits, compat).end(input);
    let at = usize::from(*cut) * (input.len() + 1) / 256;
    assert_eq!(format!("{:?}", cut_at(limits, compat, input, [at, at + (input.len() - at) / 2])), format!("{whole:?}"));
    if input.len() < 128 {
        assert_eq!(format!("{:?}", cut_at(limits, compat, input, 0..input.len())), format!("{whole:?}"));
    }

    match whole {
        Some(Parsed::Head(head)) => forwards_as_read(&head),
        Some(Parsed::Refused { partial, refusal }) => {
            assert!(partial.received_len() <= input.len());
            assert!((400..=505).contains(&refusal.status()));
            let _ = (partial.path_and_query(), partial.fields().count(), partial.host(), partial.version_bytes());
        }
        Some(Parsed::NeedMore) => panic!("the end of the input settles it"),
        None => {}
    }
});

fn cut_at(limits: Limits, compat: Compat, input: &[u8], ends: impl IntoIterator<Item = usize>) -> Option<Parsed> {
    let mut parser = RequestParser::new(limits, compat);
    for end in ends {
        match parser.parse(&input[..end]) {
            Parsed::NeedMore => {}
            outcome => return Some(outcome),
        }
    }
    parser.end(input)
}

fn forwards_as_read(head: &RequestHead) {
    if head.version() == Version::Http09 || head.method() == b"CONNECT" {
        return;
    }
    let host = if head.host().is_empty() { &b"h"[..] } else { head.host() };
    let how = RequestRewrite { framing: head.framing(), host: Some(host), upgrade: true, ..RequestRewrite::default() };
    let mut out = Vec::new();
    write_request(head, &how, &mut out);
    let roomy = Limits { head_bytes_max: 1 << 20, header_bytes_max: 1 << 20, ..Limits::default() };
    let Parsed::Head(again) = RequestParser::new(roomy, Compat::Strict).parse(&out) else {
        panic!("not accepted again: {}", out.escape_ascii());
    };
    assert_eq!(again.received_len(), out.len());
    assert_eq!((again.method(), again.query()), (head.method(), head.query()));
    assert_eq!((again.framing(), again.host()), (head.framing(), host));
    assert!(again.fields().len() <= head.fields().len() + 2);
    if again.framing() == BodyFraming::Chunked {
        assert_eq!(again.header("content-length").count(), 0);
    }
}
