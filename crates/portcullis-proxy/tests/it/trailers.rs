//! Trailers of requests: those that a route names go on, inspected; the others do not, and that is told.

use std::net::SocketAddr;

use crate::common::http2::*;
use crate::common::http2_backend::Http2Backend;
use crate::common::*;
use bytes::Bytes;
use http::{HeaderMap, Request};

const CHUNKED: &str = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n\
                       2\r\nab\r\n0\r\nX-Sum: 7\r\nX-Evil: attack\r\n\r\n";

fn front(upstream: SocketAddr, site: &str, group: &str) -> Front {
    Front::start(&document(upstream, "", "http2 = { cleartext = true }", site, group))
}

fn dropped(front: &Front) -> f64 {
    front.metric("portcullis_request_trailers_dropped_total")
}

/// A call with two trailer fields; the body of the answer.
fn call(front: &Front, path: &str) -> Vec<u8> {
    let peer = Peer::connect(front.address());
    let send = peer.send.clone();
    let request =
        Request::post(format!("http://a{path}")).header("content-type", "text/plain").body(()).unwrap();
    peer.wait(async move {
        let (answer, mut stream) = send.ready().await.unwrap().send_request(request, false).unwrap();
        stream.send_data(Bytes::from_static(b"ab"), false).unwrap();
        let fields = [("x-sum", "7"), ("x-evil", "attack")];
        let fields = fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        stream.send_trailers(HeaderMap::from_iter(fields)).unwrap();
        whole(answer.await.unwrap().into_body()).await.unwrap().0
    })
}

#[test]
fn of_a_body_that_is_held() {
    let backend = Backend::start(|request| ok(&String::from_utf8_lossy(&request.body)));
    let front = front(backend.address, RULES, "");
    let mut client = front.client();
    client.send(CHUNKED);
    assert_eq!(client.response().1, b"ab");
    until(|| dropped(&front) == 2.0);
    assert_eq!(call(&front, "/x"), b"ab");
    until(|| dropped(&front) == 4.0);
    for seen in backend.seen() {
        assert_eq!((seen.header("content-length"), seen.header("x-sum")), (Some("2"), None));
    }
}

#[test]
fn of_a_body_that_streams() {
    let backend = Backend::start(|request| ok(&String::from_utf8_lossy(&request.body)));
    let streams = "request_body = { inspect = false }";
    let to_http1 = front(backend.address, &format!("{RULES}{streams}"), "");
    let mut client = to_http1.client();
    client.send(CHUNKED);
    assert_eq!(client.response().1, b"ab");
    assert_eq!(call(&to_http1, "/x"), b"ab");
    until(|| dropped(&to_http1) == 4.0);
    assert!(backend.seen().iter().all(|seen| seen.header("transfer-encoding") == Some("chunked")));

    let backend = Http2Backend::start();
    let to_http2 = front(backend.address, &format!("{RULES}{streams}"), "protocol = \"h2c\"");
    let mut client = to_http2.client();
    client.send(CHUNKED);
    assert_eq!(client.response().1, b"2");
    // From stream to stream the body goes on by itself.
    assert_eq!(call(&to_http2, "/echo"), b"ab");
    until(|| dropped(&to_http2) == 4.0);
}

#[test]
fn events_count_them() {
    let backend = Backend::start(|_| ok("hello"));
    let front = front(backend.address, RULES, "");
    let form = CHUNKED.replace("text/plain", "application/x-www-form-urlencoded");
    let mut client = front.client();
    client.send(form.replace("2\r\nab", "8\r\nx=attack"));
    assert_eq!(status(&client.head()), 403);
    assert_eq!(front.events(1).remove(0).request.trailers_dropped, 2);
}

/// A route that lets one of the two go on.
fn passing(upstream: SocketAddr, more: &str, group: &str) -> Front {
    let site = format!("{RULES}request_trailers = [\"X-Sum\"]\n{more}");
    front(upstream, &site, group)
}

