//! Multipart bodies in, events and flags out.

use proptest::prelude::*;

use super::*;
use crate::body::test_sink::{Event, Recorder, assert_chunking_is_irrelevant};
use crate::body::{DispositionError, MultipartFlags};

const CONTENT_TYPE: &[u8] = b"multipart/form-data; boundary=b";

fn parse_with(limits: Limits, body: &str) -> (Recorder, Report) {
    let mut sink = Recorder::default();
    let mut parser = Multipart::new(limits, CONTENT_TYPE);
    parser.feed(body.as_bytes(), &mut sink);
    let report = parser.finish(&mut sink);
    (sink, report)
}

fn parse(body: &str) -> (Recorder, Report) {
    parse_with(Limits::default(), body)
}

fn error_of(body: &str) -> Option<Error> {
    parse(body).1.error.map(|error| match error.kind {
        BodyErrorKind::Multipart(error) => error,
        other => panic!("{other:?}"),
    })
}

/// The raised flags of a body, by name. `crlf_line` is left out.
fn flags_of(body: &str) -> String {
    let MultipartFlags {
        error,
        boundary_quoted,
        boundary_whitespace,
        data_before,
        data_after,
        header_folding,
        invalid_header_folding,
        lf_line,
        crlf_line: _,
        missing_semicolon,
        invalid_quoting,
        invalid_part,
        file_limit_exceeded,
        unmatched_boundary,
    } = parse(body).1.multipart;
    let named = [
        (error, "error"),
        (boundary_quoted, "quoted"),
        (boundary_whitespace, "whitespace"),
        (data_before, "before"),
        (data_after, "after"),
        (header_folding, "folding"),
        (invalid_header_folding, "invalid_folding"),
        (lf_line, "lf"),
        (missing_semicolon, "semicolon"),
        (invalid_quoting, "quoting"),
        (invalid_part, "part"),
        (file_limit_exceeded, "files"),
        (unmatched_boundary == UnmatchedBoundary::DashLine, "dash_line"),
        (unmatched_boundary == UnmatchedBoundary::InLine, "in_line"),
    ];
    named.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

fn part(content: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{content}\r\n--b--\r\n")
}

fn header(line: &str) -> String {
    format!("--b\r\n{line}\r\n\r\nx\r\n--b--\r\n")
}

#[test]
fn events_of_a_field_and_a_file() {
    let body = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\ntwo\r\n\
        --b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type:  text/plain\r\n\r\n\
        \r\nline\n\r\n--b--\r\n";
    let (sink, report) = parse(body);
    let bytes = |s: &str| s.as_bytes().to_vec();
    assert_eq!(
        sink.events,
        [
            Event::Part(bytes("a"), None),
            Event::PartHeader(bytes("a"), bytes("Content-Disposition: form-data; name=\"a\"")),
            Event::Arg(bytes("a"), bytes("one\r\ntwo")),
            Event::Part(bytes("f"), Some(bytes("x.txt"))),
            Event::PartHeader(
                bytes("f"),
                bytes("Content-Disposition: form-data; name=\"f\"; filename=\"x.txt\"")
            ),
            Event::PartHeader(bytes("f"), bytes("Content-Type:  text/plain")),
            Event::FileBegin(bytes("f"), bytes("x.txt")),
            Event::FileData(bytes("\r\nline\n")),
            Event::FileEnd(7),
        ]
    );
    assert_eq!(report.error, None);
    assert!(!report.multipart.strict_error() && !report.multipart.unmatched_boundary());
    assert_eq!(sink.raw_values[0].of(body.as_bytes()), b"one\r\ntwo");
}

#[test]
fn contents() {
    for (content, value) in [
        ("", ""),
        ("x", "x"),
        ("\r\n", "\r\n"),
        ("x\r", "x\r"),
        ("x\n", "x\n"),
        ("--", "--"),
        ("a=1&b=%41", "a=1&b=%41"),
    ] {
        assert_eq!(
            parse(&part(content)).0.args(),
            [(b"a".to_vec(), value.as_bytes().to_vec())],
            "{content:?}"
        );
    }
    let long = "x".repeat(10_000) + "\r\n" + &"y\r".repeat(3_000);
    assert_eq!(parse(&part(&long)).0.args()[0].1, long.as_bytes());
}

#[test]
fn flags() {
    for (body, flags) in [
        (part("x"), ""),
        (part(""), ""),
        (part("x").replace("\r\n", "\n"), "lf"),
        (part("x").replace("x\r\n", "x\n"), "lf"),
        (part("x").trim_end().to_owned(), ""),
        (part("x").replace("x\r\n", "x\n").trim_end().to_owned(), "lf"),
        (format!("preamble\r\n{}", part("x")), "before"),
        (format!("{}epilogue", part("x")), "after"),
        (format!("{}\r\n", part("x")), "after"),
        (part("--"), "dash_line"),
        (part("-----BEGIN X-----"), "dash_line"),
        (part("x--b"), "in_line"),
        (part("--x\r\ny --b--"), "in_line"),
        (part("x").replace("x\r\n--b--", "--b--"), "part"),
        (header("Content-Disposition: form-data; name='a'"), "quoting"),
        (header("Content-Disposition: form-data;\r\n name=a"), "folding"),
        (header("Content-Disposition: form-data;\r\n\tname=a\r\n \u{b}"), "folding invalid_folding"),
        (header("Content-Disposition: form-data; name=a\r\n \r\nX: y"), "folding invalid_folding"),
        (header("X: y"), "error"),
    ] {
        assert_eq!(flags_of(&body), flags, "{body:?}");
    }
    assert!(parse(&part("x").replace("x\r\n", "x\n")).1.multipart.crlf_lf_lines());
}

#[test]
fn errors() {
    let disposition = "Content-Disposition: form-data; name=a";
    for (body, error) in [
        (String::new(), None),
        ("x".to_owned(), Some(Error::NoBoundary)),
        ("--c\r\n--c--".to_owned(), Some(Error::NoBoundary)),
        ("--b\r".to_owned(), Some(Error::NoBoundary)),
        ("--b\r\n".to_owned(), Some(Error::FinalBoundary)),
        (part("x").replace("--b--\r\n", "--b-"), Some(Error::FinalBoundary)),
        (part("x").replace("--b--\r\n", "--b--\r"), Some(Error::FinalBoundary)),
        (part("x").replace("--b--\r\n", "--b \r\n"), Some(Error::BoundaryLine)),
        (part("x").replace("--b--\r\n", "--bc\r\n"), Some(Error::BoundaryLine)),
        (part("x").replace("--b--", "-- b--"), Some(Error::BoundaryDecorated)),
        (part("x").replace("\r\n", "\r"), Some(Error::NoBoundary)),
        (header("no colon"), Some(Error::HeaderColon)),
        (header(": x"), Some(Error::HeaderName)),
        (header(" folded"), Some(Error::HeaderFolding)),
        (header("a\0b: c"), Some(Error::HeaderNul)),
        (header("X: y"), Some(Error::DispositionMissing)),
        (header("Content-Disposition : form-data; name=a"), Some(Error::DispositionMissing)),
        (header(&format!("{disposition}\r\ncontent-disposition: x")), Some(Error::HeaderRepeated)),
        (header("Content-Disposition: form-data"), Some(Error::NameMissing)),
        (
            header(&format!("{disposition}; filename*=utf-8''x")),
            Some(Error::Disposition(DispositionError::Parameter)),
        ),
        (header(&format!("{disposition}\r\nX: {}", "y".repeat(5_000))), Some(Error::HeaderLine(4_096))),
        (header(&format!("{disposition}{}", "\r\n y".repeat(5_000))), Some(Error::Headers(16 << 10))),
        (header(&"X:y\r\n".repeat(2)), Some(Error::HeaderRepeated)),
        ("--b\r\n--b--\r\n".to_owned(), Some(Error::HeaderColon)),
    ] {
        assert_eq!(error_of(&body), error, "{body:?}");
    }
}

#[test]
fn the_part_before_an_error_is_reported() {
    for body in
        [part("evil").replace("--b--\r\n", ""), part("evil").replace("\r\n--b--\r\n", "\r\n--b x\r\n")]
    {
        let (sink, report) = parse(&body);
        assert!(report.error.is_some());
        assert!(sink.args()[0].1.starts_with(b"evil"), "{body:?}");
    }
}

#[test]
fn folded_headers_are_rebuilt() {
    let (sink, _) = parse(&header("Content-Disposition:form-data;\r\n\t name=a;\r\n   filename=b"));
    let line = b"Content-Disposition: form-data; name=a; filename=b".to_vec();
    assert_eq!(sink.events[1], Event::PartHeader(b"a".to_vec(), line));
}

#[test]
fn limits() {
    let limits = Limits {
        arguments_max: 1,
        multipart_parts_max: 3,
        multipart_files_max: 1,
        part_headers_max: 2,
        no_files_bytes_max: 400,
        ..Limits::default()
    };
    let field = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n";
    let file = "--b\r\nContent-Disposition: form-data; name=a; filename=f\r\n\r\nx\r\n";
    let run = |body: &str| parse_with(limits.clone(), &format!("{body}--b--\r\n"));
    let kind = |body: &str| run(body).1.error.map(|error| error.kind);
    assert_eq!(kind(field), None);
    assert_eq!(kind(&field.repeat(2)), Some(BodyErrorKind::ArgumentsLimit(1)));
    assert_eq!(kind(&(field.to_owned() + &file.repeat(3))), Some(BodyErrorKind::Multipart(Error::Parts(3))));
    let (sink, report) = run(&file.repeat(2));
    assert!(report.multipart.file_limit_exceeded);
    assert_eq!(sink.events.iter().filter(|e| matches!(e, Event::FileData(_))).count(), 1);
    assert_eq!(sink.events.iter().filter(|e| matches!(e, Event::FileEnd(1))).count(), 2);
    let headers = field.replace("\r\n\r\n", "\r\nA: b\r\nC: d\r\n\r\n");
    assert_eq!(kind(&headers), Some(BodyErrorKind::Multipart(Error::HeaderCount(2))));
    let long = field.replace("\r\nx\r\n", &format!("\r\n{}\r\n", "x".repeat(400)));
    assert_eq!(kind(&long), Some(BodyErrorKind::Multipart(Error::NoFilesLimit(400))));
    let long = file.replace("\r\nx\r\n", &format!("\r\n{}\r\n", "x".repeat(400)));
    assert_eq!(kind(&long), None);
}

#[test]
fn a_bad_content_type_is_an_error_whatever_the_body() {
    let parser = Multipart::new(Limits::default(), b"multipart/form-data; boundary=x; boundary=b");
    let report = parser.finish(&mut Recorder::default());
    assert!(report.multipart.error && report.error.is_some());
}

#[test]
fn ambiguities() {
    let disposition = "Content-Disposition: form-data; name=a";
    for (line, ambiguity) in [
        ("Content-Transfer-Encoding: base64", Some(Ambiguity::TransferEncoding)),
        ("Content-Transfer-Encoding: 8BIT", None),
        ("Content-Type: text/plain; charset=utf-7", Some(Ambiguity::PartCharset)),
        ("Content-Type: text/plain; charset=UTF-8", None),
        ("Content-Type: Multipart/mixed; boundary=i", Some(Ambiguity::NestedMultipart)),
        ("X: a\rb", Some(Ambiguity::LoneCarriageReturn)),
    ] {
        let found = parse(&header(&format!("{disposition}\r\n{line}"))).1.ambiguities;
        assert_eq!(found.iter().collect::<Vec<_>>(), ambiguity.into_iter().collect::<Vec<_>>(), "{line}");
    }
    let found = parse(&part("utf-7").replace("\"a\"", "\"_charset_\"")).1.ambiguities;
    assert!(found.contains(Ambiguity::PartCharset));
    assert!(
        parse(&header(r#"Content-Disposition: form-data; name="a\b""#))
            .1
            .ambiguities
            .contains(Ambiguity::NameEscape)
    );
}

proptest! {
    #[test]
    fn any_chunking(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("--b\r\n"), Just("--b--\r\n"), Just("--b--"), Just("\r\n"), Just("\n"), Just("\r"), Just("--"),
                Just("Content-Disposition: form-data; name=a\r\n"), Just(" x\r\n"), Just("X: y\r\n"), Just("b"),
                Just("Content-Disposition: form-data; name=\"a\"; filename=\"c\"\r\n\r\n"), Just("text"), Just("\0"),
            ],
            0..16,
        ),
        cuts in proptest::collection::vec(1usize..40, 0..8),
        short in any::<bool>(),
    ) {
        let body = pieces.concat();
        let body = if short { body } else { body.replace("text", &"t".repeat(4_094)) };
        assert_chunking_is_irrelevant(
            body.as_bytes(),
            &cuts,
            || Multipart::new(Limits::default(), CONTENT_TYPE),
            Multipart::feed,
            Multipart::finish,
        );
    }
}
