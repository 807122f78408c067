//! The small parsers and validators of `portcullis-match`: arguments of `@ipMatch`, `@validateByteRange` and
//! `@pm`, and the encoding checks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_match::{
    IpSet, WordSet, first_byte_outside, parse_byte_range, parse_pm_words, parse_word_file,
    url_encoding_error, utf8_error,
};

fuzz_target!(|data: &[u8]| {
    let nul = data.iter().position(|&b| b == 0).unwrap_or(data.len());
    let (argument, value) = data.split_at(nul);

    assert_eq!(utf8_error(data).is_none(), std::str::from_utf8(data).is_ok());
    if let Some(error) = utf8_error(data) {
        assert!(error.offset < data.len());
    }
    if url_encoding_error(data).is_some() {
        assert!(data.contains(&b'%'));
    }

    if let Ok(text) = std::str::from_utf8(argument) {
        if let Err(error) = IpSet::parse(text) {
            assert!(error.offset <= text.len());
        }
        if let Err(error) = IpSet::parse_file(text) {
            assert!(error.offset <= text.len());
        }
        match parse_byte_range(text) {
            Ok(allowed) => {
                let outside = first_byte_outside(&allowed, value);
                assert_eq!(outside.is_none(), value.iter().all(|&b| allowed.contains(b)));
            }
            Err(error) => assert!(error.offset <= text.len()),
        }
    }

    for words in [parse_pm_words(argument), parse_word_file(argument)] {
        assert!(words.iter().all(|word| !word.is_empty()));
        let Ok(set) = WordSet::new(words) else { return };
        let contains = |word: &Vec<u8>| {
            value.len() >= word.len() && value.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word))
        };
        assert_eq!(set.is_match(value), set.words().iter().any(contains));
        if let Some((span, word)) = set.find_word(value) {
            assert!(span.of(value).eq_ignore_ascii_case(word));
        }
    }
});
