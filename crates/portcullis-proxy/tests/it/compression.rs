//! Compression of responses: which ones, what their heads say, and that what comes out is what went in.

use std::io::Read as _;

use crate::common::*;

fn front(backend: &Backend, compression: &str) -> Front {
    let site = format!("{RULES}compression = {{ {compression} }}");
    Front::start(&document(backend.address, "", "", &site, ""))
}

/// Something that a compressor can do something about.
fn text(bytes: usize) -> String {
    "The quick brown fox jumps over the lazy dog. ".chars().cycle().take(bytes).collect()
}

fn answer(fields: &str, body: &str) -> Reply {
    let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    Reply::Bytes(format!("{head}{body}").into_bytes())
}

fn ask(front: &Front, path: &str, fields: &str) -> (String, Vec<u8>) {
    let mut client = front.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    client.response()
}

fn decoded(coding: &str, bytes: &[u8]) -> String {
    let mut out = String::new();
    match coding {
        "gzip" => flate2::read::GzDecoder::new(bytes).read_to_string(&mut out),
        "br" => brotli::Decompressor::new(bytes, 4096).read_to_string(&mut out),
        "zstd" => zstd::stream::read::Decoder::new(bytes).unwrap().read_to_string(&mut out),
        other => panic!("{other}"),
    }
    .unwrap();
    out
}

fn skipped(front: &Front, reason: &str) -> f64 {
    front.metric(&format!("portcullis_compression_skipped_total{{site=\"site\",reason=\"{reason}\"}}"))
}

