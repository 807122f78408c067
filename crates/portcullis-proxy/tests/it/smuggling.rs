//! The framing corpus through the whole proxy, as a backend sees it: only plain forms arrive, in one form,
//! and never a request that the proxy did not count.

use crate::common::*;
use crate::framing;
use serde_json::Value;

/// Rows of the file. A runner that reads none of them must not pass.
const ROWS: usize = 94;

/// The rows that are passed on; `overflow32` is well formed but larger than what may be held.
const PLAIN: [&str; 19] = [
    "te-value/plain",
    "te-value/upper",
    "te-value/mixed",
    "te-value/leading-space",
    "te-value/double-space",
    "te-value/tab",
    "te-value/trailing-space",
    "te-value/trailing-tab",
    "te-value/utf8", // plain ASCII in the file
    "te-name/name-lower",
    "te-name/name-upper",
    "cl/octal-lead",
    "chunk-body/ok",
    "chunk-body/ext",
    "chunk-body/leading-zero",
    "chunk-body/trailer",
    "chunk-body/00-last",
    "chunk-body/0-ext",
    "chunk-body/upper-hex",
];

#[test]
fn only_plain_forms_arrive_and_each_as_one_request() {
    let forms = framing::FORMS.iter().map(|form| {
        let name = format!("{}/{}", form.place, form.name);
        (name, form.line.to_vec(), form.body.to_vec())
    });
    let plain = framing::FORMS.iter().filter(|form| form.plain);
    check(forms.collect(), plain.map(|form| format!("{}/{}", form.place, form.name)).collect());
}

#[test]
fn only_plain_forms_of_the_corpora_arrive() {
    let Some(_) = portcullis_testkit::corpora::for_test() else { return };
    let rows: Vec<Value> =
        portcullis_testkit::corpora::records("robustness/http1-framing-variants.jsonl").unwrap();
    assert_eq!(rows.len(), ROWS);
    let forms = rows.iter().map(|row| {
        let name = format!("{}/{}", row["where"].as_str().unwrap(), row["name"].as_str().unwrap());
        let bytes =
            |key: &str| row[key].as_str().map(|text| portcullis_testkit::base64::decode(text).unwrap());
        let line = bytes("header_line_b64").unwrap_or_else(|| b"Transfer-Encoding: chunked".to_vec());
        let body = bytes("body_b64").unwrap_or_else(|| match name.starts_with("cl/") {
            true => b"hello".to_vec(),
            false => b"5\r\nhello\r\n0\r\n\r\n".to_vec(),
        });
        (name, line, body)
    });
    check(forms.collect(), PLAIN.map(str::to_owned).to_vec());
}

/// Sends requests with these field lines and bodies; exactly those of `plain` arrive.
fn check(forms: Vec<(String, Vec<u8>, Vec<u8>)>, mut plain: Vec<String>) {
    let backend = Backend::start(|_| ok("ok"));
    // The requests are followed by the end of what the client sends.
    let listener = "http = { half_close = true }";
    let front = Front::start(&document(backend.address, "", listener, RULES, ""));
    let mut passed = Vec::new();
    for (name, line, body) in forms {
        let request = [
            b"POST /first HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n",
            &line[..],
            b"\r\n\r\n",
            &body,
            b"GET /second HTTP/1.1\r\nHost: a\r\n\r\n",
        ]
        .concat();
        let before = backend.seen().len();
        let mut client = front.client();
        client.send(&request);
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = client.rest();
        let seen = backend.seen().split_off(before);
        if seen.is_empty() {
            assert!((400..600).contains(&status(&answer)), "{name}: {answer}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{name}: one answer, then closed: {answer}");
            continue;
        }
        assert_eq!(answer.matches("HTTP/1.1 200").count(), 2, "{name}: {answer}");
        assert_eq!(seen.len(), 2, "{name}: {seen:?}");
        let [first, second] = [&seen[0], &seen[1]];
        assert_eq!((first.line(), second.line()), ("POST /first HTTP/1.1", "GET /second HTTP/1.1"), "{name}");
        let expected = if name.ends_with("upper-hex") { &b"hellohello"[..] } else { b"hello" };
        assert_eq!(first.body, expected, "{name}");
        let head = first.head.to_ascii_lowercase();
        assert!(!head.contains("transfer"), "{name}: a held body has a length: {head}");
        assert_eq!(head.matches("content-length").count(), 1, "{name}");
        assert_eq!(first.header("content-length"), Some(expected.len().to_string().as_str()), "{name}");
        assert!(second.header("content-length").is_none() && second.body.is_empty(), "{name}");
        passed.push(name);
    }
    plain.sort_unstable();
    passed.sort_unstable();
    assert_eq!(passed, plain);
}
