//! `events.listen` and `serve --events-socket`: events of one process in the store of another.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use portcullis_testkit::process::Signal;
use serde_json::Value;

use crate::serve::{Serve, exchange};
use crate::served::{Served, application, program, rules, says, until};

const RULES: &str = "SecRuleEngine On\nSecRule ARGS \"@contains evil\" \"id:7,phase:2,deny,log\"";
const SETTINGS: &str = "[data]\nfolder = \"data\"\n";

fn stored(folder: &Path) -> Vec<Value> {
    let output =
        Command::new(program()).args(["events", "--json", "--data"]).arg(folder.join("data")).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn events_of_serve_are_stored_beside_those_of_the_proxy() {
    let application = application(|_| says("hello"));
    let served = Served::start_edited(application.address(), &rules(RULES), SETTINGS, |text| {
        text.replace("\"events.jsonl\"", "\"events.jsonl\", listen = \"events.sock\"")
    });
    let socket = served.folder.path().join("events.sock");
    let serve =
        Serve::start("check", &["--headers", "x-original", "--events-socket", socket.to_str().unwrap()]);
    let ask = "GET /check HTTP/1.1\r\nHost: a.example\r\nX-Original-Method: GET\r\nX-Original-URI: /own?x=attack\r\n\
               Connection: close\r\n\r\n";
    let ask = || exchange(serve.address, ask).status();
    assert_eq!((ask(), served.get("/proxy?x=evil").status()), (403, 403));
    // Meanwhile another process lies, and one says nothing: they only hurt themselves.
    let _silent = UnixStream::connect(&socket).unwrap();
    let mut liar = UnixStream::connect(&socket).unwrap();
    liar.write_all(b"{\"schema\":1,\"request_id\":\"lie\"}\n").unwrap();
    assert!(!matches!(liar.read(&mut [0; 16]), Ok(1..)), "nothing of it is confirmed");
    until(|| stored(served.folder.path()).len() == 2);
    let events = stored(served.folder.path());
    let of = |target: &str| events.iter().find(|event| event["request"]["target"] == target).unwrap().clone();
    assert_eq!(of("/own?x=attack")["integration"]["kind"], "forward_auth");
    assert_eq!(of("/own?x=attack")["integration"]["blind_spots"], serde_json::json!(["response"]));
    assert_eq!(of("/proxy?x=evil")["integration"], Value::Null);
    assert_eq!(served.metric("portcullis_event_socket_events_total{integration=\"forward_auth\"}"), 1.0);
    assert_eq!(served.metric("portcullis_event_socket_refused_total{reason=\"invalid\"}"), 1.0);
    serve.counts("portcullis_event_forward_events_total", 1.0);
    serve.counts("portcullis_event_forward_connected", 1.0);
    // The last event before the end is sent.
    assert_eq!(ask(), 403);
    serve.stop();
    until(|| stored(served.folder.path()).len() == 3);
}

#[test]
fn a_process_without_a_receiver_serves_and_says_what_it_lost() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nobody.sock");
    let serve =
        Serve::start("check", &["--headers", "x-original", "--events-socket", socket.to_str().unwrap()]);
    let ask = "GET /check HTTP/1.1\r\nHost: a\r\nX-Original-Method: GET\r\nX-Original-URI: /?x=attack\r\n\
               Connection: close\r\n\r\n";
    assert_eq!(exchange(serve.address, ask).status(), 403);
    serve.counts("portcullis_event_forward_connected", 0.0);
    serve.signal(Signal::TERM);
    serve.events(1);
    until(|| {
        let said = std::fs::read_to_string(serve.folder.path().join("output")).unwrap_or_default();
        said.contains("events cannot be sent to")
            && said.contains("1 events or audit records could not be written")
    });
}
