//! Two documents, or an inventory and a document.

use portcullis_discovery::{Change, Interface, compare, openapi};
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
