//! Learned fields in the real program: what teaches it, what is refused, and what is kept.

use std::path::Path;
use std::process::{Command, Output};

use portcullis_testkit::client::exchange;
use serde_json::{Value, json};

use crate::revisions::Managed;
use crate::served::{PATIENCE, Served, Server, application, program, says};

/// `4;7`: nothing but the field says that it does not belong there.
const SIGNS: &str = "4%3B7";

fn command(arguments: &[&str], data: &Path) -> Output {
    Command::new(program()).args(arguments).arg("--data").arg(data).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Thirty requests of benign users, as JSON lines.
fn recorded(folder: &Path) -> String {
    let lines = (0..30).map(|number| {
        let request = format!("GET /item?id={number} HTTP/1.1\r\nHost: a\r\n\r\n");
        format!("{}\n", serde_json::json!({ "request": request }))
    });
    let file = folder.join("requests.jsonl");
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    file.display().to_string()
}

fn start(application: &Server, unusual: &str, data: &Path) -> Served {
    let site = format!("mode = \"semantic\"\nfields = {{ unusual = \"{unusual}\" }}");
    Served::start_site(application, &site, &format!("[data]\nfolder = \"{}\"\n", data.display()))
}

fn taught(application: &Server, unusual: &str, data: &Path) -> Served {
    let said = text(&command(&["learn", &recorded(data), "--site", "site", "--values", "20"], data));
    assert_eq!(said, "30 requests\n1 fields, 1 of them closed, for site site\n");
    start(application, unusual, data)
}

#[test]
fn values_unlike_their_field() {
    let application = application(|_| says("hello"));
    let data = tempfile::tempdir().unwrap();
    let served = taught(&application, "block", data.path());
    assert_eq!(served.metric("portcullis_learned_fields{site=\"site\",state=\"closed\"}"), 1.0);
    for (target, status) in [
        ("/item?id=7", 200),
        (&format!("/item?id={SIGNS}"), 403),
        (&format!("/Item/?ID={SIGNS}"), 403),
        (&format!("/%69tem//?id%5B0%5D={SIGNS}"), 403),
        (&format!("/other?id={SIGNS}"), 200),
        (&format!("/item?q={SIGNS}"), 200),
        ("/item?id=seven", 200),
    ] {
        assert_eq!(served.get(target).status(), status, "{target}");
    }
    let form = served.post("/item", "application/x-www-form-urlencoded", format!("id={SIGNS}"));
    assert_eq!(form.status(), 403, "in another place, by another method");
    served.counts("portcullis_unusual_values_total{site=\"site\"}", 5.0);
    let events: Vec<Value> =
        served.events(5).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = &events[0];
    assert_eq!((&first["verdict"]["action"], &first["verdict"]["class"]), (&"deny".into(), &"field".into()));
    let finding = &first["findings"][0];
    assert_eq!(finding["kind"], "field.unusual-syntax");
    let evidence = finding["evidence"].as_str().unwrap();
    assert!(evidence.starts_with("whole numbers only: 30 values of 30 networks in 1 day"), "{evidence}");
    let letters = events.iter().find(|event| event["request"]["target"] == "/item?id=seven").unwrap();
    assert_eq!(letters["verdict"]["action"], "detect");
    assert_eq!(letters["findings"][0]["kind"], "field.unusual");
}

/// Where values are only detected, nothing is refused; where they are not looked for, nothing is said.
#[test]
fn detecting_and_learning_only() {
    let application = application(|_| says("hello"));
    for (unusual, events) in [("detect", 1), ("off", 0)] {
        let data = tempfile::tempdir().unwrap();
        let served = taught(&application, unusual, data.path());
        assert_eq!(served.get(&format!("/item?id={SIGNS}")).status(), 200, "{unusual}");
        assert_eq!(served.get("/item?id=1'+union+select+password+from+users--+-").status(), 403);
        let told = served.events(events + 1);
        assert!(events == 0 || told[0].contains("field.unusual-syntax"), "{told:?}");
        assert_eq!(told.len(), events + 1, "{told:?}");
    }
}

/// What was refused, or answered with an error, teaches nothing; what was answered well is kept.
#[test]
fn what_teaches() {
    let application = application(|request| match request.target.starts_with("/missing") {
        true => crate::served::Response { status: 404, ..says("") },
        false => says("hello"),
    });
    let data = tempfile::tempdir().unwrap();
    let served = start(&application, "block", data.path());
    for target in ["/a?x=1", "/a?x=2", "/missing?x=1", "/b?x=1'+union+select+password+from+users--+-"] {
        served.get(target);
    }
    served.stop();
    let listed = text(&command(&["learned", "--json"], data.path()));
    let fields: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(fields.len(), 1, "{listed}");
    assert_eq!((&fields[0]["path"], &fields[0]["values"]), (&"/a".into(), &2.into()));
    assert_eq!((&fields[0]["networks"], &fields[0]["closed"]), (&1.into(), &Value::Null));
    assert_eq!(fields[0]["types"][0]["type"], "whole");
    // Another instance takes it over.
    let other = tempfile::tempdir().unwrap();
    let export = other.path().join("export.json");
    let output = export.display().to_string();
    text(&command(&["learned", "export", "site", "--output", &output], data.path()));
    text(&command(&["learned", "import", "site", &output], other.path()));
    start(&application, "block", other.path()).stop();
    let again = text(&command(&["learned", "--json"], other.path()));
    assert_eq!(again, listed);
}

/// A file of what was learned that is damaged is set aside and reported, and the site is served.
#[test]
fn damaged_state() {
    let application = application(|_| says("hello"));
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("learned");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("site.json"), "{\"format\":\"portcullis-learned\",\"version\":1}").unwrap();
    std::fs::write(folder.join("site.1-1.import"), "not JSON").unwrap();
    let served = start(&application, "block", data.path());
    assert_eq!(served.get("/a?x=1").status(), 200);
    let said = std::fs::read_to_string(served.folder.path().join("output")).unwrap();
    assert!(said.contains("what was learned is damaged") && said.contains("learning begins anew"), "{said}");
    served.stop();
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    for name in ["site.json", "site.json.damaged", "site.1-1.import.damaged"] {
        assert!(names.iter().any(|there| there == name), "{name}: {names:?}");
    }
}

