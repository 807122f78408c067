//! HTTP through the proxy: framing, keep-alive, upgrade, blocking, failures of the upstream.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use portcullis_event::{Action, UpstreamError};

const GET: &str = "GET /a?b=c HTTP/1.1\r\nHost: shop.example\r\n\r\n";

#[test]
fn keep_alive_on_both_sides() {
    let backend = Backend::start(|request| ok(request.line()));
    let front = Front::plain(&backend);
    let mut client = front.client();
    for _ in 0..5 {
        client.send(GET);
        let (head, body) = client.response();
        assert_eq!(status(&head), 200);
        assert_eq!(body, b"GET /a?b=c HTTP/1.1");
        assert_eq!(header(&head, "X-Request-Id").map(str::len), Some(32));
    }
    let seen = backend.seen();
    assert_eq!(seen.len(), 5);
    assert!(seen.iter().all(|request| request.connection == 0), "one connection serves all");
    assert_eq!(seen[0].header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(seen[0].header("x-forwarded-proto"), Some("http"));
    assert_eq!(seen[0].header("host"), Some("shop.example"));
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(header(&client.rest(), "connection"), Some("close"));
    front.counts("portcullis_requests_total{site=\"site\",route=\"/\",status=\"200\",verdict=\"pass\"}", 6.0);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let backend = Backend::start(|request| ok(request.line().split(' ').nth(1).unwrap_or("")));
    let front = Front::plain(&backend);
    let mut client = front.client();
    let mut pipeline = String::new();
    for number in 0..20 {
        pipeline.push_str(&format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nx=1"));
    }
    client.send(&pipeline);
    for number in 0..20 {
        assert_eq!(client.response().1, format!("/{number}").into_bytes());
    }
}

#[test]
fn http_1_0_closes_unless_asked() {
    let backend = Backend::start(|_| ok("x"));
    let front = Front::plain(&backend);
    assert!(front.once("GET / HTTP/1.0\r\n\r\n").contains("Connection: close"));
    let mut client = front.client();
    client.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(header(&client.response().0, "connection"), Some("keep-alive"));
    client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert_eq!(status(&client.rest()), 200);
    let hosts: Vec<String> =
        backend.seen().iter().map(|seen| seen.header("host").unwrap().to_string()).collect();
    assert_eq!(hosts, [backend.address.to_string(), "a".to_string(), "a".to_string()]);
}

#[test]
fn small_chunks_are_gathered() {
    let chunks: Vec<u8> = std::iter::repeat_n(*b"1\r\nx\r\n", 10_000).flatten().collect();
    let body = [&chunks[..], b"0\r\n\r\n"].concat();
    let response = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &body[..]].concat();
    let backend = Backend::start(move |_| Reply::Bytes(response.clone()));
    let site = format!("{RULES}request_body = {{ inspect = false }}\n");
    let front = Front::start(&document(backend.address, "", "", &site, ""));
    let mut client = front.client();
    for _ in 0..3 {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(&body);
        assert_eq!(client.response().1, vec![b'x'; 10_000]);
    }
    let seen = backend.seen();
    assert!(seen.len() == 3 && seen.iter().all(|request| request.body == vec![b'x'; 10_000]));
}

#[test]
fn chunks_and_trailers_both_ways() {
    let backend = Backend::start(|_| {
        Reply::Bytes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nT: 1\r\n\r\n".to_vec())
    });
    let front = Front::plain(&backend);
    let mut client = front.client();
    for _ in 0..2 {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
        std::thread::sleep(Duration::from_millis(20));
        client.send("6\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n");
        let (head, body) = client.response();
        assert_eq!((status(&head), body), (200, b"abcdefg".to_vec()));
    }
    let seen = backend.seen();
    assert_eq!(seen[1].body, b"hello world");
    assert_eq!(seen[1].header("content-length"), Some("11"), "a held body goes out with its length");
    assert_eq!(seen[1].header("transfer-encoding"), None);
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(client.rest().ends_with("0\r\nT: 1\r\n\r\n"), "the upstream's trailers reach the client");
}

#[test]
fn continue_is_answered_when_the_body_is_wanted() {
    let backend = Backend::start(|request| ok(&request.body.len().to_string()));
    let front = Front::plain(&backend);
    let mut client = front.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello");
    assert_eq!(client.response().1, b"5");
    assert_eq!(backend.seen()[0].header("expect"), None);
    // Too large, said before a byte of it was sent.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(status(&client.rest()), 413);
}

#[test]
fn head_204_and_304_have_no_body() {
    let backend = Backend::start(|request| {
        Reply::Bytes(match request.line().split(' ').nth(1) {
            Some("/204") => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            // RFC 9110, section 8.6: not to be passed on.
            Some("/length") => b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n".to_vec(),
            Some("/304") => b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: x\r\n\r\n".to_vec(),
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n".to_vec(),
        })
    });
    let front = Front::plain(&backend);
    let mut client = front.client();
    for (method, path, expected) in [
        ("GET", "/204", 204),
        ("GET", "/304", 304),
        ("HEAD", "/", 200),
        ("GET", "/length", 204),
        ("GET", "/204", 204),
    ] {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let head = client.head();
        assert_eq!(status(&head), expected);
        assert_eq!(header(&head, "content-length").is_some(), expected != 204, "{head}");
    }
    client.send("HEAD /?q=attack HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&client.head()), 403);
    client.send(GET.replace("/a?b=c", "/204"));
    assert_eq!(status(&client.head()), 204);
}

#[test]
fn bodies_that_end_with_the_connection() {
    let backend = Backend::start(|_| Reply::Close(b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec()));
    let front = Front::plain(&backend);
    let mut client = front.client();
    client.send(GET);
    let (head, body) = client.response();
    assert_eq!(header(&head, "transfer-encoding"), Some("chunked"));
    assert_eq!(body, b"until the end");
    let old = front.once("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert!(old.ends_with("\r\n\r\nuntil the end"), "{old}");
}

#[test]
fn a_body_that_breaks_off_is_not_ended() {
    let backend =
        Backend::start(|_| Reply::Close(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec()));
    let front = Front::plain(&backend);
    let answer = front.once(GET);
    assert!(answer.ends_with("half"), "{answer}");
    assert_eq!(front.events(1)[0].upstream_error, Some(UpstreamError::BodyTruncated));
}

#[test]
fn responses_stream() {
    let (goes_on, step) = std::sync::mpsc::channel();
    let parts = vec![
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
        b"5\r\nfirst\r\n".to_vec(),
        b"6\r\nsecond\r\n0\r\n\r\n".to_vec(),
    ];
    let step = Arc::new(Mutex::new(step));
    let backend = Backend::start(move |_| Reply::Steps(parts.clone(), Arc::clone(&step)));
    let front = Front::plain(&backend);
    let mut client = front.client();
    client.send(GET);
    client.head(); // does not wait for the body
    goes_on.send(()).unwrap();
    assert_eq!(client.take(10), b"5\r\nfirst\r\n"); // nor the first part for the second
    goes_on.send(()).unwrap();
    assert_eq!(client.take(16), b"6\r\nsecond\r\n0\r\n\r\n");
}

#[test]
fn upgrade_passes_through() {
    let backend = Backend::start(|request| {
        match request.header("upgrade") {
        Some("websocket") => Reply::Echo(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
                .to_vec(),
        ),
        _ => ok("plain"),
    }
    });
    let front = Front::plain(&backend);
    let mut client = front.client();
    let upgrade = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
    };
    client.send(upgrade("/chat"));
    let head = client.head();
    assert_eq!(status(&head), 101);
    assert_eq!(header(&head, "upgrade"), Some("websocket"));
    for message in ["one", "attack", "three"] {
        client.send(message);
        assert_eq!(client.take(message.len()), message.as_bytes(), "frames pass as they are");
    }
    drop(client);
    until(|| front.metric("portcullis_bytes_not_inspected_total{reason=\"upgraded\"}") >= 0.0);
    let mut client = front.client();
    client.send(upgrade("/chat?q=attack"));
    assert_eq!(status(&client.head()), 403, "the handshake is inspected");
    client.send(upgrade("/").replace("websocket", "h2c"));
    assert_eq!(client.response().1, b"plain", "other protocols are not offered to the upstream");
    let rude =
        Backend::start(|_| Reply::Echo(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n".to_vec()));
    let front = Front::plain(&rude);
    for request in [upgrade("/"), GET.to_string()] {
        let mut client = front.client();
        client.send(request);
        assert_eq!(status(&client.head()), 502, "nor accepted from it");
    }
    // What has not read the key is no WebSocket, and what follows would be requests.
    let rude = Backend::start(|_| {
        let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
        Reply::Echo(format!("{head}Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n").into_bytes())
    });
    let front = Front::plain(&rude);
    let other = upgrade("/").replace("dGhl", "dGhm");
    let none = upgrade("/").replace("Sec-WebSocket-Key", "X-Key");
    for request in [other, none] {
        let mut client = front.client();
        client.send(request);
        assert_eq!(status(&client.head()), 502, "nor accepted from it");
    }
}

#[test]
fn other_forms_of_target() {
    let backend = Backend::start(|request| ok(request.line()));
    let front = Front::plain(&backend);
    let mut client = front.client();
    client.send("GET http://shop.example/x?y=<z> HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert_eq!(client.response().1, b"GET /x?y=<z> HTTP/1.1", "origin form, bytes as they came");
    client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().1, b"OPTIONS * HTTP/1.1");
    client.send("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n");
    let answer = client.rest();
    assert_eq!((status(&answer), header(&answer, "allow").is_some()), (405, true));
    assert_eq!(backend.seen().len(), 2);
}

#[test]
fn blocks_with_a_page_that_names_the_request() {
    let backend = Backend::start(|_| ok("fine"));
    let front = Front::plain(&backend);
    let mut client = front.client();
    client.send("GET /?q=attack HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n");
    let (head, body) = client.response();
    let id = header(&head, "x-request-id").unwrap().to_string();
    assert_eq!(status(&head), 403);
    assert!(String::from_utf8(body).unwrap().contains(&id));
    // The connection goes on, and a blocked body leaves nothing behind on it.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 8\r\n\r\nx=attack");
    let (head, body) = client.response();
    assert_eq!(status(&head), 403);
    assert_eq!(header(&head, "content-type"), Some("application/json"));
    assert!(String::from_utf8(body).unwrap().contains("\"request_id\""));
    client.send(GET);
    assert_eq!(client.response().1, b"fine");
    let events = front.events(2);
    assert_eq!(events[0].request_id, id);
    assert_eq!(events[0].verdict.action, Action::Deny);
    assert_eq!(backend.seen().len(), 1);
    assert_eq!(status(&front.once("GET /?q=moveme HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")), 302);
    assert_eq!(front.once("GET /?q=dropme HTTP/1.1\r\nHost: a\r\n\r\n"), "");
}

#[test]
fn bad_http_is_answered_logged_and_counted() {
    let backend = Backend::start(|_| ok("never"));
    let front = Front::plain(&backend);
    for (request, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/4.0\r\nHost: a\r\n\r\n", 505),
        ("GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("\x16\x03\x01", 400),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ] {
        let answer = front.once(request);
        assert_eq!(status(&answer), expected, "{request:?}: {answer}");
        assert_eq!(header(&answer, "connection"), Some("close"));
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(20_000));
    let answer = front.once(long);
    assert_eq!(status(&answer), 414, "{answer:?}");
    assert!(backend.seen().is_empty());
    let events = front.events(7);
    assert_eq!(events.iter().filter(|event| event.refusal.is_some()).count(), 6);
    front.counts("portcullis_refused_requests_total", 6.0);
}

#[test]
fn a_dead_upstream_is_502_and_a_silent_one_504() {
    let front = Front::start(&document(vacant(), "", "", RULES, ""));
    let mut client = front.client();
    for _ in 0..2 {
        client.send(GET);
        assert_eq!(status(&client.response().0), 502);
    }
    assert_eq!(front.events(2)[1].upstream_error, Some(UpstreamError::Connect));
    front.counts("portcullis_upstream_errors_total{kind=\"connect\"}", 2.0);

    let backend = Backend::start(|_| Reply::Silence);
    let front = Front::start(&document(backend.address, "", "", RULES, "read_timeout = \"200ms\""));
    assert_eq!(
        status(&{
            let mut c = front.client();
            c.send(GET);
            c.response().0
        }),
        504
    );
    assert_eq!(front.events(1)[0].upstream_error, Some(UpstreamError::ResponseTimeout));

    for (reply, error) in [
        (&b"SSH-2.0-OpenSSH\r\n"[..], UpstreamError::InvalidResponse),
        (b"", UpstreamError::Closed),
        (b"HTTP/1.1 200 OK\r\nContent-Le", UpstreamError::Closed),
    ] {
        let backend = Backend::start(move |_| Reply::Close(reply.to_vec()));
        let front = Front::plain(&backend);
        let mut client = front.client();
        client.send(GET);
        assert_eq!(status(&client.response().0), 502);
        assert_eq!(front.events(1)[0].upstream_error, Some(error));
    }
}

#[test]
fn a_kept_connection_that_closed_is_replaced() {
    // The backend closes each connection after its first answer without saying so.
    let backend =
        Backend::start(|_| Reply::Close(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()));
    let front = Front::plain(&backend);
    let mut client = front.client();
    for _ in 0..5 {
        client.send(GET);
        assert_eq!(client.response().1, b"ok");
    }
    // What is not sent twice: each time when the connection is known to be closed.
    for number in 5..25 {
        until(|| backend.closed() == number);
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na=b");
        assert_eq!(client.response().1, b"ok");
    }
    assert_eq!(backend.seen().len(), 25);
}

#[test]
fn endpoints_take_turns_and_dead_ones_are_skipped() {
    let dead = vacant();
    let one = Backend::start(|_| ok("one"));
    let two = Backend::start(|_| ok("two"));
    let document = document(one.address, "", "", RULES, "").replace(
        &format!("[\"http://{}\"]", one.address),
        &format!("[\"http://{dead}\", \"http://{}\", \"http://{}\"]", one.address, two.address),
    );
    let front = Front::start(&document);
    let mut client = front.client();
    for _ in 0..10 {
        client.send(GET);
        assert_eq!(status(&client.response().0), 200);
    }
    assert_eq!((one.seen().len(), two.seen().len()), (5, 5));
}

#[test]
fn a_panic_in_inspection_stays_inside() {
    let backend = Backend::start(|_| ok("ok"));
    for (policy, expected) in [("closed", 500), ("open", 200)] {
        let site = format!("{RULES}failure = {{ engine_error = \"{policy}\" }}\n");
        let front = Front::start(&document(backend.address, "", "", &site, ""));
        let mut client = front.client();
        client.send("GET /?q=panicme HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(status(&client.response().0), expected);
        client.send(GET);
        assert_eq!(status(&client.response().0), 200, "the worker lives");
        assert_eq!(front.events(1)[0].exceptions.len(), 1);
        let counted = format!("portcullis_exceptions_total{{cause=\"engine_error\",policy=\"{policy}\"}}");
        front.counts(&counted, 1.0);
    }
}

/// RFC 9110, section 6.6.1: an answer without `Date` gets one, and one that has it keeps it.
#[test]
fn answers_have_a_date() {
    let backend = Backend::start(|request| match request.line().contains("dated") {
        true => Reply::Bytes(
            b"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n".to_vec(),
        ),
        false => Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()),
    });
    let front = Front::plain(&backend);
    let mut client = front.client();
    for (target, expected) in
        [("/", None), ("/dated", Some("Thu, 01 Jan 1970 00:00:00 GMT")), ("/attack", None)]
    {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let (head, _) = client.response();
        let dates: Vec<&str> = head.lines().filter_map(|line| line.strip_prefix("Date: ")).collect();
        assert_eq!(dates.len(), 1, "{head}");
        let is_recent = dates[0].len() == 29 && dates[0].ends_with(" GMT") && !dates[0].contains("1970");
        assert!(expected.map_or(is_recent, |date| date == dates[0]), "{head}");
    }
}
