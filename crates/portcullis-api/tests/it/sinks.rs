//! `POST /sinks/{sink}/test`: what became of a test event, who may send one, what the audit trail keeps.

use portcullis_identity::Role;
use serde_json::{Value, json};

use crate::server::Server;

const SINKS: &str = r#"
[[events.sinks]]
kind = "webhook"
name = "pager"
url = "http://127.0.0.1:9/T0/hunter2"
[[events.sinks]]
kind = "syslog"
name = "siem"
address = "udp://127.0.0.1:9"
[[events.sinks]]
kind = "webhook"
name = "silent"
url = "http://127.0.0.1:9/"
"#;

#[test]
fn a_test_event_is_sent_and_audited() {
    let server = Server::with_more(SINKS);
    let admin = server.token(Role::Admin);
    let test = |sink: &str| {
        let answer = server.ask("POST", &format!("/sinks/{sink}/test")).bearer(&admin).send();
        (answer.status, answer.json())
    };
    assert_eq!(test("pager"), (200, json!({ "outcome": "confirmed", "milliseconds": 7, "error": null })));
    assert_eq!(test("siem"), (200, json!({ "outcome": "sent", "milliseconds": 7, "error": null })));
    let (status, answer) = test("silent");
    assert_eq!((status, &answer["outcome"]), (200, &"failed".into()));
    let why = answer["error"].as_str().unwrap();
    assert!(why.starts_with("no answer for token:") && why.contains("(test admin)"), "{why}");
    let (status, problem) = test("other");
    assert_eq!(status, 404, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("pager, siem, silent"), "{problem}");

    let audit = server.get("/audit", &admin).json();
    let entries: Vec<&Value> = audit["items"].as_array().unwrap().iter().collect();
    let details: Vec<(&str, &str)> = entries
        .iter()
        .filter(|entry| entry["action"] == "sink.test")
        .map(|entry| (entry["object"].as_str().unwrap(), entry["detail"].as_str().unwrap()))
        .collect();
    let [silent, siem, pager] = &details[..] else { panic!("{details:?}") };
    assert_eq!((*siem, *pager), (("siem", "sent in 7 ms"), ("pager", "confirmed in 7 ms")));
    assert!(silent.0 == "silent" && silent.1.starts_with("failed after 7 ms: no answer"), "{silent:?}");
}

#[test]
fn a_document_with_mistakes_sends_nothing() {
    let server = Server::with_more(&SINKS.replace("udp://", "carrier-pigeon://"));
    let answer = server.ask("POST", "/sinks/pager/test").bearer(&server.token(Role::Admin)).send();
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert!(answer.json()["diagnostics"].as_array().is_some_and(|found| !found.is_empty()));
}
