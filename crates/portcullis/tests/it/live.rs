//! What serves, as the admin API of the real program tells it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis_testkit::client::exchange;
use portcullis_testkit::process::Process;
use serde_json::Value;

use crate::authority::Authority;
use crate::served::*;

/// A running program with a document and a console.
struct Watched {
    _process: Process,
    address: SocketAddr,
    console: SocketAddr,
    viewer: String,
    admin: String,
    data: PathBuf,
}

impl Watched {
    fn start(folder: &Path, upstream: SocketAddr, site: &str, more: &str) -> Watched {
        let (address, admin, console) = (free_address(), free_address(), free_address());
        let (path, data) = (document(folder, address, admin, upstream, site, more), folder.join("data"));
        let run = ["run".into(), "--config".into(), path.into(), "--data".into(), data.clone().into()];
        let arguments = [&run[..], &["--console".into(), console.to_string().into()]].concat();
        let mut process = Process::start(&program(), &arguments, &folder.join("output")).unwrap();
        process.wait_for(address, PATIENCE).unwrap();
        process.wait_for(console, PATIENCE).unwrap();
        let token = |role: &str| {
            let create = ["token", "create", "--role", role, "--name", role, "--data"];
            let created = Command::new(program()).args(create).arg(&data).output().unwrap();
            String::from_utf8(created.stdout).unwrap().trim().to_owned()
        };
        let (viewer, admin) = (token("viewer"), token("admin"));
        Watched { _process: process, address, console, viewer, admin, data }
    }

    fn ask(&self, method: &str, path: &str, token: &str) -> (u16, String) {
        let request = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {token}\r\nContent-Length: 0\r\n\r\n"
        );
        let answer = exchange(self.console, None, request.as_bytes(), PATIENCE).unwrap();
        (answer.status, String::from_utf8_lossy(answer.after_head()).into_owned())
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(path, body, "")
    }

    /// A change of the document, whatever it is now.
    fn change(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(path, body, "If-Match: *\r\n")
    }

    fn send(&self, path: &str, body: &Value, more: &str) -> (u16, Value) {
        let (token, body) = (&self.admin, body.to_string());
        let request = format!(
            "POST /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\
             Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = exchange(self.console, None, request.as_bytes(), PATIENCE).unwrap();
        (answer.status, serde_json::from_slice(answer.after_head()).unwrap())
    }

    /// The items of a list.
    fn list(&self, path: &str) -> Value {
        let (status, text) = self.ask("GET", path, &self.viewer);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str::<Value>(&text).unwrap()["items"].take()
    }

    fn request(&self, path: &str) -> u16 {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        exchange(self.address, None, request.as_bytes(), PATIENCE).unwrap().status
    }
}

/// Settings with one of most things, and secrets where there can be some.
const SITE: &str = r#"mode = "semantic"
level = "strict"
access = { deny = { networks = ["198.51.100.0/24", "2001:db8::1"], files = ["deny.txt"] } }
rate_limits = [{ name = "all", rate = 1, per = "1h", burst = 1 }]
[[sites.routes]]
path = "/internal"
headers = { x-token = "hunter2-header" }
respond = { status = 204 }"#;

