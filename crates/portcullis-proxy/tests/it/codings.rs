//! Bodies as clients of S3 and Prometheus send them, made here byte for byte, through the proxy.

use portcullis_testkit::random::Random;

use crate::common::*;

const SIGNATURE: &str = "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648";
const SHELL: &[u8] = b"<?php system($_GET['cmd']); ?>";
const LIMIT: usize = 100_000;

/// Chunks of S3, signed or not, and what is behind the last one.
fn aws_chunked(chunks: &[&[u8]], is_signed: bool, trailers: &str) -> Vec<u8> {
    let extension = if is_signed { format!(";chunk-signature={SIGNATURE}") } else { String::new() };
    let mut out = Vec::new();
    for chunk in chunks {
        out.extend([format!("{:x}{extension}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    }
    [&out[..], format!("0{extension}\r\n{trailers}\r\n").as_bytes()].concat()
}

/// The ways in which SDKs send an object, by their `x-amz-content-sha256`.
fn framings() -> [(&'static str, bool, String); 3] {
    let crc = "x-amz-checksum-crc32:AAAAAA==\r\n".to_owned();
    let signed = format!("{crc}x-amz-trailer-signature:{SIGNATURE}\r\n");
    [
        ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", true, String::new()),
        ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", true, signed),
        ("STREAMING-UNSIGNED-PAYLOAD-TRAILER", false, crc),
    ]
}

fn put(fields: &str, body: &[u8], is_chunked: bool) -> Vec<u8> {
    let head = format!("PUT /bucket/key HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}");
    if !is_chunked {
        return [format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat();
    }
    let mut wire = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    for piece in body.chunks(4_099) {
        wire.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    }
    [&wire[..], b"0\r\n\r\n"].concat()
}

fn object(media_type: &str, framing: &str, decoded: usize) -> String {
    format!(
        "Authorization: AWS4-HMAC-SHA256 Credential=a/20261129/us-east-1/s3/aws4_request, SignedHeaders=host, \
         Signature={SIGNATURE}\r\nX-Amz-Date: 20261129T120000Z\r\nx-amz-content-sha256: {framing}\r\n\
         X-Amz-Decoded-Content-Length: {decoded}\r\nContent-Type: {media_type}\r\nContent-Encoding: aws-chunked\r\n"
    )
}

fn semantic(backend: &Backend, keys: &str) -> Front {
    let site = format!("mode = \"semantic\"\nrequest_body = {{ limit = {LIMIT}{keys} }}\n");
    Front::start(&document(backend.address, "", "", &site, ""))
}

#[test]
fn objects_of_s3_arrive_as_they_were_sent() {
    let backend = Backend::start(|_| ok("stored"));
    let front = semantic(&backend, "");
    let noise = Random::new(1).bytes(30_000);
    let large = Random::new(2).bytes(300_000);
    let text = b"A note about a holiday in May, and one more.\r\n".repeat(100);
    let mut sent = 0;
    for (media_type, body) in [
        ("application/octet-stream", &noise[..]),
        ("application/octet-stream", &large),
        ("text/plain", &text),
        ("application/json", b"{\"name\":\"Ann\",\"items\":[1,2,3]}"),
        ("application/x-www-form-urlencoded", b"name=Ann&city=Paris"),
        ("", b"x"),
    ] {
        for (framing, is_signed, trailers) in framings() {
            let (one, other) = body.split_at(body.len() / 2);
            let chunks = [one, other];
            let chunks = if one.is_empty() { &chunks[1..] } else { &chunks[..] };
            let wire = aws_chunked(chunks, is_signed, &trailers);
            for is_chunked in [false, true] {
                let answer = front.once(put(&object(media_type, framing, body.len()), &wire, is_chunked));
                assert_eq!(status(&answer), 200, "{media_type} {framing} {}: {answer}", body.len());
                let seen = backend.seen();
                assert_eq!(seen[sent].body, wire, "{media_type} {framing}");
                assert_eq!(seen[sent].header("content-encoding"), Some("aws-chunked"));
                assert_eq!(seen[sent].header("x-amz-content-sha256"), Some(framing));
                sent += 1;
            }
        }
    }
    front.counts("portcullis_bytes_not_inspected_total", 0.0);
}

#[test]
fn what_is_in_the_chunks_is_inspected() {
    let backend = Backend::start(|_| ok("stored"));
    let front = semantic(&backend, "");
    let noise = Random::new(1).bytes(300_000);
    let (one, other) = SHELL.split_at(9);
    for (framing, is_signed, trailers) in framings() {
        for (before, behind) in [(&noise[..20_000], &noise[..0]), (&noise[..150_000], &noise[..100])] {
            let (start, end) = ([before, one].concat(), [other, behind].concat());
            let wire = aws_chunked(&[&start, &end], is_signed, &trailers);
            let head = object("application/octet-stream", framing, start.len() + end.len());
            for is_chunked in [false, true] {
                let answer = front.once(put(&head, &wire, is_chunked));
                assert_eq!(status(&answer), 403, "{framing}: {answer}");
                assert!(answer.contains("<Error><Code>AccessDenied</Code>"), "{answer}");
                assert_eq!(header(&answer, "content-type"), Some("application/xml"));
                let id = header(&answer, "x-request-id").unwrap();
                assert!(answer.contains(&format!("<RequestId>{id}</RequestId>")), "{answer}");
                assert_eq!(header(&answer, "x-amz-request-id"), Some(id));
            }
        }
    }
    assert!(backend.seen().is_empty());
}

/// An application that does not know the coding reads the frame as a part of the body.
#[test]
fn forms_in_chunks_have_both_readings() {
    let backend = Backend::start(|_| ok("fine"));
    let rules = "rules = { directives = '''\n\
        SecRule ARGS \"@rx or\\s+2\\s+=\" \"id:1,phase:2,deny,status:403,log\"\n''' }\n";
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let coded = format!("{form}Content-Encoding: aws-chunked\r\n");
    let hidden = aws_chunked(&[b"a=1&q=1 or ", b"=1"], false, "");
    for site in [rules, "mode = \"semantic\"\n"] {
        let front = Front::start(&document(backend.address, "", "", site, ""));
        let read_apart = front.once(put(form, b"a=1&q=1 or =1", false));
        assert_eq!(status(&read_apart), 200, "{site} {read_apart}");
        assert_eq!(status(&front.once(put(&coded, &hidden, false))), 403, "{site}");
        let benign =
            aws_chunked(&[b"a=1&q=a holiday", b" in May"], false, "x-amz-checksum-crc32:AAAAAA==\r\n");
        assert_eq!(status(&front.once(put(&coded, &benign, false))), 200, "{site}");
    }
    // In a form with fields.
    let front = Front::start(&document(backend.address, "", "", rules, ""));
    let coded = "Content-Type: multipart/form-data; boundary=B\r\nContent-Encoding: aws-chunked\r\n";
    let start = b"--B\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\n1 or ";
    let hidden = aws_chunked(&[start, b"=1", b"\r\n--B--\r\n"], false, "");
    assert_eq!(status(&front.once(put(coded, &hidden, false))), 403);
    let benign = aws_chunked(&[start, b"\r\n--B--\r\n"], false, "");
    assert_eq!(status(&front.once(put(coded, &benign, false))), 200);
}

#[test]
fn frames_that_lie_are_refused() {
    let backend = Backend::start(|_| ok("never"));
    let front = semantic(&backend, "");
    let framing = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
    let whole = aws_chunked(&[b"a=1"], true, "");
    let bytes = "application/octet-stream";
    let coded = |codings: &str| format!("Content-Type: {bytes}\r\nContent-Encoding: {codings}\r\n");
    for (head, body, expected) in [
        (object(bytes, framing, 4), &whole[..], 400),
        (object(bytes, framing, 3), &whole[..whole.len() - 90], 400),
        (object(bytes, framing, 3), b"a=1", 400),
        (object(bytes, framing, 3), b"ffffffffffffffff\r\na=1\r\n0\r\n\r\n", 400),
        (object(bytes, framing, 3), b"10000000000000003\r\na=1\r\n0\r\n\r\n", 400),
        (object(bytes, framing, 3), b"3;a=b\r\na=1\r\n0\r\n\r\n", 400),
        (object(bytes, framing, 3), b"3\r\na=1\r\n0\r\nx-other: <script>\r\n\r\n", 400),
        (coded("aws-chunked, aws-chunked"), &whole, 415),
        (coded("aws-chunked, gzip, br"), &whole, 415),
        (coded("aws-chunked, lz4"), &whole, 415),
        (coded("aws-chunked, gzip"), &whole, 400),
        (coded("snappy"), b"a=1", 400),
    ] {
        for is_chunked in [false, true] {
            let answer = front.once(put(&head, body, is_chunked));
            assert_eq!(status(&answer), expected, "{head} {}", String::from_utf8_lossy(body));
        }
    }
    assert!(backend.seen().is_empty());
    // A frame that ends behind what is held, or not as it began.
    let noise = Random::new(1).bytes(300_000);
    for wire in [
        &aws_chunked(&[&noise], true, "")[..300_050],
        &[&aws_chunked(&[&noise[..200_000]], true, "")[..], b"a=1&b=2"].concat(),
    ] {
        assert_eq!(status(&front.once(put(&coded("aws-chunked"), wire, true))), 400);
    }
    assert!(backend.seen().is_empty());
}

#[test]
fn codings_that_pass_without_inspection() {
    let backend = Backend::start(|_| ok("fine"));
    let front = semantic(&backend, ", uninspected_codings = [\"lz4\"]");
    let coded = |coding: &str| put(&format!("Content-Encoding: {coding}\r\n"), b"\x04\x22\x4D\x18", false);
    assert_eq!(status(&front.once(coded("LZ4"))), 200);
    assert_eq!(backend.seen()[0].body, b"\x04\x22\x4D\x18");
    front.counts("portcullis_bytes_not_inspected_total{reason=\"content_coding\"}", 4.0);
    front.counts("portcullis_exceptions_total{cause=\"undecodable_body\",policy=\"open\"}", 1.0);
    let answer = front.once(coded("compress"));
    assert_eq!(status(&answer), 415);
    assert!(answer.contains("request_body.uninspected_codings"), "{answer}");
}

/// A field of Protocol Buffers with these bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    [&out[..], bytes].concat()
}

/// What Prometheus writes: time series with labels and a sample each, in one block of snappy.
fn remote_write(labels: &[(&str, &str)]) -> Vec<u8> {
    let label = |(name, value): &(&str, &str)| {
        field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat())
    };
    let labels: Vec<u8> = labels.iter().flat_map(label).collect();
    // A value of 8 bytes and a time.
    let sample =
        field(2, &[&[0x09][..], &1.5f64.to_le_bytes(), &[0x10, 0x80, 0xE0, 0xD6, 0xB8, 0xD1, 0x31]].concat());
    let message = field(1, &[labels, sample].concat()).repeat(20);
    let mut block = Vec::new();
    let mut length = message.len();
    while length >= 0x80 {
        block.push(length as u8 | 0x80);
        length >>= 7;
    }
    block.push(length as u8);
    for piece in message.chunks(60) {
        block.push(((piece.len() - 1) << 2) as u8);
        block.extend(piece);
    }
    block
}

#[test]
fn samples_of_prometheus() {
    let backend = Backend::start(|_| ok(""));
    let front = semantic(&backend, "");
    let head = "Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\nUser-Agent: Prometheus/2.42.0\r\n\
                X-Prometheus-Remote-Write-Version: 0.1.0\r\n";
    let benign = remote_write(&[("__name__", "up"), ("instance", "10.0.0.5:9090"), ("job", "node")]);
    let attack = remote_write(&[("__name__", "up"), ("job", "x' UNION SELECT user,password FROM users-- -")]);
    for is_chunked in [false, true] {
        let answer = front.once(put(head, &benign, is_chunked));
        assert_eq!(status(&answer), 200, "{answer}");
        assert_eq!(backend.seen().last().unwrap().body, benign);
        assert_eq!(status(&front.once(put(head, &attack, is_chunked))), 403);
    }
    assert_eq!(backend.seen().len(), 2);
    front.counts("portcullis_bytes_not_inspected_total", 0.0);
}
