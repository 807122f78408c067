//! What an analyst may write: answers to false positives, and nothing that ends protection.

use portcullis_identity::Role;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::server::Server;

/// Exclusions that are decisions about the protection of a site, and a part of what is said about them.
fn wide() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"location": "*:*"}), "ends detection"),
        (json!({"location": "form:comment"}), "name a class, a kind or a rule"),
        (json!({"path": "/"}), "ends detection"),
        (json!({"path": "/posts/"}), "name a class, a kind or a rule"),
        (json!({"path": "/posts/", "location": "form:comment"}), "name a class, a kind or a rule"),
        (json!({"class": "sqli"}), "name a field"),
        (json!({"kind": "sqli.union"}), "name a field"),
        (json!({"class": "sqli", "location": "*:*"}), "name a field"),
        (json!({"class": "sqli", "location": "form"}), "name a field"),
        (json!({"class": "sqli", "path": "/*"}), "name a field"),
        (json!({"class": "sqli", "path": "/{any}"}), "name a field"),
        (json!({"rule_id": 942_100}), "name a field"),
        (json!({"rule_id": 942_100, "target": "ARGS"}), "name a field"),
        (json!({"rule_id": 942_100, "target": "ARGS:*"}), "name a field"),
        (json!({"rule_id": 949_110}), "adds up the inbound anomaly score"),
        (json!({"rule_id": 949_110, "path": "/posts/"}), "adds up the inbound anomaly score"),
        (json!({"rule_id": 959_100, "target": "TX:x", "path": "/p"}), "adds up the outbound anomaly score"),
        (json!({"rule_id": 980_170, "path": "/posts/"}), "reports anomaly scores"),
        (json!({"rule_id": 901_140, "path": "/posts/"}), "sets the points"),
        // One of the operator's own that does the same.
        (json!({"rule_id": 700_001, "path": "/posts/"}), "blocks by what other rules have found"),
    ]
}

fn order(exclusion: &Value, more: Value) -> Value {
    let mut order = exclusion.clone();
    order["site"] = "shop".into();
    for (key, value) in more.as_object().unwrap() {
        order[key] = value.clone();
    }
    order
}

fn change(server: &Server, token: &str, method: &str, target: &str, body: &Value) -> Answer {
    let etag = server.get("/exclusions", token).header("etag").unwrap().to_owned();
    let ask = server.ask(method, target).bearer(token).header("If-Match", &etag);
    if body.is_null() { ask.send() } else { ask.json(body).send() }
}

/// In whatever way it comes, the document stays as it is, and the answer says what is missing.
#[test]
fn wide_exclusions_are_for_administrators() {
    let server = Server::with_rules();
    let (analyst, admin) = (server.token(Role::Analyst), server.token(Role::Admin));
    for (exclusion, why) in wide() {
        let before = server.text();
        let plain = order(&exclusion, json!({}));
        let trial = order(&exclusion, json!({"trial": true}));
        let narrow = json!({"site": "shop", "class": "sqli", "location": "form:a"});
        for (target, body) in [
            ("/exclusions", order(&exclusion, json!({"reason": "x"}))),
            ("/exclusions", order(&exclusion, json!({"dry_run": true}))),
            ("/exclusions", order(&exclusion, json!({"trial": true}))),
            ("/exclusions/batch", json!({"add": [plain]})),
            ("/exclusions/batch", json!({"add": [narrow, trial]})),
        ] {
            let answer = change(&server, &analyst, "POST", target, &body);
            let text = answer.text();
            assert_eq!(answer.status, 403, "{target} {body}: {text}");
            assert!(text.contains(why) && text.contains("needs the role admin"), "{body}: {text}");
        }
        assert_eq!(server.text(), before);
        // One that an administrator tries is not for an analyst to enforce.
        let added =
            change(&server, &admin, "POST", "/exclusions", &order(&exclusion, json!({"trial": true})));
        if added.status != 200 {
            continue;
        }
        let on_trial = server.text();
        let listed = server.get("/exclusions", &analyst).json();
        let id = listed["items"][0]["id"].as_str().unwrap().to_owned();
        for (target, body) in [
            (format!("/exclusions/{id}/enforce"), json!({})),
            (format!("/exclusions/{id}/enforce"), json!({"dry_run": true})),
            ("/exclusions/batch".to_owned(), json!({"enforce": [id]})),
            ("/exclusions/batch".to_owned(), json!({"remove": [id], "add": [order(&exclusion, json!({}))]})),
        ] {
            let answer = change(&server, &analyst, "POST", &target, &body);
            assert_eq!(answer.status, 403, "{target} {body}: {}", answer.text());
            assert_eq!(server.text(), on_trial);
        }
        // Taking it away is.
        let gone = change(&server, &analyst, "DELETE", &format!("/exclusions/{id}"), &Value::Null);
        assert_eq!(gone.status, 200, "{}", gone.text());
    }
    assert_eq!(server.get("/exclusions", &analyst).json()["items"], json!([]));
}

