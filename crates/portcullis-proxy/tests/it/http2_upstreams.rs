//! HTTP/2 to upstreams: many requests on few connections, trailers, calls of gRPC, and what may be sent
//! twice.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::Ordering;

use crate::common::http2::*;
use crate::common::http2_backend::Http2Backend;
use crate::common::*;
use http::Request;

const STREAMING: &str = "request_body = { inspect = false }";

fn front(backend: &Http2Backend, site: &str, group: &str) -> Front {
    let group = format!("protocol = \"h2c\"\n{group}");
    let site = format!("{RULES}{site}");
    Front::start(&document(backend.address, "", "http2 = { cleartext = true }", &site, &group))
}

#[test]
fn requests_of_either_protocol_arrive() {
    let backend = Http2Backend::start();
    let front = front(&backend, "response_body = { inspect = true }", "");
    let mut client = front.client();
    client.send("POST /x?y=1 HTTP/1.1\r\nHost: a.example\r\nX-Own: v\r\nContent-Length: 3\r\n\r\nabc");
    let (head, body) = client.response();
    assert_eq!((status(&head), &body[..], header(&head, "x-from")), (200, &b"3"[..], Some("h2")));
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
    assert_eq!(client.response().1, b"2");
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&client.head()), 200);
    let mut peer = Peer::connect(front.address());
    let answer = peer.ask(Request::post("http://b.example/z").body(()).unwrap(), b"hello").unwrap();
    assert_eq!((answer.status, &answer.body[..]), (200, &b"5"[..]));
    assert_eq!(answer.trailers.get("grpc-status").unwrap(), "0");
    let seen = backend.seen();
    assert_eq!((seen[0].method.as_str(), seen[0].uri.as_str()), ("POST", "http://a.example/x?y=1"));
    assert_eq!((&seen[0].headers["x-own"], &seen[0].body[..]), (&"v".parse().unwrap(), &b"abc"[..]));
    assert!(seen[0].headers.get("host").is_none() && seen[0].headers.get("x-forwarded-for").is_some());
    assert_eq!(seen[3].uri, "http://b.example/z");
    // All of that on one connection.
    assert_eq!(backend.connections.load(Ordering::SeqCst), 1);
    front.counts("portcullis_upstream_http2_connections{", 1.0);
    // And the rules see it.
    assert_eq!(peer.get("http://a/?attack").status, 403);
    assert_eq!(peer.get("http://a/secret").status, 403);
    assert_eq!(backend.seen().len(), 5);
}