#[test]
fn the_parts_that_serve_are_told_without_secrets() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("deny.txt"), "203.0.113.1\n203.0.113.9\n").unwrap();
    let more = "[agents.judge]\naddress = \"unix:/nowhere/judge.sock\"\n";
    let watched = Watched::start(folder.path(), application.address(), SITE, more);
    let (_, site) = watched.ask("GET", "/sites/site", &watched.viewer);
    let site: Value = serde_json::from_str(&site).unwrap();
    assert_eq!((&site["generation"], &site["site"]["hosts"][0]), (&1.into(), &"*".into()), "{site}");
    let routes = &site["site"]["routes"];
    assert_eq!(routes[0]["headers"][0], "x-token", "{site}");
    assert_eq!(routes[0]["target"]["kind"], "respond", "{site}");
    assert_eq!(routes[1]["target"]["upstream"], "app", "{site}");
    assert_eq!(routes[1]["inspection"]["mode"], "semantic", "{site}");
    assert_eq!(routes[1]["inspection"]["level"], "strict", "{site}");
    assert!(!watched.ask("GET", "/sites", &watched.viewer).1.contains("hunter2"));

    // The first request has the only token of the bucket.
    assert_eq!((watched.request("/"), watched.request("/"), watched.request("/")), (200, 429, 429));
    let limits = watched.list("/limits");
    assert_eq!((&limits[0]["name"], &limits[0]["limited"]), (&"all".into(), &2.into()), "{limits}");

    let lists = watched.list("/lists");
    assert_eq!(lists[0]["deny"]["networks"], serde_json::json!(["198.51.100.0/24", "2001:db8::1"]));
    assert_eq!((&lists[0]["deny"]["files"][0]["ranges"], &lists[0]["status"]), (&2.into(), &403.into()));
    let agents = watched.list("/agents");
    assert_eq!((&agents[0]["name"], &agents[0]["breaker"]), (&"judge".into(), &"closed".into()), "{agents}");
    assert_eq!(watched.list("/certificates"), serde_json::json!([]));
    for path in ["/sites", "/sites/site", "/upstreams", "/limits", "/lists", "/certificates", "/agents"] {
        assert_eq!(watched.ask("GET", path, "wrong").0, 401, "{path}");
    }

    // A reload shows at once.
    let path = folder.path().join("portcullis.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace("\"strict\"", "\"balanced\"").replace("name = \"site\"", "name = \"new\""),
    )
    .unwrap();
    let (status, answer) = watched.ask("POST", "/reload", &watched.admin);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(watched.ask("GET", "/sites/site", &watched.viewer).0, 404);
    let (_, new) = watched.ask("GET", "/sites/new", &watched.viewer);
    assert_eq!(serde_json::from_str::<Value>(&new).unwrap()["generation"], 2, "{new}");
}

#[test]
fn an_endpoint_that_fails_shows_why() {
    let folder = tempfile::tempdir().unwrap();
    let more = "breaker = { failures = 2, open = \"1h\" }\n";
    let watched = Watched::start(folder.path(), free_address(), "mode = \"off\"", more);
    let before = watched.list("/upstreams");
    assert_eq!(before[0]["endpoints"][0]["state"], "healthy", "{before}");
    assert_eq!(before[0]["endpoints"][0]["last_error"], Value::Null, "{before}");
    assert_eq!((watched.request("/"), watched.request("/")), (502, 502));
    let after = watched.list("/upstreams");
    let endpoint = &after[0]["endpoints"][0];
    assert_eq!((&endpoint["state"], &endpoint["breaker"]), (&"open".into(), &"open".into()), "{after}");
    assert_eq!(endpoint["last_error"]["message"], "connect", "{after}");
    assert_eq!((&after[0]["healthy"], &endpoint["in_flight"]), (&0.into(), &0.into()), "{after}");
}

/// A certificate is shown as it is in use, and its key is not.
#[test]
fn certificates_say_until_when_they_are_valid() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.write(folder.path(), "shop.example");
    let more = format!(
        "[[listeners]]\nname = \"tls\"\naddress = \"{}\"\n\
         tls = {{ certificates = [{{ cert = \"shop.example.pem\", key = \"shop.example.key\" }}] }}\n",
        free_address()
    );
    let watched = Watched::start(folder.path(), free_address(), "mode = \"off\"", &more);
    let certificates = watched.list("/certificates");
    let certificate = &certificates[0];
    assert_eq!((&certificate["listener"], &certificate["source"]), (&"tls".into(), &"file".into()));
    assert_eq!(certificate["names"], serde_json::json!(["shop.example"]), "{certificates}");
    assert!(certificate["issued"] == true && certificate["issuer"].is_string(), "{certificates}");
    assert!(certificate["not_after"].as_i64() > certificate["not_before"].as_i64(), "{certificates}");
    assert!(certificate["file"].as_str().unwrap().ends_with("shop.example.pem"), "{certificates}");
    assert!(!certificates.to_string().contains(".key"), "{certificates}");
}

