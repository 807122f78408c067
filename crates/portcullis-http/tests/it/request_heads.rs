//! Request heads and what becomes of them, strict and as Apache httpd would have it.

#![allow(clippy::result_large_err)] // a partial head is what a refusal is about

use portcullis_http::h1::{
    BodyFraming, Compat, Limits, Oddity, Parsed, Refusal, RequestHead, RequestParser, Version,
};
use portcullis_http::message::TargetForm;

fn parse_with(limits: Limits, compat: Compat, text: &[u8]) -> Result<RequestHead, (Refusal, RequestHead)> {
    match RequestParser::new(limits, compat).parse(text) {
        Parsed::Head(head) => Ok(head),
        Parsed::Refused { partial, refusal } => Err((refusal, partial)),
        Parsed::NeedMore => panic!("incomplete: {:?}", String::from_utf8_lossy(text)),
    }
}

fn parse(text: &str) -> Result<RequestHead, (Refusal, RequestHead)> {
    parse_with(Limits::default(), Compat::Strict, text.as_bytes())
}

fn pairs(head: &RequestHead) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    head.fields().map(|(name, value)| (text(name), text(value))).collect()
}

/// Parses `text` in both modes; an expectation is the framing or the refusal.
#[track_caller]
fn check(text: &str, strict: Result<BodyFraming, Refusal>, apache: Result<BodyFraming, Refusal>) {
    for (compat, expected) in [(Compat::Strict, strict), (Compat::Apache, apache)] {
        let outcome = parse_with(Limits::default(), compat, text.as_bytes());
        let outcome = outcome.map(|head| head.framing()).map_err(|(refusal, _)| refusal);
        assert_eq!(outcome, expected, "{compat:?} {text:?}");
    }
}

#[track_caller]
fn refused(text: &str, refusal: Refusal) {
    check(text, Err(refusal), Err(refusal));
}

#[track_caller]
fn accepted(text: &str, framing: BodyFraming) {
    check(text, Ok(framing), Ok(framing));
}

const H: &str = "Host: a.example\r\n\r\n";

#[test]
fn request_lines() {
    use BodyFraming::None as Empty;
    use Refusal as R;
    accepted(&format!("GET / HTTP/1.1\r\n{H}"), Empty);
    accepted(&format!("\r\n\nGET / HTTP/1.0\r\n{H}"), Empty);
    accepted(&format!("get /%ff HTTP/1.1\r\n{H}"), Empty);
    accepted(&format!("M-SEARCH! /a\\b?<x>=\"`{{}}|^\u{e9} HTTP/1.1\r\n{H}"), Empty);
    accepted(&format!("GET /a:80?x HTTP/1.1\r\n{H}"), Empty);
    accepted(&format!("OPTIONS * HTTP/1.1\r\n{H}"), Empty);
    accepted("GET / HTTP/1.0\r\n\r\n", Empty);
    accepted("GET / HTTP/1.0\r\nHost:\r\n\r\n", Empty);

    refused(&format!("\r\n\r\n\r\nGET / HTTP/1.1\r\n{H}"), R::TooManyEmptyLines);
    refused(&format!("   GET / HTTP/1.1\r\n{H}"), R::LeadingWhitespace);
    refused(&format!("\tGET / HTTP/1.1\r\n{H}"), R::LeadingWhitespace);
    refused(&format!("G(T / HTTP/1.1\r\n{H}"), R::InvalidMethod);
    refused(&format!("GET\t/ HTTP/1.1\r\n{H}"), R::ControlInTarget);
    refused(&format!("\rGET / HTTP/1.1\r\n{H}"), R::ControlInTarget);
    refused(&format!("GET  / HTTP/1.1\r\n{H}"), R::MalformedRequestLine);
    refused(&format!("GET /  HTTP/1.1\r\n{H}"), R::MalformedRequestLine);
    refused("GET\r\n", R::MalformedRequestLine);
    refused(&format!("GET /a b HTTP/1.1\r\n{H}"), R::SpaceInTarget);
    refused(&format!("GET /a\tb HTTP/1.1\r\n{H}"), R::ControlInTarget);
    refused(&format!("GET /a\0 HTTP/1.1\r\n{H}"), R::ControlInTarget);
    refused(&format!("GET /a\r HTTP/1.1\r\n{H}"), R::ControlInTarget);
    refused(&format!("GET /a\u{7f} HTTP/1.1\r\n{H}"), R::ControlInTarget);
    refused(&format!("GET /#a HTTP/1.1\r\n{H}"), R::FragmentInTarget);
    refused(&format!("GET /a:80?x#y HTTP/1.1\r\n{H}"), R::FragmentInTarget);
    refused(&format!("GET \\ HTTP/1.1\r\n{H}"), R::InvalidTarget);
    refused(&format!("GET \\a HTTP\\1.0\r\n{H}"), R::InvalidTarget);
    refused(&format!("GET a HTTP/1.1\r\n{H}"), R::InvalidTarget);
    refused(&format!("GET * HTTP/1.1\r\n{H}"), R::InvalidTarget);
    refused(&format!("GET ftp://a.example/ HTTP/1.1\r\n{H}"), R::InvalidTarget);
    refused(&format!("CONNECT a.example HTTP/1.1\r\n{H}"), R::InvalidAuthority);
    refused(&format!("CONNECT /a HTTP/1.1\r\n{H}"), R::InvalidTarget);
    refused(&format!("GET http://u@a.example/ HTTP/1.1\r\n{H}"), R::InvalidAuthority);
    refused("\u{16}\u{3}\u{1}", R::NotHttp);
    check(&format!("CONNECT a.example:80 HTTP/1.1\r\n{H}"), Err(R::ConnectNotSupported), Ok(Empty));
}

