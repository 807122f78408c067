//! Teaching a site by hand in the real program: whose requests teach, when it counts, and what is left of it.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;

use portcullis_testkit::client::exchange;
use portcullis_testkit::wait;
use serde_json::{Value, json};

use crate::revisions::Managed;
use crate::served::{PATIENCE, Server, application, program, says};

/// The administrator's browser, and somebody else.
const TEACHER: &str = "127.0.0.2";
const STRANGER: &str = "127.0.0.3";
/// A value that is unlike numbers and is only reported.
const LETTERS: &str = "/item?id=seven";
/// One that is refused while the field is closed.
const SIGNS: &str = "/item?id=4%3B7";

fn start(folder: &Path) -> (Managed, Server) {
    let application = application(|_| says("hello"));
    let data = folder.join("data");
    std::fs::create_dir(&data).unwrap();
    let lines = (0..30).map(|number| {
        let request = format!("GET /item?id={number} HTTP/1.1\r\nHost: a\r\n\r\n");
        format!("{}\n", json!({ "request": request }))
    });
    let recorded = folder.join("requests.jsonl");
    std::fs::write(&recorded, lines.collect::<String>()).unwrap();
    let learn = ["learn", "--site", "site", "--values", "20", "--data"];
    let taught = Command::new(program()).args(learn).arg(&data).arg(&recorded).output().unwrap();
    assert!(taught.status.success());
    let site = "mode = \"semantic\"\nfields = { unusual = \"block\" }";
    (Managed::start(folder, application.address(), site, ""), application)
}

fn get(managed: &Managed, source: &str, target: &str, more: &str) -> u16 {
    let source: IpAddr = source.parse::<Ipv4Addr>().unwrap().into();
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{more}Connection: close\r\n\r\n");
    exchange(managed.address, Some(source), request.as_bytes(), PATIENCE).unwrap().status
}

fn session(managed: &Managed) -> Value {
    managed.ask("GET", "/fields/sessions", &Value::Null).1["items"][0].clone()
}

fn order(managed: &Managed, order: &str, body: Value) -> (u16, Value) {
    managed.ask("POST", &format!("/fields/sessions/{order}"), &body)
}

fn begin(managed: &Managed) {
    let begun = order(managed, "start", json!({"site": "site", "network": TEACHER, "minutes": 5}));
    assert_eq!(begun.0, 200, "{}", begun.1);
}

/// What the site itself has learned beside the session.
fn values(managed: &Managed) -> Value {
    let (_, fields) = managed.ask("GET", "/fields?site=site", &Value::Null);
    fields["items"].as_array().unwrap().iter().find(|field| field["name"] == "id").unwrap()["values"].clone()
}

/// Only what the named clients do teaches, only what is let through, and it counts only once it was confirmed
/// as it was shown.
#[test]
fn work_that_an_administrator_shows() {
    let folder = tempfile::tempdir().unwrap();
    let (managed, _application) = start(folder.path());
    begin(&managed);
    let forged =
        format!("X-Forwarded-For: {TEACHER}\r\nForwarded: for={TEACHER}\r\nX-Real-IP: {TEACHER}\r\n");
    assert_eq!(get(&managed, STRANGER, "/item?id=eight", &forged), 200);
    assert_eq!(get(&managed, TEACHER, LETTERS, ""), 200);
    assert_eq!(get(&managed, TEACHER, SIGNS, ""), 403, "nothing counts yet, for nobody");
    assert_eq!(get(&managed, TEACHER, "/x?q=1'+union+select+password+from+users--+-", ""), 403);
    wait::becomes((json!(1), json!(2)), || {
        let shown = session(&managed);
        (shown["requests"].clone(), shown["refused"].clone())
    });
    let shown = session(&managed);
    assert_eq!(shown["fields"].as_array().unwrap().len(), 1, "{shown}");
    let field = &shown["fields"][0];
    assert_eq!((&field["name"], &field["types"]), (&json!("id"), &json!(["word"])));
    assert_eq!((&field["values"], &field["effect"]), (&json!(1), &json!("opens")));
    // The stranger's value is learned as always, and opens nothing; the session's is held apart.
    wait::becomes(json!(31), || values(&managed));
    assert_eq!(get(&managed, STRANGER, SIGNS, ""), 403);
    assert_eq!(order(&managed, "accept", json!({"site": "site"})).0, 409);
    assert_eq!(order(&managed, "accept", json!({"site": "site", "requests": 2})).0, 409);
    let (answer, done) =
        order(&managed, "accept", json!({"site": "site", "requests": 1, "reason": "new ids"}));
    assert_eq!((answer, &done["message"]), (200, &Value::Null));
    assert_eq!(session(&managed), Value::Null);
    // It counts for everybody at once, and has been written.
    assert_eq!(get(&managed, STRANGER, SIGNS, ""), 200);
    let (_, audit) = managed.ask("GET", "/audit", &Value::Null);
    let (action, detail) = (&audit["items"][0]["action"], &audit["items"][0]["detail"]);
    assert_eq!((action, detail), (&json!("field.session.accept"), &json!("new ids")));
    let (address, document) = (managed.address, managed.document.clone());
    managed.stop();
    let managed = Managed::start_again(folder.path(), address, document);
    assert_eq!(get(&managed, STRANGER, SIGNS, ""), 200);
    managed.stop();
}