/// Two routes with rules of their own; one is dead, one is taken out, one is a chain.
const RULES: &str = r#"mode = "both"
rules = { include = ["own.conf"], directives = "SecRuleRemoveById 3" }
[[sites.routes]]
path = "/static"
mode = "off""#;

const OWN: &str = "# The first line.
SecRule ARGS:colour \"@streq red\" \\
    \"id:1,phase:2,deny,status:418,msg:'It is %{MATCHED_VAR}',tag:'colours',chain\"
  SecRule REQUEST_METHOD \"@streq GET\" \"t:none\"
SecRule ARGS \"@rx ^never$\" \"id:2,phase:1,pass,msg:'Never',tag:'paranoia-level/2'\"
SecAction \"id:3,phase:1,pass\"
";

#[test]
fn messages_are_explained_and_rules_listed_by_what_serves() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("own.conf"), OWN).unwrap();
    let watched = Watched::start(folder.path(), application.address(), RULES, "");
    assert_eq!(watched.request("/?colour=red"), 418);

    // Counted behind the answer.
    until(|| watched.list("/rules?route=/&search=colours")[0]["matches"] == 1);
    let rules = watched.list("/rules?route=/");
    let own: Vec<&Value> =
        rules.as_array().unwrap().iter().filter(|rule| rule["rule_id"].as_u64().unwrap() <= 3).collect();
    assert_eq!(own.len(), 3, "{rules}");
    let of = |rule: &Value| {
        (rule["state"].clone(), rule["matches"].clone(), rule["line"].clone(), rule["paranoia"].clone())
    };
    assert_eq!(of(own[0]), ("active".into(), 1.into(), 2.into(), Value::Null), "{rules}");
    assert_eq!(of(own[1]), ("active".into(), 0.into(), 5.into(), 2.into()), "{rules}");
    assert_eq!((&own[2]["state"], &own[2]["text"]), (&"excluded".into(), &Value::Null), "{rules}");
    assert_eq!(own[0]["message"], "It is %{MATCHED_VAR}");
    let (_, one) = watched.ask("GET", "/rules/1?route=/", &watched.viewer);
    let text = serde_json::from_str::<Value>(&one).unwrap()["text"].take();
    let lines: Vec<&str> = OWN.lines().collect();
    assert_eq!(text, lines[1..4].join("\n"), "{one}");
    // The file changes, and the program serves by what it read.
    std::fs::write(folder.path().join("own.conf"), OWN.replace("id:1", "id:11")).unwrap();
    let (_, one) = watched.ask("GET", "/rules/1?route=/", &watched.viewer);
    assert_eq!(serde_json::from_str::<Value>(&one).unwrap()["text"], Value::Null, "{one}");
    assert_eq!(watched.ask("GET", "/rules?route=/static", &watched.viewer).0, 404);

    // The route follows from the request.
    let ask = |body: Value| watched.post("/explain", &body);
    let (status, told) = ask(serde_json::json!({ "curl": "curl 'http://a/?colour=red'", "rule": 2 }));
    assert_eq!((status, &told["site"], &told["route"]), (200, &"site".into(), &"/".into()), "{told}");
    let explanation = &told["explanation"];
    assert_eq!(
        (&explanation["verdict"]["status"], &explanation["verdict"]["rule_id"]),
        (&418.into(), &1.into())
    );
    assert_eq!(explanation["matches"][0]["message"], "It is GET", "{explanation}");
    assert_eq!(explanation["watched"]["tests"][0]["value"], "red", "{explanation}");
    let attack = "GET /?q=1%27%20union%20select%20password%20from%20users--%20 HTTP/1.1\nHost: a\n";
    let (_, told) = ask(serde_json::json!({ "request": attack }));
    assert_eq!(told["explanation"]["semantic"]["values"][0]["class"], "sqli", "{told}");
    assert_eq!(told["explanation"]["verdict"]["action"], "deny", "{told}");
    let (status, told) = ask(serde_json::json!({ "request": "GET /static/a HTTP/1.1\nHost: a\n" }));
    assert_eq!(status, 409, "{told}");
    assert_eq!(ask(serde_json::json!({ "request": "GET / HTTP/1.1\n", "site": "other" })).0, 404);
    assert_eq!(ask(serde_json::json!({ "request": "GET / HTTP/1.1\n", "rule": 99 })).0, 404);
    let page = "HTTP/1.1 200 OK\nContent-Type: text/html\n\n<p>You have an error in your SQL syntax; check the manual \
                that corresponds to your MySQL server version</p>";
    let (_, told) = ask(serde_json::json!({ "curl": "curl http://a/", "response": page }));
    assert!(told["explanation"]["response_body_bytes_inspected"].as_u64().unwrap() > 50, "{told}");

    // By the event of the request, which is kept with it.
    let stored =
        || Command::new(program()).args(["events", "--json", "--data"]).arg(&watched.data).output().unwrap();
    until(|| !stored().stdout.is_empty());
    let event: Value = serde_json::from_slice(&stored().stdout).unwrap();
    let (status, told) = ask(serde_json::json!({ "request_id": event["request_id"] }));
    assert_eq!((status, &told["explanation"]["verdict"]["rule_id"]), (200, &1.into()), "{told}");
    // Explaining counts and records nothing.
    assert_eq!(watched.list("/rules?route=/&search=colours")[0]["matches"], 1);
    assert_eq!(serde_json::from_slice::<Value>(&stored().stdout).unwrap()["request_id"], event["request_id"]);
}

