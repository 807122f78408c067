//! Request and response bodies in content codings, and bodies that applications read differently, through the
//! proxy.

use crate::common::*;
use portcullis_event::ExceptionPolicy;

/// `a=attack` by gzip.
const ATTACK: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\xb4\x4d\x2c\x29\x49\x4c\xce\x06\x00\x46\x37\xd5\x46\x08\x00\x00\x00";
/// `a=1` by gzip.
const FINE: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\xb4\x35\x04\x00\x81\x30\x62\x8d\x03\x00\x00\x00";
/// `<p>secret</p>` by gzip.
const SECRET: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xb3\x29\xb0\x2b\x4e\x4d\x2e\x4a\x2d\xb1\xd1\x2f\xb0\x03\x00\xed\x95\x21\xd1\x0d\x00\x00\x00";

fn post(coding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Encoding: {coding}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn front(backend: &Backend, site: &str) -> Front {
    Front::start(&document(backend.address, "", "", &format!("{RULES}{site}"), ""))
}

#[test]
fn rules_see_the_decoded_body_and_the_upstream_the_one_that_was_sent() {
    let backend = Backend::start(|_| ok("fine"));
    let front = front(&backend, "");
    assert_eq!(status(&front.once(post("gzip", ATTACK))), 403);
    assert!(backend.seen().is_empty());
    assert_eq!(status(&front.once(post("gzip", FINE))), 200);
    let seen = backend.seen();
    assert_eq!(seen[0].body, FINE);
    assert_eq!(seen[0].header("content-encoding"), Some("gzip"));
    front.counts("portcullis_bytes_not_inspected_total{reason=\"content_coding\"}", 0.0);
}

#[test]
fn what_cannot_be_decoded_is_refused() {
    let backend = Backend::start(|_| ok("never"));
    let front = front(&backend, "");
    assert_eq!(status(&front.once(post("compress", b"a=1"))), 415);
    assert_eq!(status(&front.once(post("gzip, gzip, gzip", FINE))), 415);
    assert_eq!(status(&front.once(post("gzip", b"a=1"))), 400);
    assert_eq!(status(&front.once(post("gzip", &FINE[..FINE.len() - 3]))), 400);
    assert_eq!(status(&front.once(post("gzip", &[FINE, b"a=2"].concat()))), 400);
    assert!(backend.seen().is_empty());
    let events = front.events(5);
    assert!(events.iter().all(|event| event.exceptions[0].policy == ExceptionPolicy::Closed));
    front.counts("portcullis_exceptions_total{cause=\"undecodable_body\",policy=\"closed\"}", 5.0);
    until(|| front.metric("portcullis_bytes_not_inspected_total{reason=\"content_coding\"}") > 0.0);
}

#[test]
fn or_shown_as_it_is_and_passed() {
    let backend = Backend::start(|_| ok("fine"));
    let front = front(&backend, "failure = { undecodable = \"open\" }\n");
    assert_eq!(status(&front.once(post("compress", b"a=1"))), 200);
    assert_eq!(status(&front.once(post("compress", b"a=attack"))), 403, "the bytes themselves are inspected");
    assert_eq!(status(&front.once(post("gzip", b"a=attack"))), 403, "so are those that are no gzip");
    front.counts("portcullis_exceptions_total{cause=\"undecodable_body\",policy=\"open\"}", 3.0);
}

#[test]
fn detection_only_refuses_nothing() {
    let backend = Backend::start(|_| ok("fine"));
    let front = front(&backend, "engine = \"detection_only\"\n");
    assert_eq!(status(&front.once(post("compress", b"a=1"))), 200);
    assert_eq!(status(&front.once(post("gzip", ATTACK))), 200);
    let events = front.events(2);
    assert_eq!(events[0].exceptions[0].policy, ExceptionPolicy::DetectOnly);
    assert_eq!(events[1].matches[0].rule.rule_id.0, 5);
}

#[test]
fn a_decoded_body_has_the_limit_of_the_body() {
    let backend = Backend::start(|_| ok("fine"));
    let front = front(&backend, "request_body = { limit = 4, over_limit = \"reject\" }\n");
    let mut chunked =
        b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec();
    chunked.extend_from_slice(b"3\r\n\x1f\x8b\x08\r\n0\r\n\r\n");
    assert_eq!(status(&front.once(chunked)), 400, "cut off");
    let roomy = self::front(&backend, "request_body = { limit = 30, over_limit = \"reject\" }\n");
    assert_eq!(status(&roomy.once(post("gzip", FINE))), 200);
    // 600 zeros in fewer bytes than the limit.
    let zeros = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x63\x60\x18\x05\xa3\x80\xfa\x00\x00\x23\xa2\xed\x77\x58\x02\x00\x00";
    assert_eq!(status(&roomy.once(post("gzip", zeros))), 413);
}

#[test]
fn responses_are_decoded_for_the_rules() {
    let backend = Backend::start(|_| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            SECRET.len()
        );
        Reply::Bytes([head.as_bytes(), SECRET].concat())
    });
    let front = front(&backend, "response_body = { inspect = true }\n");
    assert_eq!(status(&front.once("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")), 403);
}

fn form(kind: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded{kind}\r\n\
         Content-Length: 3\r\n\r\na=1"
    )
}

#[test]
fn ambiguous_bodies_are_refused_counted_and_told() {
    let backend = Backend::start(|_| ok("fine"));
    let front = front(&backend, "");
    assert_eq!(status(&front.once(form("; charset=x-unknown"))), 400);
    assert_eq!(status(&front.once(form("; charset=utf-8; charset=utf-7"))), 400);
    // What can be decoded is read in both ways.
    for fine in ["", "; charset=UTF-8", "; charset=shift_jis", "; charset=gb18030", "; charset=ibm037"] {
        assert_eq!(status(&front.once(form(fine))), 200, "{fine}");
    }
    let events = front.events(2);
    assert_eq!(events[0].verdict.rule_id.unwrap().0, 9_000_105);
    assert_eq!(events[0].ambiguities, ["charset"]);
    front.counts("portcullis_ambiguous_bodies_total", 2.0);
    assert_eq!(backend.seen().len(), 5);
}

#[test]
fn or_pass_where_the_site_says_so() {
    let backend = Backend::start(|_| ok("fine"));
    let front = front(&backend, "request_body = { ambiguous = \"pass\" }\n");
    assert_eq!(status(&front.once(form("; charset=x-unknown"))), 200);
    front.counts("portcullis_ambiguous_bodies_total", 1.0);
}

#[test]
fn second_readings_are_on_unless_the_site_says_otherwise() {
    let backend = Backend::start(|_| ok("fine"));
    let attack = "GET /?a=at%tack HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&front(&backend, "").once(attack)), 403);
    let off = front(&backend, "request_body = { second_readings = false }\n");
    assert_eq!(status(&off.once(attack)), 200);
}
