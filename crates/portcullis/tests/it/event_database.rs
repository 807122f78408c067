//! Two nodes write to one ClickHouse, and the console and command line of either read the events of both.

use std::net::SocketAddr;
use std::process::{Command, Output};

use portcullis_testkit::client::exchange;
use serde_json::Value;

use crate::clickhouse::{self, ClickHouse};
use crate::served::*;

/// A node with a console.
struct Node {
    served: Served,
    console: SocketAddr,
    token: String,
}

impl Node {
    fn start(application: &Server, database: &ClickHouse) -> Node {
        let (console, port) = (free_address(), database.port);
        let password = database.password_file();
        let events = format!(
            "events = {{ file = \"events.jsonl\", sinks = [{{ kind = \"clickhouse\", url = \"http://127.0.0.1:{port}\", \
             user = \"waf\", password = \"hunter2\", create = true, batch_time = \"50ms\" }}], read_from = {{ \
             kind = \"clickhouse\", url = \"http://127.0.0.1:{port}\", user = \"console\", password_file = \"{}\" }} }}",
            password.display()
        );
        let rules = rules("SecRuleEngine On\nSecRule ARGS \"@contains evil\" \"id:7,phase:2,deny,log\"");
        let data = "[data]\nfolder = \"data\"\n";
        let served = Served::start_edited(application.address(), &rules, data, |text| {
            text.replace("admin = { ", &format!("admin = {{ console = \"{console}\", "))
                .replace("events = { file = \"events.jsonl\" }", &events)
        });
        let data = served.folder.path().join("data");
        let mut create = Command::new(program());
        create.args(["token", "create", "--role", "analyst", "--name", "test", "--data"]).arg(&data);
        let output = create.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let token = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        Node { served, console, token }
    }

    fn ask(&self, path: &str) -> (u16, Value) {
        let request = format!(
            "GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
            self.token
        );
        let answer = exchange(self.console, None, request.as_bytes(), PATIENCE).unwrap();
        let body = answer.after_head();
        let body = serde_json::from_slice(body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
        (answer.status, body)
    }

    fn events(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(program());
        command.args(["events", "--config"]).arg(self.served.folder.path().join("portcullis.toml"));
        command.args(arguments).output().unwrap()
    }

    fn targets(&self, filter: &str) -> Vec<String> {
        let output = self.events(&[filter, "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let target = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap();
            event["request"]["target"].as_str().unwrap().to_owned()
        };
        text.lines().map(target).collect()
    }
}

#[test]
fn a_console_shows_the_events_of_all_nodes() {
    let Some(mut database) = clickhouse::start() else { return };
    let application = application(|_| says("hello"));
    let nodes = [(); 2].map(|()| Node::start(&application, &database));
    let [one, two] = &nodes;
    for (node, target) in [(one, "/one?x=evil"), (two, "/two?x=evil%27%5C"), (one, "/three?x=evil")] {
        assert_eq!(node.served.get(target).status(), 403);
        until(|| one.targets("").iter().any(|found| found == target));
    }
    for node in &nodes {
        assert_eq!(
            node.targets("rule = 7 and time >= -1h"),
            ["/one?x=evil", "/two?x=evil%27%5C", "/three?x=evil"]
        );
        assert_eq!(
            node.targets("text ~ \"evil%27%5C\" and not path ^= \"/one' OR 1=1\""),
            ["/two?x=evil%27%5C"]
        );
        // By pages, the newest first.
        let (status, first) = node.ask("/events?limit=2");
        assert_eq!((status, first["items"].as_array().unwrap().len()), (200, 2), "{first}");
        assert_eq!(first["items"][0]["event"]["request"]["target"], "/three?x=evil");
        assert!(first["items"][0]["node"].as_str().is_some_and(|name| !name.is_empty()));
        let (_, second) = node.ask(&format!("/events?limit=2&before={}", first["next"].as_str().unwrap()));
        assert_eq!(second["items"].as_array().unwrap().len(), 1);
        assert_eq!(second["items"][0]["event"]["request"]["target"], "/one?x=evil");
        let (_, facets) = node.ask("/events/facets?fields=rule,path");
        assert_eq!(
            (&facets["total"], &facets["fields"]["rule"]["values"][0]["count"]),
            (&3.into(), &3.into())
        );
        // A request is at the node that recorded it.
        let id = |place: usize| first["items"][place]["event"]["request_id"].as_str().unwrap().to_owned();
        let has = || [0, 1].map(|place| node.ask(&format!("/events/{}", id(place))).1["has_request"].clone());
        let is_one = std::ptr::eq(node, one);
        // Its own store is written a moment later.
        until(|| has() == [is_one, !is_one]);
        assert!(String::from_utf8_lossy(&node.events(&[&id(0)]).stdout).contains("rule      7"));
    }
    let follow = one.events(&["--follow"]);
    assert_eq!(follow.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&follow.stderr).contains("`--data DIR`"));
    let answered = one.served.metric("portcullis_event_database_queries_total{result=\"answered\"}");
    assert!(answered >= 6.0, "{answered}");
    // Without the database: told, counted, and requests are served.
    database.end();
    let (status, problem) = one.ask("/events");
    assert_eq!((status, &problem["type"]), (502, &"urn:portcullis:problem:events-unavailable".into()));
    assert_eq!(one.ask("/events/facets").0, 502);
    assert_eq!(one.ask("/statistics").0, 200);
    assert!(one.served.metric("portcullis_event_database_queries_total{result=\"unavailable\"}") >= 2.0);
    let output = one.events(&["verdict = deny"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the database of events cannot be asked"));
    assert_eq!(one.served.get("/?x=good").status(), 200);
}
