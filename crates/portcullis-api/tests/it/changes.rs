//! Changes of the document: who may make them, what they answer, what stays.

use portcullis_identity::Role;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::server::{DOCUMENT, Server};

fn etag(server: &Server, token: &str) -> String {
    server.get("/exclusions", token).header("etag").unwrap().to_owned()
}

fn change(server: &Server, token: &str, method: &str, target: &str, body: Value) -> Answer {
    let ask = server.ask(method, target).bearer(token).header("If-Match", &etag(server, token));
    if body.is_null() { ask.send() } else { ask.json(body).send() }
}

fn kind(answer: &Answer) -> String {
    answer.json()["type"].as_str().unwrap().rsplit(':').next().unwrap().to_owned()
}

#[test]
fn an_exclusion_comes_serves_and_goes() {
    let server = Server::start();
    let analyst = server.token(Role::Analyst);
    let order = json!({"site": "shop", "class": "sqli", "location": "form:comment", "path": "/posts/", "reason": "a \"blog\""});
    let tried = {
        let mut order = order.clone();
        order["dry_run"] = true.into();
        change(&server, &analyst, "POST", "/exclusions", order)
    };
    assert_eq!((tried.status, server.text().as_str()), (200, DOCUMENT), "{}", tried.text());
    assert_eq!(tried.json()["revision"], Value::Null);
    let answer = change(&server, &analyst, "POST", "/exclusions", order);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    assert_eq!((&json["revision"], &json["message"]), (&json!(2), &json!("reloaded, generation 2")));
    assert_eq!(json["diff"], tried.json()["diff"]);
    assert_eq!(answer.header("etag").unwrap(), format!("\"{}\"", json["etag"].as_str().unwrap()));
    assert_eq!(answer.header("etag").unwrap(), etag(&server, &analyst));
    // Who may not read the document sees what changes, and nothing around it.
    assert!(!json["diff"].as_str().unwrap().contains("hunter2"), "{json}");
    let listed = server.get("/exclusions", &analyst).json();
    let [item] = &listed["items"].as_array().unwrap()[..] else { panic!("{listed}") };
    assert_eq!(
        (&item["site"], &item["location"], &item["reason"]),
        (&json!("shop"), &json!("form:comment"), &json!("a \"blog\""))
    );
    let id = item["id"].as_str().unwrap();
    let gone = change(&server, &analyst, "DELETE", &format!("/exclusions/{id}?reason=over"), Value::Null);
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert_eq!(server.text().trim_end(), DOCUMENT.trim_end());
    let again = change(&server, &analyst, "DELETE", &format!("/exclusions/{id}"), Value::Null);
    assert_eq!((again.status, kind(&again).as_str()), (409, "conflict"));
    let trail = server.identities.audit(None, 10).unwrap();
    let shown: Vec<_> = trail.iter().map(|entry| (entry.object.as_str(), entry.detail.as_str())).collect();
    assert!(shown[0].1.contains("no exclusion"), "{shown:?}");
    assert!(shown[1].0 == "revision 3" && shown[1].1.ends_with("(over)"), "{shown:?}");
    assert!(shown[2].1.contains("excluded at shop: sqli form:comment /posts/"), "{shown:?}");
}

