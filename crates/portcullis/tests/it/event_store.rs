//! The event store of the real program: searched while it runs and after it is gone, counted whatever comes.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

use portcullis_event_store::{Dimension, Rollup, Store};
use portcullis_testkit::process::{self, Signal};
use serde_json::Value;

use crate::served::{Served, Server, application, program, says, until};

fn start(application: &Server) -> Served {
    let rules = "SecRuleEngine On\nSecRule ARGS \"@contains evil\" \"id:7,phase:2,deny,log\"";
    Served::start(application, rules, "[data]\nfolder = \"data\"\n")
}

fn events(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(["events", "--data"]).arg(data).args(arguments);
    command.output().unwrap()
}

fn lines(data: &Path, arguments: &[&str]) -> Vec<String> {
    let output = events(data, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn json(data: &Path, filter: &str) -> Vec<Value> {
    lines(data, &[filter, "--json"]).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn events_are_found_while_it_runs_and_after_it_was_killed() {
    let application = application(|_| says("hello"));
    let served = start(&application);
    let data = served.folder.path().join("data");
    for target in ["/a?x=evil", "/b?x=good", "/b/c?x=evil"] {
        served.get(target);
    }
    until(|| json(&data, "").len() == 2);
    let found =
        json(&data, "path ^= /b and rule = 7 and verdict = deny and client in 127.0.0.0/8 and time >= -1h");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["request"]["target"], "/b/c?x=evil");
    // By its id, as one event; in other forms; the newest last.
    let id = found[0]["request_id"].as_str().unwrap();
    assert!(lines(&data, &[id]).iter().any(|line| line.starts_with("rule      7")));
    let all = json(&data, "");
    assert_eq!(
        (&all[0]["request"]["target"], &all[1]["request"]["target"]),
        (&"/a?x=evil".into(), &"/b/c?x=evil".into())
    );
    let table = lines(&data, &["--csv", "--limit", "1"]);
    assert!(table[0].starts_with("time,request_id,") && table[1].contains(id), "{table:?}");
    let wrong = events(&data, &["statsu = 403"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean `status`?"));
    // A store is of one instance.
    let other = Command::new(program())
        .args(["run", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9", "--data"])
        .arg(&data)
        .output()
        .unwrap();
    assert_eq!(other.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&other.stderr).contains("another process writes events there"));
    // What was committed survives the process.
    process::signal(served.id(), Signal::KILL).unwrap();
    assert_eq!(json(&data, "").len(), 2);
    let copy = served.folder.path().join("copy");
    let mut backup = Command::new(program());
    let output = backup.args(["events", "backup", "--data"]).arg(&data).arg(&copy).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(json(&copy, "").len(), 2);
}

#[test]
fn a_flood_is_counted_to_the_last_request() {
    let application = application(|_| says("hello"));
    let served = start(&application);
    let data = served.folder.path().join("data");
    for number in 0..300 {
        served.get(&format!("/item/{number}?x=evil"));
    }
    served.get("/item/1?x=good");
    let counts = |events: &[Value]| -> u64 {
        events.iter().map(|event| event.get("count").map_or(1, |count| count.as_u64().unwrap())).sum()
    };
    until(|| counts(&json(&data, "")) == 300);
    // Counted behind the commit.
    until(|| json(&data, "").len() as f64 == served.metric("portcullis_event_store_written_total"));
    let store = Store::new(&data.join("events"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let requests = || {
        let mut all = Rollup::default();
        let sites = store.overview(now - 7200..now + 3600, None).unwrap();
        sites.items.iter().for_each(|site| all.merge(&site.rollup));
        all
    };
    until(|| requests().requests == 301);
    let all = requests();
    assert_eq!(
        (all.events, all.by(Dimension::Rule).count("7"), all.by(Dimension::Verdict).count("deny")),
        (300, 300, 300)
    );
    assert_eq!(all.by(Dimension::Path).count("/item/*"), 301);
}

/// A browser sends the address of a page with each picture of it.
#[test]
fn an_attack_and_what_follows_it_are_one_event() {
    let application = application(|_| says("hello"));
    let rule = "SecRuleEngine DetectionOnly\nSecRule ARGS|REQUEST_HEADERS:Referer \"@rx (?i)union.select\" \"id:7,phase:2,deny,log\"";
    let served = Served::start(&application, rule, "[data]\nfolder = \"data\"\n");
    let data = served.folder.path().join("data");
    let attack = "/find?q=1%27+UNION+SELECT+password+FROM+users--+";
    assert_eq!(served.get(attack).status(), 200);
    let follow = |target: &str, referer: &str| {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: a\r\nReferer: {referer}\r\nConnection: close\r\n\r\n");
        assert_eq!(served.raw(request).status(), 200);
    };
    for number in 0..20 {
        follow(&format!("/img/{number}.png"), &format!("http://a{attack}"));
    }
    // In the Referer of another page it is an attack of its own.
    follow("/style.css", "http://a/other?q=1%27+UNION+SELECT+password+FROM+users--+");
    let stands_for =
        || -> u64 { json(&data, "").iter().map(|event| event["count"].as_u64().unwrap_or(1)).sum() };
    until(|| stands_for() == 22);
    let of_page = json(&data, "path = /find and text ~ \"UNION\"");
    assert!(of_page.len() == 1, "{of_page:?}");
    // Some may come when the event of the page is stored already: those are one together.
    let all = json(&data, "");
    assert!((2..=3).contains(&all.len()), "{all:?}");
    assert_eq!(json(&data, "path = /style.css").len(), 1);
    // The file of events has each.
    assert_eq!(served.events(22).len(), 22);
}
