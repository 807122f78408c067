//! The cost of comparing requests with a description, to be counted by callgrind:
//! `compare_cost KIND REQUESTS`. KIND is `get` (three parameters), `mixed` (the same, two of them with
//! schemas that have no fast test) or `json` (a body of a KB). The difference between two runs is what the
//! requests between them cost.
//!
//! ```text
//! cargo build --profile bench-quick -p portcullis-declared --example compare_cost
//! cost=target/bench-quick/examples/compare_cost
//! for n in 1000 3000; do valgrind --tool=callgrind --callgrind-out-file=/dev/null $cost get $n; done
//! ```

use portcullis_declared::{Api, Aspects, Head, Sent};

const DESCRIPTION: &str = r##"
openapi: 3.1.0
info: { title: cost, version: "1" }
paths:
  /products:
    get:
      parameters:
        - { name: category, in: query, required: true, schema: { enum: [books, music, films] } }
        - { name: sort, in: query, schema: { type: string, maxLength: 20 } }
        - { name: page, in: query, schema: { type: integer, minimum: 0, maximum: 1000 } }
  /mixed:
    get:
      parameters:
        - { name: category, in: query, required: true, schema: { type: string, pattern: "^[a-z]+$" } }
        - { name: sort, in: query, schema: { type: string, maxLength: 20 } }
        - { name: page, in: query, schema: { type: number, minimum: 0 } }
  /orders:
    post:
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: "#/components/schemas/Order" } } }
components:
  schemas:
    Order:
      type: object
      required: [id, items]
      additionalProperties: false
      properties:
        id: { type: integer, minimum: 0 }
        items: { type: array, minItems: 1, maxItems: 1000, items: { $ref: "#/components/schemas/Item" } }
    Item:
      type: object
      required: [sku, qty]
      additionalProperties: false
      properties:
        sku: { type: string, minLength: 1, maxLength: 20 }
        qty: { type: integer, minimum: 1, maximum: 99 }
        price: { type: number, minimum: 0 }
"##;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "get".to_owned());
    let requests: u32 = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(1_000);
    let api = Api::compile(DESCRIPTION).expect("a description");
    let items: Vec<String> =
        (0..24).map(|at| format!(r#"{{"sku":"a{at}","qty":{},"price":{}}}"#, at + 1, at * 100)).collect();
    let body = format!(r#"{{"id":4711,"items":[{}]}}"#, items.join(","));
    let (method, path, query, body) = match kind.as_str() {
        "json" => (&b"POST"[..], &b"/orders"[..], None, body.as_bytes()),
        "mixed" => (&b"GET"[..], &b"/mixed"[..], Some(&b"category=books&sort=price&page=42"[..]), &b""[..]),
        _ => (&b"GET"[..], &b"/products"[..], Some(&b"category=books&sort=price&page=42"[..]), &b""[..]),
    };
    let mut found = Vec::new();
    for _ in 0..requests {
        let head = Head { method, path, query, fields: std::iter::empty() };
        let operation = api.head(&head, Aspects::ALL, &mut found).expect("an operation");
        let content_types = std::iter::once(&b"application/json"[..]).filter(|_| method == b"POST");
        api.body(operation, content_types, Sent::Whole(body), Aspects::ALL, &mut found);
    }
    assert!(found.is_empty(), "{found:?}");
}
