//! Two documents, or an inventory and a document.

use portcullis_discovery::{Change, Deviation, Interface, compare, deviations, openapi};
use serde_json::{Value, json};

use crate::Visited;

fn lines(old: &Value, new: &Value) -> Vec<String> {
    let (old, new) = (Interface::of(old).expect("old"), Interface::of(new).expect("new"));
    let line = |change: Change| match change {
        Change::New { method, path } => format!("new {method} {path}"),
        Change::Gone { method, path } => format!("gone {method} {path}"),
        Change::Changed { method, path, differences } => {
            let differences: Vec<_> = differences.iter().map(ToString::to_string).collect();
            format!("{method} {path}: {}", differences.join("; "))
        }
    };
    compare(&old, &new).into_iter().map(line).collect()
}

fn declared() -> Value {
    json!({
        "openapi": "3.0.3",
        "servers": [{ "url": "https://api.shop.example/v1/" }],
        "components": {
            "parameters": { "page": { "name": "page", "in": "query", "schema": { "type": "integer" } } },
            "schemas": {
                "Order": {
                    "type": "object", "required": ["id"],
                    "properties": {
                        "id": { "type": "integer" },
                        "lines": { "type": "array", "items": { "$ref": "#/components/schemas/Line" } },
                    },
                },
                "Line": { "type": "object", "properties": { "sku": { "type": "string" } } },
            },
        },
        "paths": {
            "/orders": {
                "get": { "parameters": [{ "$ref": "#/components/parameters/page" }], "responses": {} },
                "post": {
                    "requestBody": { "content": { "application/json": {
                        "schema": { "$ref": "#/components/schemas/Order" } } } },
                    "responses": {},
                },
            },
            "/orders/{orderId}": { "get": { "responses": {} }, "delete": { "responses": {} } },
        },
    })
}

