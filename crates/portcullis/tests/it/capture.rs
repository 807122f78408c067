//! A sample of the requests that passed, in the real program: kept without secrets, apart from events, seen
//! by replays.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use portcullis_event_store::{PageRequest, Store, StoredEvent};
use portcullis_query::parse;
use serde_json::{Value, json};

use crate::revisions::Managed;
use crate::served::*;

const KEPT: &str = "data = { folder = \"data\" }\nevents = { capture = { share = 1 }, file = ";

fn start(application: &Server, site: &str, keys: &str) -> Served {
    Served::start_edited(application.address(), site, "", |text| text.replace("events = { file = ", keys))
}

/// The sample of a data folder, newest first.
fn sample(data: &Path) -> Vec<StoredEvent> {
    let filter = parse("", 0).unwrap();
    let request =
        PageRequest { filter: &filter, before: None, limit: 100, patience: Duration::from_secs(30) };
    Store::new(&data.join("sample")).page(&request).unwrap().events
}

/// What `portcullis replay` says of the requests in a data folder: the changes, and the counts.
fn replay(data: &Path, config: &Path, more: &[&str]) -> (Vec<Value>, Value) {
    let mut command = Command::new(program());
    command.args(["replay", "--json", "--data"]).arg(data).arg("--config").arg(config).args(more);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let counts = lines.pop().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (lines, counts)
}

#[test]
fn requests_that_passed_are_kept_and_replayed() {
    let application = application(|_| says("found"));
    let served = start(&application, "mode = \"semantic\"", KEPT);
    let data = served.folder.path().join("data");
    assert_eq!(served.get("/find?q=hello&token=T0k3nT0k3n").status(), 200);
    let form = "comment=good+day&password=Hunter2!";
    assert_eq!(served.post("/posts", "application/x-www-form-urlencoded", form).status(), 200);
    assert_eq!(served.get("/find?q=1%27+UNION+SELECT+password+FROM+users--+").status(), 403);
    served.counts("portcullis_capture_written_total", 2.0);
    served.counts("portcullis_event_store_written_total", 1.0);
    let kept = sample(&data);
    let text = |at: usize| String::from_utf8_lossy(&kept[at].request.as_ref().unwrap().bytes).into_owned();
    assert!(text(0).ends_with("\r\n\r\ncomment=good+day&password=Xxxxxx0!"), "{}", text(0));
    assert!(text(1).starts_with("GET /find?q=hello&token=X0x0xX0x0x HTTP/1.1\r\n"), "{}", text(1));
    let event: Value = serde_json::from_str(&kept[0].json).unwrap();
    assert_eq!((&event["verdict"]["action"], &event["site"]), (&"pass".into(), &"site".into()));
    assert_eq!((&event["client"]["addr"], &event["response"]["status"]), (&"127.0.0.1".into(), &200.into()));
    assert!(!kept.iter().any(|event| event.json.contains("T0k3n") || event.json.contains("Hunter2")));
    // They are no events.
    let mut events = Command::new(program());
    let listed = events.args(["events", "--json", "--data"]).arg(&data).output().unwrap().stdout;
    assert_eq!(String::from_utf8(listed).unwrap().lines().count(), 1);
    // What a document would stop of them.
    let strict = served.folder.path().join("strict.toml");
    let config = served.folder.path().join("portcullis.toml");
    let rule = "SecRuleEngine On\nSecRule ARGS \"@contains good day\" \"id:7,phase:2,deny,msg:'A greeting'\"";
    let document = std::fs::read_to_string(&config).unwrap();
    std::fs::write(
        &strict,
        document.replace("mode = \"semantic\"", &format!("mode = \"both\"\n{}", rules(rule))),
    )
    .unwrap();
    let (changes, counts) = replay(&data, &strict, &[]);
    assert_eq!(
        counts,
        json!({"requests": 3, "stopped": 2, "lost": 0, "new": 1, "not_inspected": 0, "incomplete": 0})
    );
    assert_eq!((&changes[0]["change"], &changes[0]["request"]), (&"new".into(), &"POST /posts".into()));
    let (_, counts) = replay(&data, &strict, &["--events", "verdict = deny"]);
    assert_eq!(counts["requests"], 1);
    // It outlives the process, and goes on.
    let folder = served.stop();
    assert_eq!(sample(&folder.path().join("data")).len(), 2);
}