/// A text is checked with the rules that it names, and nothing changes.
#[test]
fn a_document_is_checked_with_its_rules() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("own.conf"), OWN).unwrap();
    let watched = Watched::start(folder.path(), application.address(), RULES, "");
    let text = std::fs::read_to_string(folder.path().join("portcullis.toml")).unwrap();
    let check = |text: String| watched.post("/check", &serde_json::json!({ "text": text })).1;
    let told = check(text.clone());
    assert_eq!(
        (&told["valid"], &told["rules"][0]["errors"]),
        (&true.into(), &serde_json::json!([])),
        "{told}"
    );
    assert!(told["rules"][0]["rules"].as_u64().unwrap() >= 2, "{told}");
    let told = check(text.replace("RemoveById 3", "RemoveByIt 3"));
    assert_eq!((&told["valid"], &told["mistakes"]), (&false.into(), &serde_json::json!([])), "{told}");
    assert!(told["rules"][0]["errors"][0].as_str().unwrap().contains("SecRuleRemoveByIt"), "{told}");
    let told = check(text.replace("own.conf", "no.conf"));
    assert!(told["rules"][0]["errors"][0].as_str().unwrap().contains("no.conf"), "{told}");
    let told = check(text.replace("upstream = \"app\"", "upstream = \"ap\""));
    assert_eq!(told["mistakes"][0]["line"], 9, "{told}");
    assert_eq!(std::fs::read_to_string(folder.path().join("portcullis.toml")).unwrap(), text);
    assert_eq!(watched.request("/?colour=red"), 418);
}

