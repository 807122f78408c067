//! What serves, as the admin API of the real program tells it.

use std::net::SocketAddr;
use std::path::Path;
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
        Watched { _process: process, address, console, viewer, admin }
    }

    fn ask(&self, method: &str, path: &str, token: &str) -> (u16, String) {
        let request = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {token}\r\nContent-Length: 0\r\n\r\n"
        );
        let answer = exchange(self.console, None, request.as_bytes(), PATIENCE).unwrap();
        (answer.status, String::from_utf8_lossy(answer.after_head()).into_owned())
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
