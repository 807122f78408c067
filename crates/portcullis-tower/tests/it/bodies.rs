//! Bodies that are slow, huge, broken, or that nobody reads.

use std::io::Write;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use http_body_util::BodyExt;
use portcullis_tower::embed::{Builder, Mode};

use crate::served::{answer, serve, serve_with, status};

fn app() -> Router {
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/echo", post(|body: Bytes| async move { body }))
        .route("/unread", post(|| async { "not read" }))
        .route(
            "/trailers",
            post(|body: Body| async move {
                let body = body.collect().await.unwrap();
                let value = |name| body.trailers().and_then(|all| all.get(name)).cloned();
                value("x-sum").map(|value| value.to_str().unwrap().to_owned()).unwrap_or("none".into())
            }),
        )
}

fn head(path: &str, framing: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: text/plain\r\n{framing}\r\n\r\n"
    )
}

#[test]
fn bodies_over_the_limit_are_refused() {
    let served = serve(Builder::semantic().request_body_limit(1000), app());
    assert_eq!(status(&served.post("text/plain", &[b'a'; 1000])), 200);
    assert_eq!(status(&served.post("text/plain", &[b'a'; 1001])), 413);
    assert!(served.events.wait(1)[0].contains("request_body_over_limit"));
}

#[test]
fn the_rest_goes_on_uninspected_where_the_policy_says_so_and_is_counted() {
    let directives = "SecRequestBodyLimit 1000\nSecRequestBodyLimitAction ProcessPartial\n";
    let served = serve(Builder::semantic().mode(Mode::Both).directives(directives), app());
    let body = vec![b'a'; 5000];
    let answer = served.post("text/plain", &body);
    assert!(answer.ends_with(std::str::from_utf8(&body).unwrap()), "{}", answer.len());
    let event = &served.events.wait(1)[0];
    assert!(event.contains("\"over_limit\":4000"), "{event}");
}

#[test]
fn a_slow_body_is_waited_for_so_long_and_no_longer() {
    let served =
        serve_with(Builder::semantic(), app(), |layer| layer.idle_timeout(Duration::from_millis(200)));
    let mut stream = served.send(head("/echo", "Content-Length: 10").as_bytes());
    stream.write_all(b"abc").unwrap();
    assert_eq!(status(&answer(stream)), 408);
    assert!(served.waf.metrics().contains("reason=\"timeout\"} 1"), "{}", served.waf.metrics());
    let served =
        serve_with(Builder::semantic(), app(), |layer| layer.body_timeout(Duration::from_millis(300)));
    let mut stream = served.send(head("/echo", "Content-Length: 100000").as_bytes());
    // It always comes soon, and never to its end.
    while stream.write_all(b"a").is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
    served.events.wait(1);
}

#[test]
fn a_service_that_reads_no_body_answers_and_the_body_was_inspected() {
    let served = serve(Builder::semantic(), app());
    let unread = |body: &str| {
        let head = head("/unread", &format!("Content-Length: {}", body.len()));
        served.ask(format!("{head}{body}").as_bytes())
    };
    assert!(unread("two pairs").ends_with("not read"));
    assert_eq!(status(&unread("1' UNION SELECT password FROM users-- -")), 403);
}

#[test]
fn trailers_are_inspected_and_go_on() {
    let rule = "SecRule REQUEST_HEADERS:X-Sum \"@streq bad\" \"id:5,phase:2,deny,status:403\"";
    let served = serve(Builder::semantic().mode(Mode::Both).directives(rule), app());
    let sent = |value: &str| {
        let head = head("/trailers", "Trailer: X-Sum\r\nTE: trailers\r\nTransfer-Encoding: chunked");
        served.ask(format!("{head}3\r\nabc\r\n0\r\nX-Sum: {value}\r\n\r\n").as_bytes())
    };
    assert!(sent("42").contains("42"), "{}", sent("42"));
    assert_eq!(status(&sent("bad")), 403);
}

#[test]
fn many_small_pieces_take_no_more_memory_than_the_body() {
    let served = serve(Builder::semantic().held_bytes_max(4 << 20), app());
    let mut bytes = head("/echo", "Transfer-Encoding: chunked").into_bytes();
    for _ in 0..20_000 {
        bytes.extend_from_slice(b"1\r\na\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    let answer = served.ask(&bytes);
    assert_eq!(status(&answer), 200);
    assert!(answer.ends_with(&"a".repeat(20_000)));
}

#[test]
fn a_body_that_breaks_off_is_no_request() {
    let served = serve(Builder::semantic(), app());
    let stream = served.send(format!("{}abc", head("/echo", "Content-Length: 10")).as_bytes());
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let _ = answer(stream);
    served.events.wait(1);
    assert!(served.get("/").ends_with("hello"));
}
