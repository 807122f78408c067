//! Exclusions at work: what they take away is counted, and those on trial decide nothing but tell what they
//! would have done.

use std::process::Command;

use portcullis_testkit::client::exchange;
use serde_json::{Value, json};

use crate::revisions::Managed;
use crate::served::*;

const UNION: &str = "1%27%20UNION%20SELECT%20password%20FROM%20users--%20";

fn get(managed: &Managed, target: &str) -> u16 {
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    exchange(managed.address, None, request.as_bytes(), PATIENCE).unwrap().status
}

#[track_caller]
fn add(managed: &Managed, order: Value) {
    let (status, answer) = managed.ask("POST", "/exclusions", &order);
    assert_eq!(status, 200, "{answer}");
}

fn listed(managed: &Managed) -> Vec<Value> {
    let (status, listed) = managed.ask("GET", "/exclusions", &Value::Null);
    assert_eq!(status, 200, "{listed}");
    listed["items"].as_array().unwrap().clone()
}

/// Counts of the first exclusion on trial: seen, passes, lost, stopped, unknown.
fn trial(managed: &Managed) -> [u64; 5] {
    let all = listed(managed);
    let state = &all.iter().find(|each| !each["trial"].is_null()).unwrap()["trial"];
    ["seen", "passes", "lost", "stopped", "unknown"].map(|key| state[key].as_u64().unwrap())
}

/// A rule on one path: other paths, values and rules stay; its use is counted, over reloads, and who added it
/// is told.
#[test]
fn a_rule_is_excluded_on_a_path_and_its_use_is_counted() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let both = "SecRule ARGS \"@contains union\" \"id:1,phase:2,deny,t:lowercase\"\n\
                SecRule ARGS \"@contains script\" \"id:2,phase:2,deny\"";
    let site = format!("mode = \"crs\"\n{}", rules(both));
    let managed = Managed::start(folder.path(), application.address(), &site, "");
    assert_eq!(get(&managed, "/posts/7?q=union"), 403);
    add(
        &managed,
        json!({"site": "site", "rule_id": 1, "target": "ARGS:q", "path": "/posts/{id}", "reason": "SQL"}),
    );
    add(&managed, json!({"site": "site", "rule_id": 2, "target": "ARGS:html"}));
    for (target, status) in [
        ("/posts/7?q=union", 200),
        ("/posts/8?q=union&p=1", 200),
        ("/posts/7?p=union", 403),
        ("/posts/7?q=script", 403),
        ("/posts/7/../8?q=union", 403),
        ("/posts/7;x?q=union", 403),
        ("/posts/7/edit?q=union", 403),
    ] {
        assert_eq!(get(&managed, target), status, "{target}");
    }
    let hits = |at: usize| listed(&managed)[at]["use"]["hits"].clone();
    until(|| hits(0) == 2);
    let first = &listed(&managed)[0];
    assert_eq!((&first["author"], &first["reason"]), (&json!("token:1 (test)"), &json!("SQL")), "{first}");
    assert_eq!((&first["rules"], &first["target"]), (&json!([1]), &json!("ARGS:q")), "{first}");
    assert!(first["use"]["last_hit"].is_string() && first["use"]["unused_since"].is_null(), "{first}");
    assert_eq!((hits(1), &listed(&managed)[1]["use"]["last_hit"]), (json!(0), &Value::Null));
    // A reload loses no count; the one that goes leaves the other as it is.
    let id = listed(&managed)[1]["id"].as_str().unwrap().to_owned();
    assert_eq!(managed.ask("DELETE", &format!("/exclusions/{id}"), &Value::Null).0, 200);
    assert_eq!(get(&managed, "/posts/9?q=union"), 200);
    until(|| hits(0) == 3);
    let checked = Command::new(program()).arg("check").arg(&managed.document).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    managed.stop();
}