/// A kind of finding is excluded in a field, for one path template: the rest of its class is not.
#[test]
fn a_kind_of_finding_is_excluded_alone() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let watched = Watched::start(folder.path(), application.address(), "mode = \"semantic\"", "");
    let union = "x%27%20union%20select%20password%20from%20users--%20";
    let tautology = "1%27%20or%20%271%27=%271";
    assert_eq!(watched.request(&format!("/posts/7?q={union}")), 403);
    let told = watched
        .post("/explain", &serde_json::json!({ "curl": format!("curl 'http://a/posts/7?q={union}'") }))
        .1;
    let values = told["explanation"]["semantic"]["values"].as_array().unwrap().clone();
    let kinds: std::collections::BTreeSet<&str> = values
        .iter()
        .flat_map(|value| value["findings"].as_array().unwrap())
        .map(|f| f["kind"].as_str().unwrap())
        .collect();
    assert!(!kinds.is_empty(), "{told}");
    for kind in &kinds {
        let order =
            serde_json::json!({ "site": "site", "kind": kind, "location": "query:q", "path": "/posts/{id}" });
        let (status, answer) = watched.change("/exclusions", &order);
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(watched.request(&format!("/posts/7?q={union}")), 200);
    assert_eq!(watched.request(&format!("/posts/7/edit?q={union}")), 403);
    assert_eq!(watched.request(&format!("/posts/7?p={union}")), 403);
    assert_eq!(watched.request(&format!("/posts/7?q={tautology}")), 403);
    assert_eq!(watched.request(&format!("/posts/7?q={union}&q={tautology}")), 403);
    // A kind that no detector has is refused.
    let order = serde_json::json!({ "site": "site", "kind": "sqli.joke", "location": "query:q" });
    let (status, answer) = watched.change("/exclusions", &order);
    assert_eq!(status, 422, "{answer}");
    assert!(answer.to_string().contains("no kind of finding `sqli.joke`"), "{answer}");
}

/// A sink that was added and does not run yet is tried; what came of it is said and audited.
#[test]
fn a_test_event_goes_through_a_sink_of_the_stored_document() {
    let taken = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let keep = std::sync::Arc::clone(&taken);
    let receiver = application(move |request| {
        keep.lock().unwrap().push(String::from_utf8_lossy(&request.body).into_owned());
        let status = if request.target == "/hook/hunter2" { 200 } else { 403 };
        Response { status, ..says("") }
    });
    let folder = tempfile::tempdir().unwrap();
    let watched = Watched::start(folder.path(), receiver.address(), "mode = \"off\"", "");
    let test = |sink: &str| {
        let (status, text) = watched.ask("POST", &format!("/sinks/{sink}/test"), &watched.admin);
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    assert_eq!(test("pager").0, 404, "there is none yet");
    let document = folder.path().join("portcullis.toml");
    let text = std::fs::read_to_string(&document).unwrap();
    let sink = |name: &str, path: &str| {
        let url = format!("http://{}{path}", receiver.address());
        format!("{{ kind = \"webhook\", name = \"{name}\", url = \"{url}\", filter = \"verdict = drop\" }}")
    };
    let sinks =
        format!("\"events.jsonl\", sinks = [{}, {}] }}", sink("pager", "/hook/hunter2"), sink("wrong", "/"));
    std::fs::write(&document, text.replace("\"events.jsonl\" }", &sinks)).unwrap();
    let (status, answer) = test("pager");
    assert_eq!(
        (status, &answer["outcome"], &answer["error"]),
        (200, &"confirmed".into(), &Value::Null),
        "{answer}"
    );
    assert!(answer["milliseconds"].is_u64(), "{answer}");
    let body = taken.lock().unwrap().pop().unwrap();
    assert!(
        body.contains("test event of the sink pager, sent by token:") && body.contains("no request"),
        "{body}"
    );
    let (status, answer) = test("wrong");
    assert_eq!((status, &answer["outcome"]), (200, &"failed".into()), "{answer}");
    assert!(answer["error"].as_str().unwrap().contains("403"), "{answer}");
    assert_eq!(watched.ask("POST", "/sinks/pager/test", &watched.viewer).0, 403);
    let audit = watched.ask("GET", "/audit", &watched.admin).1;
    assert!(
        audit.contains("sink.test") && audit.contains("failed after") && !audit.contains("hunter2"),
        "{audit}"
    );
    assert!(taken.lock().unwrap().len() == 1, "each test is one event");
}