#[test]
fn named_ones_go_on() {
    let backend = Backend::start(|request| ok(&String::from_utf8_lossy(&request.body)));
    let to_http1 = passing(backend.address, "", "");
    let mut client = to_http1.client();
    client.send(CHUNKED);
    assert_eq!(client.response().1, b"ab");
    assert_eq!(call(&to_http1, "/x"), b"ab");
    until(|| dropped(&to_http1) == 2.0);
    for seen in backend.seen() {
        assert_eq!(
            (seen.header("transfer-encoding"), seen.header("content-length")),
            (Some("chunked"), None)
        );
        assert_eq!(seen.trailers.len(), 1, "{:?}", seen.trailers);
        assert!(seen.trailers[0].eq_ignore_ascii_case("x-sum: 7"));
    }
    // A request without any has a length, as ever.
    client.send(CHUNKED.replace("X-Sum: 7\r\nX-Evil: attack\r\n", ""));
    assert_eq!(client.response().1, b"ab");
    assert_eq!(backend.seen()[2].header("content-length"), Some("2"));
    // Nor is a body before them needed.
    client.send(CHUNKED.replace("2\r\nab\r\n", ""));
    assert_eq!(client.response().1, b"");
    assert_eq!(backend.seen()[3].trailers.len(), 1);

    let backend = Http2Backend::start();
    let to_http2 = passing(backend.address, "", "protocol = \"h2c\"");
    let mut client = to_http2.client();
    client.send(CHUNKED);
    assert_eq!(client.response().1, b"2");
    client.send(CHUNKED.replace("2\r\nab\r\n", ""));
    assert_eq!(client.response().1, b"0");
    assert_eq!(call(&to_http2, "/x"), b"2");
    for seen in backend.seen() {
        assert_eq!((seen.trailers.len(), &seen.trailers["x-sum"]), (1, &"7".parse().unwrap()));
        assert!(!seen.headers.contains_key("x-sum"));
    }
}

#[test]
fn what_is_removed_or_streams_does_not() {
    let backend = Backend::start(|request| ok(&String::from_utf8_lossy(&request.body)));
    for more in
        ["request_headers = { remove = [\"X-Sum\"] }", "request_headers = { set = { X-Sum = \"ours\" } }"]
    {
        let front = passing(backend.address, more, "");
        let mut client = front.client();
        client.send(CHUNKED);
        assert_eq!(client.response().1, b"ab");
        assert!(backend.seen().last().unwrap().trailers.is_empty(), "{more}");
    }
    let front = passing(backend.address, "request_body = { inspect = false }", "");
    let mut client = front.client();
    client.send(CHUNKED);
    assert_eq!(client.response().1, b"ab");
    assert!(backend.seen().last().unwrap().trailers.is_empty());
    until(|| dropped(&front) == 2.0);
}

#[test]
fn rules_see_those_that_go_on() {
    let backend = Backend::start(|_| ok("hello"));
    let rule = "rules = { directives = \"SecRule REQUEST_HEADERS:X-Sum \\\"@streq 7\\\" \\\"id:9,phase:2,deny,status:409\\\"\" }\n";
    let with_rules = front(backend.address, &format!("{rule}request_trailers = [\"X-Sum\"]"), "");
    let mut client = with_rules.client();
    client.send(CHUNKED);
    assert_eq!(status(&client.head()), 409);
    assert!(backend.seen().is_empty());
    // What is dropped is not shown.
    let dropping = front(backend.address, rule, "");
    let mut client = dropping.client();
    client.send(CHUNKED);
    assert_eq!(status(&client.response().0), 200);
    assert_eq!(backend.seen().len(), 1);
}

#[test]
fn what_a_reader_would_act_upon_is_refused() {
    let backend = Backend::start(|_| ok("hello"));
    let front = passing(backend.address, "", "");
    for name in ["Content-Length", "transfer_encoding", "Host", "Authorization"] {
        let mut client = front.client();
        client.send(CHUNKED.replace("X-Sum", name));
        assert_eq!(status(&client.head()), 400, "{name}");
    }
    assert!(backend.seen().is_empty());
}

/// An answer whose body is held until it has been inspected keeps what comes behind it.
#[test]
fn of_an_answer_that_is_held() {
    let backend = Backend::start(|request| {
        let trailers = if request.line().contains("none") { "" } else { "X-Sum: 7\r\n" };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
        let body = if request.line().contains("empty") { "" } else { "2\r\nab\r\n" };
        Reply::Bytes(format!("{head}{body}0\r\n{trailers}\r\n").into_bytes())
    });
    let rules = "rules = { directives = '''\nSecResponseBodyAccess On\nSecResponseBodyMimeType text/plain\n\
                 SecRule RESPONSE_BODY \"@contains secret\" \"id:6,phase:4,deny,status:403,log\"\n''' }\n";
    let front = front(backend.address, rules, "");
    let ask = |target: &str, version: &str| {
        front.once(format!("GET {target} HTTP/{version}\r\nHost: a\r\nConnection: close\r\n\r\n"))
    };
    let answer = ask("/", "1.1");
    assert!(answer.ends_with("2\r\nab\r\n0\r\nX-Sum: 7\r\n\r\n"), "{answer}");
    let answer = ask("/empty", "1.1");
    assert!(answer.ends_with("\r\n\r\n0\r\nX-Sum: 7\r\n\r\n"), "{answer}");
    // Without any the length is known, and HTTP/1.0 has no place for them.
    for answer in [ask("/none", "1.1"), ask("/", "1.0")] {
        assert_eq!(header(&answer, "content-length"), Some("2"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nab"), "{answer}");
    }
}