#[test]
fn many_requests_share_a_connection() {
    let backend = Http2Backend::start();
    let front = front(&backend, "", "");
    let mut clients: Vec<Client> = (0..50).map(|_| front.client()).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.response().1, b"0");
    }
    assert_eq!(backend.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn a_call_goes_on_in_both_directions() {
    let backend = Http2Backend::start();
    let front = front(&backend, STREAMING, "");
    let peer = Peer::connect(front.address());
    let send = peer.send.clone();
    let trailers = peer.wait(async move {
        let request = Request::post("http://a/echo").header("te", "trailers");
        let request = request.header("content-type", "application/grpc").body(()).unwrap();
        let (answer, mut stream) = send.ready().await.unwrap().send_request(request, false).unwrap();
        let mut receive = answer.await.unwrap().into_body();
        for word in ["one", "two", "three"] {
            // The next is not said before the last has come back.
            stream.send_data(word.into(), false).unwrap();
            assert_eq!(receive.data().await.unwrap().unwrap(), word);
            receive.flow_control().release_capacity(word.len()).unwrap();
        }
        stream.send_data(Default::default(), true).unwrap();
        whole(receive).await.unwrap().1
    });
    assert_eq!(trailers.get("grpc-status").unwrap(), "0");
    // Both bodies are counted, though no rule sees them.
    until(|| front.metric("portcullis_bytes_not_inspected_total") >= 22.0);
}

/// The endpoint is told that nobody waits, and has not failed: whoever cancels calls must not be able to have
/// endpoints ejected.
#[test]
fn a_cancelled_call_is_no_failure_of_its_endpoint() {
    const CALLS: usize = 20;
    for path in ["/echo", "/wait"] {
        let backend = Http2Backend::start();
        let front = front(&backend, STREAMING, "");
        let mut rude = Rude::connect(front.address(), &[]);
        for call in 1..=CALLS {
            let stream = 2 * call as u32 - 1;
            let head = [(&b":method"[..], &b"POST"[..]), GET[1], (b":path", path.as_bytes()), GET[3]];
            rude.frame(HEADERS, END_HEADERS, stream, &block(&head));
            rude.frame(DATA, 0, stream, b"one");
            match path {
                "/echo" => drop(rude.until(DATA)),
                _ => until(|| backend.waiting() == call),
            }
            // With more of the body right before it, the body hears of the end before the answer does.
            let cancelled = frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
            rude.client.send([frame(DATA, 0, stream, b"two"), cancelled].concat());
        }
        let errors = || front.metric("portcullis_upstream_errors_total");
        until(|| front.metric("portcullis_client_aborts_total") + errors() == CALLS as f64);
        assert_eq!(errors(), 0.0, "{path}");
        let endpoint = format!("{{upstream=\"app\",endpoint=\"{}\"", backend.address);
        let failed = format!("portcullis_upstream_requests_total{endpoint},result=\"failed\"");
        assert_eq!(front.metric(&failed), 0.0, "{path}");
    }
}

#[test]
fn an_answer_may_be_trailers_alone() {
    let backend = Http2Backend::start();
    let front = front(&backend, "", "");
    let mut rude = Rude::connect(front.address(), &[]);
    rude.head(1, &[GET[0], GET[1], (b":path", b"/empty"), GET[3], (b"te", b"trailers")]);
    let frame = rude.until(HEADERS);
    assert_eq!(
        frame.flags & END_STREAM,
        END_STREAM,
        "a client of gRPC looks for the status in this frame alone"
    );
    assert_eq!(Peer::connect(front.address()).get("http://a/empty").header("grpc-status"), "5");
    assert_eq!(backend.seen()[0].headers["te"], "trailers");
}

/// What clients of gRPC make of an answer of ours, they read in its one frame of fields.
#[test]
fn a_refused_call_hears_it_in_the_words_of_grpc() {
    let backend = Http2Backend::start();
    let front = front(&backend, "response_body = { inspect = true }", "");
    let mut rude = Rude::connect(front.address(), &[]);
    let call = [(&b":method"[..], &b"POST"[..]), GET[1], (b":path", b"/shop.Cart/Add?attack"), GET[3]];
    let kind: (&[u8], &[u8]) = (b"content-type", b"application/grpc+proto");
    rude.head(1, &[&call[..], &[kind]].concat());
    assert_eq!(rude.until(HEADERS).flags & END_STREAM, END_STREAM);
    let mut peer = Peer::connect(front.address());
    let call = |path: &str| {
        let request = Request::post(format!("http://a{path}")).header("content-type", "application/grpc");
        request.header("te", "trailers").body(()).unwrap()
    };
    let answer = peer.ask(call("/shop.Cart/Add?attack"), b"\0\0\0\0\0").unwrap();
    assert_eq!((answer.status, answer.header("grpc-status"), &answer.body[..]), (403, "7", &b""[..]));
    assert_eq!(answer.header("content-type"), "application/grpc");
    let id = answer.header("x-request-id");
    assert_eq!(answer.header("grpc-message"), format!("Forbidden; request id {id}"));
    // The same where it is the answer that is refused.
    assert_eq!(peer.ask(call("/secret"), b"").unwrap().header("grpc-status"), "7");
    // A gateway error is one that a client may try again after.
    let dead =
        Front::start(&document(vacant(), "", "http2 = { cleartext = true }", RULES, "protocol = \"h2c\""));
    let answer = Peer::connect(dead.address()).ask(call("/"), b"x").unwrap();
    assert_eq!((answer.status, answer.header("grpc-status")), (502, "14"));
    // A browser's call over HTTP/1 reads the same.
    let mut client = front.client();
    client.send("POST /?attack HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 0\r\n\r\n");
    let (head, body) = client.response();
    assert_eq!(
        (header(&head, "grpc-status"), header(&head, "content-type")),
        (Some("7"), Some("application/grpc-web"))
    );
    assert!(body.is_empty());
}

#[test]
fn a_refused_stream_is_sent_again() {
    let backend = Http2Backend::start();
    let front = front(&backend, "", "");
    let mut peer = Peer::connect(front.address());
    // No method of which one may think twice.
    let answer = peer.ask(Request::post("http://a/refuse").body(()).unwrap(), b"once").unwrap();
    assert_eq!((answer.status, &answer.body[..]), (200, &b"4"[..]));
    assert_eq!(backend.seen().len(), 1);
    front.counts("portcullis_upstream_retries_total{upstream=\"app\",reason=\"refused\"}", 1.0);
}

/// What a server of HTTP/2 says first, and then to the first request on each connection.
fn scripted(reply: impl Fn(usize) -> Vec<u8> + Send + 'static) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.write_all(&frame(SETTINGS, 0, 0, &[]));
            let (mut input, mut buffer) = (Vec::new(), [0; 4096]);
            let has_head = |input: &[u8]| {
                let mut at = 24;
                while let Some(header) = input.get(at..at + 9) {
                    if header[3] == HEADERS {
                        return true;
                    }
                    at += 9 + u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
                }
                false
            };
            while !has_head(&input) {
                match stream.read(&mut buffer) {
                    Ok(count @ 1..) => input.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let _ = stream.write_all(&reply(number));
            // Until the other side has had enough.
            std::thread::spawn(move || while matches!(stream.read(&mut buffer), Ok(1..)) {});
        }
    });
    address
}

