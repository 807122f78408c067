//! PROXY headers: no input panics, a beginning of a header needs more or fails alike, and nothing is read
//! behind it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_http::proxy_protocol::parse;

fuzz_target!(|input: &[u8]| {
    let outcome = parse(input, 256);
    for cut in 0..input.len().min(300) {
        match parse(&input[..cut], 256) {
            Ok(None) => {}
            early => {
                assert_eq!(early, outcome);
                break;
            }
        }
    }
    if let Ok(Some(header)) = &outcome {
        assert!(header.len <= input.len() && header.len <= 256);
        assert_eq!(parse(&input[..header.len], 256), outcome);
    }
});