/// What was dismissed has taught nothing, also nothing as the work of one client more; neither has what was
/// shown before a restart, which loses nothing else.
#[test]
fn work_that_nobody_confirms() {
    let folder = tempfile::tempdir().unwrap();
    let (managed, _application) = start(folder.path());
    let one = json!({"site": "site"});
    begin(&managed);
    assert_eq!(order(&managed, "start", json!({"site": "site", "network": STRANGER})).0, 409);
    get(&managed, TEACHER, LETTERS, "");
    wait::becomes(json!(1), || session(&managed)["requests"].clone());
    assert_eq!(order(&managed, "stop", one.clone()).1["session"]["is_running"], false);
    // After its end the client teaches as others do.
    get(&managed, TEACHER, "/item?id=1", "");
    wait::becomes(json!(31), || values(&managed));
    assert_eq!(session(&managed)["requests"], 1);
    assert_eq!(order(&managed, "dismiss", one.clone()).0, 200);
    assert_eq!((get(&managed, TEACHER, SIGNS, ""), order(&managed, "dismiss", one).0), (403, 404));
    begin(&managed);
    get(&managed, TEACHER, LETTERS, "");
    wait::becomes(json!(1), || session(&managed)["requests"].clone());
    let (address, document) = (managed.address, managed.document.clone());
    managed.stop();
    let managed = Managed::start_again(folder.path(), address, document);
    assert_eq!((session(&managed), values(&managed)), (Value::Null, json!(31)));
    assert_eq!(get(&managed, TEACHER, SIGNS, ""), 403);
    managed.stop();
}

/// The same from the command line, and what is counted of it.
#[test]
fn the_command() {
    let folder = tempfile::tempdir().unwrap();
    let (managed, _application) = start(folder.path());
    let token = folder.path().join("token");
    std::fs::write(&token, managed.token()).unwrap();
    let api = format!("http://{}", managed.console());
    let step = |step: &str, more: &[&str]| {
        let mut command = Command::new(program());
        command.args(["learn", "--session", step, "--site", "site", "--api", &api, "--token-file"]);
        let output = command.arg(&token).args(more).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    assert!(step("status", &[]).2.contains("site site has no session"));
    assert_eq!(step("start", &[]).0, Some(2), "whose?");
    assert_eq!(step("stop", &["--minutes", "5"]).0, Some(2));
    let (code, said, _) = step("start", &["--network", TEACHER, "--minutes", "5"]);
    assert!(code == Some(0) && said.starts_with("site site: taught by 127.0.0.2/32 (token:"), "{said}");
    get(&managed, TEACHER, LETTERS, "");
    get(&managed, TEACHER, SIGNS, "");
    wait::becomes((json!(1), json!(1)), || {
        let shown = session(&managed);
        (shown["requests"].clone(), shown["refused"].clone())
    });
    let (_, said, _) = step("stop", &[]);
    assert!(said.contains("has ended") && said.contains("1 requests learned, 1 refused"), "{said}");
    let (_, said, _) = step("accept", &["--reason", "new ids"]);
    assert!(said.contains("  opens    GET /item  query:id  1 values: word\naccepted\n"), "{said}");
    assert_eq!(get(&managed, STRANGER, SIGNS, ""), 200);
    let counted =
        |name: &str, result: &str| managed.metric(&format!("{name}{{site=\"site\",result=\"{result}\"}}"));
    assert_eq!(counted("portcullis_teaching_sessions_total", "started"), 1.0);
    assert_eq!(counted("portcullis_teaching_sessions_total", "accepted"), 1.0);
    assert_eq!(counted("portcullis_teaching_requests_total", "learned"), 1.0);
    assert_eq!(counted("portcullis_teaching_requests_total", "refused"), 1.0);
    assert_eq!(step("dismiss", &[]).0, Some(1));
    managed.stop();
}