#[test]
fn a_body_comes_in_the_coding_that_the_client_prefers() {
    let body = text(100_000);
    let sent = body.clone();
    let backend = Backend::start(move |request| match request.line() {
        line if line.contains("chunked") => {
            let chunks = "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nTransfer-Encoding: chunked\r\n\r\n";
            let chunk = format!("{:x}\r\n{sent}\r\n0\r\nX-Sum: 1\r\n\r\n", sent.len());
            Reply::Bytes(format!("{chunks}{chunk}").into_bytes())
        }
        line if line.contains("close") => {
            Reply::Close(format!("HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\n{sent}").into_bytes())
        }
        _ => {
            answer("Content-Type: Text/CSS; charset=utf-8\r\nETag: \"1\"\r\nAccept-Ranges: bytes\r\n", &sent)
        }
    });
    let front = front(&backend, "");
    for (accept, coding) in [
        ("gzip", "gzip"),
        ("gzip, br", "br"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd;q=0, br;q=0.1, gzip;q=0.9", "gzip"),
    ] {
        for path in ["/length", "/chunked", "/close"] {
            let (head, bytes) = ask(&front, path, &format!("Accept-Encoding: {accept}\r\n"));
            assert_eq!(header(&head, "content-encoding"), Some(coding), "{head}");
            assert_eq!(header(&head, "transfer-encoding"), Some("chunked"), "{head}");
            assert_eq!(
                (header(&head, "content-length"), header(&head, "vary")),
                (None, Some("Accept-Encoding"))
            );
            assert!(bytes.len() < 2000, "{} bytes", bytes.len());
            assert!(decoded(coding, &bytes) == body, "{path} {coding}");
            if path == "/length" {
                assert_eq!((header(&head, "etag"), header(&head, "accept-ranges")), (Some("W/\"1\""), None));
            }
        }
    }
    let counted =
        |name: &str| front.metric(&format!("portcullis_{name}_total{{site=\"site\",coding=\"gzip\"}}"));
    until(|| (counted("compressed_responses"), counted("compression_bytes_in")) == (6.0, 600_000.0));
    assert!((1.0..12_000.0).contains(&counted("compression_bytes_out")));
    // The connection goes on, whatever came before.
    let mut client = front.client();
    for _ in 0..3 {
        client.send("GET /chunked HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\n\r\n");
        assert!(decoded("br", &client.response().1) == body);
    }
}

#[test]
fn what_must_not_be_compressed_is_not() {
    let body = text(5000);
    let backend = Backend::start(move |request| {
        let fields = match request.line().split(' ').nth(1).unwrap_or_default() {
            "/html" => "Content-Type: text/html\r\n",
            "/none" => "",
            "/events" => "Content-Type: text/event-stream\r\n",
            "/cookie" => "Content-Type: text/css\r\nSet-Cookie: sid=1\r\n",
            "/transform" => "Content-Type: text/css\r\nCache-Control: private, No-Transform\r\n",
            "/coded" => "Content-Type: text/css\r\nContent-Encoding: gzip\r\n",
            "/range" => "Content-Type: text/css\r\nContent-Range: bytes 0-4999/9999\r\n",
            "/image" => "Content-Type: image/png\r\n",
            _ => "Content-Type: text/css\r\n",
        };
        match request.line() {
            line if line.contains("small") => answer(fields, "a{}"),
            _ => answer(fields, &body),
        }
    });
    let front = front(&backend, "types = [\"text/*\"]");
    let accept = "Accept-Encoding: gzip\r\n";
    for (path, fields, reason, vary) in [
        ("/none", accept, "media_type", None),
        ("/events", accept, "media_type", None),
        ("/image", accept, "media_type", None),
        ("/cookie", accept, "set_cookie", None),
        ("/transform", accept, "no_transform", None),
        ("/coded", accept, "coded", None),
        ("/range", accept, "range", None),
        ("/small", accept, "small", None),
        ("/html", "Accept-Encoding: gzip\r\nCookie: sid=1\r\n", "credentials", None),
        ("/html", "Accept-Encoding: gzip\r\nAuthorization: Basic eDp5\r\n", "credentials", None),
        ("/html", "", "client", Some("Accept-Encoding")),
        ("/html", "Accept-Encoding: gzip;q=0, deflate\r\n", "client", Some("Accept-Encoding")),
    ] {
        let before = skipped(&front, reason);
        let (head, bytes) = ask(&front, path, fields);
        let coding = header(&head, "content-encoding").filter(|_| path != "/coded");
        assert_eq!((coding, header(&head, "vary")), (None, vary), "{path}: {head}");
        assert_eq!(header(&head, "content-length"), Some(bytes.len().to_string().as_str()), "{path}");
        until(|| skipped(&front, reason) == before + 1.0);
    }
    for (path, fields) in [("/html", ""), ("/css", "Cookie: sid=1\r\n")] {
        let (head, bytes) = ask(&front, path, &format!("{accept}{fields}"));
        assert_eq!(header(&head, "content-encoding"), Some("gzip"), "{path}: {head}");
        assert_eq!(decoded("gzip", &bytes).len(), 5000);
    }
    let mut client = front.client();
    client.send("GET /css HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
    assert!(!client.rest().contains("Content-Encoding"), "HTTP/1.0 is left alone");
    let mut client = front.client();
    client.send("HEAD /css HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");
    let head = client.rest();
    assert_eq!(header(&head, "content-length"), None, "that of the answer to GET is another: {head}");
    assert_eq!(
        (header(&head, "content-encoding"), header(&head, "vary"), header(&head, "transfer-encoding")),
        (Some("gzip"), Some("Accept-Encoding"), None),
        "{head}"
    );
    let mut client = front.client();
    client.send("HEAD /css HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let head = client.rest();
    assert_eq!(
        (header(&head, "content-encoding"), header(&head, "vary"), header(&head, "content-length")),
        (None, Some("Accept-Encoding"), Some("5000")),
        "whatever the client accepts"
    );
}

#[test]
fn the_head_for_head_is_that_for_get() {
    let body = text(5000);
    let backend = Backend::start(move |request| {
        let fields =
            "Content-Type: text/css\r\nETag: \"1\"\r\nAccept-Ranges: bytes\r\nContent-Length: 5000\r\n";
        let body = if request.line().starts_with("HEAD") { "" } else { &body };
        Reply::Bytes(format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}").into_bytes())
    });
    let front = front(&backend, "");
    let mut client = front.client();
    for accept in ["gzip", "br", "identity"] {
        let fields = |head: &str| {
            // `chunked` is about the message, not about what it carries.
            let own = ["x-request-id", "transfer-encoding"];
            let is_own = |line: &&str| own.iter().any(|name| line.to_ascii_lowercase().starts_with(name));
            let mut lines: Vec<String> =
                head.lines().filter(|line| !is_own(line)).map(str::to_string).collect();
            lines.sort();
            lines
        };
        let rest = format!("/ HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accept}\r\n\r\n");
        client.send(format!("HEAD {rest}"));
        let of_head = fields(&client.head());
        // Nothing followed it, so that the next answer on the connection is understood.
        client.send(format!("GET {rest}"));
        let of_get = fields(&client.response().0);
        assert_eq!(of_head, of_get, "{accept}");
    }
    front.counts("portcullis_compressed_responses_total", 2.0); // answers to HEAD have no body
}

#[test]
fn what_the_upstream_has_sent_does_not_wait_in_the_encoder() {
    let backend = Backend::start(|_| {
        let chunk = |text: String| format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
        let head =
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        let first = [head, chunk("first".to_string())].concat();
        // The rest comes when the test has long given up.
        Reply::Slowly(vec![first, chunk(text(10))], 3 * PATIENCE)
    });
    let front = front(&backend, "types = [\"text/html\"], codings = [\"gzip\"]");
    let mut client = front.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    assert_eq!(header(&client.head(), "content-encoding"), Some("gzip"));
    let mut coded = Vec::new();
    let mut seen = String::new();
    while seen != "first" {
        let line = loop {
            if let Some(at) = find(&client.input, b"\r\n") {
                break client.take(at + 2);
            }
            let one = client.take(client.input.len() + 1);
            client.input.splice(..0, one);
        };
        let size = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
        coded.extend(client.take(size));
        client.take(2);
        let mut decoder = flate2::write::GzDecoder::new(Vec::new());
        let _ = std::io::Write::write_all(&mut decoder, &coded);
        let _ = std::io::Write::flush(&mut decoder);
        seen = String::from_utf8(decoder.get_ref().clone()).unwrap();
    }
}

#[test]
fn rules_see_the_body_and_a_route_may_say_otherwise() {
    let backend = Backend::start(|request| {
        let word = if request.line().contains("leak") { "secret " } else { "" };
        answer("Content-Type: text/plain\r\nVary: Accept-Encoding\r\n", &format!("{word}{}", text(5000)))
    });
    let site = format!(
        "{RULES}compression = {{ types = [\"text/plain\"] }}\nresponse_body = {{ inspect = true }}\n\
         [[sites.routes]]\npath = \"/as-it-is/\"\ncompression = {{ enabled = false }}\n"
    );
    let front = Front::start(&document(backend.address, "", "", &site, ""));
    let accept = "Accept-Encoding: gzip\r\n";
    let (head, bytes) = ask(&front, "/", accept);
    assert_eq!(decoded("gzip", &bytes), text(5000));
    assert_eq!(head.matches("Vary").count(), 1, "{head}");
    assert_eq!(status(&ask(&front, "/leak", accept).0), 403);
    assert_eq!(header(&ask(&front, "/as-it-is/", accept).0, "content-encoding"), None);
}

#[test]
fn a_304_says_what_the_200_said_that_the_client_has() {
    let backend = Backend::start(|request| {
        let tag = request.header("if-none-match").unwrap_or_default().to_owned();
        match tag.contains("\"1\"") {
            true => Reply::Bytes(b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n".to_vec()),
            false => answer("Content-Type: text/css\r\nETag: \"1\"\r\n", &text(10_000)),
        }
    });
    let front = front(&backend, "");
    let (head, _) = ask(&front, "/", "Accept-Encoding: gzip\r\n");
    assert_eq!(header(&head, "etag"), Some("W/\"1\""));
    for (has, says) in [("W/\"1\"", "W/\"1\""), ("\"0\", W/\"1\"", "W/\"1\""), ("\"1\"", "\"1\"")] {
        let (head, _) = ask(&front, "/", &format!("Accept-Encoding: gzip\r\nIf-None-Match: {has}\r\n"));
        assert_eq!(status(&head), 304, "{head}");
        assert_eq!((header(&head, "etag"), header(&head, "vary")), (Some(says), Some("Accept-Encoding")));
    }
}

#[test]
fn a_tag_that_we_made_weak_is_strong_upstream() {
    let backend = Backend::start(|request| ok(request.header("if-match").unwrap_or("none")));
    let compressing = front(&backend, "");
    let plain = Front::plain(&backend);
    for (front, sent, seen) in [
        (&compressing, "W/\"1\"", "\"1\""),
        (&compressing, "\"a\", W/\"b\"", "\"a\", \"b\""),
        (&compressing, "\"W/\", \"x\"", "\"W/\", \"x\""),
        (&compressing, "*", "*"),
        (&plain, "W/\"1\"", "W/\"1\""),
    ] {
        let (_, body) = ask(front, "/", &format!("If-Match: {sent}\r\n"));
        assert_eq!(String::from_utf8_lossy(&body), seen, "{sent}");
    }
}