#[test]
fn an_inventory_and_what_is_declared() {
    let mut visited = Visited::new();
    for network in 0..9 {
        visited.answered(network, 0, "GET /v1/orders?page=two&debug=1", 200);
        visited.answered(network, 0, "GET /v1/orders/7", 200);
        visited.answered(network, 0, "GET /v1/orders/export", 200);
        visited.answered(network, 0, "GET /internal/health", 200);
        visited.with(network, 0, "POST /v1/orders", 201, |details| {
            details.note(portcullis_discovery::ParameterPlace::Json, b"id", b"7");
            details.note(portcullis_discovery::ParameterPlace::Json, b"lines.lines.sku", b"a-b");
            details.request_type = Some("application/json".to_owned());
        });
    }
    let found = lines(&declared(), &openapi(&visited.inventory, "shop"));
    let expected = [
        "new GET /internal/health",
        "GET /v1/orders: new query:debug: integer, required; query:page: string, required, was integer, optional",
        "POST /v1/orders: json:lines[].sku: string, required, was string, optional",
        "gone DELETE /v1/orders/{orderId}",
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_same_document_differs_in_nothing() {
    assert!(lines(&declared(), &declared()).is_empty());
    let mut renamed = declared();
    let item = renamed["paths"].as_object_mut().expect("paths").remove("/orders/{orderId}").expect("an item");
    renamed["paths"]["/orders/{id}"] = item;
    assert!(lines(&declared(), &renamed).is_empty());
}

/// References that lead in circles come to an end.
#[test]
fn circles() {
    let document = json!({
        "openapi": "3.1.0",
        "components": { "schemas": {
            "A": { "$ref": "#/components/schemas/B" }, "B": { "$ref": "#/components/schemas/A" },
            "Node": { "type": "object", "properties": {
                "left": { "$ref": "#/components/schemas/Node" }, "right": { "$ref": "#/components/schemas/Node" },
                "name": { "type": "string" } } },
        } },
        "paths": { "/a": { "post": { "requestBody": { "content": { "application/json": { "schema": {
            "allOf": [{ "$ref": "#/components/schemas/Node" }, { "$ref": "#/components/schemas/A" }] } } } } } } },
    });
    assert!(lines(&document, &document).is_empty());
}

#[test]
fn other_documents_are_refused() {
    assert!(Interface::of(&json!({ "swagger": "2.0", "paths": {} })).is_err());
    assert!(Interface::of(&json!({ "openapi": "3.1.0" })).is_err());
}

/// Kind, method, path and what differs of each deviation.
fn deviating(declared: &Value, seen: &Value) -> Vec<String> {
    let (declared, seen) = (Interface::of(declared).expect("declared"), Interface::of(seen).expect("seen"));
    let line = |each: Deviation| {
        let differences: Vec<_> = each.differences.iter().map(ToString::to_string).collect();
        let what =
            if differences.is_empty() { String::new() } else { format!(": {}", differences.join("; ")) };
        format!("{} {} {}{what}", each.kind.name(), each.method, each.path)
    };
    deviations(&declared, &seen).into_iter().map(line).collect()
}

/// What clients may leave out, and do, is no drift; what a declaration does not allow, and is answered, is.
#[test]
fn drift_is_what_the_declaration_does_not_allow() {
    let mut visited = Visited::new();
    for network in 0..9 {
        visited.answered(network, 0, "GET /v1/orders?page=7", 200);
        visited.answered(network, 0, "GET /v1/orders/7", 200);
        visited.with(network, 0, "POST /v1/orders", 201, |details| {
            details.note(portcullis_discovery::ParameterPlace::Json, b"id", b"7");
            details.request_type = Some("application/json".to_owned());
        });
    }
    let mut declared = declared();
    let (item, seen) = ("/orders/{orderId}", openapi(&visited.inventory, "shop"));
    declared["paths"][item].as_object_mut().expect("an item").remove("delete");
    // `page` is sent always and is optional; `lines[].sku` is optional and never sent.
    assert!(deviating(&declared, &seen).is_empty(), "{:?}", deviating(&declared, &seen));
    declared["paths"][item]["get"]["deprecated"] = json!(true);
    declared["paths"]["/orders"]["get"]["parameters"] = json!([
        { "name": "page", "in": "query", "schema": { "type": "boolean" } },
        { "name": "token", "in": "query", "required": true, "schema": { "type": "string" } }]);
    declared["paths"]["/orders"]["post"]["requestBody"]["content"] =
        json!({ "application/x-www-form-urlencoded": {} });
    assert_eq!(
        deviating(&declared, &seen),
        [
            "drifted GET /v1/orders: query:page: integer, required, was boolean, optional; gone query:token: string, required",
            "drifted POST /v1/orders: new json:id: integer or string, required; new body: application/json",
            "zombie GET /v1/orders/{orderId}",
        ]
    );
}

/// Where a declaration leaves members open, any name is as it is declared.
#[test]
fn open_bodies_do_not_drift() {
    let seen = json!({ "openapi": "3.1.0", "paths": { "/a": { "post": {
        "parameters": [{ "name": "filter[state]", "in": "query", "schema": { "type": "string" } }],
        "requestBody": { "content": { "application/json": { "schema": { "type": "object", "properties": {
            "meta": { "type": "object", "properties": { "x": { "type": "string" } } },
            "id": { "type": "integer" } } } } } },
        "x-seen": { "looked_at": 9, "bodies": 9 } } } } });
    let with = |schema: Value| {
        let filter =
            json!({ "name": "filter", "in": "query", "style": "deepObject", "schema": { "type": "object" } });
        json!({ "openapi": "3.1.0", "paths": { "/a": { "post": { "parameters": [filter],
            "requestBody": { "content": { "*/*": { "schema": schema } } } } } } })
    };
    for open in [
        json!({}),
        json!({ "type": "object" }),
        json!({ "properties": { "id": { "type": "integer" }, "meta": { "type": "object" } } }),
        json!({ "properties": { "id": { "type": "integer" }, "meta": {} } }),
        json!({ "properties": { "id": { "type": "integer" } }, "additionalProperties": { "type": "object" } }),
    ] {
        let found = deviating(&with(open.clone()), &seen);
        assert!(found.is_empty(), "{open}: {found:?}");
    }
    let closed = json!({ "properties": { "id": { "type": "integer" } }, "additionalProperties": false });
    assert_eq!(deviating(&with(closed), &seen), ["drifted POST /a: new json:meta.x: string, optional"]);
}

/// A deprecated operation whose path only others stand for is not said to answer.
#[test]
fn zombies_were_asked() {
    let path = |deprecated: bool| json!({ "get": { "deprecated": deprecated, "responses": {} } });
    let declared = json!({ "openapi": "3.1.0", "paths": {
        "/users/{id}": path(false), "/users/export": path(true), "/old/{id}": path(true) } });
    let seen = |paths: &[&str]| {
        let items = paths.iter().map(|name| ((*name).to_owned(), path(false)));
        json!({ "openapi": "3.1.0", "paths": items.collect::<serde_json::Map<_, _>>() })
    };
    assert_eq!(deviating(&declared, &seen(&["/users/{number}"])), ["unseen GET /old/{id}"]);
    assert_eq!(
        deviating(&declared, &seen(&["/users/{number}", "/users/export", "/old/7"])),
        ["zombie GET /old/{id}", "zombie GET /users/export"]
    );
}

/// The time that a comparison takes does not grow with the product of both documents.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test measures time")]
fn many_endpoints_are_compared_soon() {
    let item = json!({ "get": { "responses": {} } });
    let paths = |part: &str| -> Value {
        let items = (0..20_000).map(|number| (format!("/{part}/{number:x}z/list"), item.clone()));
        json!({ "openapi": "3.1.0", "paths": items.collect::<serde_json::Map<_, _>>() })
    };
    let (declared, seen) = (paths("a"), paths("b"));
    let begun = std::time::Instant::now();
    assert_eq!(deviating(&declared, &seen).len(), 40_000);
    // A second or two; hours if each were compared with each.
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
}