#[test]
fn versions() {
    use BodyFraming::None as Empty;
    use Refusal as R;
    for version in [
        "HTTP/0.9",
        "HTTP/0.8",
        "HTTP/2",
        "HTTP/1.10",
        "http/1.1",
        "HTTP\\1.1",
        "1.1",
        "X",
        "X/1.0",
        "HTTP/1.1x",
    ] {
        refused(&format!("GET / {version}\r\n{H}"), R::MalformedVersion);
    }
    for version in ["HTTP/4.0", "HTTP/2.0", "HTTP/1.2"] {
        check(&format!("GET / {version}\r\n{H}"), Err(R::UnsupportedVersion), Ok(Empty));
    }
    for line in ["GET /", "GET / "] {
        check(&format!("{line}\r\n{H}"), Err(R::MissingVersion), Ok(Empty));
    }
    refused("POST /\r\n", R::MissingVersion);
    let head = parse_with(Limits::default(), Compat::Apache, b"GET /x\r\nrest").unwrap();
    assert_eq!(
        (head.version(), head.version_bytes(), head.path()),
        (Version::Http09, &b"HTTP/0.9"[..], &b"/x"[..])
    );
    assert!(!head.keep_alive() && head.received_len() == 8 && head.oddities() == [Oddity::SimpleRequest]);
}

#[test]
fn hosts() {
    use BodyFraming::None as Empty;
    use Refusal as R;
    let get = |line: &str, fields: &str| format!("GET {line} HTTP/1.1\r\n{fields}\r\n");
    accepted(&get("/", "hOST:a.example:8080\r\n"), Empty);
    accepted(&get("/", "Host: [::1]:80\r\n"), Empty);
    refused(&get("/", ""), R::MissingHost);
    refused(&get("/", "Host: \t\r\n"), R::EmptyHost);
    refused(&get("/", "Host: a\r\nHost: a\r\n"), R::DuplicateHost);
    for host in ["a%00", "a%1F", "a b", "a,b", "a/b", "u@a", "a:b", "\u{e9}", "<a>", "[::1"] {
        refused(&get("/", &format!("Host: {host}\r\n")), R::InvalidHost);
    }
    accepted(&get("http://A.example/", "Host: a.EXAMPLE:80\r\n"), Empty);
    accepted(&get("https://a.example:443", "Host: a.example\r\n"), Empty);
    refused(&get("http://b.example/", "Host: a.example\r\n"), R::HostMismatch);
    refused(&get("http://a.example:8080/", "Host: a.example\r\n"), R::HostMismatch);
    refused(&get("https://a.example/", "Host: a.example:80\r\n"), R::HostMismatch);
    refused(&get("http://a.example/", ""), R::MissingHost);
}

