//! The SQL injection detector. The input is the value; every context is read.
//!
//! The oracle, the crate `libinjectionrs`, differs from libinjection in a few known ways; inputs near them
//! are not compared. `crates/portcullis-libinjection/tests/it/differential.rs` has an example of each.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_libinjection::sqli::{
    Context, Dialect, Fingerprint, Quote, TOKENS_MAX, TokenKind, Tokenizer, VALUE_BYTES_MAX, fold,
};

fuzz_target!(|input: &[u8]| {
    let mut possible = Vec::new();
    for quote in [Quote::None, Quote::Single, Quote::Double] {
        for dialect in [Dialect::Ansi, Dialect::MySql] {
            let context = Context { quote, dialect };
            let (mut end, mut count) = (0, 0);
            for token in Tokenizer::new(input, context) {
                let start = token.value.as_ptr() as usize - input.as_ptr() as usize;
                assert!(start >= end && token.value.len() <= VALUE_BYTES_MAX, "tokens rise");
                end = start + token.value.len();
                count += 1;
            }
            assert!(end <= input.len() && count <= input.len());

            let folded = fold(input, context);
            let tokens = folded.tokens();
            let evil = tokens.iter().any(|token| token.kind == TokenKind::Evil);
            assert!(tokens.len() <= TOKENS_MAX + usize::from(evil) && folded.tokens_read() <= count);
            let fingerprint = Fingerprint::of(tokens);
            assert_eq!(fingerprint.as_bytes() == b"X", evil);
            possible.push(fingerprint.as_str().to_owned());
        }
    }

    let found = portcullis_libinjection::sqli(input).map(|found| found.as_str().to_owned());
    if let Some(found) = &found {
        // An unclosed back-tick at the end may count as a comment.
        let as_comment = |letters: &String| letters.strip_suffix('n').map(|rest| format!("{rest}c"));
        assert!(
            possible.iter().any(|letters| letters == found || as_comment(letters).as_ref() == Some(found))
        );
    }
    if is_comparable(input) {
        let oracle = libinjectionrs::detect_sqli(input);
        let fingerprint = oracle.fingerprint.as_ref().filter(|_| oracle.is_injection());
        assert_eq!(found.as_deref(), fingerprint.map(|found| found.as_str()));
    }
});

fn is_comparable(input: &[u8]) -> bool {
    const DIFFER: [&str; 9] =
        ["sp_password", "into", "@", "boolean", "create", "distinct", "lock", "value", "time"];
    let lower = input.to_ascii_lowercase();
    input.is_ascii()
        && !input.contains(&0)
        && !DIFFER.iter().any(|word| lower.windows(word.len()).any(|bytes| bytes == word.as_bytes()))
}