/// Answers to false positives are what analysts are for.
#[test]
fn narrow_exclusions_are_for_analysts() {
    let server = Server::with_rules();
    let analyst = server.token(Role::Analyst);
    for exclusion in [
        json!({"class": "sqli", "location": "form:comment"}),
        json!({"kind": "sqli.union", "location": "*:q"}),
        json!({"class": "xss", "path": "/posts/"}),
        json!({"class": "xss", "path": "/posts/{id}", "location": "form"}),
        json!({"rule_id": 942_100, "target": "ARGS:comment"}),
        json!({"rule_id": 942_100, "target": "ARGS", "path": "/posts/"}),
        json!({"rule_id": 942_100, "target": "REQUEST_URI"}),
        json!({"rule_id": 920_420, "path": "/upload"}),
    ] {
        let answer = change(&server, &analyst, "POST", "/exclusions", &order(&exclusion, json!({})));
        assert_eq!(answer.status, 200, "{exclusion}: {}", answer.text());
    }
}

/// Whatever else would end protection is for administrators.
#[test]
fn other_ways_are_for_administrators() {
    let server = Server::with_rules();
    let analyst = server.token(Role::Analyst);
    let before = server.text();
    for (method, target, body) in [
        ("PATCH", "/sites/shop", json!({"mode": "off"})),
        ("PATCH", "/sites/shop", json!({"engine": "detection_only"})),
        ("PUT", "/config", json!({"text": "x = 1"})),
        (
            "PATCH",
            "/config",
            json!({"changes": [{"path": "/sites/0/mode", "value": "off"}], "dry_run": true}),
        ),
        ("POST", "/revisions/1/restore", json!({})),
        ("POST", "/lists/bypass/clients", json!({"client": "0.0.0.0/0"})),
        ("DELETE", "/lists/bypass/clients?client=192.0.2.1", Value::Null),
        // The lists that decide which clients reach a site.
        ("POST", "/lists/deny/clients", json!({"client": "0.0.0.0/0"})),
        ("POST", "/lists/deny/clients", json!({"client": "128.0.0.0/1", "dry_run": true})),
        ("POST", "/lists/deny/clients", json!({"client": "::/0", "site": "shop"})),
        ("POST", "/lists/allow/clients", json!({"client": "10.0.0.0/15"})),
        ("POST", "/lists/allow/clients", json!({"client": "2001:db8::/31"})),
        ("DELETE", "/lists/deny/clients?client=0.0.0.0%2F0", Value::Null),
        ("DELETE", "/lists/allow/clients?client=10.0.0.0%2F8", Value::Null),
        ("POST", "/reload", json!({})),
        ("POST", "/sinks/pager/test", json!({})),
        ("POST", "/tokens", json!({"name": "x", "role": "admin"})),
        ("POST", "/users", json!({"name": "x", "role": "admin", "password": "correct horse battery"})),
    ] {
        let answer = change(&server, &analyst, method, target, &body);
        assert_eq!(answer.status, 403, "{method} {target}: {}", answer.text());
    }
    assert_eq!(server.text(), before);
}

/// What an analyst may add one by one is bounded in sum: by the day, whatever it comes with, and by nobody
/// else's.
#[test]
fn many_narrow_exclusions_are_for_administrators() {
    let server = Server::with_rules();
    let (analyst, admin) = (server.token(Role::Analyst), server.token(Role::Admin));
    let field = |at: usize| json!({"class": "sqli", "location": format!("form:f{at}")});
    let batch = |range: std::ops::Range<usize>, trial: bool| {
        let add: Vec<Value> = range.map(|at| order(&field(at), json!({"trial": trial}))).collect();
        json!({"add": add})
    };
    let ask = |token: &str, body: &Value| change(&server, token, "POST", "/exclusions/batch", body);
    let refused = |body: &Value| {
        let before = server.text();
        let answer = ask(&analyst, body);
        assert_eq!(answer.status, 403, "{}", answer.text());
        assert!(answer.text().contains("need the role admin"), "{}", answer.text());
        assert_eq!(server.text(), before);
    };
    // Whatever others add in between counts for them.
    assert_eq!(ask(&admin, &batch(1_000..1_020, false)).status, 200);
    assert_eq!(ask(&analyst, &batch(0..20, false)).status, 200);
    let path = order(&json!({"class": "xss", "path": "/posts/"}), json!({}));
    assert_eq!(change(&server, &analyst, "POST", "/exclusions", &path).status, 200);
    refused(&batch(20..46, false));
    refused(&batch(20..46, true));
    assert_eq!(ask(&analyst, &batch(20..45, true)).status, 200);
    refused(&batch(45..46, false));
    refused(&batch(45..46, true));
    // One that is gone makes room for another.
    let listed = server.get("/exclusions", &analyst).json();
    let own = |item: &&Value| item["path"] == "/posts/";
    let id = listed["items"].as_array().unwrap().iter().find(own).unwrap()["id"].as_str().unwrap().to_owned();
    let gone = change(&server, &analyst, "DELETE", &format!("/exclusions/{id}"), &Value::Null);
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert_eq!(ask(&analyst, &batch(45..50, false)).status, 200);
    refused(&batch(50..51, false));
    assert_eq!(ask(&admin, &batch(1_020..1_040, false)).status, 200);
    // Another day.
    server.pass(24 * 60 * 60 + 1);
    assert_eq!(ask(&analyst, &batch(50..80, false)).status, 200);
}