#[test]
fn framing() {
    use BodyFraming::{Chunked, Length};
    use Refusal as R;
    let post = |version: &str, fields: &str| format!("POST / HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
    let te = |value: &str| post("1.1", &format!("Transfer-Encoding: {value}\r\n"));
    accepted(&post("1.1", "Content-Length: 5\r\n"), Length(5));
    accepted(&post("1.0", "Content-Length: 0\r\n"), Length(0));
    accepted(&te("\tChunked "), Chunked);
    refused(&post("1.1", "Content-Length: 5\r\nContent-Length: 5\r\n"), R::DuplicateContentLength);
    refused(&post("1.1", "Content-Length: 5, 5\r\n"), R::InvalidContentLength);
    refused(&post("1.1", "Content-Length:\r\n"), R::InvalidContentLength);
    refused(&post("1.1", "Content-Length: +5\r\n"), R::InvalidContentLength);
    refused(&post("1.1", "Content-Length: 18446744073709551616\r\n"), R::InvalidContentLength);
    refused(&post("1.1", "Content-Length: 9223372036854775808\r\n"), R::ContentLengthTooLarge);
    refused(&post("1.0", "Transfer-Encoding: chunked\r\n"), R::TransferEncodingInHttp10);
    refused(&te("gzip, chunked"), R::UnsupportedTransferEncoding);
    refused(&te("identity"), R::UnsupportedTransferEncoding);
    refused(&te("xchunked"), R::UnsupportedTransferEncoding);
    refused(&te(""), R::InvalidTransferEncoding);
    refused(&te("chunked, gzip"), R::InvalidTransferEncoding);
    refused(&te("chunked, chunked"), R::InvalidTransferEncoding);
    refused(&te("\"chunked\""), R::InvalidTransferEncoding);
    refused(&te("chunked;q=1"), R::InvalidTransferEncoding);
    refused(&te("chunked\r\nTransfer-Encoding: identity"), R::InvalidTransferEncoding);
    refused(&te("identity\r\nTransfer-Encoding: chunked"), R::UnsupportedTransferEncoding);
    refused(&post("1.1", "Transfer_Encoding: chunked\r\n"), R::DisguisedFraming);
    refused(&post("1.1", "content_length: 5\r\n"), R::DisguisedFraming);
    refused(&post("1.1", "Content-Encoding: gzip, chunked\r\n"), R::ChunkedContentEncoding);
    let both = post("1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n");
    check(&both, Err(R::LengthAndTransferEncoding), Ok(Chunked));
    let head = parse_with(Limits::default(), Compat::Apache, both.as_bytes()).unwrap();
    assert_eq!(head.header("content-length").count(), 0);
    assert!(!head.keep_alive() && head.oddities().contains(&Oddity::LengthDropped));
}

#[test]
fn field_lines() {
    use BodyFraming::None as Empty;
    use Refusal as R;
    let get = |field: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\nZ: z\r\n\r\n");
    accepted(&get("A:"), Empty);
    accepted(&get("A:b:c\td\u{e9}"), Empty);
    accepted(&get("a_b: c"), Empty);
    refused(&get("A : b"), R::SpaceBeforeColon);
    refused(&get("A\t: b"), R::SpaceBeforeColon);
    refused(&get(": b"), R::EmptyHeaderName);
    refused(&get("A b: c"), R::InvalidHeaderName);
    refused(&get("A\0: c"), R::InvalidHeaderName);
    refused(&get("\u{e9}: c"), R::InvalidHeaderName);
    refused(&get("Ab"), R::MissingColon);
    refused(&get("A: b\0"), R::ControlInHeader);
    refused(&get("A: \u{1}b"), R::ControlInHeader);
    refused(&get("A: b\u{7f}c"), R::ControlInHeader);
    refused(&get("A: b\rC: d"), R::BareCarriageReturn);
    refused(&get("A: b\r"), R::BareCarriageReturn);
    refused(&get("A: b\nC: d"), R::MixedLineEnds);
    refused("GET / HTTP/1.1\r\n A: b\r\nHost: a\r\n\r\n", R::FoldedHeader);
    check(&get("A: b\r\n  c\r\n\td "), Err(R::FoldedHeader), Ok(Empty));
    accepted("GET / HTTP/1.1\nHost: a\n\n", Empty);
    refused("GET / HTTP/1.1\nHost: a\r\n\r\n", R::MixedLineEnds);
    refused("GET / HTTP/1.1\r\nHost: a\r\n\n", R::MixedLineEnds);
}

#[test]
fn a_refused_head_keeps_its_evidence() {
    let (refusal, head) =
        parse("GET /<a> b#c HTTP/4.0\r\nHost: x y\r\nA : 1\r\nB: 2\r\n 3\r\nCd\r\nE: f\r\n\r\nrest")
            .unwrap_err();
    assert_eq!(refusal, Refusal::SpaceInTarget);
    assert_eq!(head.line(), b"GET /<a> b#c HTTP/4.0");
    assert_eq!(
        (head.method(), head.target(), head.version_bytes()),
        (&b"GET"[..], &b"/<a> b#c"[..], &b"HTTP/4.0"[..])
    );
    let expected = [("Host", "x y"), ("A", "1"), ("B", "2 3"), ("Cd", ""), ("E", "f")];
    assert_eq!(pairs(&head), expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
    assert!(head.received().ends_with(b"E: f\r\n\r\n"));

    let limits =
        Limits { request_line_bytes_max: 20, header_bytes_max: 12, header_count_max: 2, ..Limits::default() };
    let rows: [(&str, Refusal, &str, usize); 4] = [
        ("GET /aaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n", Refusal::RequestLineTooLong, "/aaaaaaaaaaaaaaa", 0),
        ("GET / HTTP/1.1\r\nA: 1\r\nBbbbb: bbbbbbbbbb\r\n", Refusal::HeaderTooLong, "/", 1),
        ("GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", Refusal::TooManyHeaders, "/", 2),
        ("GET / HTTP/1.1\r\nA: 1\r\nBbbb: bbbb\r\n\r\n", Refusal::MissingHost, "/", 2),
    ];
    for (text, refusal, target, count) in rows {
        let (why, head) = parse_with(limits, Compat::Strict, text.as_bytes()).unwrap_err();
        assert_eq!(
            (why, head.target(), head.fields().len()),
            (refusal, target.as_bytes(), count),
            "{text:?}"
        );
    }
    let limits = Limits { head_bytes_max: 40, ..Limits::default() };
    let text = b"GET / HTTP/1.1\r\nA: 1\r\nB: 2222222222222222222\r\n";
    assert_eq!(parse_with(limits, Compat::Strict, text).unwrap_err().0, Refusal::HeadTooLong);
    let exact = b"GET / HTTP/1.1\r\nHost: a.example.org12\r\n\r\n";
    assert_eq!(exact.len(), 41);
    assert_eq!(parse_with(limits, Compat::Strict, exact).unwrap_err().0, Refusal::HeadTooLong);
    assert!(parse_with(Limits { head_bytes_max: 41, ..limits }, Compat::Strict, exact).is_ok());
}

#[test]
fn ends_within_a_head() {
    let end = |text: &str| match RequestParser::new(Limits::default(), Compat::Strict).end(text.as_bytes()) {
        Some(Parsed::Refused { refusal, partial }) => {
            Some((refusal, partial.fields().len(), partial.method().to_vec()))
        }
        None => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(end(""), None);
    assert_eq!(end("\r\n"), None);
    assert_eq!(end("GET /"), Some((Refusal::Incomplete, 0, b"GET".to_vec())));
    assert_eq!(end("GET / HTTP/1.1\r\nA: b\r\nC: "), Some((Refusal::Incomplete, 1, b"GET".to_vec())));
    assert_eq!(end("GET /# HTTP/1.1\r\nA: b\r\n"), Some((Refusal::FragmentInTarget, 1, b"GET".to_vec())));
}

#[test]
fn what_a_head_tells() {
    let text = "POST http://A.example/p/%20?q=1?2 HTTP/1.1\r\nHost: a.example\r\nX: 1\r\nx:  2 \r\nContent-Type: a/b\r\n\
                Content-Length: 03\r\nExpect: 100-Continue\r\nConnection: close\r\n\r\nabc";
    let head = parse(text).unwrap();
    assert_eq!(head.target_form(), TargetForm::Absolute);
    assert_eq!(head.target_authority(), Some(&b"A.example"[..]));
    assert_eq!((head.path(), head.query()), (&b"/p/%20"[..], Some(&b"q=1?2"[..])));
    assert_eq!(head.path_and_query(), b"/p/%20?q=1?2");
    assert_eq!(head.header("X").collect::<Vec<_>>(), [b"1", b"2"]);
    assert_eq!(head.framing(), BodyFraming::Length(3));
    assert!(head.expects_continue() && !head.keep_alive() && head.upgrade().is_none());
    assert_eq!(head.received_len(), text.len() - 3);
    assert_eq!(head.oddities(), [Oddity::AbsoluteTarget, Oddity::LeadingZeroLength]);
    let field = head.field_spans()[2];
    assert_eq!((field.name.of(head.bytes()), field.line.of(head.bytes())), (&b"x"[..], &b"x:  2 \r\n"[..]));

    let ws = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let head = parse(ws).unwrap();
    assert_eq!(head.upgrade(), Some(&b"websocket"[..]));
    assert!(head.keep_alive());
    let upgrade = |from: &str, to: &str| parse(&ws.replace(from, to)).unwrap().upgrade().is_some();
    assert!(upgrade("Host", "Content-Length: 0\r\nHost"));
    assert!(!upgrade("Host", "Content-Length: 1\r\nHost"));
    assert!(!upgrade("HTTP/1.1", "HTTP/1.0"));
    assert!(!upgrade("keep-alive, Upgrade", "keep-alive"));
    assert!(!upgrade("websocket", "websocket, H2C"));
    for (text, keep_alive) in [
        ("GET / HTTP/1.0\r\n\r\n", false),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true),
        ("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: CLOSE\r\n\r\n", false),
    ] {
        assert_eq!(parse(text).unwrap().keep_alive(), keep_alive, "{text:?}");
    }
}

#[test]
fn apache_joins_what_it_joins() {
    let text = "GET / HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nX: 1\r\n 2\r\ncontent-type: c/d\r\nX: 3\r\nX: 4\r\n\r\n";
    let head = parse_with(Limits::default(), Compat::Apache, text.as_bytes()).unwrap();
    let expected = [("Host", "a"), ("Content-Type", "a/b, c/d"), ("X", "1 2, 3, 4")];
    assert_eq!(pairs(&head), expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
    assert_eq!(head.received(), text.as_bytes());
}

#[test]
fn one_parser_reads_head_after_head() {
    let text = b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\nX: y\r\n\r\n";
    let mut parser = RequestParser::new(Limits::default(), Compat::Strict);
    let Parsed::Head(first) = parser.parse(text) else { panic!() };
    let rest = &text[first.received_len()..];
    let Parsed::Head(second) = parser.parse(rest) else { panic!() };
    assert_eq!((first.target(), second.target(), second.host()), (&b"/1"[..], &b"/2"[..], &b"b"[..]));
    assert_eq!(second.received_len(), rest.len());
    assert_eq!(second.oddities(), [Oddity::LeadingEmptyLine]);
}
