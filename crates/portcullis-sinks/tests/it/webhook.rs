//! Webhooks: bodies from templates, the rate limit, receivers that send us elsewhere.

use std::time::Duration;

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