/// Several exclusions are one change: one revision, one difference, all or none.
#[test]
fn exclusions_are_changed_together() {
    let server = Server::start();
    let analyst = server.token(Role::Analyst);
    let batch = |body: Value| change(&server, &analyst, "POST", "/exclusions/batch", body);
    let listed = || {
        let items = server.get("/exclusions", &analyst).json()["items"].as_array().unwrap().clone();
        let of = |item: &Value| (item["id"].as_str().unwrap().to_owned(), item["trial"] != Value::Null);
        items.iter().map(of).collect::<Vec<_>>()
    };
    let new = |field: &str| json!({"site": "shop", "class": "sqli", "location": field, "trial": true});
    let three = json!({"add": [new("query:a"), new("query:b"), new("query:c")], "reason": "a blog"});
    let mut tried = three.clone();
    tried["dry_run"] = true.into();
    let tried = batch(tried);
    assert_eq!((tried.status, server.text().as_str()), (200, DOCUMENT), "{}", tried.text());
    let answer = batch(three);
    assert_eq!((answer.status, &answer.json()["revision"]), (200, &json!(2)), "{}", answer.text());
    assert_eq!(answer.json()["diff"], tried.json()["diff"]);
    assert_eq!(server.text().matches("reason = \"a blog\"").count(), 3);
    let ids: Vec<String> = listed().into_iter().map(|(id, _)| id).collect();
    let [a, b, c] = &ids[..] else { panic!("{ids:?}") };
    // One that cannot be is the end of all of them.
    let before = server.text();
    for (body, status, what) in [
        (json!({"enforce": [a, "0000000000000000"]}), 409, "no exclusion `0000000000000000` on trial"),
        (json!({"enforce": [a, a]}), 409, "on trial"),
        (json!({"remove": [a], "enforce": [b], "add": [new("query:c")]}), 409, "already"),
        (json!({"remove": [a], "add": [{"site": "shop"}]}), 422, "either `rule_id`"),
        (json!({"remove": [a], "add": [{"site": "shop", "class": "sqlx"}]}), 422, "sqlx"),
        (json!({}), 422, "name 0 exclusions"),
        (json!({"remove": vec![a; 101]}), 422, "name 101 exclusions; 1 to 100"),
        (json!({"delete": [a]}), 422, "delete"),
        (json!({"remove": a}), 422, "expected a sequence"),
    ] {
        let answer = batch(body.clone());
        assert_eq!(
            (answer.status, answer.text().contains(what)),
            (status, true),
            "{body}: {}",
            answer.text()
        );
    }
    assert_eq!((server.text(), listed().len()), (before, 3));
    let stale = server.ask("POST", "/exclusions/batch").bearer(&analyst).json(json!({"remove": [a]}));
    let stale = stale.header("If-Match", "\"0123456789abcdef0123456789abcdef\"").send();
    assert_eq!(stale.status, 412);
    let answer = batch(json!({"enforce": [a, c], "remove": [b], "reason": "proven"}));
    assert_eq!((answer.status, &answer.json()["revision"]), (200, &json!(3)), "{}", answer.text());
    assert_eq!(listed(), [(a.clone(), false), (c.clone(), false)]);
    let trail = server.identities.audit(None, 10).unwrap();
    let expected = format!("2 enforced, 1 removed: enforced {a}, {c}; removed {b} (proven)");
    assert_eq!((trail[0].object.as_str(), trail[0].detail.as_str()), ("revision 3", &*expected));
    assert_eq!(batch(json!({"remove": [a, c]})).status, 200);
    assert_eq!(server.text().trim_end(), DOCUMENT.trim_end());
}

