//! The settings that serve, as a program with three of everything tells them.

use portcullis_api::live::{
    AccessList, Agent, Certificate, Clients, Decisions, LiveState, RateLimit, Site, Snapshot, Upstream,
};
use portcullis_identity::Role;

use crate::server::Server;

/// A program with three of everything, not in the order of their names.
pub struct Three;

fn three<T>(make: impl Fn(&str) -> T) -> Snapshot<T> {
    Snapshot { generation: 7, items: ["shop", "api", "blog"].into_iter().map(make).collect() }
}

impl LiveState for Three {
    fn sites(&self) -> Snapshot<Site> {
        three(|name| Site {
            name: name.to_owned(),
            hosts: vec![format!("{name}.example")],
            listeners: vec!["main".to_owned()],
            routes: Vec::new(),
            limits: Vec::new(),
        })
    }

    fn upstreams(&self) -> Snapshot<Upstream> {
        three(|name| Upstream {
            name: name.to_owned(),
            tls: false,
            checked: false,
            healthy: 0,
            queued: 0,
            endpoints: Vec::new(),
        })
    }

    fn limits(&self) -> Snapshot<RateLimit> {
        three(|name| RateLimit {
            site: "shop".to_owned(),
            route: None,
            name: name.to_owned(),
            key: vec!["client".to_owned()],
            rate: 1,
            per_seconds: 0.5,
            burst: 1,
            methods: Vec::new(),
            action: "block",
            status: 429,
            shared: false,
            keys_max: 10,
            limited: 3,
            evicted: 0,
        })
    }

    fn lists(&self) -> Snapshot<AccessList> {
        three(|name| AccessList {
            site: "shop".to_owned(),
            // Two routes may have one name.
            route: "/".to_owned(),
            place: name.len(),
            bypass: Clients::default(),
            allow: Clients::default(),
            deny: Clients::default(),
            deny_others: false,
            action: "block",
            status: 403,
            site_decisions: Decisions::default(),
        })
    }

    fn certificates(&self) -> Snapshot<Certificate> {
        three(|name| Certificate {
            listener: "main".to_owned(),
            source: "acme",
            file: format!("{name}.pem"),
            issued: false,
            names: Vec::new(),
            issuer: None,
            not_before: None,
            not_after: None,
        })
    }

    fn agents(&self) -> Snapshot<Agent> {
        three(|name| Agent {
            name: name.to_owned(),
            address: "unix:/run/agent.sock".to_owned(),
            breaker: "closed",
            in_flight: 0,
            waiting: 0,
            concurrency: 256,
            timeout_seconds: 1.0,
            failure: "closed",
        })
    }
}

#[test]
fn lists_come_in_pages_in_the_order_of_names() {
    let server = Server::start();
    let viewer = server.token(Role::Viewer);
    for (path, field, names) in [
        ("/sites", "name", ["api", "blog", "shop"]),
        ("/upstreams", "name", ["api", "blog", "shop"]),
        ("/limits", "name", ["api", "blog", "shop"]),
        ("/certificates", "file", ["api.pem", "blog.pem", "shop.pem"]),
        ("/agents", "name", ["api", "blog", "shop"]),
    ] {
        let all = server.get(path, &viewer).json();
        assert_eq!((&all["generation"], &all["next"]), (&7.into(), &serde_json::Value::Null), "{path}");
        let listed = |page: &serde_json::Value| -> Vec<String> {
            let items = page["items"].as_array().unwrap().iter();
            items.map(|item| item[field].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(listed(&all), names, "{path}");
        let first = server.get(&format!("{path}?limit=2"), &viewer).json();
        assert_eq!(listed(&first), names[..2], "{path}");
        let cursor = first["next"].as_str().unwrap().replace('\t', "%09");
        let second = server.get(&format!("{path}?limit=2&cursor={cursor}"), &viewer).json();
        assert_eq!((listed(&second), &second["next"]), (vec![names[2].to_owned()], &serde_json::Value::Null));
    }
}

/// Routes of one name are told apart, so that no page leaves one out.
#[test]
fn routes_of_one_name_are_told_apart() {
    let server = Server::start();
    let viewer = server.token(Role::Viewer);
    let first = server.get("/lists?limit=1", &viewer).json();
    let cursor = first["next"].as_str().unwrap().replace('\t', "%09");
    let second = server.get(&format!("/lists?limit=1&cursor={cursor}"), &viewer).json();
    assert_eq!((&first["items"][0]["place"], &second["items"][0]["place"]), (&3.into(), &4.into()));
}

#[test]
fn one_site() {
    let server = Server::start();
    let viewer = server.token(Role::Viewer);
    let answer = server.get("/sites/shop", &viewer).json();
    assert_eq!((&answer["generation"], &answer["site"]["hosts"][0]), (&7.into(), &"shop.example".into()));
    for name in ["nobody", "SHOP", "sho", "shop%00", "%E9"] {
        let status = server.get(&format!("/sites/{name}"), &viewer).status;
        assert!(matches!(status, 400 | 404), "{name}: {status}");
    }
}

#[test]
fn pages_that_cannot_be_followed() {
    let server = Server::start();
    let viewer = server.token(Role::Viewer);
    for query in ["limit=0", "limit=1001", "limit=-1", "limit=x", "offset=1"] {
        for path in ["/sites", "/upstreams", "/limits", "/lists", "/certificates", "/agents"] {
            assert_eq!(server.get(&format!("{path}?{query}"), &viewer).status, 400, "{path}?{query}");
        }
    }
    // Any text is a place in a list.
    let beyond = server.get("/sites?cursor=%F0%9F%98%80", &viewer).json();
    assert_eq!(beyond["items"].as_array().unwrap().len(), 0);
}
