//! Clients that go away: what is done for them is given up, and the upstream hears of it. And answers that
//! stream: each part arrives before the next is sent.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::mpsc;

use crate::common::http2::*;
use crate::common::http2_backend::Http2Backend;
use crate::common::*;

/// A backend of HTTP/1 for one connection: when told to it sends the next part, and it tells when the other
/// side has closed.
struct Plain {
    address: SocketAddr,
    go: mpsc::Sender<()>,
    closed: mpsc::Receiver<()>,
}

impl Plain {
    fn start(parts: &'static [&'static str]) -> Plain {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ((go, may), (tell, closed)) = (mpsc::channel(), mpsc::channel());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut input = Vec::new();
            let mut buffer = [0; 4096];
            while find(&input, b"\r\n\r\n").is_none() {
                let count = stream.read(&mut buffer).unwrap();
                assert!(count > 0, "closed before there was a request");
                input.extend_from_slice(&buffer[..count]);
            }
            for part in parts {
                may.recv_timeout(PATIENCE).unwrap();
                stream.write_all(part.as_bytes()).unwrap();
            }
            // More of a request would be a mistake of the test.
            if matches!(stream.read(&mut buffer), Ok(0) | Err(_)) {
                let _ = tell.send(());
            }
        });
        Plain { address, go, closed }
    }

    fn front(&self, listener: &str) -> Front {
        let listener = format!("http2 = {{ cleartext = true }}\n{listener}");
        Front::start(&document(self.address, "", &listener, &site(), ""))
    }

    fn is_left(&self, front: &Front) {
        self.closed.recv_timeout(PATIENCE).expect("the upstream hears of it");
        until(|| front.metric("portcullis_client_aborts_total") == 1.0);
        until(|| front.metric("portcullis_upstream_requests_active") == 0.0);
    }
}

fn site() -> String {
    format!("{RULES}response_body = {{ inspect = true }}")
}

const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const FIRST: &str = "data: 1\n\n";
const SECOND: &str = "data: 2\n\n";
const GET_ROOT: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A connection of HTTP/2 on which `path` is asked for.
fn ask(front: &Front, path: &str) -> Rude {
    let mut rude = Rude::connect(front.address(), &[]);
    rude.head(1, &[GET[0], GET[1], (b":path", path.as_bytes()), GET[3]]);
    rude
}

#[test]
fn a_reset_ends_the_work_of_an_upstream_of_http1() {
    let backend = Plain::start(&[]);
    let front = backend.front("");
    let mut rude = ask(&front, "/");
    until(|| front.metric("portcullis_upstream_requests_active") > 0.0);
    rude.frame(RST_STREAM, 0, 1, &8u32.to_be_bytes());
    backend.is_left(&front);
    // The connection is as good as before.
    rude.head(3, &[GET[0], GET[1], (b":path", b"/?attack"), GET[3]]);
    assert_eq!(rude.until(HEADERS).stream, 3);
}

