//! Identities that are limited to some sites.

use portcullis_api::Limits;
use portcullis_event::{Event, KeptRequest, Timestamp};
use portcullis_event_store::{StoreSettings, Writer};
use portcullis_identity::{Actor, NewToken, Role, Sites};
use serde_json::{Value, json};

use crate::client::Answer;
use crate::openapi::{filled, operations};
use crate::server::{NOW_MS, Server};

/// A token of an analyst of these sites.
fn limited(server: &Server, sites: &[&str]) -> String {
    let name = format!("limited to {}", sites.join(" "));
    let sites = Sites::named(sites.iter().map(|&site| site.to_owned())).unwrap();
    let new = NewToken { name, role: Role::Analyst, sites, expires: None };
    server.identities.create_token(&new, &Actor::new("test"), server.now()).unwrap().1
}

/// Events of the site `shop` with kept requests, an exclusion there, and what the program has of it.
fn start() -> Server {
    let zero = std::time::Duration::ZERO;
    let server =
        Server::with(Limits { stream_time_max: zero, stranger_login_time: zero, ..Limits::default() });
    let folder = server.folder.path().join("events");
    let mut writer = Writer::open(StoreSettings::new(folder), false).unwrap();
    for number in 0..4 {
        let mut event = Event::new(format!("r{number}"), Timestamp::from_epoch_millis(NOW_MS + number));
        (event.site, event.route) = ("shop".into(), "/".into());
        let score = json!({"class": "sqli", "place": "query", "name": "q", "points": 9, "threshold": 5, "outcome": "blocked"});
        event.scores.semantic.push(serde_json::from_value(score).unwrap());
        event.request.target = "/shop-only".to_owned();
        let request = KeptRequest { bytes: b"GET /shop-only HTTP/1.1\r\n\r\n".to_vec(), omitted: 0 };
        writer.add(&event, Some(&request));
    }
    writer.commit(NOW_MS).unwrap();
    let admin = server.token(Role::Admin);
    for (location, more) in [("form:shop-field", json!({})), ("form:shop-trial", json!({"trial": true}))] {
        let order = exclusion(location, more);
        let ask = server.ask("POST", "/exclusions").bearer(&admin).header("If-Match", "*");
        let added = ask.json(order).send();
        assert_eq!(added.status, 200, "{}", added.text());
    }
    server
}

fn exclusion(location: &str, more: Value) -> Value {
    let mut order = json!({"site": "shop", "class": "sqli", "location": location});
    order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    order
}

