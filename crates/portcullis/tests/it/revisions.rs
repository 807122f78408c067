//! Changes of the document through the API of the real program: they serve, they stay, they go back.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use portcullis_testkit::client::exchange;
use portcullis_testkit::process::{Process, Signal};
use serde_json::{Value, json};

use crate::served::*;

/// A running program with a document, a console and an administrator.
pub struct Managed {
    process: Process,
    pub address: SocketAddr,
    console: SocketAddr,
    pub document: PathBuf,
    token: String,
}

impl Managed {
    pub fn start(folder: &Path, upstream: SocketAddr, site: &str, more: &str) -> Managed {
        let (address, admin) = (free_address(), free_address());
        let path = document(folder, address, admin, upstream, site, more);
        Managed::start_again(folder, address, path)
    }

    pub fn start_again(folder: &Path, address: SocketAddr, document: PathBuf) -> Managed {
        let (console, data) = (free_address(), folder.join("data"));
        let run = ["run", "--config"].map(Into::into);
        let console_text = console.to_string();
        let more = ["--console".into(), console_text.into(), "--data".into(), data.clone().into()];
        let arguments = [&run[..], &[document.clone().into()], &more[..]].concat();
        let mut process = Process::start(&program(), &arguments, &folder.join("output")).unwrap();
        process.wait_for(address, PATIENCE).unwrap();
        process.wait_for(console, PATIENCE).unwrap();
        let create = ["token", "create", "--role", "admin", "--name", "test", "--data"];
        let created = Command::new(program()).args(create).arg(data).output().unwrap();
        let token = String::from_utf8(created.stdout).unwrap().trim().to_owned();
        Managed { process, address, console, document, token }
    }

    /// The status of a request whose only parameter has an attack.
    pub fn attack(&self, name: &str) -> u16 {
        let target = format!("/find?{name}=1%27%20UNION%20SELECT%20password%20FROM%20users--%20");
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        exchange(self.address, None, request.as_bytes(), PATIENCE).unwrap().status
    }

    pub fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIf-Match: *\r\n\
             Authorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        let answer = exchange(self.console, None, request.as_bytes(), PATIENCE).unwrap();
        (answer.status, serde_json::from_slice(answer.after_head()).unwrap_or_default())
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(&self.document).unwrap()
    }

    pub fn console(&self) -> SocketAddr {
        self.console
    }

    /// That of an administrator.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The value of the series that begins a line like this.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.text();
        let admin =
            text.split("admin = { listen = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let answer = exchange(admin.parse().unwrap(), None, request.as_bytes(), PATIENCE).unwrap();
        let text = String::from_utf8_lossy(answer.after_head()).into_owned();
        let line = text.lines().find(|line| line.starts_with(series));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }

    pub fn stop(self) {
        assert!(self.process.stop(PATIENCE).unwrap().success());
    }
}

