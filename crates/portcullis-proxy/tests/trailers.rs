//! Trailers of requests: they do not go on, and that is told.

mod common;
#[path = "common/http2.rs"]
mod http2;
#[path = "common/http2_backend.rs"]
mod http2_backend;

use std::net::SocketAddr;

use bytes::Bytes;
use common::*;
use http::{HeaderMap, Request};
use http2::*;
use http2_backend::Http2Backend;

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
