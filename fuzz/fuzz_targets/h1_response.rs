//! Response heads: no input panics, no way of cutting it changes the outcome, and what is accepted goes to
//! the client as a head that reads alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_http::h1::{Limits, ResponseError, ResponseHead, ResponseParser, ResponseRewrite, write_response};

// Byte 0: the place of the cut. The rest: the input.
fuzz_target!(|data: &[u8]| {
    let [cut, input @ ..] = data else { return };
    let whole = ResponseParser::new(Limits::default()).parse(input);
    let at = usize::from(*cut) * (input.len() + 1) / 256;
    assert_eq!(text(&cut_at(input, [at])), text(&whole));
    if input.len() < 128 {
        assert_eq!(text(&cut_at(input, 0..input.len())), text(&whole));
    }

    let Ok(Some(head)) = whole else { return };
    for method in [&b"GET"[..], b"HEAD", b"CONNECT"] {
        let framing = head.framing(method);
        let how = ResponseRewrite { framing, describes_length: method == b"HEAD", ..ResponseRewrite::default() };
        let mut out = Vec::new();
        write_response(&head, &how, &mut out);
        let again = ResponseParser::new(roomy()).parse(&out).expect("well formed").expect("complete");
        assert_eq!(again.received_len(), out.len());
        assert_eq!((again.status(), again.reason()), (head.status(), head.reason()));
        assert_eq!(again.framing(method), framing);
    }
});

/// The writer adds a few headers of its own to a head that may be at the limits already.
fn roomy() -> Limits {
    let limits = Limits::default();
    Limits {
        header_count_max: limits.header_count_max + 8,
        head_bytes_max: limits.head_bytes_max + 1024,
        ..limits
    }
}

type Outcome = Result<Option<ResponseHead>, ResponseError>;

fn text(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

fn cut_at(input: &[u8], ends: impl IntoIterator<Item = usize>) -> Outcome {
    let mut parser = ResponseParser::new(Limits::default());
    for end in ends {
        match parser.parse(&input[..end]) {
            Ok(None) => {}
            outcome => return outcome,
        }
    }
    parser.parse(input)
}