#[test]
fn a_false_alarm_is_excluded_and_the_exclusion_taken_back() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let managed = Managed::start(folder.path(), application.address(), "mode = \"semantic\"", "");
    let before = managed.text();
    assert_eq!((managed.attack("q"), managed.attack("other")), (403, 403));
    let order = json!({"site": "site", "class": "sqli", "location": "query:q", "path": "/find", "reason": "a search for SQL"});
    let (status, answer) = managed.ask("POST", "/exclusions", &order);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["message"], "reloaded, generation 2");
    assert_eq!((managed.attack("q"), managed.attack("other")), (200, 403));
    assert!(managed.text().contains("reason = \"a search for SQL\""), "{}", managed.text());
    // It outlives the program.
    let (address, path) = (managed.address, managed.document.clone());
    managed.stop();
    let managed = Managed::start_again(folder.path(), address, path);
    assert_eq!((managed.attack("q"), managed.attack("other")), (200, 403));
    // One that has ended does nothing, and one that cannot end is refused.
    let order = |until: &str| {
        let order = json!({"site": "site", "class": "sqli", "location": "query:other", "until": until});
        managed.ask("POST", "/exclusions", &order)
    };
    let (status, answer) = order("soon");
    assert_eq!(status, 422, "{answer}");
    assert!(answer.to_string().contains("neither a day nor a time"), "{answer}");
    assert_eq!((order("2026-01-31").0, managed.attack("other")), (200, 403));
    let checked = Command::new(program()).arg("check").arg(&managed.document).output().unwrap();
    let checked = String::from_utf8(checked.stdout).unwrap();
    assert!(checked.contains("`sqli query:other` ended at 2026-02-01T00:00:00.000Z"), "{checked}");
    assert_eq!((order("2999-12-31").0, managed.attack("other")), (200, 200));
    let (status, answer) = managed.ask("POST", "/revisions/1/restore", &json!({"reason": "back"}));
    assert_eq!((status, managed.text()), (200, before), "{answer}");
    assert_eq!(managed.attack("q"), 403);
    let (_, listed) = managed.ask("GET", "/revisions", &Value::Null);
    let origins: Vec<_> = listed["items"].as_array().unwrap().iter().map(|each| &each["origin"]).collect();
    assert_eq!(origins, ["restore", "change", "change", "change", "outside"]);
    managed.stop();
}

