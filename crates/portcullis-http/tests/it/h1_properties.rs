//! However the input is cut, the outcome is the same; no input panics; what is written reads back.

use portcullis_http::h1::{
    BodyDecoder, BodyError, BodyFraming, Compat, Limits, Parsed, RequestHead, RequestParser, RequestRewrite,
    ResponseError, ResponseParser, ResponseRewrite, write_chunk_size, write_request, write_response,
};
use proptest::prelude::*;
use proptest::sample::select;

const PIECES: &[&str] = &[
    "GET ",
    "POST ",
    "CONNECT ",
    "/",
    "/a?b=c",
    "http://a.example",
    "*",
    " HTTP/1.1",
    " HTTP/1.0",
    " HTTP/4.0",
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    " ",
    "\t",
    "\0",
    "#",
    "\\",
    "<",
    "\u{e9}",
    ":",
    ": ",
    "Host: a.example\r\n",
    "Host",
    "Content-Length: 5\r\n",
    "Content-Length",
    "5",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding",
    "chunked",
    ",",
    "Connection: close, x\r\n",
    "X_Y: z\r\n",
    "A: b\r\n c\r\n",
    "Upgrade: websocket\r\n",
    "Expect: 100-continue\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 ",
    "204",
    "0\r\n\r\n",
    "5\r\n",
    "hello",
    ";a=\"b\"",
    "f",
];

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(select(PIECES), 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}

/// Mostly well formed: a start line, fields, an empty line, and some bytes.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let line = select(vec![
        "GET / HTTP/1.1\r\n",
        "POST /a?b HTTP/1.1\r\n",
        "PUT /\u{e9}<> HTTP/1.0\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "GET http://a.example?x HTTP/1.1\r\n",
        "\r\nGET / HTTP/1.1\r\n",
        "GET /a HTTP/4.0\r\n",
        "CONNECT a:1 HTTP/1.1\r\n",
    ]);
    let field = select(vec![
        "Host: a.example\r\n",
        "host:a.example:80\r\n",
        "X: y\r\n",
        "X:\r\n",
        "X_Y:  z \r\n",
        "Content-Length: 5\r\n",
        "Content-Type: t\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: x\r\n",
        "Connection: upgrade\r\n",
        "Upgrade: w\r\n",
        "Cookie: a=b\r\n",
        " fold\r\n",
        "Bad : b\r\n",
        "Via: 1.1 q\r\n",
        "X-Forwarded-For: 1.2.3.4\r\n",
    ]);
    (line, prop::collection::vec(field, 0..8), text()).prop_map(|(line, fields, rest)| {
        format!("{line}{}\r\n{}", fields.concat(), String::from_utf8_lossy(&rest)).into_bytes()
    })
}

fn whole(compat: Compat, limits: Limits, input: &[u8]) -> String {
    format!("{:?}", RequestParser::new(limits, compat).end(input))
}

fn cut(compat: Compat, limits: Limits, input: &[u8], cuts: &[usize]) -> String {
    let mut parser = RequestParser::new(limits, compat);
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
    ends.sort_unstable();
    for end in ends {
        match parser.parse(&input[..end]) {
            Parsed::NeedMore => {}
            outcome => return format!("{:?}", Some(outcome)),
        }
    }
    format!("{:?}", parser.end(input))
}

type Response = Result<Option<String>, ResponseError>;

fn response(parser: &mut ResponseParser, input: &[u8]) -> Response {
    parser.parse(input).map(|head| head.map(|head| format!("{head:?}")))
}

fn decode(framing: BodyFraming, pieces: &[&[u8]]) -> (Vec<u8>, usize, Result<bool, BodyError>) {
    let mut decoder = BodyDecoder::request(framing, &Limits::default());
    let (mut body, mut consumed) = (Vec::new(), 0);
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() && !decoder.is_done() {
            match decoder.decode(rest) {
                Ok(step) => {
                    assert!(step.consumed > 0);
                    body.extend_from_slice(step.data);
                    consumed += step.consumed;
                    rest = &rest[step.consumed..];
                }
                Err(error) => return (body, 0, Err(error)),
            }
        }
    }
    (body, consumed, Ok(decoder.is_done()))
}

/// Small enough that generated heads run into each of them.
const TIGHT: Limits = Limits {
    request_line_bytes_max: 24,
    header_bytes_max: 28,
    head_bytes_max: 90,
    header_count_max: 3,
    empty_lines_max: 1,
    content_length_max: 100,
    chunk_line_bytes_max: 8,
    chunk_extension_bytes_max: 12,
    trailer_bytes_max: 16,
    trailer_count_max: 1,
};

