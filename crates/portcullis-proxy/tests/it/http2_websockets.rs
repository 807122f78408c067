//! WebSockets to upstreams that speak HTTP/2: by extended CONNECT, where they take it.

use std::time::Duration;

use crate::common::http2::*;
use crate::common::http2_backend::Http2Backend;
use crate::common::*;
use bytes::Bytes;
use http::Request;

const HANDSHAKE: &str = "GET /chat?room=1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

fn front(backend: &Http2Backend) -> Front {
    let listener = "http2 = { cleartext = true }";
    Front::start(&document(backend.address, "", listener, RULES, "protocol = \"h2c\""))
}

#[test]
fn of_a_client_of_http1() {
    let backend = Http2Backend::taking_websockets();
    let front = front(&backend);
    // Two of them, and a plain request, share a connection, on which the endpoint's settings have yet to
    // come.
    let mut clients = [front.client(), front.client()];
    for client in &mut clients {
        client.send(HANDSHAKE);
    }
    for client in &mut clients {
        let head = client.head();
        assert_eq!(status(&head), 101, "{head}");
        assert_eq!(header(&head, "upgrade"), Some("websocket"));
        assert_eq!(header(&head, "sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert_eq!(header(&head, "sec-websocket-protocol"), Some("chat"));
        for word in ["ping", "pong"] {
            client.send(word);
            assert_eq!(client.take(4), word.as_bytes());
        }
    }
    let mut plain = front.client();
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(plain.response().1, b"0");
    let seen = &backend.seen()[0];
    assert_eq!((seen.method.as_str(), seen.uri.as_str()), ("CONNECT", "http://a/chat?room=1"));
    assert_eq!(seen.headers["sec-websocket-version"], "13");
    for gone in ["sec-websocket-key", "upgrade", "connection"] {
        assert!(!seen.headers.contains_key(gone), "{gone}");
    }
    assert_eq!(backend.connections.load(std::sync::atomic::Ordering::SeqCst), 1);
    // They end with the connections of their clients, and are counted then.
    drop(clients);
    until(|| front.metric("portcullis_bytes_not_inspected_total{reason=\"upgraded\"}") == 32.0);
}

#[test]
fn of_a_client_of_http2() {
    let backend = Http2Backend::taking_websockets();
    let front = front(&backend);
    let peer = Peer::connect(front.address());
    let send = peer.send.clone();
    let echoed = peer.wait(async move {
        let mut send = send.ready().await.unwrap();
        while !send.is_extended_connect_protocol_enabled() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let request = Request::connect("http://a/chat").header("sec-websocket-version", "13");
        let request = request.extension(h2::ext::Protocol::from_static("websocket")).body(()).unwrap();
        let (answer, mut stream) = send.send_request(request, false).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        assert!(!answer.headers().contains_key("sec-websocket-accept"));
        let mut receive = answer.into_body();
        let mut echoed = Vec::new();
        for word in ["ping", "pong"] {
            stream.send_data(word.into(), false).unwrap();
            echoed.extend_from_slice(&receive.data().await.unwrap().unwrap());
        }
        stream.send_data(Bytes::new(), true).unwrap();
        assert!(whole(receive).await.unwrap().0.is_empty());
        echoed
    });
    assert_eq!(echoed, b"pingpong");
    assert_eq!(backend.seen()[0].method, "CONNECT");
}

#[test]
fn what_refuses_one() {
    let backend = Http2Backend::taking_websockets();
    let front = front(&backend);
    let ask = |handshake: &str| {
        let mut client = front.client();
        client.send(handshake);
        let (head, body) = client.response();
        (status(&head), body)
    };
    assert_eq!(ask(&HANDSHAKE.replace("/chat", "/refused")), (403, b"not you".to_vec()), "the application");
    assert_eq!(backend.seen().len(), 1);
    assert_eq!(ask(&HANDSHAKE.replace("/chat", "/attack")).0, 403, "rules");
    assert_eq!(ask(&HANDSHAKE.replace("Sec-WebSocket-Key", "X-Key")).0, 400, "no key");
    assert_eq!(backend.seen().len(), 1);
}

#[test]
fn an_endpoint_that_takes_none_is_not_asked() {
    let backend = Http2Backend::start();
    let front = front(&backend);
    for _ in 0..2 {
        let mut client = front.client();
        client.send(HANDSHAKE);
        assert_eq!(status(&client.head()), 501);
    }
    assert!(backend.seen().is_empty());
    // That speaks neither against the endpoint nor against its connection.
    let mut client = front.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&client.response().0), 200);
    assert_eq!(backend.connections.load(std::sync::atomic::Ordering::SeqCst), 1);
}
