//! Properties that hold for any input.

use std::time::{Duration, Instant};

use crate::support;
use portcullis_libinjection::sqli::{
    Context, Dialect, Quote, TOKENS_MAX, TokenKind, Tokenizer, VALUE_BYTES_MAX, fold,
};
use portcullis_libinjection::xss::{HtmlContext, HtmlTokenizer};
use proptest::prelude::*;

const QUOTES: [Quote; 3] = [Quote::None, Quote::Single, Quote::Double];
const DIALECTS: [Dialect; 2] = [Dialect::Ansi, Dialect::MySql];
const HTML_CONTEXTS: [HtmlContext; 5] = [
    HtmlContext::Text,
    HtmlContext::Tag,
    HtmlContext::SingleQuotedValue,
    HtmlContext::DoubleQuotedValue,
    HtmlContext::TickQuotedValue,
];

/// Bytes, mostly of those that mean something.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&'static [u8]> = [support::SQL_PIECES, support::HTML_PIECES].concat();
    let piece = prop_oneof![
        3 => prop::sample::select(pieces).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..5),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn tokens_rise_and_stay_inside(input in input()) {
        for quote in QUOTES {
            for dialect in DIALECTS {
                let mut end = 0;
                let mut count = 0;
                for token in Tokenizer::new(&input, Context { quote, dialect }) {
                    let start = offset(&input, token.value);
                    prop_assert!(start >= end && token.value.len() <= VALUE_BYTES_MAX);
                    end = start + token.value.len();
                    count += 1;
                }
                prop_assert!(end <= input.len() && count <= input.len());
            }
        }
        for context in HTML_CONTEXTS {
            let mut end = 0;
            for token in HtmlTokenizer::new(&input, context) {
                let start = offset(&input, token.text);
                prop_assert!(start >= end);
                end = start + token.text.len();
            }
            prop_assert!(end <= input.len());
        }
    }

    #[test]
    fn folding_leaves_few_tokens(input in input()) {
        for quote in QUOTES {
            for dialect in DIALECTS {
                let context = Context { quote, dialect };
                let folded = fold(&input, context);
                let evil = folded.tokens().iter().any(|token| token.kind == TokenKind::Evil);
                prop_assert!(folded.tokens().len() <= TOKENS_MAX + usize::from(evil));
                prop_assert!(folded.tokens().len() <= folded.tokens_read());
                prop_assert!(folded.tokens_read() <= Tokenizer::new(&input, context).count());
            }
        }
    }
}

fn offset(input: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - input.as_ptr() as usize
}

/// Pieces in long rows after openings that are never closed: nothing may take more than linear time. A
/// quadratic search would need minutes here.
#[test]
fn hostile_inputs_are_quick() {
    const BYTES: usize = 1 << 18;
    let mut cases = 0;
    for opening in OPENINGS {
        for piece in PIECES {
            let mut input = opening.to_vec();
            input.extend(piece.iter().cycle().take(BYTES));
            let start = Instant::now();
            portcullis_libinjection::sqli(&input);
            portcullis_libinjection::xss(&input);
            let took = start.elapsed();
            assert!(took < Duration::from_secs(5), "{opening:?}, then {piece:?} took {took:?}");
            cases += 1;
        }
    }
    assert_eq!(cases, OPENINGS.len() * PIECES.len());
}

#[rustfmt::skip]
const OPENINGS: [&[u8]; 11] =
    [b"", b"<!--", b"<a href=", b"x'", b"q'a", b"/*", b"$a$", b"<a href='&#", b"<%", b"<![CDATA[", b"'"];

#[rustfmt::skip]
const PIECES: [&[u8]; 56] = [
    b"1+", b"a ", b"'", b"\\'", b"''", b"--", b"-", b"#", b"/*", b"*/", b"/**/", b"(", b"((1", b"$a$", b"$a", b"$$",
    b"b'01", b"b'0", b"x'\0", b"q'(", b"[", b"{a ", b"`", b"@", b"1,", b"::", b"a.b.", b"sp_password ", b"<", b"</",
    b"</>", b"<a", b"<a ", b"<!--", b"<!-", b"-\0", b"-->", b"<%", b"%", b"]]", b"&#", b"&#0", b"/", b"=", b"a=",
    b"<a href=", b"href=&#0;", b"\0", b"on", b"or ", b"in ", b"select -", b"user(", b"if ", b"; ", b"\\ ",
];

/// Numbers and words, glued together in every way: what callers leave out unseen.
#[test]
fn letters_and_digits_alone_are_no_attack() {
    let pieces = [
        "0", "1", "x", "b", "e", "_", "n", "0x1f", "0b10", "1e5", "1e", "or", "union", "select", "and", "q",
        "u",
    ];
    let mut texts = vec![String::new()];
    for _ in 0..4 {
        texts = texts.iter().flat_map(|text| pieces.map(|piece| format!("{text}{piece}"))).collect();
        for text in &texts {
            assert_eq!(portcullis_libinjection::sqli(text.as_bytes()), None, "{text}");
            assert!(!portcullis_libinjection::xss(text.as_bytes()), "{text}");
        }
    }
}

proptest! {
    #[test]
    fn an_attack_has_a_byte_that_attacks_need(text in "[a-zA-Z0-9_]{0,40}", byte in any::<u8>(), at in 0usize..40) {
        let mut text = text.into_bytes();
        prop_assert_eq!(portcullis_libinjection::sqli(&text), None);
        text.insert(at.min(text.len()), byte);
        if portcullis_libinjection::sqli(&text).is_some() {
            prop_assert!(portcullis_libinjection::sqli_needs().contains(byte));
        }
        if portcullis_libinjection::xss(&text) {
            prop_assert!(portcullis_libinjection::xss_needs().contains(byte));
        }
    }
}
