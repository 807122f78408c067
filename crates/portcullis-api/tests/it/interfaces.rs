//! The endpoints that were discovered, as a program with a few of them tells them.

use portcullis_api::interfaces::{
    DeviationCounts, Interface, InterfaceCount, InterfaceDeviation, InterfaceDifference, InterfaceItem,
    InterfaceLatency, InterfaceList, InterfaceParameter, InterfaceSite, InterfaceType, Interfaces,
    StatusClasses,
};
use portcullis_identity::Role;
use serde_json::{Value, json};

use crate::server::Server;

/// A site with three endpoints, not in the order of their paths.
pub struct Shop;

fn item(method: &str, path: &str) -> InterfaceItem {
    InterfaceItem {
        id: format!("{method}-{}", path.len()),
        site: "shop".to_owned(),
        method: method.to_owned(),
        path: path.to_owned(),
        first_seen: "2026-11-01T00:00:00Z".to_owned(),
        last_seen: "2026-11-29T00:00:00Z".to_owned(),
        is_new: false,
        is_idle: false,
        is_confirmed: true,
        requests: 7,
        refused: 1,
        networks: 3,
        days: 2,
        statuses: StatusClasses { success: 6, redirection: 0, client_error: 1, server_error: 0 },
        authentication: vec!["bearer"],
        sensitive: vec!["email"],
        parameters: 1,
        p50_ms: Some(5),
        p95_ms: None,
    }
}

fn all() -> Vec<InterfaceItem> {
    vec![item("GET", "/users/{number}"), item("POST", "/orders"), item("GET", "/orders")]
}

impl Interfaces for Shop {
    fn list(&self, site: Option<&str>, text: &str) -> InterfaceList {
        let fits = |item: &InterfaceItem| {
            site.is_none_or(|site| site == item.site)
                && format!("{} {}", item.method, item.path).to_lowercase().contains(&text.to_lowercase())
        };
        let site = InterfaceSite {
            site: "shop".to_owned(),
            endpoints: 3,
            max: 2_000,
            beyond: 0,
            since: Some("2026-11-01T00:00:00Z".to_owned()),
            deviations: Some(DeviationCounts { shadow: 1, drifted: 1, zombie: 0, unseen: 0 }),
        };
        InterfaceList { items: all().into_iter().filter(fits).collect(), sites: vec![site] }
    }

    fn one(&self, id: &str) -> Option<Interface> {
        let endpoint = all().into_iter().find(|item| item.id == id)?;
        let count = |name: &str| InterfaceCount { name: name.to_owned(), requests: 7 };
        Some(Interface {
            endpoint,
            parameters: vec![InterfaceParameter {
                place: "query",
                name: "page".to_owned(),
                required: true,
                requests: 7,
                types: vec![InterfaceType { kind: "whole", values: 7 }],
                bytes_min: 1,
                bytes_max: 2,
                number_min: Some(1),
                number_max: None,
            }],
            authentication: vec![count("bearer")],
            sensitive: vec![count("email")],
            answers_inspected: 7,
            request_types: Vec::new(),
            response_types: vec![count("application/json")],
            status_codes: vec![count("200")],
            latency: vec![InterfaceLatency { up_to_ms: None, requests: 7 }],
        })
    }

    fn deviations(&self, site: Option<&str>) -> Vec<InterfaceDeviation> {
        let one = |kind, path: &str, differences| InterfaceDeviation {
            site: "shop".to_owned(),
            kind,
            method: "GET".to_owned(),
            path: path.to_owned(),
            differences,
        };
        let difference = InterfaceDifference {
            what: "query:page".to_owned(),
            declared: Some("boolean, optional".to_owned()),
            seen: Some("integer, required".to_owned()),
        };
        let all =
            vec![one("drifted", "/users/{number}", vec![difference]), one("shadow", "/orders", Vec::new())];
        all.into_iter().filter(|each| site.is_none_or(|site| site == each.site)).collect()
    }

    fn document(&self, site: &str) -> Option<String> {
        (site == "shop").then(|| json!({ "openapi": "3.1.0" }).to_string())
    }
}

