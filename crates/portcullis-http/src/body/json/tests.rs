//! JSON texts in, names and values or an error out.

use proptest::prelude::*;

use super::*;
use crate::body::test_sink::{Recorder, assert_chunking_is_irrelevant};

fn parse_with(limits: Limits, names: JsonNames, text: &[u8]) -> (Recorder, Report) {
    let mut sink = Recorder::default();
    let mut parser = Json::with_names(limits, names);
    parser.feed(text, &mut sink);
    let report = parser.finish(&mut sink);
    (sink, report)
}

fn parse(text: &[u8]) -> (Recorder, Report) {
    parse_with(Limits::default(), JsonNames::ModSecurity2, text)
}

fn check(names: JsonNames, text: &str, expected: &[(&str, &str)]) {
    let (sink, report) = parse_with(Limits::default(), names, text.as_bytes());
    assert_eq!(report.error, None, "{text}");
    let expected: Vec<_> =
        expected.iter().map(|&(n, v)| (n.as_bytes().to_vec(), v.as_bytes().to_vec())).collect();
    assert_eq!(sink.args(), expected, "{text}");
}

#[test]
fn names_of_modsecurity_2() {
    use JsonNames::ModSecurity2 as V2;
    check(V2, r#"{"a":1}"#, &[("a", "1")]);
    check(V2, r#"{"a":{"b":{"c":"d"}},"e":2}"#, &[("a.b.c", "d"), ("e", "2")]);
    check(V2, r#"{"a":[1,2]}"#, &[("a.a", "1"), ("a.a", "2")]);
    check(V2, r#"{"a":[{"b":1},{"c":[2]},3]}"#, &[("a.a.b", "1"), ("a.a.c.c", "2"), ("a.a", "3")]);
    check(V2, r#"{"a":[[1],2],"b":3}"#, &[("a.a.a", "1"), ("a.a", "2"), ("b", "3")]);
    check(
        V2,
        r#"[1,[2],{"a":3},4]"#,
        &[("array.array", "1"), ("array.array.array", "2"), ("array.array.a", "3"), ("array.array", "4")],
    );
    check(V2, r#""x""#, &[("", "x")]);
    check(V2, r#"{"":1,"x.y":{"z":2},"w":3}"#, &[("", "1"), ("x.y.z", "2"), ("w", "3")]);
    check(V2, r#"{"":{"x":1}}"#, &[(".x", "1")]);
    check(V2, r#"{"a":1,"a":2}"#, &[("a", "1"), ("a", "2")]);
    check(V2, r#"{"a":{},"b":[],"c":[[]]}"#, &[]);
}

#[test]
fn names_of_modsecurity_3() {
    use JsonNames::ModSecurity3 as V3;
    check(V3, r#"{"a":{"b":1}}"#, &[("json.a.b", "1")]);
    check(
        V3,
        r#"{"a":[1,{"b":2},[3]]}"#,
        &[("json.a.array_0", "1"), ("json.a.array_1.b", "2"), ("json.a.array_2.array_0", "3")],
    );
    check(V3, r#"[1,2]"#, &[("json.array_0", "1"), ("json.array_1", "2")]);
    check(V3, "1", &[("json", "1")]);
}

#[test]
fn values() {
    let long = "x".repeat(100);
    for (text, value) in [
        ("0", "0"),
        ("-0.50e+10", "-0.50e+10"),
        ("12E3", "12E3"),
        ("true", "true"),
        ("false", "false"),
        ("null", ""),
        (r#""""#, ""),
        (r#""a\"b\\c\/d""#, "a\"b\\c/d"),
        (r#""\b\f\n\r\t""#, "\u{8}\u{c}\n\r\t"),
        (r#""\u003cscript\u003E""#, "<script>"),
        (r#""\ud83d\ude00""#, "😀"),
        (r#""\ud83d""#, "\u{fffd}"),
        (r#""\ude00\ud83d\ude00\ud83dx""#, "\u{fffd}😀\u{fffd}x"),
        (r#""\ud83d\u0041""#, "\u{fffd}A"),
        (r#""\u0000""#, "\0"),
        ("\"é日\u{7f}\"", "é日\u{7f}"),
        (&format!("\"{long}\""), &long),
    ] {
        check(JsonNames::ModSecurity2, &format!(" {{ \"k\" :\r\n{text}\t}} "), &[("k", value)]);
    }
}

#[test]
fn streams_of_values() {
    for gap in ["", " ", "\n", "\r\n\r\n"] {
        let text = format!("{{\"a\":{{\"b\":\"1\"}}}}{gap}{{\"b\":2}}{gap}[3,[4]]{gap}[5]\n");
        let values = [
            ("a.b", "1"),
            ("b", "2"),
            ("array.array", "3"),
            ("array.array.array", "4"),
            ("array.array", "5"),
        ];
        check(JsonNames::ModSecurity2, &text, &values);
        let values = [
            ("json.a.b", "1"),
            ("json.b", "2"),
            ("json.array_0", "3"),
            ("json.array_1.array_0", "4"),
            ("json.array_0", "5"),
        ];
        check(JsonNames::ModSecurity3, &text, &values);
    }
}

#[test]
fn errors() {
    for (text, error, position) in [
        (&b" "[..], Error::Truncated, 1),
        (b"{", Error::Truncated, 1),
        (b"{\"a\"", Error::Truncated, 4),
        (b"{\"a\":", Error::Truncated, 5),
        (b"{\"a\":1", Error::Truncated, 6),
        (b"[1,", Error::Truncated, 3),
        (b"\"a", Error::Truncated, 2),
        (b"\"a\\", Error::Truncated, 3),
        (b"{}x", Error::TrailingData, 2),
        (b"{},{}", Error::TrailingData, 2),
        (b"{}1", Error::TrailingData, 2),
        (b"1 2", Error::TrailingData, 2),
        (b"{}{", Error::Truncated, 3),
        (b"\xEF\xBB\xBF{}", Error::Unexpected(Byte(0xEF)), 0),
        (b"/*x*/{}", Error::Unexpected(Byte(b'/')), 0),
        (b"{'a':1}", Error::Unexpected(Byte(b'\'')), 1),
        (b"{a:1}", Error::Unexpected(Byte(b'a')), 1),
        (b"{\"a\":1,}", Error::Unexpected(Byte(b'}')), 7),
        (b"[1,]", Error::Unexpected(Byte(b']')), 3),
        (b"[,1]", Error::Unexpected(Byte(b',')), 1),
        (b"{\"a\" 1}", Error::Unexpected(Byte(b'1')), 5),
        (b"{\"a\"\0:1}", Error::Unexpected(Byte(0)), 4),
        (b"[1}", Error::Unexpected(Byte(b'}')), 2),
        (b"{]", Error::Unexpected(Byte(b']')), 1),
        (b"]", Error::Unexpected(Byte(b']')), 0),
        (b"[1 2]", Error::Unexpected(Byte(b'2')), 3),
        (b"\"\\x\"", Error::Escape, 1),
        (b"\"a\\u12\"", Error::Escape, 2),
        (b"\"\\u12g4\"", Error::Escape, 1),
        (b"\"a\nb\"", Error::Control, 2),
        (b"\"123456789\0\"", Error::Control, 10),
        (b"\"a\xC0\xAF\"", Error::Utf8, 1),
        (b"\"\xED\xA0\x80\"", Error::Utf8, 1),
        (b"\"\\\xC0\"", Error::Utf8, 1),
        (b"[01]", Error::Number, 1),
        (b"[+1]", Error::Number, 1),
        (b"[.5]", Error::Number, 1),
        (b"[1.]", Error::Number, 1),
        (b"[1e]", Error::Number, 1),
        (b"[-]", Error::Number, 1),
        (b"[0x10]", Error::Number, 1),
        (b"[nul]", Error::Word, 1),
        (b"[NaN]", Error::Word, 1),
        (b"True", Error::Word, 0),
    ] {
        let expected = BodyError { kind: BodyErrorKind::Json(error), position };
        assert_eq!(parse(text).1.error, Some(expected), "{}", text.escape_ascii());
    }
    assert_eq!(parse(b"").1.error, None);
}

#[test]
fn values_before_an_error_are_reported() {
    let (sink, report) = parse(br#"{"a":"evil","b":}"#);
    assert!(report.error.is_some());
    assert_eq!(sink.args(), [(b"a".to_vec(), b"evil".to_vec())]);
}

#[test]
fn raw_spans_and_ambiguities() {
    let text = br#"{"a":"x\u0041","b":12}"#;
    let (sink, _) = parse(text);
    let raw: Vec<_> = sink.raw_values.iter().map(|span| span.of(text)).collect();
    assert_eq!(raw, [&br"x\u0041"[..], b"12"]);
    assert!(parse(br#""\u0000""#).1.ambiguities.contains(Ambiguity::NulCharacter));
    assert!(parse(br#""\udc00""#).1.ambiguities.contains(Ambiguity::LoneSurrogate));
}

#[test]
fn limits() {
    let limits = Limits { json_depth_max: 2, path_bytes_max: 8, arguments_max: 2, ..Limits::default() };
    let error = |text: &str| {
        parse_with(limits.clone(), JsonNames::ModSecurity2, text.as_bytes()).1.error.map(|error| error.kind)
    };
    assert_eq!(error(r#"{"a":{"b":{}}}"#), None);
    assert_eq!(error(r#"{"a":{"b":{"c":{}}}}"#), Some(BodyErrorKind::Json(Error::Depth(2))));
    assert_eq!(error(r#"{"a":[[[]]]}"#), Some(BodyErrorKind::Json(Error::Depth(2))));
    let deep = |text: &str| {
        let report = parse_with(limits.clone(), JsonNames::ModSecurity3, text.as_bytes()).1;
        report.error.is_some_and(|error| error.kind == BodyErrorKind::Json(Error::Depth(2)))
    };
    assert!(!deep(r#"{"":{"":1}}"#) && deep(r#"{"":{"":{}}}"#) && deep(r#"{"":[[]]}"#));
    assert_eq!(error("[1,2]"), Some(BodyErrorKind::Json(Error::PathLength(8))));
    assert_eq!(error(r#"{"123456789":1}"#), Some(BodyErrorKind::Json(Error::PathLength(8))));
    assert_eq!(error(r#"{"a":[1,2]}"#), None);
    assert_eq!(error(r#"{"a":[1,2,3]}"#), Some(BodyErrorKind::ArgumentsLimit(2)));
    let deep = "[".repeat(100_000);
    assert_eq!(parse(deep.as_bytes()).1.error.map(|e| e.kind), Some(BodyErrorKind::Json(Error::Depth(512))));
}

/// The reference parser for the strictness of this one.
fn serde_accepts(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

proptest! {
    #[test]
    fn any_chunking(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("{"), Just("}"), Just("["), Just("]"), Just(","), Just(":"), Just("\"a\""), Just("\"b\":"),
                Just("\"\\ud83d\\ude00\\n\""), Just("12"), Just("true"), Just("null"), Just(" "), Just("\""),
                Just("\\"), Just("é"), Just("\0"), Just("-1.5e3"), Just("\"0123456789abcdef\""),
            ],
            0..16,
        ),
        cuts in proptest::collection::vec(1usize..6, 0..8),
    ) {
        let text = pieces.concat();
        let new = || Json::new(Limits::default());
        assert_chunking_is_irrelevant(text.as_bytes(), &cuts, new, Json::feed, Json::finish);
        let lone = parse(text.as_bytes()).1.ambiguities.contains(Ambiguity::LoneSurrogate);
        if !lone && !text.is_empty() {
            let accepted = parse(text.as_bytes()).1.error.is_none();
            prop_assert_eq!(accepted, serde_accepts(text.as_bytes()), "{}", text);
        }
    }

    #[test]
    fn plain_len_is_exact(bytes in proptest::collection::vec(prop_oneof![4 => Just(b'a'), 1 => any::<u8>()], 0..40)) {
        let expected = bytes.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(bytes.len());
        let mut has_high = false;
        prop_assert_eq!(string::plain_len(&bytes, &mut has_high), expected);
        prop_assert!(has_high || bytes[..expected].is_ascii());
    }
}