/// Findings that would have counted are uses, on the terms of the exclusion only.
#[test]
fn uses_of_the_detectors_exclusions_are_counted() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let managed = Managed::start(folder.path(), application.address(), "mode = \"semantic\"", "");
    add(&managed, json!({"site": "site", "class": "sqli", "location": "query:q", "path": "/find"}));
    for (target, status) in [
        (format!("/find?q={UNION}"), 200),
        ("/find?q=iron".to_owned(), 200),
        (format!("/find?p={UNION}"), 403),
        (format!("/other?q={UNION}"), 403),
    ] {
        assert_eq!(get(&managed, &target), status, "{target}");
    }
    until(|| listed(&managed)[0]["use"]["hits"] == 1);
    managed.stop();
}

/// On trial nothing passes that did not; what would have is counted, told in its event, and passes once the
/// exclusion is enforced.
#[test]
fn an_exclusion_is_tried_before_it_counts() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let rule = "SecRule ARGS \"@contains union\" \"id:1,phase:2,deny,t:lowercase\"\n\
                SecRule ARGS:p \"@contains odd\" \"id:2,phase:2,pass,log\"";
    let site = format!("mode = \"both\"\n{}", rules(rule));
    let managed = Managed::start(folder.path(), application.address(), &site, "");
    let place = json!({"site": "site", "path": "/find", "trial": true});
    let with = |more: Value| {
        let mut order = place.clone();
        order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        order
    };
    // Both sides object to it: only both exclusions together would let it pass.
    add(&managed, with(json!({"class": "sqli", "location": "query:q"})));
    assert_eq!(get(&managed, &format!("/find?q={UNION}")), 403);
    until(|| trial(&managed) == [1, 0, 0, 1, 0]);
    add(&managed, with(json!({"rule_id": 1, "target": "ARGS:q"})));
    for target in [
        format!("/find?q={UNION}"),
        // Honest, of another field, of another path, of another class.
        "/find?q=iron".to_owned(),
        format!("/find?p={UNION}"),
        format!("/other?q={UNION}"),
        "/find?q=%3Cscript%3Ealert(1)%3C/script%3E".to_owned(),
        // Something else is found beside.
        format!("/find?q={UNION}&p=odd"),
    ] {
        assert_eq!(get(&managed, &target), if target.contains("iron") { 200 } else { 403 }, "{target}");
    }
    let of_rule = || {
        let all = listed(&managed);
        all.into_iter().find(|each| each["rules"] == json!([1])).unwrap()
    };
    let counts =
        |state: &Value| ["seen", "passes", "lost", "stopped"].map(|key| state[key].as_u64().unwrap());
    until(|| counts(&of_rule()["trial"]) == [4, 1, 1, 0]);
    let id = of_rule()["id"].as_str().unwrap().to_owned();
    // Its events are found by its id, also where a client names it.
    assert_eq!(get(&managed, &format!("/other?q={UNION}&trials=%22trials%22:[%22{id}%22]")), 403);
    let mut events = Command::new(program());
    events.args(["events", "--json", &format!("trial = {id}"), "--data"]).arg(folder.path().join("data"));
    until(|| String::from_utf8(events.output().unwrap().stdout).unwrap().lines().count() == 2);
    let told = String::from_utf8(events.output().unwrap().stdout).unwrap();
    assert!(told.contains("\"trials\":["), "{told}");
    for each in listed(&managed) {
        let path = format!("/exclusions/{}/enforce", each["id"].as_str().unwrap());
        let (status, answer) = managed.ask("POST", &path, &json!({"reason": "tried"}));
        assert_eq!(status, 200, "{answer}");
        assert!(answer["diff"].as_str().unwrap().contains("trial = true"), "{answer}");
        let (status, again) = managed.ask("POST", &path, &json!({}));
        assert_eq!((status, again["detail"].to_string().contains("on trial")), (409, true), "{again}");
    }
    assert!(!managed.text().contains("trial"), "{}", managed.text());
    assert_eq!(get(&managed, &format!("/find?q={UNION}")), 200);
    assert_eq!(get(&managed, &format!("/find?p={UNION}")), 403);
    assert_eq!(get(&managed, &format!("/other?q={UNION}")), 403);
    assert_eq!(listed(&managed)[0]["trial"], Value::Null);
    managed.stop();
}

