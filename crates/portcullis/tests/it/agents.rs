//! Inspection agents: what they are shown, what they can decide, and what becomes of it.

use std::sync::{Arc, Mutex};

use crate::agent::{Agent, addresses, table};
use crate::served::*;
use portcullis_testkit::agent::Address;
use serde_json::Value;

/// The requests to the application.
struct Asked {
    headers: Vec<String>,
    body: Vec<u8>,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// An application that keeps what it was asked.
fn recording() -> (Server, Arc<Mutex<Vec<Asked>>>) {
    let seen: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let server = application(move |request| {
        let headers = request.header_lines().map(|line| String::from_utf8_lossy(line).into_owned());
        let asked = Asked { headers: headers.collect(), body: request.body.clone() };
        kept.lock().unwrap().push(asked);
        says("hello")
    });
    (server, seen)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn ask(served: &Served, commands: &str) -> Answer {
    served.raw(format!("GET /a?b HTTP/1.1\r\nHost: a\r\nX-Agent: {commands}\r\nConnection: close\r\n\r\n"))
}

fn event(served: &Served, number: usize) -> Value {
    serde_json::from_str(&served.events(number + 1)[number]).unwrap()
}

#[test]
fn what_agents_can_decide() {
    let folder = folder();
    addresses(folder.path()).iter().for_each(decisions);
}

fn decisions(address: &Address) {
    let _agent = Agent::echo(address);
    let (application, seen) = recording();
    let directives = "SecRuleEngine On
        SecAction \"id:3,phase:1,pass,nolog,setvar:tx.inbound_anomaly_score_pl1=2\"
        SecRule TX:inbound_anomaly_score_pl1 \"@ge 9\" \"id:4,phase:2,deny,status:410\"
        SecRule TX:agent_score \"@ge 5\" \"id:1,phase:2,deny,status:409,msg:'points'\"";
    let site = format!("{}\nagents = [\"echo\"]", rules(directives));
    let served = Served::start_site(&application, &site, &table("echo", address, "timeout = \"10s\""));

    assert_eq!(ask(&served, "").status(), 200);
    let blocked = ask(&served, "block 451; reason not here; tag law");
    assert_eq!(blocked.status(), 451);
    let told = event(&served, 0);
    assert_eq!(told["verdict"]["control"], serde_json::json!({ "by": "agent", "name": "echo" }));
    assert_eq!(
        (&told["verdict"]["action"], &told["verdict"]["reason"]),
        (&"deny".into(), &"not here".into())
    );
    let word =
        serde_json::json!({ "name": "echo", "outcome": "block", "tags": ["law"], "reason": "not here" });
    assert_eq!(told["agents"], Value::Array(vec![word]));

    let redirected = ask(&served, "redirect https://elsewhere.example/x");
    assert_eq!(redirected.status(), 302);
    assert_eq!(redirected.header("location").as_deref(), Some("https://elsewhere.example/x"));
    assert_eq!(event(&served, 1)["verdict"]["action"], "redirect");

    // Points of agents are there for rules.
    assert_eq!(ask(&served, "score 4; tag few").status(), 200);
    let told = event(&served, 2);
    assert_eq!((&told["verdict"]["action"], &told["agents"][0]["score"]), (&"detect".into(), &4.into()));
    assert_eq!(told["scores"]["by_class"]["agents"], 4);
    assert_eq!(ask(&served, "score 5").status(), 409);
    assert_eq!(event(&served, 3)["verdict"]["rule_id"], 1);
    assert_eq!(ask(&served, "score 7").status(), 410, "the anomaly score of the CRS has them, too");

    let changed = ask(&served, "set X-Who bot; remove X-Agent; add X-More 1; set-response X-Seen yes");
    assert_eq!((changed.status(), changed.header("x-seen").as_deref()), (200, Some("yes")));
    let request = seen.lock().unwrap().pop().unwrap();
    assert_eq!(request.header("x-who"), Some("bot"));
    assert_eq!((request.header("x-agent"), request.header("x-more")), (None, Some("1")));
    let decisions = |decision: &str| {
        served.metric(&format!("portcullis_agent_decisions_total{{agent=\"echo\",decision=\"{decision}\"}}"))
    };
    until(|| (decisions("allow"), decisions("block"), decisions("redirect")) == (5.0, 1.0, 1.0));
    served.counts("portcullis_agent_duration_seconds_count{agent=\"echo\"}", 7.0);
    served.counts("portcullis_agent_connections{agent=\"echo\"}", 1.0);
    served.stop();
}

#[test]
fn bodies_are_shown_in_pieces_as_far_as_there_is_credit() {
    let folder = folder();
    addresses(folder.path()).iter().for_each(bodies);
}

fn bodies(address: &Address) {
    let _agent = Agent::echo(address);
    let (application, seen) = recording();
    let more = format!(
        "{}\n[[sites]]\nname = \"off\"\nhosts = [\"off\"]\nupstream = \"app\"\nmode = \"off\"\nagents = [\"echo\"]",
        table("echo", address, "request_body = true\nbody_limit = \"200KiB\"\ntimeout = \"10s\"")
    );
    let served = Served::start_site(&application, "agents = [\"echo\"]", &more);
    // Many windows of the agent, which has room for 8 KiB at a time.
    let mut body = vec![b'a'; 150_000];
    let post = |host: &str, body: &[u8]| {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        served.raw([head.as_bytes(), body].concat())
    };
    for host in ["a", "off"] {
        assert_eq!(post(host, &body).status(), 200);
        assert_eq!(seen.lock().unwrap().pop().unwrap().body, body, "as it came");
    }
    body.extend_from_slice(b"block-body");
    for host in ["a", "off"] {
        assert_eq!(post(host, &body).status(), 403);
    }
    assert!(seen.lock().unwrap().is_empty());
    assert_eq!(event(&served, 0)["agents"][0]["reason"], "found in 150010 bytes");
    // Bytes beyond the limit are not shown.
    let late = [&vec![b'a'; 210_000][..], b"block-body"].concat();
    assert_eq!(post("a", &late).status(), 200);
    served.stop();
}

#[test]
fn responses_are_shown_if_the_agent_asks_for_them() {
    let folder = folder();
    addresses(folder.path()).iter().for_each(responses);
}

fn responses(address: &Address) {
    let _agent = Agent::echo(address);
    let application = application(|request| {
        let mut response = says(if request.target.contains("body") { "here is block-body" } else { "hello" });
        if request.target.contains("head") {
            response.headers.push(("X-Agent".to_owned(), "block 502; reason secret".to_owned()));
        }
        if request.target.contains("changed") {
            response.headers.push(("X-Agent".to_owned(), "set-response X-Agent gone".to_owned()));
        }
        response
    });
    let more = table("echo", address, "response = \"body\"\ntimeout = \"10s\"");
    let served = Served::start_site(&application, "agents = [\"echo\"]\nmode = \"off\"", &more);
    assert_eq!(served.get("/").body(), "hello");
    assert_eq!(served.get("/head").status(), 502);
    assert_eq!(served.get("/body").status(), 403);
    assert_eq!(served.get("/changed").header("x-agent").as_deref(), Some("gone"));
    let told = event(&served, 0);
    assert_eq!((&told["verdict"]["reason"], &told["response"]["status"]), (&"secret".into(), &502.into()));
    served.stop();
}

#[test]
fn without_a_decision_policy_says_what_happens() {
    let folder = folder();
    addresses(folder.path()).iter().for_each(without_a_decision);
}

fn without_a_decision(address: &Address) {
    let _agent = Agent::echo(address);
    let (application, seen) = recording();
    let site = "mode = \"off\"\nagents = [\"echo\"]\n\
                routes = [{ path = \"/open\", agents = [{ name = \"echo\", failure = \"open\" }] }, \
                { path = \"/none\", agents = [] }, { path = \"/detect\", mode = \"semantic\", engine = \"detection_only\" }]";
    let more = table("echo", address, "timeout = \"1s\"\nbreaker = { failures = 100 }");
    let served = Served::start_site(&application, site, &more);
    let get = |path: &str, commands: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Agent: {commands}\r\n");
        served.raw(format!("{head}Connection: close\r\n\r\n")).status()
    };
    for (commands, reason) in [
        ("nonsense", "invalid"),
        ("garbage", "invalid"),
        ("close", "closed"),
        ("set Host other", "invalid"),
        ("silent", "timeout"),
    ] {
        let (closed, open) = (get("/", commands), get("/open", commands));
        assert_eq!((closed, open, get("/none", commands)), (503, 200, 200), "{commands}");
        assert_eq!(get("/detect", commands), 200, "what only detects refuses nothing");
        assert_eq!(seen.lock().unwrap().drain(..).count(), 3, "{commands}");
        if reason == "timeout" {
            served.counts("portcullis_agent_timeouts_total{agent=\"echo\"}", 3.0);
        }
    }
    let failures = |reason: &str| {
        served.metric(&format!("portcullis_agent_failures_total{{agent=\"echo\",reason=\"{reason}\"}}"))
    };
    until(|| (failures("invalid"), failures("closed")) == (9.0, 3.0));
    let without = |what: &str, reason: &str| {
        served.metric(&format!("portcullis_agent_{what}_total{{agent=\"echo\",reason=\"{reason}\"}}"))
    };
    until(|| (without("bypasses", "failed"), without("bypasses", "timeout")) == (8.0, 2.0));
    until(|| (without("refusals", "failed"), without("refusals", "timeout")) == (4.0, 1.0));
    assert_eq!(get("/detect", "block"), 200);
    let told = event(&served, 15);
    assert_eq!(
        (&told["verdict"]["action"], &told["verdict"]["control"]["name"]),
        (&"detect".into(), &"echo".into())
    );
    let told = event(&served, 0);
    assert_eq!(told["exceptions"][0], serde_json::json!({ "cause": "agent_failed", "policy": "closed" }));
    assert_eq!(told["agents"][0]["outcome"], "failed");
    served.stop();
}

#[test]
fn more_than_an_agent_takes_wait_and_more_than_may_wait_are_not_asked() {
    let folder = folder();
    addresses(folder.path()).iter().for_each(places);
}

fn places(address: &Address) {
    let _agent = Agent::echo(address);
    let (application, _) = recording();
    let more = table("echo", address, "concurrency = 1\nqueue = 1\ntimeout = \"5s\"");
    let served = Served::start_site(&application, "mode = \"off\"\nagents = [\"echo\"]", &more);
    let gauge = |name: &str| served.metric(&format!("portcullis_agent_requests_{name}{{agent=\"echo\"}}"));
    std::thread::scope(|scope| {
        let silent = scope.spawn(|| ask(&served, "silent").status());
        until(|| gauge("active") == 1.0);
        let waiting = scope.spawn(|| ask(&served, "").status());
        until(|| gauge("queued") == 1.0);
        assert_eq!(ask(&served, "").status(), 503, "the queue is full");
        assert_eq!(silent.join().unwrap(), 503);
        // It waited for the same time as the other, or came to its turn just before.
        assert!([200, 503].contains(&waiting.join().unwrap()));
    });
    let refused = "portcullis_agent_refusals_total{agent=\"echo\",reason=\"queue\"}";
    until(|| served.metric(refused) >= 1.0);
    until(|| gauge("active") == 0.0 && gauge("queued") == 0.0);
    assert_eq!(ask(&served, "").status(), 200);
    served.stop();
}

#[test]
fn the_example_in_python() {
    let folder = folder();
    let socket = folder.path().join("example.sock");
    let _agent = Agent::python(&socket);
    let (application, seen) = recording();
    let more = table("example", &Address::Unix(socket), "request_body = true\ntimeout = \"10s\"");
    let served = Served::start_site(&application, "agents = [\"example\"]", &more);
    assert_eq!(served.get("/").status(), 200);
    assert_eq!(seen.lock().unwrap().pop().unwrap().header("x-client-kind"), Some("person"));
    let text = "my number is 4111 1111 1111 1111, and so on ".repeat(4000);
    assert_eq!(served.post("/", "text/plain", &text).status(), 403);
    assert_eq!(event(&served, 0)["agents"][0]["tags"], serde_json::json!(["card-number"]));
    let bot = "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: a-bot\r\nConnection: close\r\n\r\n";
    assert_eq!(served.raw(bot).status(), 200);
    assert_eq!(seen.lock().unwrap().pop().unwrap().header("x-client-kind"), Some("bot"));
    served.stop();
}