/// Whatever an analyst puts around it, the audit trail shows the exclusion that lets the most through, how
/// many there are of each sort, why, and what came of it.
#[test]
fn a_batch_hides_nothing_from_the_audit_trail() {
    let server = Server::start();
    let analyst = server.token(Role::Admin);
    let batch = |body: Value| change(&server, &analyst, "POST", "/exclusions/batch", body);
    let last = || server.identities.audit(None, 1).unwrap().remove(0);
    let narrow = |at: usize| json!({"site": "shop", "class": "sqli", "location": format!("query:{at}{}", "x".repeat(90)), "path": "/a"});
    let wide = json!({"site": "shop", "path": "/"});
    let mut add: Vec<Value> = (0..49).map(narrow).collect();
    assert_eq!(batch(json!({"add": add})).status, 200);
    let listed = server.get("/exclusions", &analyst).json();
    let ids: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|each| &each["id"]).collect();
    add = (50..60).map(narrow).chain([wide]).collect();
    let reason = format!("weekly {}", "tidying ".repeat(100));
    let answer = batch(json!({"remove": ids, "add": add, "reason": reason}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let detail = last().detail;
    assert!(detail.starts_with("11 added, 49 removed: excluded at shop: /; "), "{detail}");
    assert!(detail.contains("… (weekly tidying ") && detail.ends_with("…)"), "{detail}");
    assert!(detail.chars().count() <= 500, "{detail}");
    // One that is refused says why, behind a list as long as that.
    let answer = batch(json!({"remove": ids, "add": [narrow(7)], "reason": "again"}));
    assert_eq!(answer.status, 409, "{}", answer.text());
    let entry = last();
    assert_eq!(entry.object, "refused");
    assert!(entry.detail.starts_with("1 added, 49 removed: excluded at shop: sqli query:7xxx"), "{entry:?}");
    assert!(entry.detail.contains("…: the document has no exclusion"), "{entry:?}");
    assert!(entry.detail.ends_with(" (again)"), "{entry:?}");
    // A long part of one does not hide the next.
    let long = json!({"site": "shop", "location": format!("query:{}", "y".repeat(900)), "path": "/all"});
    assert_eq!(change(&server, &analyst, "POST", "/exclusions", long).status, 200);
    assert!(last().detail.ends_with("y… /all"), "{}", last().detail);
}

/// However many changes of one user wait for the program, others log in, look at events, and are told when
/// their change has no place.
#[test]
fn changes_that_wait_hold_up_nobody_else() {
    let server = Server::start();
    let analyst = server.token(Role::Analyst);
    server.user("anna", Role::Viewer);
    let hold = server.folder.path().join("hold");
    std::fs::write(&hold, "").unwrap();
    let statuses: Vec<u16> = std::thread::scope(|threads| {
        let order = |at: usize| {
            let order =
                json!({"add": [{"site": "shop", "class": "sqli", "location": format!("query:{at}")}]});
            let ask = server.ask("POST", "/exclusions/batch").bearer(&analyst).header("If-Match", "*");
            threads.spawn(move || ask.json(order).send())
        };
        let look = || {
            let ask = server.ask("GET", "/exclusions").bearer(&analyst);
            threads.spawn(move || ask.send())
        };
        let orders: Vec<_> = (0..16).map(order).collect();
        let looks: Vec<_> = (0..8).map(|_| look()).collect();
        // All but those with a place are answered while the program still loads.
        while orders.iter().filter(|order| order.is_finished()).count() < 12 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        server.session("anna");
        assert_eq!(server.get("/events", &analyst).status, 200);
        // Who looks at the document does not wait for the program to load.
        while !looks.iter().all(|look| look.is_finished()) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(!orders.iter().all(|order| order.is_finished()) && hold.exists());
        std::fs::remove_file(&hold).unwrap();
        let looked = looks.into_iter().all(|look| look.join().unwrap().status == 200);
        assert!(looked, "who looks is answered");
        let answers = orders.into_iter().map(|order| order.join().unwrap());
        let is_told = |answer: &Answer| answer.status == 200 || answer.header("retry-after") == Some("1");
        answers
            .inspect(|answer| assert!(is_told(answer), "{}", answer.text()))
            .map(|answer| answer.status)
            .collect()
    });
    let count = |status: u16| statuses.iter().filter(|each| **each == status).count();
    assert_eq!((count(200), count(503)), (4, 12), "{statuses:?}");
    assert_eq!(server.text().matches("query:").count(), 4);
}

#[test]
fn an_exclusion_says_what_it_is_of() {
    let server = Server::start();
    let analyst = server.token(Role::Analyst);
    for order in [
        json!({"site": "shop"}),
        json!({"site": "shop", "class": "sqli", "rule_id": 1}),
        json!({"site": "shop", "class": "sqli", "target": "ARGS"}),
        json!({"site": "shop", "target": "ARGS"}),
        json!({"class": "sqli"}),
    ] {
        let answer = change(&server, &analyst, "POST", "/exclusions", order.clone());
        assert_eq!(answer.status, 422, "{order}: {}", answer.text());
    }
    let answer = change(&server, &analyst, "POST", "/exclusions", json!({"site": "shop", "class": "sqlx"}));
    assert_eq!((answer.status, kind(&answer).as_str()), (422, "document"), "{}", answer.text());
    let json = answer.json();
    let [diagnostic] = &json["diagnostics"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!(diagnostic["hint"], "did you mean `sqli`?");
    assert!(diagnostic["line"].as_u64().unwrap() > 4);
    for order in [json!({"site": "none", "class": "sqli"}), json!({"site": "shop", "rule_id": 942100})] {
        let answer = change(&server, &analyst, "POST", "/exclusions", order);
        assert_eq!((answer.status, kind(&answer).as_str()), (409, "conflict"));
    }
    assert_eq!(server.text(), DOCUMENT);
}

#[test]
fn roles_say_who_changes_what() {
    let server = Server::start();
    let tokens = [Role::Viewer, Role::Analyst, Role::Admin].map(|role| server.token(role));
    let tried = |token: &str, method: &str, target: &str, body: Value| {
        change(&server, token, method, target, body).status
    };
    let statuses = |method: &str, target: &str, body: Value| {
        tokens.each_ref().map(|token| tried(token, method, target, body.clone()))
    };
    let settings = json!({"level": "strict", "dry_run": true});
    assert_eq!(statuses("PATCH", "/sites/shop", settings), [403, 403, 200]);
    let exclusion = json!({"site": "shop", "class": "xss", "path": "/a", "dry_run": true});
    assert_eq!(statuses("POST", "/exclusions", exclusion), [403, 200, 200]);
    let batch = json!({"add": [{"site": "shop", "class": "xss", "path": "/a"}], "dry_run": true});
    assert_eq!(statuses("POST", "/exclusions/batch", batch), [403, 200, 200]);
    let client = json!({"client": "192.0.2.1", "dry_run": true});
    assert_eq!(statuses("POST", "/lists/deny/clients", client.clone()), [403, 200, 200]);
    assert_eq!(statuses("POST", "/lists/bypass/clients", client), [403, 403, 200]);
    let text = json!({"text": DOCUMENT, "dry_run": true});
    assert_eq!(statuses("PUT", "/config", text), [403, 403, 200]);
    assert_eq!(statuses("POST", "/revisions/1/restore", json!({"dry_run": true})), [403, 403, 200]);
    assert_eq!(statuses("GET", "/config", Value::Null), [403, 403, 200]);
    assert_eq!(statuses("GET", "/revisions", Value::Null), [403, 200, 200]);
    assert_eq!(statuses("GET", "/revisions/1", Value::Null), [403, 403, 200]);
    assert_eq!(statuses("GET", "/exclusions", Value::Null), [200, 200, 200]);
    assert_eq!(server.text(), DOCUMENT);
}

#[test]
fn a_change_says_what_it_was_made_for() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let text = || json!({"text": format!("{DOCUMENT}# more\n")});
    let put = |tag: Option<&str>| {
        let ask = server.ask("PUT", "/config").bearer(&admin).json(text());
        match tag {
            Some(tag) => ask.header("If-Match", tag).send(),
            None => ask.send(),
        }
    };
    assert_eq!(put(None).status, 428);
    for wrong in ["1", "\"1\"", "W/\"0123456789abcdef0123456789abcdef\"", ""] {
        assert_eq!(put(Some(wrong)).status, 400, "{wrong}");
    }
    let stale = put(Some("\"0123456789abcdef0123456789abcdef\""));
    assert_eq!((stale.status, kind(&stale).as_str()), (412, "precondition-failed"));
    assert_eq!(server.text(), DOCUMENT);
    assert_eq!(put(Some("*")).status, 200);
    assert!(server.text().ends_with("# more\n"));
}

#[test]
fn texts_are_replaced_listed_and_brought_back() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let new = DOCUMENT.replace("name = \"shop\"", "name = \"store\"");
    let answer = change(&server, &admin, "PUT", "/config", json!({"text": new, "reason": "renamed"}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let diff = answer.json()["diff"].as_str().unwrap().to_owned();
    assert!(diff.contains("-name = \"shop\"\n+name = \"store\"\n") && diff.contains(" hosts = "), "{diff}");
    // By hand, and not loaded.
    std::fs::write(server.folder.path().join("portcullis.toml"), format!("{new}# by hand\n")).unwrap();
    let shown = server.get("/config", &admin).json();
    assert_eq!(
        (&shown["revision"], &shown["is_live"], &shown["is_read_only"]),
        (&json!(3), &json!(false), &json!(false))
    );
    let listed = server.get("/revisions?limit=2", &admin).json();
    let items = listed["items"].as_array().unwrap();
    assert_eq!((&items[0]["origin"], &items[0]["author"]), (&json!("outside"), &Value::Null));
    assert_eq!((&items[1]["origin"], &items[1]["reason"]), (&json!("change"), &json!("renamed")));
    assert!(items[1]["author"].as_str().unwrap().starts_with("token:"), "{listed}");
    let rest = server.get(&format!("/revisions?cursor={}", listed["next"].as_str().unwrap()), &admin).json();
    assert_eq!(rest["items"][0]["number"], 1);
    let second = server.get("/revisions/2", &admin).json();
    assert_eq!((&second["text"], second["diff"].as_str().unwrap()), (&json!(new), &*diff));
    let back = change(&server, &admin, "POST", "/revisions/1/restore", json!({}));
    assert_eq!((back.status, server.text().as_str()), (200, DOCUMENT), "{}", back.text());
    assert_eq!(server.get("/revisions/4", &admin).json()["origin"], "restore");
    for number in ["99", "0", "-1", "x"] {
        assert_eq!(server.get(&format!("/revisions/{number}"), &admin).status, 404, "{number}");
    }
}

#[test]
fn what_cannot_serve_changes_nothing() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let put = |text: &str| change(&server, &admin, "PUT", "/config", json!({"text": text}));
    let refused = put(&format!("{DOCUMENT}# refuse\n"));
    assert_eq!((refused.status, kind(&refused).as_str()), (422, "reload-failed"));
    assert!(refused.json()["detail"].as_str().unwrap().contains("rules.conf:3"));
    let broken = put(&DOCUMENT.replace("hosts", "host"));
    assert_eq!((broken.status, kind(&broken).as_str()), (422, "document"));
    assert_eq!(broken.json()["diagnostics"][0]["line"], 6);
    for text in ["", "\u{0}", "[", "sites = []", &"[".repeat(100_000)] {
        assert_eq!(put(text).status, 422, "{:?}", text.get(..10));
    }
    let large = put(&"#".repeat(3 << 20));
    assert_eq!(large.status, 413);
    // A document that could not be read again.
    let long = put(&format!("{DOCUMENT}#{}", "x".repeat(1_200_000)));
    assert_eq!((long.status, kind(&long).as_str()), (413, "body-too-large"));
    let what = long.json()["detail"].as_str().unwrap().to_owned();
    assert!(what.contains("at most 1048576 bytes, and this text has 12"), "{what}");
    assert_eq!(server.text(), DOCUMENT);
    assert_eq!(server.get("/revisions", &admin).json()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn settings_and_clients_go_into_the_document() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let order = json!({"engine": "detection_only", "level": "strict"});
    assert_eq!(change(&server, &admin, "PATCH", "/sites/shop", order).status, 200);
    assert!(server.text().contains("engine = \"detection_only\"\nlevel = \"strict\"\n"), "{}", server.text());
    let order = json!({"engine": null, "level": null});
    assert_eq!(change(&server, &admin, "PATCH", "/sites/shop", order).status, 200);
    assert_eq!(server.text(), DOCUMENT);
    assert_eq!(change(&server, &admin, "PATCH", "/sites/shop", json!({"engine": "loud"})).status, 422);
    assert_eq!(change(&server, &admin, "PATCH", "/sites/none", json!({"engine": "blocking"})).status, 409);
    let add = |list: &str, client: &str| {
        let target = format!("/lists/{list}/clients");
        change(&server, &admin, "POST", &target, json!({"client": client})).status
    };
    assert_eq!(add("deny", "192.0.2.0/24"), 200);
    assert_eq!(add("deny", "192.0.2.0/24"), 409);
    assert_eq!(add("deny", "192.0.2.0/24 # x"), 422);
    assert_eq!(add("others", "192.0.2.0/24"), 404);
    assert!(server.text().contains("[\"198.51.100.0/24\", \"192.0.2.0/24\"]"), "{}", server.text());
    let target = "/lists/deny/clients?client=192.0.2.0%2F24";
    assert_eq!(change(&server, &admin, "DELETE", target, Value::Null).status, 200);
    assert_eq!(change(&server, &admin, "DELETE", target, Value::Null).status, 409);
    assert_eq!(server.text(), DOCUMENT);
}

/// A form sends values: they are read, changed, checked at their places, and nothing else changes.
#[test]
fn values_are_changed_at_their_places() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let read = server.get("/config", &admin).json();
    assert_eq!(read["values"]["sites"][0]["upstream"], "app");
    let schema = server.get("/config/schema", &server.token(Role::Viewer)).json();
    assert!(schema["properties"]["sites"]["description"].is_string(), "{schema}");
    let patch = |changes: Value, dry_run: bool| {
        let order = json!({"changes": changes, "dry_run": dry_run, "reason": "a second shop"});
        change(&server, &admin, "PATCH", "/config", order)
    };
    let site = json!({"name": "second", "hosts": ["second.example"], "upstream": "web"});
    let upstream = json!({"endpoints": ["http://127.0.0.1:9001"]});
    let both = json!([{"path": "/upstreams/web", "value": upstream}, {"path": "/sites/-", "value": site}]);
    let tried = patch(both.clone(), true);
    assert_eq!((tried.status, server.text().as_str()), (200, DOCUMENT), "{}", tried.text());
    let made = patch(both, false);
    assert_eq!((made.status, &made.json()["revision"]), (200, &json!(2)), "{}", made.text());
    assert_eq!(made.json()["diff"], tried.json()["diff"]);
    // What was tried is what was made; only who may read the document gets its text.
    assert_eq!(tried.json()["text"], server.text());
    assert_eq!(made.json()["text"], Value::Null);
    assert!(DOCUMENT.lines().all(|line| server.text().contains(line)), "{}", server.text());
    let trail = server.identities.audit(None, 1).unwrap();
    assert_eq!(trail[0].detail, "values of /upstreams/web, /sites/- (a second shop)");
    // All or nothing: the first would do.
    let before = server.text();
    let half = json!([{"path": "/workers", "value": 2}, {"path": "/sites/9/mode", "value": "off"}]);
    assert_eq!(patch(half, false).status, 409);
    assert_eq!(server.text(), before);
    // Null removes.
    assert_eq!(
        patch(json!([{"path": "/sites/1"}, {"path": "/upstreams/web", "value": null}]), false).status,
        200
    );
    assert_eq!(server.text().trim_end(), DOCUMENT.trim_end());
    let many = Value::from(vec![json!({"path": "/x"}); 101]);
    for changes in [json!([]), many, json!([{"path": "/x", "op": "add"}]), json!("x")] {
        assert_eq!(patch(changes.clone(), true).status, 422, "{changes}");
    }
}

/// Each mistake names the value that it is about, whatever is wrong with it.
#[test]
fn mistakes_name_the_value_they_are_about() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    for (path, value, pointer) in [
        ("/sites/0/mode", json!("loud"), "/sites/0/mode"),
        ("/sites/0/upstream", json!("nobody"), "/sites/0/upstream"),
        ("/sites/0/hosts", json!(["shop.example", "no host"]), "/sites/0/hosts/1"),
        ("/sites/0/nonsense", json!(true), "/sites/0/nonsense"),
        ("/sites/0/routes", json!([{"path": "/a", "mode": 7}]), "/sites/0/routes/0/mode"),
        ("/sites/-", json!({"name": "second", "upstream": "app"}), "/sites/1"),
        ("/sites/0/rate_limits", json!([{"name": "a", "rate": 0}]), "/sites/0/rate_limits/0/rate"),
        ("/upstreams/app/endpoints", json!(["ftp://x"]), "/upstreams/app/endpoints/0"),
        ("/upstreams/a~1b", json!({"endpoints": ["x"]}), "/upstreams/a~1b"),
        ("/upstreams/app/connect_timeout", json!("soon"), "/upstreams/app/connect_timeout"),
        ("/workers", json!("many"), "/workers"),
    ] {
        let order = json!({"changes": [{"path": path, "value": value}], "dry_run": true});
        let answer = change(&server, &admin, "PATCH", "/config", order);
        assert_eq!((answer.status, kind(&answer).as_str()), (422, "document"), "{path}: {}", answer.text());
        let json = answer.json();
        let named: Vec<&str> = json["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|each| each["pointer"].as_str())
            .collect();
        assert!(
            named.iter().any(|each| each.starts_with(pointer)),
            "{path}: {pointer} is not among {named:?}"
        );
    }
}

#[test]
fn who_keeps_the_document_in_git_is_shown_the_change() {
    let server = Server::read_only();
    let admin = server.token(Role::Admin);
    let order = json!({"site": "shop", "class": "xss", "location": "form:body"});
    let refused = change(&server, &admin, "POST", "/exclusions", order.clone());
    assert_eq!((refused.status, kind(&refused).as_str()), (403, "read-only"));
    let mut order = order;
    order["dry_run"] = true.into();
    let tried = change(&server, &admin, "POST", "/exclusions", order);
    assert!(tried.json()["diff"].as_str().unwrap().contains("+location = \"form:body\""));
    assert_eq!(server.text(), DOCUMENT);
}

/// Of several who change the document that all of them have read, one does; what it wrote stays.
#[test]
fn no_change_is_lost_to_another() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let read = server.get("/config", &admin).header("etag").unwrap().to_owned();
    let patch = |tag: &str, number: usize| {
        let value = json!({"endpoints": [format!("http://127.0.0.1:{}", 9100 + number)]});
        let order = json!({"changes": [{"path": format!("/upstreams/u{number}"), "value": value}]});
        server.ask("PATCH", "/config").bearer(&admin).header("If-Match", tag).json(order).send()
    };
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6)
            .map(|number| {
                scope.spawn({
                    let patch = &patch;
                    let read = &read;
                    move || patch(read, number).status
                })
            })
            .collect();
        all.into_iter().map(|each| each.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 412, 503].contains(status)), "{statuses:?}");
    let written = (0..6).filter(|number| server.text().contains(&format!("[upstreams.u{number}]"))).count();
    assert_eq!(written, 1, "{}", server.text());
    // Somebody with an editor is one of them, too.
    let read = server.get("/config", &admin).header("etag").unwrap().to_owned();
    let by_hand = format!("{}# by hand\n", server.text());
    std::fs::write(server.folder.path().join("portcullis.toml"), &by_hand).unwrap();
    let late = patch(&read, 7);
    assert_eq!((late.status, server.text()), (412, by_hand.clone()), "{}", late.text());
    // Who reads again changes what is there now.
    let read = server.get("/config", &admin).header("etag").unwrap().to_owned();
    assert_eq!(patch(&read, 7).status, 200);
    assert!(server.text().contains("# by hand\n") && server.text().contains("[upstreams.u7]"));
    // Without the tag nobody changes anything.
    let order = json!({"changes": [{"path": "/workers", "value": 2}]});
    assert_eq!(server.ask("PATCH", "/config").bearer(&admin).json(order).send().status, 428);
}