/// Requests by which a route would show or do something of the site `shop`. A new route that is said to look
/// at sites needs one here.
fn asks(server: &Server, method: &str, path: &str) -> Vec<(String, Option<Value>)> {
    let admin = server.token(Role::Admin);
    let first = |list: &str| {
        let items = server.get(list, &admin).json()["items"].clone();
        items.as_array().unwrap().iter().find(|item| item["site"] == "shop").expect("one of the shop").clone()
    };
    let id = |location: &str| {
        let items = server.get("/exclusions", &admin).json()["items"].clone();
        let found = items.as_array().unwrap().iter().find(|item| item["location"] == location).cloned();
        // What a request before has taken away was there.
        found.map_or_else(|| "gone".to_owned(), |item| item["id"].as_str().unwrap().to_owned())
    };
    let get = |targets: &[&str]| targets.iter().map(|&target| (target.to_owned(), None)).collect();
    let post = |target: &str, body: Value| vec![(target.to_owned(), Some(body))];
    let route = path.strip_prefix("/api/v1").unwrap();
    match (method, route) {
        ("GET", "/events") => {
            get(&["/events", "/events?filter=site+%3D+shop", "/events?filter=not+id+%3D+x"])
        }
        // With an event of each site: `a_stream_has_only_events_of_own_sites`.
        ("GET", "/events/stream") => Vec::new(),
        // Has counts alone: see below.
        ("GET", "/events/histogram") => Vec::new(),
        ("GET", "/events/facets") => get(&[
            "/events/facets?fields=site,path",
            "/events/facets?fields=site&filter=verdict+%3D+pass+or+id+%3D+r0+or+site+%3D+shop",
        ]),
        ("GET", "/events/{request_id}") => get(&["/events/r1"]),
        ("GET", "/events/{request_id}/request") => get(&["/events/r1/request"]),
        // With requests of two sites: `statistics_count_all_requests`.
        ("GET", "/statistics") => Vec::new(),
        ("GET", "/bans") => get(&["/bans"]),
        ("POST", "/bans") => {
            let everywhere = json!({"client": "192.0.2.1", "seconds": 60});
            let there = json!({"client": "192.0.2.1", "seconds": 60, "ban": "shop"});
            [post("/bans", there), post("/bans", everywhere)].concat()
        }
        ("DELETE", "/bans/{client}") => get(&["/bans/192.0.2.1?ban=shop", "/bans/192.0.2.1"]),
        ("GET", "/upstreams" | "/certificates" | "/agents") => get(&[route]),
        ("GET", "/limits" | "/lists" | "/sites" | "/exclusions" | "/interfaces") => get(&[route]),
        ("GET", "/sites/{name}") => get(&["/sites/shop"]),
        ("GET", "/rules") => get(&["/rules?site=shop"]),
        ("GET", "/rules/{id}") => get(&["/rules/942100?site=shop"]),
        ("GET", "/fields" | "/fields/sites" | "/fields/proposals") => get(&[route]),
        ("GET", "/fields/find") => {
            let field = first("/fields");
            let text = |name: &str| field[name].as_str().unwrap().replace('{', "%7B").replace('}', "%7D");
            let at = ["site", "method", "path", "place", "name"].map(|name| format!("{name}={}", text(name)));
            vec![(format!("/fields/find?{}", at.join("&")), None)]
        }
        ("POST", "/fields/{order}") => {
            let field = first("/fields");
            let at = |name: &str| field[name].clone();
            post(
                "/fields/keep-open",
                json!({"site": at("site"), "method": at("method"), "path": at("path"), "place": at("place"), "name": at("name")}),
            )
        }
        ("POST", "/fields/proposals/{decision}") => {
            post("/fields/proposals/dismiss", json!({"site": "shop", "id": first("/fields/proposals")["id"]}))
        }
        ("POST", "/explain") => {
            let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
            [
                post("/explain", json!({"site": "shop", "request": request})),
                post("/explain", json!({"request_id": "r1"})),
            ]
            .concat()
        }
        ("POST", "/advise") => post("/advise", json!({"request_id": "r1"})),
        ("POST", "/exclusions") => post("/exclusions", exclusion("form:shop-other", json!({}))),
        ("POST", "/exclusions/batch") => {
            post("/exclusions/batch", json!({"add": [exclusion("form:shop-third", json!({}))]}))
        }
        ("POST", "/exclusions/{id}/enforce") => {
            let id = id("form:shop-trial");
            post(&format!("/exclusions/{id}/enforce"), json!({}))
        }
        ("DELETE", "/exclusions/{id}") => vec![(format!("/exclusions/{}", id("form:shop-field")), None)],
        ("POST", "/lists/{list}/clients") => {
            post("/lists/deny/clients", json!({"client": "192.0.2.8", "site": "shop"}))
        }
        ("DELETE", "/lists/{list}/clients") => {
            get(&["/lists/deny/clients?client=198.51.100.0%2F24&site=shop"])
        }
        ("GET", "/advise/groups") => {
            get(&["/advise/groups?filter=time+%3E+2020-01-01", "/advise/groups?filter=site+%3D+shop"])
        }
        ("GET", "/interfaces/deviations") => get(&["/interfaces/deviations"]),
        ("GET", "/interfaces/openapi") => get(&["/interfaces/openapi?site=shop"]),
        ("GET", "/interfaces/{id}") => {
            vec![(format!("/interfaces/{}", first("/interfaces")["id"].as_str().unwrap()), None)]
        }
        _ => panic!("{method} {route} looks at sites: say here by which requests it would show one"),
    }
}

fn send(server: &Server, method: &str, (target, body): &(String, Option<Value>), token: &str) -> Answer {
    let ask = server.ask(method, target).bearer(token).header("If-Match", "*");
    match body {
        Some(body) => ask.json(body).send(),
        None => ask.send(),
    }
}

