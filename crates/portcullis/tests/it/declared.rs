//! Declared APIs in the real program: what differs is refused or told, in every mode.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::served::{Served, application, program, says};

const DESCRIPTION: &str = "openapi: 3.0.3
servers: [{ url: 'https://shop.example/v1' }]
security: [{ token: [] }]
components:
  securitySchemes: { token: { type: http, scheme: bearer } }
  schemas:
    Order:
      type: object
      required: [item]
      properties:
        item: { type: string, pattern: '^[a-z]+$' }
        quantity: { type: integer, maximum: 100 }
        password: { type: integer }
        id: { type: integer, readOnly: true }
paths:
  /orders:
    get:
      security: []
      parameters: [{ name: limit, in: query, schema: { type: integer } }]
    post:
      requestBody:
        content: { application/json: { schema: { $ref: '#/components/schemas/Order' } } }
";

fn describe(folder: &Path) -> String {
    let file = folder.join("openapi.yaml");
    std::fs::write(&file, DESCRIPTION).unwrap();
    file.display().to_string()
}

fn events(served: &Served, count: usize) -> Vec<Value> {
    served.events(count).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The body of an order with its credentials.
fn order(served: &Served, body: &str) -> u16 {
    let length = body.len();
    served
        .raw(format!(
            "POST /v1/orders HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer abc\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
        .status()
}

#[test]
fn deviations_in_every_mode() {
    let application = application(|_| says("hello"));
    for mode in [
        "mode = \"semantic\"",
        "mode = \"both\"\nrules = { directives = \"SecRuleEngine On\\nSecRequestBodyAccess On\" }",
        "mode = \"crs\"\nrules = { directives = \"SecRuleEngine On\\nSecRequestBodyAccess On\" }",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let site = format!(
            "{mode}\napi = {{ schema = \"{}\", unknown_path = \"block\", parameters = \"block\", body = \"block\" }}",
            describe(folder.path())
        );
        let served = Served::start_site(&application, &site, "");
        for (target, status) in [
            ("/v1/orders?limit=5", 200),
            ("/v1/orders?limit=five", 403),
            ("/v1/orders?debug=1", 200),
            ("/v1/admin", 403),
            ("/orders", 403),
        ] {
            assert_eq!(served.get(target).status(), status, "{mode}: {target}");
        }
        assert_eq!(order(&served, r#"{"item": "pen", "quantity": 3}"#), 200, "{mode}");
        assert_eq!(order(&served, r#"{"item": "pen", "quantity": 5000}"#), 403, "{mode}");
        assert_eq!(order(&served, r#"{"item": "pen", "password": "hunter2"}"#), 403, "{mode}");
        let events = events(&served, 6);
        let of = |kind: &str| {
            let of_kind = |event: &&Value| event["findings"][0]["kind"] == kind;
            events.iter().find(of_kind).unwrap_or_else(|| panic!("{mode}: {kind}: {events:#?}"))
        };
        let quantity = of("api.body");
        assert_eq!(quantity["verdict"]["class"], "api");
        assert_eq!(quantity["findings"][0]["name"], "quantity");
        assert_eq!(
            quantity["findings"][0]["evidence"],
            "`quantity` must be at most 100, is 5,000 (/components/schemas/Order/properties/quantity/maximum)"
        );
        let unknown = of("api.unknown-parameter");
        assert_eq!(
            (&unknown["verdict"]["action"], &unknown["findings"][0]["name"]),
            (&"detect".into(), &"debug".into())
        );
        let shown = format!("{events:?}");
        assert!(!shown.contains("hunter2") && shown.contains("[redacted]"), "{shown}");
        served.counts("portcullis_semantic_findings_total{class=\"api\",outcome=\"blocked\"}", 5.0);
    }
}

/// Classes, exclusions and routes have the last word.
#[test]
fn switched_off() {
    let application = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let schema = describe(folder.path());
    let site = format!(
        "mode = \"semantic\"\napi = {{ schema = \"{schema}\", unknown_path = \"block\", body = \"block\" }}\n\
         semantic = {{ exclude = [{{ kind = \"api.unknown-path\", path = \"/health\" }}, {{ location = \"json:quantity\" }}] }}\n\
         [[sites.routes]]\npath = \"/free/\"\napi = {{ unknown_path = \"off\" }}\n\
         [[sites.routes]]\npath = \"/out/\"\nsemantic = {{ classes = {{ api = \"off\" }} }}\n"
    );
    let served = Served::start_site(&application, &site, "");
    for (target, status) in [("/health", 200), ("/free/x", 200), ("/out/x", 200), ("/other", 403)] {
        assert_eq!(served.get(target).status(), status, "{target}");
    }
    assert_eq!(order(&served, r#"{"item": "pen", "quantity": 5000}"#), 200);
    assert_eq!(order(&served, r#"{"item": "Pen"}"#), 403);
}

/// A body that is larger than what is held is told, and counted as not inspected.
#[test]
fn bodies_beyond_the_limit() {
    let application = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let site = format!(
        "mode = \"semantic\"\nrequest_body = {{ limit = 1000, over_limit = \"pass_uninspected\" }}\n\
         api = {{ schema = \"{}\", body = \"block\" }}",
        describe(folder.path())
    );
    let served = Served::start_site(&application, &site, "");
    let long = format!("{{\"item\": \"{}\"}}", "A".repeat(2_000));
    assert_eq!(order(&served, &long), 200);
    let event = &events(&served, 1)[0];
    assert_eq!(
        (&event["verdict"]["action"], &event["findings"][0]["kind"]),
        (&"detect".into(), &"api.unchecked".into())
    );
    assert!(served.metric("portcullis_bytes_not_inspected_total{reason=\"over_limit\"}") > 900.0);
}

/// Where bodies are not shown at all, requests without one are as declared, and those with one are told.
#[test]
fn bodies_that_are_not_shown() {
    let application = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let schema = describe(folder.path());
    let site = format!(
        "mode = \"semantic\"\nrequest_body = {{ inspect = false }}\napi = {{ schema = \"{schema}\", body = \"block\" }}"
    );
    let served = Served::start_site(&application, &site, "");
    assert_eq!(served.get("/v1/orders").status(), 200);
    assert_eq!(order(&served, r#"{"item": "pen", "quantity": 5000}"#), 200);
    let events = events(&served, 1);
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!(events[0]["findings"][0]["kind"], "api.unchecked");
}

/// A description with a mistake stops the load, with its file, line and pointer.
#[test]
fn mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("openapi.yaml");
    std::fs::write(&schema, "openapi: 3.1.0\npaths:\n  /a:\n    $ref: 'b.yaml'\n").unwrap();
    let config = folder.path().join("portcullis.toml");
    let text = "listeners = [{ address = \"127.0.0.1:0\" }]\nupstreams = { u = { endpoints = [\"http://127.0.0.1:1\"] } }\n\
        [[sites]]\nname = \"a\"\nhosts = [\"*\"]\nupstream = \"u\"\napi = { schema = \"openapi.yaml\" }\n";
    std::fs::write(&config, text).unwrap();
    for arguments in [vec!["check"], vec!["run", "--config"]] {
        let output = Command::new(program()).args(&arguments).arg(&config).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("`$ref` leads to another document") && said.contains("/paths/~1a"), "{said}");
        assert!(said.contains(&format!("{}:", schema.display())), "{said}");
    }
}