fn names(head: &RequestHead) -> Vec<(Vec<u8>, Vec<u8>)> {
    let kept = |name: &[u8]| {
        let lower = name.to_ascii_lowercase();
        ![&b"connection"[..], b"upgrade", b"content-length", b"transfer-encoding", b"x", b"expect"]
            .contains(&&lower[..])
    };
    head.fields()
        .filter(|(name, _)| kept(name))
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn requests_do_not_depend_on_cuts(input in prop_oneof![text(), request()], cuts in prop::collection::vec(any::<usize>(), 0..6),
                                      apache in any::<bool>(), tight in any::<bool>()) {
        let compat = if apache { Compat::Apache } else { Compat::Strict };
        let limits = if tight { TIGHT } else { Limits::default() };
        prop_assert_eq!(whole(compat, limits, &input), cut(compat, limits, &input, &cuts));
    }

    #[test]
    fn requests_of_any_bytes_do_not_panic(input in prop::collection::vec(any::<u8>(), 0..200)) {
        let single: Vec<usize> = (0..input.len()).collect();
        prop_assert_eq!(whole(Compat::Strict, Limits::default(), &input), cut(Compat::Strict, Limits::default(), &input, &single));
    }

    #[test]
    fn responses_do_not_depend_on_cuts(start in select(vec!["", "HTTP/1.1 200 OK\r\n", "HTTP/1.0 204\r\n"]), rest in text(),
                                       at in any::<prop::sample::Index>(), tight in any::<bool>()) {
        let input = [start.as_bytes(), &rest].concat();
        let limits = if tight { TIGHT } else { Limits::default() };
        let expected = response(&mut ResponseParser::new(limits), &input);
        let mut parser = ResponseParser::new(limits);
        let outcome = match response(&mut parser, &input[..at.index(input.len() + 1)]) {
            Ok(None) => response(&mut parser, &input),
            outcome => outcome,
        };
        prop_assert_eq!(outcome, expected);
    }

    #[test]
    fn bodies_do_not_depend_on_cuts(mut input in text(), valid in prop::collection::vec(1usize..9, 0..5), size in 1usize..7) {
        let mut chunks = Vec::new();
        for len in valid {
            write_chunk_size(len, &mut chunks);
            chunks.extend(std::iter::repeat_n(b'x', len));
            chunks.extend_from_slice(b"\r\n");
        }
        chunks.append(&mut input);
        let pieces: Vec<&[u8]> = chunks.chunks(size).collect();
        for framing in [BodyFraming::Chunked, BodyFraming::Length(7), BodyFraming::None, BodyFraming::UntilClose] {
            prop_assert_eq!(decode(framing, &[&chunks]), decode(framing, &pieces));
        }
    }

    #[test]
    fn a_written_request_reads_back(input in request()) {
        if let Some(Parsed::Head(head)) = RequestParser::new(Limits::default(), Compat::Strict).end(&input) {
            let mut out = Vec::new();
            let host: &[u8] = if head.host().is_empty() { b"h" } else { head.host() };
            let how = RequestRewrite { framing: head.framing(), host: Some(host), upgrade: true, ..RequestRewrite::default() };
            write_request(&head, &how, &mut out);
            let again = match RequestParser::new(Limits::default(), Compat::Strict).parse(&out) {
                Parsed::Head(again) => again,
                other => panic!("{other:?} from {:?}", String::from_utf8_lossy(&out)),
            };
            prop_assert_eq!(again.received_len(), out.len());
            prop_assert_eq!(again.method(), head.method());
            prop_assert_eq!(again.framing(), head.framing());
            prop_assert_eq!(again.upgrade(), head.upgrade());
            prop_assert_eq!(again.query(), head.query());
            if !head.host().is_empty() {
                prop_assert_eq!(names(&again), names(&head));
            }
        }
    }

    #[test]
    fn a_written_response_reads_back(status in 100u16..600, fields in text()) {
        let input = [format!("HTTP/1.1 {status} Text\r\nA: b\r\n").as_bytes(), &fields, b"\r\n\r\n"].concat();
        if let Ok(Some(head)) = ResponseParser::new(Limits::default()).parse(&input) {
            let framing = head.framing(b"GET");
            let mut out = Vec::new();
            write_response(&head, &ResponseRewrite { framing, ..ResponseRewrite::default() }, &mut out);
            let again = ResponseParser::new(Limits::default()).parse(&out).unwrap().unwrap();
            prop_assert_eq!((again.status(), again.reason(), again.framing(b"GET")), (status, &b"Text"[..], framing));
        }
    }
}