#[test]
fn a_share_is_kept_and_none_by_default() {
    let application = application(|_| says("found"));
    let none = start(&application, "mode = \"semantic\"", "data = { folder = \"data\" }\nevents = { file = ");
    let tenth = start(
        &application,
        "mode = \"semantic\"",
        "data = { folder = \"data\" }\nevents = { capture = { share = 0.1 }, file = ",
    );
    for number in 0..300 {
        assert_eq!(tenth.get(&format!("/?q={number}")).status(), 200);
    }
    assert_eq!(none.get("/?q=1").status(), 200);
    until(|| (5.0..80.0).contains(&tenth.metric("portcullis_capture_written_total")));
    assert_eq!(none.metric("portcullis_capture_written_total"), 0.0);
    let folder = none.stop();
    assert!(!folder.path().join("data/sample").exists());
    // Routes that are not inspected have nothing to keep, and bodies have the bound of events.
    let bounded = start(
        &application,
        "mode = \"semantic\"\n[[sites.routes]]\npath = \"/plain\"\nmode = \"off\"",
        "data = { folder = \"data\" }\nevents = { keep_request = \"10B\", capture = { share = 1.0 }, file = ",
    );
    assert_eq!(bounded.get("/plain").status(), 200);
    assert_eq!(bounded.post("/a", "text/plain", "0123456789abcdef").status(), 200);
    bounded.counts("portcullis_capture_written_total", 1.0);
    let kept = sample(&bounded.folder.path().join("data"));
    let request = kept[0].request.as_ref().unwrap();
    assert!(request.bytes.ends_with(b"\r\n\r\n0123456789") && request.omitted == 6, "{request:?}");
}

#[test]
fn the_api_replays_what_is_stored() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let managed = Managed::start(folder.path(), application.address(), "mode = \"semantic\"", "");
    let text = managed.text().replace("events = { file", "events = { capture = { share = 1 }, file");
    std::fs::write(&managed.document, &text).unwrap();
    let (address, document) = (managed.address, managed.document.clone());
    managed.stop();
    let managed = Managed::start_again(folder.path(), address, document);
    assert_eq!((managed.attack("q"), managed.attack("other")), (403, 403));
    let honest = "GET /find?q=good%20day HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = portcullis_testkit::client::exchange(managed.address, None, honest.as_bytes(), PATIENCE);
    assert_eq!(answer.unwrap().status, 200);
    let loose = text.replace(
        "mode = \"semantic\"",
        "mode = \"semantic\"\n[[sites.semantic.exclude]]\nclass = \"sqli\"\nlocation = \"query:q\"",
    );
    let order = json!({"text": loose, "filter": "time >= -1h"});
    until(|| managed.ask("POST", "/replay", &order).1["requests"] == 3);
    let (status, answer) = managed.ask("POST", "/replay", &order);
    assert_eq!(
        (status, &answer["lost"], &answer["new"], &answer["stopped"]),
        (200, &1.into(), &0.into(), &1.into())
    );
    let lost = &answer["changes"][0];
    assert!(lost["request"].as_str().unwrap().starts_with("GET /find?q=1%27%20UNION"), "{lost}");
    assert!(lost["reason"].as_str().unwrap().contains("SQL injection in query:q"), "{lost}");
    // Stricter, by rules, and on a message that nobody sent.
    let rule = "SecRuleEngine On\nSecRule ARGS \"@contains good day\" \"id:7,phase:2,deny,msg:'A greeting'\"";
    let strict = text.replace("mode = \"semantic\"", &format!("mode = \"both\"\n{}", rules(rule)));
    let (_, answer) = managed.ask("POST", "/replay", &json!({"text": strict, "filter": ""}));
    assert_eq!(
        (&answer["lost"], &answer["new"], &answer["changes"][0]["reason"]),
        (&0.into(), &1.into(), &"A greeting".into())
    );
    let given = json!([{"request": "POST /posts HTTP/1.1\nHost: a\nContent-Type: application/x-www-form-urlencoded\n\nc=a+good+day"}]);
    let (_, answer) = managed.ask("POST", "/replay", &json!({"text": strict, "requests": given}));
    assert_eq!((&answer["requests"], &answer["new"]), (&1.into(), &1.into()), "{answer}");
    // A rule that cannot be read, and the trail of what was asked.
    let wrong = strict.replace("@contains", "@contanis");
    let (status, problem) = managed.ask("POST", "/replay", &json!({"text": wrong, "filter": ""}));
    assert!(status == 422 && problem["detail"].as_str().unwrap().contains("contanis"), "{problem}");
    let (_, trail) = managed.ask("GET", "/audit", &Value::Null);
    assert!(trail["items"].as_array().unwrap().iter().any(|entry| entry["action"] == "replay"), "{trail}");
    assert_eq!(managed.text(), text);
    managed.stop();
}
