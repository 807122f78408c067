//! The settings that serve, as a program with three of everything tells them.

use portcullis_api::live::{
    AccessList, Agent, Certificate, Clients, Decisions, Inspection, LiveState, PathKind, RateLimit, Route,
    Rule, RuleState, Site, Snapshot, Target, Upstream,
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
            // One that is not inspected, and one that is.
            routes: vec![route("/static", None), route("/", Some(inspection()))],
            limits: Vec::new(),
            looks_like: Vec::new(),
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

    fn decides(&self, rule: u32) -> bool {
        rule == 700_001
    }

    fn rules(&self, site: &str, route: &str, text: Option<u32>) -> Option<Snapshot<Rule>> {
        let rule = |rule_id: u32, state, paranoia, matches, message: &str| Rule {
            rule_id,
            phase: 2,
            state,
            severity: Some("CRITICAL"),
            message: message.to_owned(),
            tags: vec!["attack-sqli".to_owned()],
            paranoia,
            file: "/etc/rules/sqli.conf".to_owned(),
            line: 1,
            notes: Vec::new(),
            matches,
            text: (text == Some(rule_id)).then(|| "SecRule".to_owned()),
        };
        let items = vec![
            rule(942_100, RuleState::Active, Some(1), 3, "SQL Injection"),
            rule(900_990, RuleState::Active, None, 0, ""),
            rule(942_120, RuleState::Dead, Some(2), 0, "SQL operator"),
        ];
        (site == "shop" && route == "/").then_some(Snapshot { generation: 7, items })
    }
}

fn route(name: &str, inspection: Option<Inspection>) -> Route {
    Route {
        name: name.to_owned(),
        path_kind: PathKind::Prefix,
        path: name.to_owned(),
        methods: Vec::new(),
        headers: Vec::new(),
        target: Target::Respond { status: 204 },
        inspection,
        agents: Vec::new(),
        limits: Vec::new(),
    }
}

fn inspection() -> Inspection {
    Inspection {
        mode: "crs",
        engine: "blocking",
        paranoia: None,
        level: None,
        rules: 3,
        response_body: None,
        classes: Vec::new(),
        exclusions: 0,
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

#[test]
fn rules_are_found_by_what_is_known_of_them() {
    let server = Server::start();
    let viewer = server.token(Role::Viewer);
    let ids = |query: &str| -> Vec<u64> {
        let page = server.get(&format!("/rules{query}"), &viewer).json();
        assert_eq!(
            page["total"].as_u64().unwrap() as usize,
            page["items"].as_array().unwrap().len(),
            "{page}"
        );
        page["items"].as_array().unwrap().iter().map(|rule| rule["rule_id"].as_u64().unwrap()).collect()
    };
    // The first route that is inspected, whatever stands before it.
    assert_eq!(ids(""), [900_990, 942_100, 942_120]);
    assert_eq!(ids("?site=shop&route=/"), [900_990, 942_100, 942_120]);
    assert_eq!(ids("?state=dead"), [942_120]);
    assert_eq!(ids("?paranoia=1"), [900_990, 942_100]);
    assert_eq!(ids("?matched=true"), [942_100]);
    assert_eq!(ids("?search=INJECTION"), [942_100]);
    assert_eq!(ids("?search=9421"), [942_100, 942_120]);
    assert_eq!(ids("?search=sqli.conf"), [900_990, 942_100, 942_120]);
    assert_eq!(ids("?search=attack-xss"), [0; 0]);
    let first = server.get("/rules?limit=2", &viewer).json();
    assert_eq!((&first["total"], &first["next"]), (&3.into(), &"0000942100".into()), "{first}");
    let second = server.get("/rules?limit=2&cursor=0000942100", &viewer).json();
    assert_eq!(
        (&second["items"][0]["rule_id"], &second["next"]),
        (&942_120.into(), &serde_json::Value::Null)
    );
    let one = server.get("/rules/942100", &viewer).json();
    assert_eq!((&one["rule_id"], &one["text"]), (&942_100.into(), &"SecRule".into()), "{one}");
    assert_eq!(first["items"][0]["text"], serde_json::Value::Null);
    for path in ["/rules/1", "/rules?site=nowhere", "/rules?site=shop&route=/static", "/rules/x"] {
        assert_eq!(server.get(path, &viewer).status, 404, "{path}");
    }
    let long = format!("/rules?search={}", "x".repeat(201));
    for path in ["/rules?state=asleep", "/rules?paranoia=5", "/rules?what=1", &long] {
        assert_eq!(server.get(path, &viewer).status, 400, "{path}");
    }
}