/// Whoever is limited to another site gets nothing of the site `shop` by any route; whoever is limited to it
/// gets what everybody gets of it.
#[test]
fn a_limited_identity_gets_nothing_of_other_sites() {
    let server = start();
    let (all, shop, blog) =
        (server.token(Role::Analyst), limited(&server, &["shop"]), limited(&server, &["blog"]));
    let mut looked_at = 0;
    for (path, method, role) in operations(&server.document) {
        let operation = &server.document["paths"][&path][method.to_ascii_lowercase()];
        let reach = operation["x-sites"].as_str().expect("every operation says which sites it is about");
        if !["viewer", "analyst"].contains(&&*role) {
            // Administrators are not limited, and sessions are one's own.
            assert_eq!(reach == "all", role == "admin", "{method} {path}");
            continue;
        }
        match reach {
            "all" => {
                for token in [&shop, &blog] {
                    let answer = server.ask(&method, &filled(&path)).bearer(token).send();
                    assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text());
                }
            }
            "own" => {
                for ask in asks(&server, &method, &path) {
                    looked_at += 1;
                    let told = |answer: &Answer| String::from_utf8_lossy(&answer.body).into_owned();
                    let foreign = send(&server, &method, &ask, &blog);
                    assert!(!told(&foreign).contains("shop"), "{method} {ask:?}: {}", told(&foreign));
                    if method != "GET" {
                        assert!([403, 404].contains(&foreign.status), "{method} {ask:?}: {}", foreign.text());
                    }
                    // Certificates and agents belong to no site, the upstreams here neither; a ban without a
                    // place counts everywhere, and the lists here are those of all sites.
                    let is_shared = ["/certificates", "/agents", "/upstreams"].contains(&&*ask.0)
                        || path.contains("/bans") && method != "GET" && !format!("{ask:?}").contains("shop")
                        || path.contains("/lists/");
                    let own = send(&server, &method, &ask, &shop);
                    if is_shared {
                        assert!(!told(&own).contains("items\":[{"), "{method} {ask:?}: {}", own.text());
                        assert!(method == "GET" || own.status == 403, "{method} {ask:?}: {}", own.text());
                        continue;
                    }
                    assert!(own.status < 300, "{method} {ask:?}: {}", own.text());
                    if method == "GET" {
                        let everything = send(&server, &method, &ask, &all);
                        assert_eq!(everything.status, own.status, "{method} {ask:?}: {}", everything.text());
                        let is_told = told(&everything).contains("shop") && told(&own).contains("shop");
                        // Some answers do not name their site: others do not get them at all.
                        assert!(is_told || foreign.status == 404, "{method} {ask:?}: {}", own.text());
                    }
                }
            }
            "none" => {
                assert_eq!(server.ask(&method, &filled(&path)).bearer(&blog).send().status, 200, "{path}")
            }
            other => panic!("{other}"),
        }
    }
    assert!(looked_at >= 28, "{looked_at}");
    for (token, expected) in [(&all, 4), (&shop, 4), (&blog, 0)] {
        let counted =
            server.get("/events/histogram?filter=time+%3E+2020-01-01+or+site+%3D+shop", token).json();
        assert_eq!(counted["total"], expected, "{counted}");
    }
    // Nothing was done for whoever is limited to another site.
    let trail = server.identities.audit(None, 1000).unwrap();
    let foreign = trail.iter().filter(|entry| entry.actor.contains("limited to blog"));
    assert!(foreign.clone().count() > 0, "{trail:?}");
    assert!(foreign.clone().all(|entry| entry.object == "refused" && entry.change.is_empty()), "{trail:?}");
}

#[test]
fn limits_of_users_count_at_the_next_request() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let order = |role: &str, sites: Value| json!({"name": "anna", "role": role, "sites": sites, "password": "correct horse battery"});
    let create = |body: Value| server.ask("POST", "/users").bearer(&admin).json(body).send();
    for (role, sites) in [
        ("admin", json!(["shop"])),
        ("viewer", json!([])),
        ("viewer", json!([""])),
        ("viewer", json!(["a\nb"])),
        ("viewer", json!("shop")),
    ] {
        assert_eq!(create(order(role, sites.clone())).status, 422, "{role} {sites}");
    }
    let created = create(order("viewer", json!(["shop"])));
    assert_eq!((created.status, &created.json()["sites"]), (201, &json!(["shop"])), "{}", created.text());
    let (cookie, _) = server.session("anna");
    let get = |path: &str| server.ask("GET", path).header("Cookie", &cookie).send();
    let sites = || {
        let items = get("/sites").json()["items"].clone();
        items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!((sites(), &get("/session").json()["sites"]), (vec!["shop".to_owned()], &json!(["shop"])));
    let change = |body: Value| {
        server.ask("PATCH", "/users/anna").bearer(&admin).header("If-Match", "*").json(body).send()
    };
    assert_eq!(change(json!({"sites": ["api", "blog"]})).status, 200);
    assert_eq!(sites(), ["api", "blog"]);
    // A role that has all sites needs them first; without the member the limits stay.
    assert_eq!(change(json!({"role": "admin"})).status, 422);
    assert_eq!(change(json!({"role": "analyst"})).status, 200);
    assert_eq!(sites(), ["api", "blog"]);
    assert_eq!(change(json!({"sites": null})).json()["sites"], Value::Null);
    assert_eq!(sites(), ["api", "blog", "shop"]);
    let trail = server.identities.audit(None, 1).unwrap().remove(0);
    assert_eq!(trail.detail, "limits: the sites api, blog to all sites");
}
