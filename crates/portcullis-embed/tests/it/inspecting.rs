//! Verdicts on whole requests, their events, and what hostile ones come to.

use std::sync::{Arc, Mutex};

use http::Request;
use portcullis_embed::{Action, BodyFraming, Builder, Client, Exchange, Mode, RequestParts, Version};

/// An engine with the semantic detector, and the events that it tells.
fn waf(change: impl FnOnce(Builder) -> Builder) -> (portcullis_embed::Waf, Arc<Mutex<Vec<String>>>) {
    let events: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&events);
    let builder = Builder::semantic().site("shop");
    let builder = builder.on_event(move |event| sink.lock().unwrap().push(event.json_line()));
    (change(builder).build().unwrap(), events)
}

fn client() -> Client {
    Client::at([192, 0, 2, 7], 50123)
}

#[test]
fn attacks_are_answered_and_told() {
    let (waf, events) = waf(|builder| builder);
    let form = |body: &'static str| {
        Request::post("/login")
            .header("host", "shop.example")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body)
            .unwrap()
    };
    assert!(waf.inspect(&form("name=bob"), client()).answer.is_none());
    assert_eq!(events.lock().unwrap().len(), 0);

    let verdict = waf.inspect(&form("name=1' UNION SELECT password FROM users-- -"), client());
    let answer = verdict.answer.unwrap();
    assert_eq!((answer.status().as_u16(), verdict.action), (403, Action::Deny));
    assert_eq!(answer.headers()["x-request-id"], verdict.request_id.as_str());
    let event = events.lock().unwrap().pop().unwrap();
    for part in [&verdict.request_id[..], "\"embedded\"", "\"response\"", "192.0.2.7", "\"shop\""] {
        assert!(event.contains(part), "{part}: {event}");
    }
}

#[test]
fn what_is_no_request_is_refused() {
    let (waf, _) = waf(|builder| builder);
    let begin = |fields: &[(&[u8], &[u8])], framing| {
        let parts = RequestParts {
            method: b"POST",
            target: b"/",
            version: Version::Http11,
            framing,
            websocket: false,
            fields,
        };
        let exchange = waf.begin_parts(&parts, client());
        exchange.answer().map(|answer| answer.status().as_u16())
    };
    let host: (&[u8], &[u8]) = (b"host", b"a");
    assert_eq!(begin(&[host], BodyFraming::None), None);
    assert_eq!(begin(&[], BodyFraming::None), Some(400));
    assert_eq!(begin(&[host, (b"x", b"a\r\nb: c")], BodyFraming::None), Some(400));
    assert_eq!(begin(&[host, (b"content-length", b"5")], BodyFraming::Length(3)), Some(400));
}

#[test]
fn limits_hold() {
    let (waf, _) = waf(|builder| builder.request_body_limit(1000));
    let post = |bytes: usize| {
        let request = Request::post("/").header("host", "a").header("content-type", "text/plain");
        let verdict = waf.inspect(&request.body("a".repeat(bytes)).unwrap(), client());
        verdict.answer.map(|answer| answer.status().as_u16())
    };
    assert_eq!((post(1000), post(1001)), (None, Some(413)));
    let metrics = waf.metrics();
    let counted = "portcullis_exceptions_total{cause=\"request_body_over_limit\",policy=\"closed\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
}

#[test]
fn memory_for_bodies_is_bounded_and_given_back() {
    let (waf, _) = waf(|builder| builder.held_bytes_max(4 << 20));
    let begin = || {
        let parts = Request::post("/").header("host", "a").header("content-type", "text/plain");
        let parts = parts.header("content-length", "100000").body(()).unwrap().into_parts().0;
        let mut exchange = waf.begin(&parts, false, client());
        exchange.request_body(&[b'a'; 100_000]);
        exchange
    };
    let status = |exchange: &Exchange| exchange.answer().map(|answer| answer.status().as_u16());
    for _ in 0..3 {
        let mut open: Vec<Exchange> = Vec::new();
        while open.last().is_none_or(|exchange| status(exchange).is_none()) {
            open.push(begin());
        }
        // Each holds the body once at least, beside what is lent, and not more than a few times.
        assert!((5..=43).contains(&open.len()), "{}", open.len());
        assert_eq!(open.last().and_then(status), Some(503));
    }
    assert!(waf.metrics().contains("reason=\"memory\"} 3"), "{}", waf.metrics());
}

#[test]
fn detection_only_blocks_nothing() {
    let (waf, events) = waf(|builder| builder.detect_only());
    let request = Request::get("/?q=%3Cscript%3Ealert(1)%3C/script%3E").header("host", "a");
    assert!(waf.inspect(&request.body("").unwrap(), client()).answer.is_none());
    assert!(events.lock().unwrap()[0].contains("\"detect\""));
}

#[test]
fn rules_see_the_request() {
    let (waf, _) = waf(|builder| {
        builder.mode(Mode::Both).directives(
            "SecRule REMOTE_ADDR \"@streq 192.0.2.7\" \"id:1,phase:1,deny,status:403,chain\"\n\
             SecRule REQUEST_HEADERS:X-Test \"@streq on\"",
        )
    });
    let request = |value| Request::get("/").header("host", "a").header("X-Test", value).body("").unwrap();
    let verdict = waf.inspect(&request("on"), client());
    assert_eq!((verdict.action, &verdict.told.rules[..]), (Action::Deny, &[1][..]));
    assert_eq!(waf.inspect(&request("off"), client()).action, Action::Pass);
}

/// Nothing can be refused any more when a pattern uses up its steps in the response: the event says so.
#[test]
fn a_pattern_that_gives_up_in_the_response_is_reported() {
    let (waf, events) = waf(|builder| {
        builder.mode(Mode::Both).directives(
            "SecResponseBodyAccess On\nSecResponseBodyMimeType text/plain\nSecPcreMatchLimit 100\n\
             SecRule RESPONSE_BODY \"@rx ^(?:(\\w+)+)(?=!)\\1?\" \"id:1,phase:4,pass,nolog\"",
        )
    });
    for (body, is_reported) in [("short", false), ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-!", true)] {
        let parts = Request::get("/").header("host", "a").body(()).unwrap().into_parts().0;
        let mut exchange = waf.begin(&parts, true, client());
        exchange.request_end();
        let fields: [(&[u8], &[u8]); 1] = [(b"content-type", b"text/plain")];
        exchange.response_head(200, fields.into_iter(), false);
        exchange.response_body(body.as_bytes());
        exchange.response_end(true);
        assert!(!exchange.is_blocked());
        drop(exchange);
        let event = events.lock().unwrap().pop();
        assert_eq!(event.is_some_and(|event| event.contains("budget_spent")), is_reported, "{body}");
    }
}
