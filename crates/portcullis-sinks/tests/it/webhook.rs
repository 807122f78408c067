//! Webhooks: bodies from templates, the rate limit, receivers that send us elsewhere.

use std::time::{Duration, Instant};

use portcullis_sinks::Sinks;
use portcullis_types::Place;
use serde_json::Value;

use crate::common::*;

fn sink(port: u16, more: &str) -> String {
    format!("[[events.sinks]]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:{port}/T0/hunter2\"\n{more}\n")
}

fn json(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_else(|error| panic!("{error}: {:?}", request.body))
}

#[test]
fn a_template_is_filled_in_and_stays_json() {
    let server = HttpServer::start(|_, _, stream| ok(stream));
    let template = r#"template = '{"text": "{class} {kind} in {location}: {evidence}", "id": ["{request_id}", 7], "more": "{suppressed}"}'"#;
    let tables =
        sink(server.port, template) + &sink(server.port, "template = \"slack\"") + &sink(server.port, "");
    let mut sinks = start(&tables);
    let mut hostile = event("r1");
    hostile.findings = vec![portcullis_finding("\"},\"x\":{\"y\":\"<!channel> <http://evil|a> {summary}`")];
    sinks.submit(hostile);
    assert_eq!(sinks.end(PATIENCE), 0, "{:?}", sinks.said());
    let bodies: Vec<Value> = server.wait(3).iter().map(json).collect();
    let own = bodies.iter().find(|body| body["id"].is_array()).unwrap();
    let expected = "sqli sqli.union in query:q: \"},\"x\":{\"y\":\"<!channel> <http://evil|a> {summary}`";
    assert_eq!(*own, serde_json::json!({ "text": expected, "id": ["r1", 7], "more": 0 }));
    let event = bodies.iter().find(|body| body["event"].is_object()).unwrap();
    assert_eq!(event["event"]["request_id"], "r1");
    let slack = bodies.iter().find(|body| body["text"] != expected && body["event"].is_null()).unwrap();
    let text = slack["text"].as_str().unwrap();
    assert!(text.contains("&lt;!channel&gt; &lt;http://evil|a&gt;") && !text.contains('<'), "{text}");
    assert!(text.contains("UNION reads another table") && text.contains("query:q"), "{text}");
    assert_eq!(text.matches('`').count(), 2);
}

fn portcullis_finding(evidence: &str) -> portcullis_event::Finding {
    finding("sqli.union", Place::Query, "q", evidence)
}

#[test]
fn beyond_the_rate_messages_are_counted_and_told() {
    let server = HttpServer::start(|_, _, stream| ok(stream));
    let mut sinks = start(&sink(server.port, "per_minute = 20"));
    (0..200).for_each(|number| sinks.submit(event(&format!("r{number}"))));
    // Twenty at once; the newest of the others three seconds later, with their number.
    let last = json(&server.wait(21)[20]);
    assert_eq!(last["event"]["request_id"], "r199");
    let told = last["suppressed"].as_u64().unwrap();
    assert_eq!(sinks.end(PATIENCE), 0);
    assert_eq!((sinks.sent("webhook"), sinks.dropped("webhook", "rate_limit")), (21, told as i64));
    assert_eq!(told, 179);
    let head = server.requests()[20].head.to_ascii_lowercase();
    assert!(head.contains("x-portcullis-suppressed: 179"), "{head}");
}

#[test]
fn redirects_are_not_followed_and_the_url_is_not_told() {
    let elsewhere = HttpServer::start(|_, _, stream| ok(stream));
    let location = format!("Location: http://127.0.0.1:{}/metadata\r\n", elsewhere.port);
    let server = HttpServer::start(move |number, _, stream| {
        let status = ["302 Found", "307 Temporary", "308 Permanent"][number % 3];
        answer(stream, status, &location, b"");
    });
    let mut sinks = start(&sink(server.port, ""));
    (0..3).for_each(|number| sinks.submit(event(&format!("r{number}"))));
    assert_eq!(sinks.end(PATIENCE), 0);
    assert_eq!((server.requests().len(), elsewhere.requests().len()), (3, 0));
    assert_eq!((sinks.sent("webhook"), sinks.dropped("webhook", "refused")), (0, 3));
    let said = sinks.said().join("\n");
    assert!(said.contains("redirect") && !said.contains("hunter2"), "{said}");
}