/// Whatever a change is, it is answered soon and in few words, and what is refused changes nothing.
#[test]
fn hostile_changes_are_refused() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let tag = etag(&server, &admin);
    let send = |body: String| {
        let ask = server.ask("PATCH", "/config").bearer(&admin).header("If-Match", &tag);
        ask.json(body).send()
    };
    let one =
        |path: &str, value: &str| format!("{{\"changes\":[{{\"path\":{},\"value\":{value}}}]}}", json!(path));
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    let many = vec!["{\"path\":\"/workers\",\"value\":2}"; 20_000].join(",");
    for body in [
        one(&"/a".repeat(100_000), "1"),
        one(&format!("/{}", "x".repeat(500_000)), "1"),
        one("/~2", "1"),
        one("/sites/00/mode", "\"off\""),
        one("/sites/0/mode", "NaN"),
        one("/sites/0/mode", "1e999"),
        one("/workers", "18446744073709551615"),
        one("/sites/0/mode", &deep("[", "]")),
        one("/sites/0/mode", &deep("{\"a\":", "}")),
        one("/__proto__", "{\"mode\":\"off\"}"),
        one("/sites/0/constructor", "{\"prototype\":1}"),
        one("/sites/0/mode", "\"\\ud800\""),
        one("", "{}"),
        one("/", "1"),
        format!("{{\"changes\":[{many}]}}"),
        "{\"changes\":[],\"changes\":[{\"path\":\"/workers\",\"value\":2}]}".to_owned(),
        "{\"changes\":[{\"path\":\"/workers\",\"path\":\"/sites/0/mode\",\"value\":2}]}".to_owned(),
        "{\"changes\":{\"path\":\"/workers\"}}".to_owned(),
    ] {
        let begun = std::time::Instant::now();
        let answer = send(body.clone());
        let shown: String = body.chars().take(80).collect();
        assert!((400..500).contains(&answer.status), "{shown}: {} {}", answer.status, answer.text());
        assert!(answer.text().len() < 20_000, "{shown}: {}", answer.text().len());
        assert!(begun.elapsed().as_secs() < 30, "{shown}: {:?}", begun.elapsed());
        assert_eq!(server.text(), DOCUMENT, "{shown}");
    }
    let trail = server.identities.audit(None, 50).unwrap();
    assert!(trail.iter().all(|entry| entry.detail.chars().count() <= 500));
    assert_eq!(server.get("/config", &admin).status, 200);
}