#[test]
fn what_an_endpoint_has_not_looked_at_is_sent_again() {
    // GOAWAY with 0 as the last stream; on the next connection an answer.
    let answer = [frame(HEADERS, END_HEADERS, 1, &[0x88]), frame(DATA, END_STREAM, 1, b"second")].concat();
    let address = scripted(move |number| match number {
        0 => frame(GOAWAY, 0, 0, &[0; 8]),
        _ => answer.clone(),
    });
    let front = Front::start(&document(address, "", "", RULES, "protocol = \"h2c\""));
    let mut client = front.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!(client.response().1, b"second");
}

#[test]
fn what_it_may_have_looked_at_is_not() {
    // GOAWAY that includes the stream, and the end of it.
    let address = scripted(|_| {
        [frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]), frame(RST_STREAM, 0, 1, &[0, 0, 0, 2])].concat()
    });
    let front = Front::start(&document(address, "", "", RULES, "protocol = \"h2c\""));
    let mut client = front.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!(status(&client.response().0), 502);
    front.counts("portcullis_upstream_retries_total", 0.0);
}

#[test]
fn answers_that_are_none() {
    for head in [
        block(&[(b":status", b"200"), (b"connection", b"close")]),
        block(&[(b":status", b"200"), (b"x", b"y\r\nset-cookie: z")]),
        block(&[(b":status", b"200"), (b"content-length", b"1"), (b"content-length", b"2")]),
        block(&[(b":status", b"two")]),
        b"\xff\xff\xff\xff\xff".to_vec(),
    ] {
        let answer = frame(HEADERS, END_HEADERS | END_STREAM, 1, &head);
        let address = scripted(move |_| answer.clone());
        let front = Front::start(&document(address, "", "", RULES, "protocol = \"h2c\""));
        let mut client = front.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(status(&client.response().0), 502, "{}", head.escape_ascii());
    }
}

#[test]
fn a_cut_answer_is_no_whole_one() {
    let backend = Http2Backend::start();
    let front = front(&backend, "", "");
    let got = Peer::connect(front.address()).ask(Request::get("http://a/cut").body(()).unwrap(), b"");
    assert_eq!(got.unwrap_err().reason(), Some(h2::Reason::INTERNAL_ERROR));
    let got = front.once("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(got.contains("the beginning") && !got.ends_with("0\r\n\r\n"), "{got}");
}

#[test]
fn targets_that_http2_cannot_carry_are_refused() {
    let backend = Http2Backend::start();
    let front = front(&backend, "", "");
    let answer = front.once("GET /a<b> HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), 400);
    assert!(backend.seen().is_empty());
}

#[test]
fn early_hints_are_passed_on() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-Own: y\r\n\r\n";
    let plain = format!("{hints}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let http1 = Backend::start(move |_| Reply::Bytes(plain.clone().into_bytes()));
    let http2 = Http2Backend::start();
    let to_http1 = Front::start(&document(http1.address, "", "http2 = { cleartext = true }", RULES, ""));
    for front in [to_http1, front(&http2, "", "")] {
        let mut client = front.client();
        client.send("GET /hints HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.head(), "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n");
        assert_eq!(status(&client.response().0), 200);
        let old = front.once("GET /hints HTTP/1.0\r\n\r\n");
        assert_eq!(status(&old), 200, "it knows no interim answers");
        let peer = Peer::connect(front.address());
        let send = peer.send.clone();
        let (status, link) = peer.wait(async move {
            let request = Request::get("http://a/hints").body(()).unwrap();
            let (mut answer, _) = send.ready().await.unwrap().send_request(request, true).unwrap();
            let interim = poll_fn(|context| answer.poll_informational(context)).await.unwrap().unwrap();
            assert_eq!((interim.status().as_u16(), interim.headers().len()), (103, 1));
            let link = interim.headers()["link"].to_str().unwrap().to_string();
            (answer.await.unwrap().status().as_u16(), link)
        });
        assert_eq!((status, link.as_str()), (200, "</a.css>; rel=preload"));
    }
}

#[test]
fn health_as_grpc_tells_it() {
    let backend = Http2Backend::start();
    let group = "health = { grpc = \"shop.Cart\", interval = \"50ms\", healthy = 1, unhealthy = 1 }";
    let front = front(&backend, "", group);
    let healthy = || front.metric("portcullis_upstream_healthy_backends");
    until(|| front.metric("portcullis_upstream_health_checks_total") >= 2.0);
    assert_eq!(healthy(), 1.0);
    let asked = backend.seen().into_iter().find(|seen| seen.uri.ends_with("/grpc.health.v1.Health/Check"));
    assert_eq!(asked.unwrap().body, b"\0\0\0\0\x0b\x0a\x09shop.Cart");
    backend.healthy.store(0, Ordering::SeqCst);
    until(|| healthy() == 0.0);
    let mut client = front.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&client.response().0), 503);
    backend.healthy.store(1, Ordering::SeqCst);
    until(|| healthy() == 1.0);
    assert!(front.lines().iter().any(|line| line.contains("serving status 2")), "{:?}", front.lines());
}