#[test]
fn an_endless_answer_ends() {
    let server = HttpServer::start(|_, _, stream| {
        use std::io::Write as _;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while stream.write_all(b"1000\r\n").is_ok() && stream.write_all(&[b'x'; 0x1000]).is_ok() {
            if stream.write_all(b"\r\n").is_err() {
                break;
            }
        }
    });
    let mut sinks = start(&sink(server.port, "timeout = \"2s\""));
    sinks.submit(event("r1"));
    assert_eq!((sinks.end(Duration::from_secs(10)), sinks.sent("webhook")), (0, 1));
}

#[test]
fn no_word_of_a_secret_is_said() {
    let tables = sink(1, "headers = { Authorization = \"Bearer hunter2\" }\nretry = \"300ms\"")
        + "[[events.sinks]]\nkind = \"clickhouse\"\nurl = \"http://127.0.0.1:1\"\nuser = \"u\"\npassword = \"hunter2\"\nretry = \"300ms\"\n";
    let mut sinks = start(&tables);
    sinks.submit(event("r1"));
    for name in ["webhook", "clickhouse"] {
        eventually("it gives up", || (sinks.dropped(name, "retry") == 1).then_some(()));
    }
    sinks.end(PATIENCE);
    let said = sinks.said().join("\n");
    assert!(said.contains("sink webhook: ") && said.contains("sink clickhouse: "), "{said}");
    assert!(!said.contains("hunter2") && !format!("{:?}", config(&tables)).contains("hunter2"), "{said}");
}

/// Once, whatever the filter, with the reason in words and without the secret in the URL.
#[test]
fn an_event_sent_once_tells_what_became_of_it() {
    let taken = HttpServer::start(|_, _, stream| ok(stream));
    let refused = HttpServer::start(|_, _, stream| answer(stream, "404 Not Found", "", b""));
    let away = HttpServer::start(|_, _, stream| answer(stream, "503 Service Unavailable", "", b""));
    let send = |port: u16| {
        let config = config(&sink(port, "filter = \"verdict = drop\"\ntimeout = \"1s\"\n"));
        Sinks::send_once(&config.event_sinks[0], event("r1"))
    };
    let delivery = send(taken.port);
    assert!(delivery.is_confirmed && delivery.error.is_none(), "{delivery:?}");
    assert_eq!(json(&taken.wait(1)[0])["event"]["request_id"], "r1");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (port, part) in [(refused.port, "404"), (away.port, "503"), (closed, "refused")] {
        let delivery = send(port);
        let why = delivery.error.unwrap();
        assert!(why.contains(part) && !why.contains("hunter2") && !delivery.is_confirmed, "{why}");
        assert!(!why.contains('\n'), "{why}");
    }
    // Asked once, and not again.
    assert_eq!((taken.requests().len(), refused.requests().len(), away.requests().len()), (1, 1, 1));
    let begin = Instant::now();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let delivery = send(silent.local_addr().unwrap().port());
    assert!(delivery.error.is_some() && delivery.time >= Duration::from_millis(900), "{delivery:?}");
    assert!(begin.elapsed() < PATIENCE);
}

/// Receivers of syslog say nothing.
#[test]
fn a_message_of_syslog_is_sent_and_not_confirmed() {
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = receiver.local_addr().unwrap();
    let config = config(&format!("[[events.sinks]]\nkind = \"syslog\"\naddress = \"udp://{address}\"\n"));
    let delivery = Sinks::send_once(&config.event_sinks[0], event("r1"));
    assert_eq!((delivery.error, delivery.is_confirmed), (None, false));
    let mut message = [0; 4096];
    let length = receiver.recv(&mut message).unwrap();
    assert!(String::from_utf8_lossy(&message[..length]).contains("r1"));
}
