//! HTTP/2 to clients: the same exchange, the same evidence, and nothing that only HTTP/1 upstreams would
//! understand.

use std::time::Duration;

use crate::common::http2;
use crate::common::http2::*;
use crate::common::*;
use bytes::Bytes;
use http::Request;
use portcullis_decode::Transformation;
use portcullis_event::Action;

const CLEARTEXT: &str = "http2 = { cleartext = true }";

/// The plainest proxy before `backend`, for clients that know beforehand.
fn front(backend: &Backend) -> Front {
    Front::start(&document(backend.address, "", CLEARTEXT, RULES, ""))
}

fn post(uri: &str) -> Request<()> {
    Request::post(uri).body(()).unwrap()
}

#[test]
fn a_request_arrives_as_its_http1_twin() {
    let backend = Backend::start(|_| ok("hello"));
    let front = front(&backend);
    let mut peer = Peer::connect(front.address());
    let request = Request::get("http://a.example/x?y=1").header("cookie", "a=1").header("cookie", "b=2");
    let answer = peer.ask(request.header("x-own", "v").body(()).unwrap(), b"").unwrap();
    assert_eq!((answer.status, &answer.body[..]), (200, &b"hello"[..]));
    assert_eq!(answer.header("content-length"), "5");
    assert_eq!(answer.header("x-request-id").len(), 32);
    let seen = &backend.seen()[0];
    assert_eq!(seen.line(), "GET /x?y=1 HTTP/1.1");
    assert_eq!(seen.header("host"), Some("a.example"));
    assert_eq!(seen.header("cookie"), Some("a=1; b=2"));
    assert_eq!(seen.header("x-own"), Some("v"));
    assert_eq!(seen.header("transfer-encoding"), None);
    let answer = peer.ask(Request::head("http://a.example/").body(()).unwrap(), b"").unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    until(|| front.metric("portcullis_protocol_requests_total{protocol=\"h2\"}") == 2.0);
    front.counts("portcullis_http2_connections_active", 1.0);
    until(|| front.metric("portcullis_http2_streams_active") == 0.0);
    drop(peer);
    until(|| front.metric("portcullis_http2_connections_active") == 0.0);
}

