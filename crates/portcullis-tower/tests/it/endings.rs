//! Exchanges that end early: clients that go, applications that never answer, streams that pause.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use http_body::Frame;
use portcullis_tower::embed::{Builder, Mode};
use tokio::sync::oneshot;

use crate::served::{answer, serve};

/// A rule whose match is told and blocks nothing, so that every exchange has an event.
const TELL: &str = "SecAction \"id:1,phase:1,pass,log\"\n";

#[test]
fn a_client_that_goes_ends_the_exchange() {
    let app = Router::new().route("/echo", post(|body: Bytes| async move { body }));
    let served = serve(Builder::semantic().mode(Mode::Both).directives(TELL), app);
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\
                Expect: 100-continue\r\n\r\n";
    let mut client = served.send(head.as_bytes());
    // Whoever goes before the server has looked was never there: it is asked for its body first.
    let mut begin = [0; 12];
    client.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 100");
    client.write_all(b"abc").unwrap();
    drop(client);
    let event = &served.events.wait(1)[0];
    assert!(event.contains("id\":1"), "{event}");
}

#[test]
fn an_application_that_never_answers_leaves_a_blind_spot() {
    let (entered, is_asked) = std::sync::mpsc::channel();
    let never = move || {
        entered.send(()).unwrap();
        std::future::pending::<&'static str>()
    };
    let served =
        serve(Builder::semantic().mode(Mode::Both).directives(TELL), Router::new().route("/", get(never)));
    let client = served.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    is_asked.recv().unwrap();
    drop(client);
    let event = &served.events.wait(1)[0];
    assert!(event.contains("\"blind_spots\":[\"response\"]"), "{event}");
}

/// A body in two pieces, the second of which waits until it is asked for.
struct Pieces {
    first: Option<Bytes>,
    last: Option<oneshot::Receiver<Bytes>>,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let Some(last) = &mut self.last else { return Poll::Ready(None) };
        let piece = std::task::ready!(Pin::new(last).poll(context));
        self.last = None;
        Poll::Ready(piece.ok().map(|piece| Ok(Frame::data(piece))))
    }
}

#[test]
fn a_stream_that_pauses_is_not_held_for_ever() {
    let (sender, receiver) = oneshot::channel();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let stream = move || {
        let (first, last) = (Some(Bytes::from_static(b"first ")), receiver.lock().unwrap().take());
        async move { ([("content-type", "text/html")], Body::new(Pieces { first, last })) }
    };
    let served = serve(Builder::semantic(), Router::new().route("/", get(stream)));
    let mut connection = served.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    // It comes while the application still waits: the layer has let it go.
    let mut begin = Vec::new();
    while !begin.ends_with(b"first \r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte).unwrap();
        begin.push(byte[0]);
    }
    sender.send(Bytes::from_static(b"last")).unwrap();
    let rest = answer(connection);
    assert!(rest.contains("last"), "{rest}");
    let metrics = served.waf.metrics();
    let released =
        metrics.lines().find(|line| line.contains("bytes_not_inspected") && line.contains("released"));
    assert!(released.is_some_and(|line| line.ends_with(" 4")), "{released:?}");
}