/// A body is tried, too; a request that was stopped before its end tells nothing.
#[test]
fn what_was_not_seen_to_its_end_is_not_judged() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let managed = Managed::start(folder.path(), application.address(), "mode = \"semantic\"", "");
    add(&managed, json!({"site": "site", "class": "sqli", "path": "/find", "trial": true}));
    let post = |target: &str, body: &str| {
        let request = format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}",
            body.len()
        );
        exchange(managed.address, None, request.as_bytes(), PATIENCE).unwrap().status
    };
    assert_eq!(post("/find", &format!("q={UNION}")), 403);
    until(|| trial(&managed) == [1, 1, 0, 0, 0]);
    // Stopped for its head: nobody has seen the body.
    assert_eq!(post(&format!("/find?q={UNION}"), "a=%3Cscript%3Ealert(1)%3C/script%3E"), 403);
    until(|| trial(&managed) == [2, 1, 0, 0, 1]);
    managed.stop();
}

/// The end of a trial without a person, as the document says; one that lost an attack goes on.
#[test]
fn a_trial_ends_by_itself() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let exclusion = |field: &str| {
        format!(
            "[[sites.semantic.exclude]]\nclass = \"sqli\"\nlocation = \"query:{field}\"\npath = \"/find\"\n\
             trial = true\nauto_enforce = {{ after = \"1s\", requests = 3 }}\n"
        )
    };
    let rule = "SecRule ARGS:p \"@contains odd\" \"id:2,phase:2,pass,log\"";
    let site = format!("mode = \"both\"\n{}\n{}{}", rules(rule), exclusion("q"), exclusion("r"));
    let managed = Managed::start(folder.path(), application.address(), &site, "");
    for _ in 0..3 {
        assert_eq!(get(&managed, &format!("/find?q={UNION}")), 403);
        assert_eq!(get(&managed, &format!("/find?r={UNION}&p=odd")), 403);
    }
    until(|| managed.text().matches("trial = true").count() == 1);
    until(|| get(&managed, &format!("/find?q={UNION}")) == 200);
    assert_eq!(get(&managed, &format!("/find?r={UNION}")), 403);
    assert_eq!(trial(&managed)[2], 3);
    let (_, revisions) = managed.ask("GET", "/revisions", &Value::Null);
    assert_eq!(revisions["items"][0]["author"], "auto_enforce", "{revisions}");
    // On trial again, for it has proven bad: counts of the first trial do not end the second one. The trial
    // of the other goes on.
    let state = |field: &str| {
        let location = format!("query:{field}");
        listed(&managed).into_iter().find(|each| each["location"] == *location).unwrap()["trial"].clone()
    };
    let before = state("r");
    assert_eq!(managed.ask("POST", "/revisions/1/restore", &json!({})).0, 200);
    assert_eq!((state("q")["seen"].clone(), state("q")["passes"].clone()), (json!(0), json!(0)));
    assert_eq!(state("r")["since"], before["since"]);
    // Settings that are refused change no trial.
    let bad = managed.text().replace("trial = true\nauto_enforce = { after = \"1s\", requests = 3 }\n", "");
    let bad = bad.replace("@contains odd", "@nonsense odd");
    assert_eq!(managed.ask("PUT", "/config", &json!({"text": bad})).0, 422);
    assert_eq!(
        (state("r")["since"].clone(), state("r")["lost"].clone()),
        (before["since"].clone(), json!(3))
    );
    // More than one look.
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert_eq!(get(&managed, &format!("/find?q={UNION}")), 403);
    assert_eq!(managed.text().matches("trial = true").count(), 2);
    for _ in 0..2 {
        assert_eq!(get(&managed, &format!("/find?q={UNION}")), 403);
    }
    until(|| get(&managed, &format!("/find?q={UNION}")) == 200);
    // A change is live before it is written.
    until(|| managed.text().matches("trial = true").count() == 1);
    managed.stop();
}
