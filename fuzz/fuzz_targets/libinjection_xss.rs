//! The XSS detector. The input is the value; every context is read.
//!
//! The oracle, the crate `libinjectionrs`, wants the whole names of events and does not end an attribute's
//! name at a NUL, as libinjection does; inputs near these differences are not compared.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_libinjection::xss::{HtmlContext, HtmlTokenKind, HtmlTokenizer};

fuzz_target!(|input: &[u8]| {
    let mut suspicious = false;
    for context in [
        HtmlContext::Text,
        HtmlContext::Tag,
        HtmlContext::SingleQuotedValue,
        HtmlContext::DoubleQuotedValue,
        HtmlContext::TickQuotedValue,
    ] {
        let mut end = 0;
        for (count, token) in HtmlTokenizer::new(input, context).enumerate() {
            let start = token.text.as_ptr() as usize - input.as_ptr() as usize;
            assert!(start >= end, "tokens rise");
            end = start + token.text.len();
            assert!(count <= input.len());
            suspicious |= !matches!(token.kind, HtmlTokenKind::Text | HtmlTokenKind::TagEnd);
        }
        assert!(end <= input.len());
    }

    let found = portcullis_libinjection::xss(input);
    assert!(suspicious || !found);
    if !input.contains(&0) && !input.windows(2).any(|bytes| bytes.eq_ignore_ascii_case(b"on")) {
        assert_eq!(found, libinjectionrs::detect_xss(input).is_injection());
    }
});