fn paths(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|item| format!("{} {}", item["method"].as_str().unwrap(), item["path"].as_str().unwrap()))
        .collect()
}

#[test]
fn pages_of_endpoints() {
    let server = Server::start();
    let viewer = server.token(Role::Viewer);
    let page = server.get("/interfaces", &viewer).json();
    let all = ["GET /orders", "POST /orders", "GET /users/{number}"];
    assert_eq!(
        (paths(&page), &page["total"], &page["next"]),
        (all.map(str::to_owned).to_vec(), &3.into(), &Value::Null)
    );
    assert_eq!((&page["sites"][0]["max"], &page["items"][0]["statuses"]["4xx"]), (&2_000.into(), &1.into()));
    let first = server.get("/interfaces?limit=2", &viewer).json();
    assert_eq!(
        (paths(&first), &first["total"]),
        (all[..2].iter().map(ToString::to_string).collect(), &3.into())
    );
    let cursor = first["next"].as_str().unwrap().replace(' ', "%20").replace('{', "%7B").replace('}', "%7D");
    let second = server.get(&format!("/interfaces?limit=2&cursor={cursor}"), &viewer).json();
    assert_eq!((paths(&second), &second["next"]), (vec![all[2].to_owned()], &Value::Null));
    assert_eq!(paths(&server.get("/interfaces?q=get%20/ORD", &viewer).json()), ["GET /orders"]);
    assert!(paths(&server.get("/interfaces?site=other", &viewer).json()).is_empty());
    for query in ["limit=0", "limit=1001", "page=1", &format!("q={}", "x".repeat(257))] {
        assert_eq!(server.get(&format!("/interfaces?{query}"), &viewer).status, 400, "{query}");
    }
}

#[test]
fn pages_of_deviations() {
    let server = Server::start();
    let viewer = server.token(Role::Viewer);
    let page = server.get("/interfaces/deviations?site=shop", &viewer).json();
    assert_eq!((paths(&page).len(), &page["total"], &page["next"]), (2, &2.into(), &Value::Null));
    assert_eq!(page["items"][0]["kind"], "shadow");
    assert_eq!(page["items"][1]["differences"][0]["seen"], "integer, required");
    let first = server.get("/interfaces/deviations?limit=1", &viewer).json();
    assert_eq!(paths(&first), ["GET /orders"]);
    let cursor = first["next"].as_str().unwrap().replace(' ', "%20");
    let second = server.get(&format!("/interfaces/deviations?limit=1&cursor={cursor}"), &viewer).json();
    assert_eq!((paths(&second), &second["next"]), (vec!["GET /users/{number}".to_owned()], &Value::Null));
    assert_eq!(paths(&server.get("/interfaces/deviations?kind=shadow", &viewer).json()), ["GET /orders"]);
    assert!(paths(&server.get("/interfaces/deviations?site=other", &viewer).json()).is_empty());
    for query in ["kind=other", "limit=0", "limit=1001", "q=a"] {
        assert_eq!(server.get(&format!("/interfaces/deviations?{query}"), &viewer).status, 400, "{query}");
    }
    let sites = server.get("/interfaces", &viewer).json();
    assert_eq!(sites["sites"][0]["deviations"]["drifted"], 1);
}

#[test]
fn one_endpoint_and_the_document() {
    let server = Server::start();
    let viewer = server.token(Role::Viewer);
    let one = server.get("/interfaces/GET-7", &viewer).json();
    assert_eq!(
        (&one["endpoint"]["path"], &one["parameters"][0]["types"][0]["type"]),
        (&"/orders".into(), &"whole".into())
    );
    assert_eq!(one["latency"][0]["up_to_ms"], Value::Null);
    for target in ["/interfaces/nothing", "/interfaces/openapi?site=other"] {
        assert_eq!(server.get(target, &viewer).status, 404, "{target}");
    }
    assert_eq!(server.get("/interfaces/openapi", &viewer).status, 400);
    let document = server.get("/interfaces/openapi?site=shop", &viewer);
    assert_eq!(document.header("content-type"), Some("application/json"));
    assert_eq!(document.json()["openapi"], "3.1.0");
    assert_eq!(server.get("/interfaces", "wrong").status, 401);
}