#[test]
fn in_clear_text_it_is_off_unless_asked_for() {
    let backend = Backend::start(|_| ok("hello"));
    let plain = Front::plain(&backend);
    let answer = plain.once([http2::frame(0, 0, 0, b""), vec![]].concat());
    assert_eq!(status(&answer), 400);
    let answer = plain.once("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert!(matches!(status(&answer), 400 | 505), "{answer}");
    // The same listener takes HTTP/1, also from a client whose first bytes could be either.
    let both = front(&backend);
    let mut client = both.client();
    client.send("P");
    client.send("OST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!(status(&client.response().0), 200);
    assert_eq!(Peer::connect(both.address()).get("http://a/").status, 200);
}

#[test]
fn attacks_are_blocked_and_told_of() {
    let backend = Backend::start(|_| ok("a secret"));
    let front = front(&backend);
    let mut peer = Peer::connect(front.address());
    assert_eq!(peer.get("http://a/?x=attack").status, 403);
    let form = |uri: &str| {
        let request = Request::post(uri).header("content-type", "application/x-www-form-urlencoded");
        request.body(()).unwrap()
    };
    assert_eq!(peer.ask(form("http://a/"), b"x=an+attack").unwrap().status, 403);
    assert!(backend.seen().is_empty());
    let moved = peer.get("http://a/moveme");
    assert_eq!((moved.status, moved.header("location")), (302, "http://elsewhere/"));
    assert!(peer.ask(Request::get("http://a/dropme").body(()).unwrap(), b"").is_err());
    // The connection outlives all of that.
    assert_eq!(peer.ask(form("http://a/"), b"x=y").unwrap().status, 200);
    let events = front.events(4);
    assert!(events.iter().all(|event| event.request.protocol == "HTTP/2.0"), "{events:?}");
    assert_eq!(events[0].verdict.action, Action::Deny);
    assert_eq!(backend.seen().len(), 1);
}

#[test]
fn bodies_of_known_and_unknown_length() {
    let backend = Backend::start(|request| ok(&request.body.len().to_string()));
    let front = front(&backend);
    let mut peer = Peer::connect(front.address());
    let body = vec![b'x'; 60_000];
    assert_eq!(peer.ask(post("http://a/"), &body).unwrap().body, b"60000");
    let known = Request::post("http://a/").header("content-length", "60000").body(()).unwrap();
    assert_eq!(peer.ask(known, &body).unwrap().body, b"60000");
    assert!(backend.seen().iter().all(|seen| seen.header("content-length") == Some("60000")));
    // More than the window of a stream, not held: it goes on in chunks.
    let uninspected = format!("{RULES}request_body = {{ inspect = false }}");
    let front = Front::start(&document(backend.address, "", CLEARTEXT, &uninspected, ""));
    let peer = Peer::connect(front.address());
    let send = peer.send.clone();
    let answer = peer.wait(async move {
        let (answer, mut stream) =
            send.ready().await.unwrap().send_request(post("http://a/"), false).unwrap();
        let mut left = 1_000_000;
        while left > 0 {
            stream.reserve_capacity(left);
            let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await.unwrap().unwrap();
            stream.send_data(Bytes::from(vec![b'x'; room.min(left)]), room >= left).unwrap();
            left -= room.min(left);
        }
        whole(answer.await.unwrap().into_body()).await.unwrap().0
    });
    assert_eq!(answer, b"1000000");
    assert_eq!(backend.seen().last().unwrap().header("transfer-encoding"), Some("chunked"));
}

#[test]
fn answers_stream_with_their_trailers() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";
    let backend = Backend::start(move |_| {
        let parts = [head, "5\r\nhello\r\n", "6\r\n world\r\n", "0\r\nX-Sum: 11\r\n\r\n"];
        Reply::Slowly(parts.map(|part| part.as_bytes().to_vec()).to_vec(), Duration::from_millis(20))
    });
    let front = front(&backend);
    let answer = Peer::connect(front.address()).get("http://a/");
    assert_eq!((answer.status, &answer.body[..]), (200, &b"hello world"[..]));
    assert_eq!(answer.trailers.get("x-sum").unwrap(), "11");
    assert!(answer.headers.get("transfer-encoding").is_none());
}

#[test]
fn a_cut_answer_is_no_whole_one() {
    let backend =
        Backend::start(|_| Reply::Close(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello".to_vec()));
    let front = front(&backend);
    let error = Peer::connect(front.address()).ask(Request::get("http://a/").body(()).unwrap(), b"");
    assert_eq!(error.unwrap_err().reason(), Some(h2::Reason::INTERNAL_ERROR));
    assert_eq!(front.events(1)[0].upstream_error, Some(portcullis_event::UpstreamError::BodyTruncated));
}

#[test]
fn streams_do_not_wait_for_each_other() {
    let backend = Backend::start(|request| match request.line().contains("slow") {
        true => Reply::Silence,
        false => ok("fast"),
    });
    let front = front(&backend);
    let mut peer = Peer::connect(front.address());
    let _slow = peer.begin(post("http://a/slow"));
    for _ in 0..50 {
        assert_eq!(peer.get("http://a/").body, b"fast");
    }
    front.counts("portcullis_connections_active", 1.0);
}

/// The `Sec-WebSocket-Accept` for a key.
fn accept(key: &str) -> String {
    let (mut digest, mut text) = (Vec::new(), Vec::new());
    let guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    Transformation::Sha1.apply(format!("{key}{guid}").as_bytes(), &mut digest);
    Transformation::Base64Encode.apply(&digest, &mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn a_websocket_passes() {
    let backend = Backend::start(|request| {
        let key = request.header("sec-websocket-key").unwrap();
        let accept = if request.line().contains("/deaf") { "x".to_string() } else { accept(key) };
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
        let own = format!("Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: chat\r\n\r\n");
        Reply::Echo(format!("{head}{own}").into_bytes())
    });
    let front = front(&backend);
    let peer = Peer::connect(front.address());
    let (send, again) = (peer.send.clone(), peer.send.clone());
    let echoed = peer.wait(async move {
        // The proxy's settings say that this may be asked for.
        let mut send = send.ready().await.unwrap();
        while !send.is_extended_connect_protocol_enabled() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let request = Request::connect("http://a/chat").header("sec-websocket-version", "13");
        let request = request.extension(h2::ext::Protocol::from_static("websocket")).body(()).unwrap();
        let (answer, mut stream) = send.send_request(request, false).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        assert_eq!(answer.headers()["sec-websocket-protocol"], "chat");
        let mut receive = answer.into_body();
        let mut echoed = Vec::new();
        for word in ["ping", "pong"] {
            stream.send_data(word.into(), false).unwrap();
            echoed.extend_from_slice(&receive.data().await.unwrap().unwrap());
        }
        stream.send_data(Bytes::new(), true).unwrap();
        let (rest, _) = whole(receive).await.unwrap();
        assert!(rest.is_empty());
        // We have made up the key, so nobody but us can look for its digest.
        let deaf = Request::connect("http://a/deaf").header("sec-websocket-version", "13");
        let deaf = deaf.extension(h2::ext::Protocol::from_static("websocket")).body(()).unwrap();
        let (answer, _stream) = again.ready().await.unwrap().send_request(deaf, false).unwrap();
        assert_eq!(answer.await.unwrap().status().as_u16(), 502);
        echoed
    });
    assert_eq!(echoed, b"pingpong");
    let seen = &backend.seen()[0];
    assert_eq!(seen.line(), "GET /chat HTTP/1.1");
    assert_eq!((seen.header("upgrade"), seen.header("connection")), (Some("websocket"), Some("upgrade")));
    assert_eq!(seen.header("sec-websocket-key").unwrap().len(), 24);
    until(|| front.metric("portcullis_bytes_not_inspected_total{reason=\"upgraded\"}") == 16.0);
}

#[test]
fn continue_is_said() {
    let backend = Backend::start(|request| ok(&request.body.len().to_string()));
    let front = front(&backend);
    let peer = Peer::connect(front.address());
    let send = peer.send.clone();
    let request = Request::post("http://a/").header("expect", "100-continue").body(()).unwrap();
    let body = peer.wait(async move {
        let (mut answer, mut stream) = send.ready().await.unwrap().send_request(request, false).unwrap();
        let interim = std::future::poll_fn(|context| answer.poll_informational(context)).await;
        assert_eq!(interim.unwrap().unwrap().status().as_u16(), 100);
        stream.send_data("abc".into(), true).unwrap();
        whole(answer.await.unwrap().into_body()).await.unwrap().0
    });
    assert_eq!(body, b"3");
}

#[test]
fn draining_lets_requests_end() {
    let backend = Backend::start(|_| {
        let parts = vec![b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello".to_vec(), b"world".to_vec()];
        Reply::Slowly(parts, Duration::from_millis(200))
    });
    let front = front(&backend);
    let mut peer = Peer::connect(front.address());
    let (answer, mut stream) = peer.begin(post("http://a/"));
    stream.send_data(Bytes::new(), true).unwrap();
    let head = peer.wait(answer).unwrap();
    let draining = std::thread::spawn(move || front.proxy.drain());
    let (body, _) = peer.wait(whole(head.into_body())).unwrap();
    assert_eq!(body, b"helloworld");
    peer.wait(async {
        // The goodbye that came meanwhile lets nothing more begin.
        while peer.send.clone().ready().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    draining.join().unwrap();
}

/// What is well formed as frames and is no request; each as a field that is added to, or put in place of,
/// those of a GET. No back end may see any of it, in whatever form.
#[test]
fn nothing_slips_through_by_being_written_as_http1() {
    let backend = Backend::start(|_| ok("reached"));
    let front = front(&backend);
    let rows: [(&[u8], &[u8]); 34] = [
        (b"a", b"b\r\nx: y"),
        (b"a", b"b\nx: y"),
        (b"a", b"b\rx"),
        (b"a", b"b\0"),
        (b"a", b"\x7f"),
        (b"a\r\nx", b"b"),
        (b"a: x", b"b"),
        (b"a ", b"b"),
        (b"", b"b"),
        (b"A", b"b"),
        (b"transfer-encoding", b"chunked"),
        (b"transfer-encoding", b"identity"),
        (b"transfer_encoding", b"chunked"),
        (b"connection", b"close"),
        (b"keep-alive", b"1"),
        (b"proxy-connection", b"close"),
        (b"upgrade", b"h2c"),
        (b"http2-settings", b"AAMAAABkAAQAoAAAAAIAAAAA"),
        (b"te", b"trailers, chunked"),
        (b"content-length", b"5"),
        (b"content-length", b"-1"),
        (b"content_length", b"5"),
        (b"host", b"b.example"),
        (b":authority", b"b.example"),
        (b":authority", b"u@a.example"),
        (b":path", b""),
        (b":path", b"x"),
        (b":path", b"http://b.example/"),
        (b":path", b"/ HTTP/1.1\r\nhost: b\r\n\r\nGET /b"),
        (b":path", b"/a b"),
        (b":method", b"GET / HTTP/1.1\r\nx: y"),
        (b":method", b"CONNECT"),
        (b":scheme", b"http://b.example/?"),
        (b":unknown", b"x"),
    ];
    for (row, (name, value)) in rows.iter().enumerate() {
        let mut fields: Vec<(&[u8], &[u8])> = GET.to_vec();
        match fields.iter_mut().find(|(known, _)| known == name) {
            Some(field) => field.1 = value,
            None => fields.push((name, value)),
        }
        // A host by itself is one; two that differ are none.
        if *name == b":authority" && *value == b"b.example" {
            fields.push((b":authority", b"a.example"));
        }
        if name.starts_with(b":") && *name != b":authority" {
            fields.sort_by_key(|(name, _)| !name.starts_with(b":"));
        }
        let mut rude = Rude::connect(front.address(), &[]);
        rude.head(1, &fields);
        let end = rude.end_of(1);
        let text = format!("row {row}: {} = {}", name.escape_ascii(), value.escape_ascii());
        assert!(backend.seen().is_empty(), "{text}: {:?} ({end:?})", backend.seen());
    }
    // Pseudo-fields behind others, twice, or in trailers.
    for fields in [[GET[0], GET[1], GET[2], GET[3], GET[2]], [GET[0], GET[1], (b"x", b"y"), GET[2], GET[3]]] {
        let mut rude = Rude::connect(front.address(), &[]);
        rude.head(1, &fields);
        assert!(rude.end_of(1).is_some());
    }
    assert!(backend.seen().is_empty());
    until(|| {
        front.metric("portcullis_http2_malformed_total") + front.metric("portcullis_refused_requests_total")
            >= 30.0
    });
    assert_eq!(Peer::connect(front.address()).get("http://a/").body, b"reached");
}

/// Requests that HTTP/2 forbids and the library takes: what is inspected is what goes on.
#[test]
fn what_the_library_leaves_out_goes_nowhere() {
    let backend = Backend::start(|_| ok("reached"));
    let front = front(&backend);
    // A fragment is no part of a request's target: it is cut off before anybody sees it.
    for (path, expected) in [
        (&b"/a#b"[..], "GET /a HTTP/1.1"),
        (b"/a?c=d#b?e", "GET /a?c=d HTTP/1.1"),
        (b"/#/../admin", "GET / HTTP/1.1"),
    ] {
        let mut rude = Rude::connect(front.address(), &[]);
        rude.head(1, &[GET[0], GET[1], (b":path", path), GET[3]]);
        assert_eq!(rude.end_of(1), None, "{expected}");
        assert_eq!(backend.seen().last().unwrap().line(), expected);
    }
    // What stands before it is inspected, and an attack behind it reaches nobody.
    let mut rude = Rude::connect(front.address(), &[]);
    rude.head(1, &[GET[0], GET[1], (b":path", b"/?a=attack#b"), GET[3]]);
    assert_eq!(rude.end_of(1), None);
    // Pseudo-fields among trailers, of a body that is held and of one whose length is not known before.
    let before = backend.seen().len();
    for (row, trailers) in [
        &[(&b":path"[..], &b"/admin"[..]), (b"x-sum", b"1")][..],
        &[(b":method", b"DELETE")],
        &[(b":authority", b"b.example"), (b":scheme", b"https"), (b"x-sum", b"1")],
        &[(b":status", b"200")],
        &[(b"x-sum", b"1"), (b":path", b"/admin")],
    ]
    .into_iter()
    .enumerate()
    {
        let mut rude = Rude::connect(front.address(), &[]);
        let head = block(&[(b":method", b"POST"), GET[1], (b":path", b"/own"), GET[3], (b"te", b"trailers")]);
        rude.frame(HEADERS, END_HEADERS, 1, &head);
        rude.frame(DATA, 0, 1, b"a=b");
        rude.frame(HEADERS, END_STREAM | END_HEADERS, 1, &block(trailers));
        rude.end_of(1);
        for seen in &backend.seen()[before..] {
            assert_eq!((seen.line(), &seen.body[..]), ("POST /own HTTP/1.1", &b"a=b"[..]), "row {row}");
            assert_eq!(seen.header("host"), Some("a.example"), "row {row}");
            let mut fields = seen.head.lines().skip(1).chain(seen.trailers.iter().map(String::as_str));
            assert!(fields.all(|field| !field.starts_with(':')), "row {row}: {seen:?}");
        }
    }
    assert_eq!(Peer::connect(front.address()).get("http://a/").body, b"reached");
}

#[test]
fn a_body_has_the_length_that_is_said() {
    let backend = Backend::start(|_| ok("reached"));
    let front = front(&backend);
    let length = |text: &'static [u8]| -> Vec<(&[u8], &[u8])> {
        vec![(b":method", b"POST"), GET[1], GET[2], GET[3], (b"content-length", text)]
    };
    for (said, body) in [(&b"5"[..], &b"abc"[..]), (b"2", b"abcGET /evil HTTP/1.1"), (b"5", b"")] {
        let mut rude = Rude::connect(front.address(), &[]);
        rude.frame(HEADERS, END_HEADERS, 1, &block(&length(said)));
        rude.frame(DATA, END_STREAM, 1, body);
        rude.end_of(1);
        // Whatever came of it, no more than was said has gone on.
        for seen in backend.seen() {
            assert_eq!((seen.line(), &seen.body[..]), ("POST / HTTP/1.1", &body[..2]));
        }
    }
}