/// What an operator decides in the API holds at once, is on disk with the answer, and after a restart.
#[test]
fn an_operator_decides_about_a_field() {
    let application = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    text(&command(&["learn", &recorded(folder.path()), "--site", "site", "--values", "20"], &data));
    let site = "mode = \"semantic\"\nfields = { unusual = \"block\" }";
    let managed = Managed::start(folder.path(), application.address(), site, "");
    let status = |managed: &Managed| {
        let request = format!("GET /item?id={SIGNS} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        exchange(managed.address, None, request.as_bytes(), PATIENCE).unwrap().status
    };
    let kept = |name: &str| {
        let listed = text(&command(&["learned", "--json"], &data));
        listed
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(status(&managed), 403);
    let (_, sites) = managed.ask("GET", "/fields/sites", &Value::Null);
    assert_eq!((&sites["items"][0]["unusual"], &sites["items"][0]["closed"]), (&json!("block"), &json!(1)));
    let (_, listed) = managed.ask("GET", "/fields?site=site&state=closed", &Value::Null);
    assert_eq!((&listed["total"], &listed["items"][0]["closed_as"]), (&json!(1), &json!("whole")));
    assert_eq!(
        listed["items"][0]["types"],
        json!([{"type": "whole", "values": 30, "networks": 30, "days": 1}])
    );
    // As an event names it.
    let find = "/fields/find?site=site&method=HEAD&path=/Item//x.html&place=form&name=ID%5B0%5D";
    let (found, field) = managed.ask("GET", find, &Value::Null);
    assert_eq!((found, &field["path"], &field["name"]), (200, &json!("/item"), &json!("id")));
    let at = json!({"site": "site", "method": "GET", "path": "/item", "place": "query", "name": "id"});
    let order = |managed: &Managed, order: &str| managed.ask("POST", &format!("/fields/{order}"), &at);
    let (answer, changed) = order(&managed, "keep-open");
    assert_eq!(
        (answer, &changed["field"]["state"], &changed["message"]),
        (200, &json!("kept_open"), &Value::Null)
    );
    assert_eq!((status(&managed), kept("kept_open")), (200, vec![json!(true)]));
    let (address, document) = (managed.address, managed.document.clone());
    managed.stop();
    let managed = Managed::start_again(folder.path(), address, document);
    assert_eq!(status(&managed), 200);
    let (answer, changed) = order(&managed, "close");
    // What was unusual in it until now was sent while it was open, and is not of one plain type.
    assert_eq!((answer, changed["title"].is_string()), (409, true));
    assert_eq!(order(&managed, "forget").0, 200);
    assert_eq!((kept("name"), order(&managed, "forget").0), (Vec::<Value>::new(), 404));
    let (_, audit) = managed.ask("GET", "/audit", &Value::Null);
    let actions = audit["items"].as_array().unwrap().iter().filter_map(|entry| entry["action"].as_str());
    let actions: Vec<&str> = actions.filter(|action| action.starts_with("field.")).collect();
    assert_eq!(actions, ["field.forget", "field.keep-open"]);
    managed.stop();
}