#[test]
fn a_reset_ends_the_work_of_an_upstream_of_http2() {
    let backend = Http2Backend::start();
    let group = "protocol = \"h2c\"";
    let front = Front::start(&document(backend.address, "", "http2 = { cleartext = true }", &site(), group));
    let mut rude = ask(&front, "/wait");
    until(|| backend.waiting() == 1);
    rude.frame(RST_STREAM, 0, 1, &8u32.to_be_bytes());
    until(|| backend.cancelled() == 1);
    until(|| front.metric("portcullis_client_aborts_total") == 1.0);
    // A closed connection is the end of all its streams.
    let mut rude = ask(&front, "/wait");
    rude.head(3, &[GET[0], GET[1], (b":path", b"/wait"), GET[3]]);
    until(|| backend.waiting() == 3);
    drop(rude);
    until(|| backend.cancelled() == 3);
    // And one of HTTP/1 is the end of its request.
    let mut client = front.client();
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    until(|| backend.waiting() == 4);
    drop(client);
    until(|| backend.cancelled() == 4);
    until(|| front.metric("portcullis_client_aborts_total") == 4.0);
    // The connection to the upstream goes on.
    assert_eq!(backend.connections.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert_eq!(status(&front.once("GET / HTTP/1.0\r\nHost: a\r\n\r\n")), 200);
}

#[test]
fn a_call_that_streams_is_cancelled_in_both_directions() {
    let backend = Http2Backend::start();
    let site = format!("{RULES}request_body = {{ inspect = false }}");
    let group = "protocol = \"h2c\"";
    let front = Front::start(&document(backend.address, "", "http2 = { cleartext = true }", &site, group));
    let mut rude = Rude::connect(front.address(), &[]);
    let head = block(&[(b":method", b"POST"), GET[1], (b":path", b"/wait"), GET[3]]);
    rude.frame(HEADERS, END_HEADERS, 1, &head);
    rude.frame(DATA, 0, 1, b"hello");
    until(|| backend.waiting() == 1);
    rude.frame(RST_STREAM, 0, 1, &8u32.to_be_bytes());
    until(|| backend.cancelled() == 1);
}

#[test]
fn a_closed_connection_ends_the_work() {
    let backend = Plain::start(&[]);
    let front = backend.front("");
    let mut client = front.client();
    client.send(GET_ROOT);
    until(|| front.metric("portcullis_upstream_requests_active") > 0.0);
    drop(client);
    backend.is_left(&front);
}

#[test]
fn a_client_that_leaves_a_silent_stream_of_events_is_noticed() {
    let backend = Plain::start(&[EVENTS, FIRST]);
    let front = backend.front("");
    let mut client = front.client();
    client.send(GET_ROOT);
    backend.go.send(()).unwrap();
    assert_eq!(status(&client.head()), 200);
    backend.go.send(()).unwrap();
    client.take(FIRST.len());
    drop(client);
    backend.is_left(&front);
}

#[test]
fn what_comes_behind_a_request_is_no_departure() {
    let backend = Plain::start(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"]);
    let front = backend.front("");
    let mut client = front.client();
    client.send(format!("{GET_ROOT}GET /?attack HTTP/1.1\r\nHost: a\r\n\r\n"));
    backend.go.send(()).unwrap();
    assert_eq!(client.response().1, b"ok");
    assert_eq!(status(&client.response().0), 403);
    front.counts("portcullis_client_aborts_total", 0.0);
}

#[test]
fn a_half_closed_connection_is_answered_where_it_may_be() {
    let backend = Plain::start(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"]);
    let front = backend.front("http = { half_close = true }");
    let mut client = front.client();
    client.send(GET_ROOT);
    until(|| front.metric("portcullis_upstream_requests_active") > 0.0);
    client.stream.shutdown(Shutdown::Write).unwrap();
    backend.go.send(()).unwrap();
    assert_eq!(client.response().1, b"ok");

    let backend = Plain::start(&[]);
    let front = backend.front("");
    let mut client = front.client();
    client.send(GET_ROOT);
    client.stream.shutdown(Shutdown::Write).unwrap();
    backend.is_left(&front);
    assert_eq!(client.rest(), "");
}

#[test]
fn events_arrive_one_by_one() {
    // Over HTTP/1, from HTTP/1.
    let backend = Plain::start(&[EVENTS, FIRST, SECOND]);
    let front = backend.front("");
    let mut client = front.client();
    client.send(GET_ROOT);
    backend.go.send(()).unwrap();
    assert_eq!(status(&client.head()), 200);
    for event in [FIRST, SECOND] {
        backend.go.send(()).unwrap();
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        assert_eq!(client.take(chunk.len()), chunk.as_bytes());
    }
    // Over HTTP/2, from either.
    let plain = Plain::start(&[EVENTS, FIRST, SECOND]);
    let front = plain.front("");
    let mut rude = ask(&front, "/");
    plain.go.send(()).unwrap();
    assert_eq!(rude.until(HEADERS).stream, 1);
    for event in [FIRST, SECOND] {
        plain.go.send(()).unwrap();
        assert_eq!(rude.until(DATA).payload, event.as_bytes());
    }
    let backend = Http2Backend::start();
    let group = "protocol = \"h2c\"";
    let front = Front::start(&document(backend.address, "", "http2 = { cleartext = true }", &site(), group));
    let mut rude = ask(&front, "/events");
    assert_eq!(rude.until(HEADERS).stream, 1);
    for _ in 0..3 {
        backend.go.notify_one();
        assert_eq!(rude.until(DATA).payload, b"data: x\n\n");
    }
}