/// The advice of the API, carried out, does what was said of it: the alarm passes, attacks that were not to
/// be lost are still stopped. The command says the same.
#[test]
fn an_exclusion_is_advised_and_does_what_was_said() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let rule = "SecRule ARGS \"@contains union\" \"id:1,phase:2,deny,t:lowercase,msg:'union'\"";
    let site = format!("mode = \"both\"\n{}", rules(rule));
    let managed = Managed::start(folder.path(), application.address(), &site, "");
    let ask = |path: &str, text: &str| {
        let request = format!("GET {path}?text={text} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        exchange(managed.address, None, request.as_bytes(), PATIENCE).unwrap()
    };
    let honest = "1%20union%20select%20password%20from%20users";
    let alarm = ask("/posts/17", honest);
    let id = String::from_utf8(alarm.header("x-request-id").unwrap().to_vec()).unwrap();
    assert_eq!((alarm.status, ask("/posts/18", honest).status), (403, 403));
    let order = json!({"request_id": id});
    let (mut status, mut answer) = managed.ask("POST", "/advise", &order);
    let deadline = Instant::now() + PATIENCE;
    // The store commits a moment later, both or one of them.
    while status == 404 || answer["advice"]["candidates"][0]["stored"]["requests"] != 2 {
        assert!(Instant::now() < deadline, "{status} {answer}");
        std::thread::sleep(Duration::from_millis(100));
        (status, answer) = managed.ask("POST", "/advise", &order);
    }
    let first = &answer["advice"]["candidates"][0];
    assert_eq!((&first["clears"], &first["stored"]["let_through"]), (&json!(true), &json!(2)), "{answer}");
    assert!(first["probed"]["others"]["stopped"].as_u64().unwrap() > 3000, "{answer}");
    let terms = first["exclusions"].as_array().unwrap();
    assert!(terms.iter().any(|term| term["kind"] == "sqli.union-select"), "{answer}");
    assert!(terms.iter().any(|term| term["rule_id"] == 1), "{answer}");
    let mut advise = Command::new(program());
    advise.args(["advise", &id, "--json", "--data"]).arg(folder.path().join("data"));
    let told = advise.arg("--config").arg(&managed.document).output().unwrap();
    let told: Value = serde_json::from_slice(&told.stdout).unwrap_or_else(|_| panic!("{told:?}"));
    assert_eq!(told, answer["advice"]);
    for term in terms {
        let mut order = term.clone();
        order["site"] = json!("site");
        let (status, answer) = managed.ask("POST", "/exclusions", &order);
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!((ask("/posts/17", honest).status, ask("/other", honest).status), (200, 403));
    for attack in ["1%27%20or%201=1--%20", "%3Cscript%3Ealert(1)%3C/script%3E", "%3Bcat%20/etc/passwd"] {
        assert_eq!(ask("/posts/17", attack).status, 403, "{attack}");
    }
    let (status, answer) = managed.ask("POST", "/advise", &order);
    assert_eq!(status, 409, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("lets this request through"), "{answer}");
    managed.stop();
}

#[test]
fn what_does_not_load_is_refused_whole() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let site = rules("SecRule ARGS \"@contains union\" \"id:1,phase:2,deny,t:lowercase\"");
    let managed = Managed::start(folder.path(), application.address(), &site, "");
    let before = managed.text();
    let put = |text: String| managed.ask("PUT", "/config", &json!({"text": text}));
    // A mistake of the document, one of the rules, and a listener that another program has.
    let (status, answer) = put(before.replace("upstream = \"app\"", "upstream = \"none\""));
    assert_eq!((status, &answer["type"]), (422, &json!("urn:portcullis:problem:document")), "{answer}");
    let (status, answer) = put(before.replace("@contains union", "@contain union"));
    assert_eq!((status, &answer["type"]), (422, &json!("urn:portcullis:problem:reload-failed")), "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("@contain"), "{answer}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = format!("[[listeners]]\naddress = \"{}\"\n[[sites]]", taken.local_addr().unwrap());
    let (status, answer) = put(before.replacen("[[sites]]", &listener, 1));
    assert_eq!(status, 422, "{answer}");
    assert_eq!((managed.text(), managed.attack("q")), (before, 403));
    let (_, listed) = managed.ask("GET", "/revisions", &Value::Null);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    let (_, shown) = managed.ask("GET", "/config", &Value::Null);
    assert_eq!(shown["is_live"], true);
    managed.stop();
}

#[test]
fn what_is_changed_by_hand_is_a_revision_from_outside() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let managed = Managed::start(folder.path(), application.address(), "mode = \"semantic\"", "");
    let by_hand = managed.text().replace("mode = \"semantic\"", "mode = \"off\"   # for a day");
    std::fs::write(&managed.document, &by_hand).unwrap();
    let (_, shown) = managed.ask("GET", "/config", &Value::Null);
    assert_eq!((&shown["is_live"], &shown["revision"]), (&json!(false), &json!(2)));
    managed.process.signal(Signal::HUP).unwrap();
    until(|| managed.attack("q") == 200);
    until(|| managed.ask("GET", "/config", &Value::Null).1["is_live"] == true);
    // A change through the API keeps what the hand wrote.
    let (status, answer) = managed.ask("PATCH", "/sites/site", &json!({"mode": "semantic"}));
    assert_eq!((status, managed.attack("q")), (200, 403), "{answer}");
    assert_eq!(managed.text(), by_hand.replace("\"off\"", "\"semantic\""));
    managed.stop();
}

/// A document that must not be changed here, and settings from the command line, which have none.
#[test]
fn programs_without_a_document_of_their_own_say_so() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let (address, admin) = (free_address(), free_address());
    let path = document(folder.path(), address, admin, application.address(), "mode = \"semantic\"", "");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("admin = { ", "admin = { read_only = true, ")).unwrap();
    let managed = Managed::start_again(folder.path(), address, path);
    let order = json!({"site": "site", "class": "sqli"});
    let (status, answer) = managed.ask("POST", "/exclusions", &order);
    assert_eq!((status, &answer["type"]), (403, &json!("urn:portcullis:problem:read-only")));
    let (status, answer) =
        managed.ask("POST", "/exclusions", &json!({"site": "site", "class": "sqli", "dry_run": true}));
    assert!(status == 200 && answer["diff"].as_str().unwrap().contains("+class = \"sqli\""), "{answer}");
    assert_eq!(managed.attack("q"), 403);
    managed.stop();
}