/// What only an administrator may read comes out nowhere else, whatever is asked for by whom.
#[test]
fn the_document_comes_out_to_nobody_else() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let order = json!({"changes": [{"path": "/upstreams/secret-hunter3", "value": {"endpoints": ["http://127.0.0.1:9001"]}},
        {"path": "/sites/0/mode", "value": "hunter4"}]});
    assert_eq!(change(&server, &admin, "PATCH", "/config", order).status, 422);
    let order = json!({"changes": [{"path": "/workers", "value": 2}], "reason": "two"});
    assert_eq!(change(&server, &admin, "PATCH", "/config", order).status, 200);
    let routes = server.document["paths"].as_object().unwrap().clone();
    let mut asked = 0;
    for role in [Role::Viewer, Role::Analyst] {
        let token = server.token(role);
        for (path, item) in &routes {
            // The stream of events does not end.
            if item.get("get").is_none() || path.ends_with("/stream") {
                continue;
            }
            let path = path
                .strip_prefix("/api/v1")
                .unwrap_or(path)
                .replace("{number}", "1")
                .replace("{site}", "shop");
            let text = server.get(&path, &token).text();
            asked += 1;
            for secret in ["hunter2", "hunter3", "hunter4"] {
                assert!(!text.contains(secret), "{role} {path}: {text}");
            }
        }
        for order in [
            json!({"changes": [{"path": "/sites/0/mode", "value": "off"}]}),
            json!({"changes": []}),
            json!(7),
        ] {
            let refused = change(&server, &token, "PATCH", "/config", order);
            assert_eq!(refused.status, 403, "{role}: {}", refused.text());
            assert!(!refused.text().contains("hunter2"));
        }
    }
    assert!(asked > 20, "{asked}");
}
