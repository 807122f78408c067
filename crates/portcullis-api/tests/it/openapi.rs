//! The document says what the router does.

use portcullis_identity::Role;
use serde_json::Value;

use crate::server::Server;

/// Every operation of the document: path, method, role.
pub fn operations(document: &Value) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let role = operation["x-role"].as_str().expect("every operation says who may ask").to_owned();
            all.push((path.clone(), method.to_ascii_uppercase(), role));
        }
    }
    assert!(all.len() >= 25, "{}", all.len());
    all
}

/// A path with something in place of its parameters.
pub fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"];

#[test]
fn it_is_there_for_everybody() {
    let server = Server::start();
    let answer = server.ask("GET", "/openapi.json").send();
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.json(), server.document);
    assert_eq!(server.document["openapi"], "3.1.0");
    // With any credentials, too.
    assert_eq!(server.get("/openapi.json", "wrong").status, 200);
}

/// Each path has exactly the methods of the document; everything else is 405 with `Allow`.
#[test]
fn it_lists_exactly_the_routes() {
    let server = Server::start();
    let operations = operations(&server.document);
    let paths: std::collections::BTreeSet<&String> = operations.iter().map(|(path, ..)| path).collect();
    for path in paths {
        let listed = |method: &str| operations.iter().any(|(own, other, _)| own == path && other == method);
        for method in METHODS {
            let answer = server.ask(method, &filled(path)).send();
            let is_there = listed(method) || method == "HEAD" && listed("GET");
            assert_eq!(
                answer.status != 405 && answer.status != 404,
                is_there,
                "{method} {path}: {}",
                answer.text()
            );
            if !is_there {
                assert_eq!(answer.status, 405, "{method} {path}");
                let allowed = answer.header("allow").unwrap();
                assert!(
                    allowed.split(',').all(|one| listed(one) || one == "HEAD" && listed("GET")),
                    "{allowed}"
                );
            }
        }
    }
}

#[test]
fn every_other_path_is_no_route() {
    let server = Server::start();
    let token = server.token(Role::Admin);
    for target in [
        "/api",
        "/api/",
        "/api/v1",
        "/api/v1/",
        "/api/v2/events",
        "/api/v1/events/",
        "/api/v1//events",
        "/api/v1/./events",
        "/api/v1/../v1/events",
        "/api/v1/%65vents",
        "/api/v1/events%2F",
        "/API/v1/events",
        "/api/v1/events;x",
        "/metrics",
        "/api/v1/events/a/b",
        "/%00",
        "/api/v1/users/..%2f..%2f",
        "/.git/config",
    ] {
        let answer = server.ask("GET", target).bearer(&token);
        let mut answer = answer;
        answer.target = target.to_owned();
        assert_eq!(answer.send().status, 404, "{target}");
    }
}
