//! What is told by the aspects that are asked about.

use portcullis_declared::{Api, Aspect, Aspects, Deviation, Head, Kind, Sent, Settings, limits};

use crate::descriptors::{shop, whole};
use crate::{api, told};

const OPENAPI: &str = r#"{"openapi": "3.1.0",
    "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    "security": [{"token": []}],
    "paths": {"/a": {"post": {
        "parameters": [{"name": "n", "in": "query", "schema": {"type": "integer"}}],
        "requestBody": {"content": {"application/json": {"schema": {"type": "integer"}}}}}}}}"#;
const OPENRPC: &str = r#"{"openrpc": "1.2.6", "methods": [{"name": "add", "params": [
    {"name": "a", "schema": {"type": "integer"}}]}]}"#;
const TOOLS: &str = r#"{"tools": [{"name": "now", "inputSchema": {"additionalProperties": false}}]}"#;
const GRAPHQL: &str = "type Query { a: Int }";

/// A description, and requests that differ from it: method, target, body.
struct Case {
    what: &'static str,
    api: Api,
    requests: Vec<(&'static str, &'static str, Vec<u8>)>,
}

fn cases() -> Vec<Case> {
    let rpc = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc": "2.0", "method": "{method}", "params": {params}}}"#)
    };
    let call = rpc("tools/call", r#"{"name": "now", "arguments": {"b": 1}}"#);
    let grpc = Api::compile_file(&shop(), &Settings::default()).unwrap();
    let frame = |message: Vec<u8>| [&[0, 0, 0, 0, message.len() as u8][..], &message].concat();
    let place = "/shop.v1.Orders/Place?x=1";
    let case = |what, api, requests| Case { what, api, requests };
    let json = |text: &str| text.as_bytes().to_vec();
    vec![
        case(
            "openapi",
            api(OPENAPI),
            vec![
                ("POST", "/a?n=x&m=1", json(r#""text""#)),
                ("POST", "/b", json("1")),
                ("PUT", "/a", json("1")),
            ],
        ),
        case(
            "openrpc",
            api(OPENRPC),
            vec![
                ("POST", "/", json(&rpc("drop", "[]"))),
                ("POST", "/", json(&rpc("add", r#"["x"]"#))),
                ("POST", "/", json(&format!("[{}, {}]", rpc("add", r#"["x"]"#), rpc("drop", "[]")))),
                ("POST", "/", json(r#"{"jsonrpc": "2.0", "method": "add", "method": "drop"}"#)),
                ("PUT", "/", json(&rpc("add", "[1]"))),
            ],
        ),
        case(
            "mcp",
            api(TOOLS),
            vec![
                ("POST", "/", json(&format!("[{call}, {}]", rpc("drop", "[]")))),
                ("POST", "/", json(&rpc("drop", "[]"))),
            ],
        ),
        case(
            "graphql",
            api(GRAPHQL),
            vec![
                ("POST", "/", json(r#"{"query": "mutation { a }"}"#)),
                ("POST", "/", json(r#"{"query": "{ b }"}"#)),
                ("GET", "/?query=mutation%7Bb%7D", Vec::new()),
                ("PUT", "/", Vec::new()),
            ],
        ),
        case(
            "grpc",
            grpc,
            vec![
                ("POST", place, frame([whole(1, 1), whole(99, 1)].concat())),
                ("POST", place, frame(vec![0x0B, 0x0C])),
                ("POST", place, vec![1, 0, 0, 0, 1, 9]),
                ("POST", "/shop.v1.Orders/None", frame(Vec::new())),
                ("PUT", place, frame(Vec::new())),
            ],
        ),
    ]
}

fn found(
    api: &Api,
    (method, target): (&str, &str),
    asked: Aspects,
    body: Option<Sent<'_>>,
) -> Vec<Deviation> {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let head = Head {
        method: method.as_bytes(),
        path: path.as_bytes(),
        query: query.map(str::as_bytes),
        fields: std::iter::empty(),
    };
    let content_type = if api.has_messages() { "application/grpc" } else { "application/json" };
    let mut found = Vec::new();
    if let (Some(operation), Some(body)) = (api.head(&head, asked, &mut found), body) {
        api.body(operation, std::iter::once(content_type.as_bytes()), body, asked, &mut found);
    }
    found
}

/// A body of this content; an empty one is none.
fn sent(body: &[u8]) -> Option<Sent<'_>> {
    (!body.is_empty()).then_some(Sent::Whole(body))
}

fn all_aspects() -> impl Iterator<Item = Aspects> {
    (0..32u8).map(|bits| Aspects {
        unknown_path: bits & 1 != 0,
        unknown_parameter: bits & 2 != 0,
        parameters: bits & 4 != 0,
        body: bits & 8 != 0,
        security: bits & 16 != 0,
    })
}

/// A deviation is told if and only if its aspect is asked about, whatever else is.
#[test]
fn told_if_and_only_if_asked() {
    let mut seen = Vec::new();
    for Case { what, api, requests } in cases() {
        for (method, target, body) in &requests {
            let of = |asked| found(&api, (method, target), asked, sent(body));
            let all = of(Aspects::ALL);
            assert!(!all.is_empty(), "{what}: {method} {target} {body:?}");
            seen.extend(all.iter().map(|each| (what, each.aspect)));
            for asked in all_aspects() {
                let expected: Vec<Deviation> =
                    all.iter().filter(|each| asked.has(each.aspect)).cloned().collect();
                assert_eq!(of(asked), expected, "{what}: {method} {target} {body:?} {asked:?}");
            }
        }
    }
    for (what, aspect) in [
        ("openapi", Aspect::UnknownPath),
        ("openapi", Aspect::UnknownParameter),
        ("openapi", Aspect::Parameters),
        ("openapi", Aspect::Body),
        ("openapi", Aspect::Security),
        ("openrpc", Aspect::UnknownPath),
        ("openrpc", Aspect::Body),
        ("mcp", Aspect::UnknownPath),
        ("mcp", Aspect::Body),
        ("graphql", Aspect::UnknownPath),
        ("graphql", Aspect::Body),
        ("grpc", Aspect::UnknownPath),
        ("grpc", Aspect::UnknownParameter),
        ("grpc", Aspect::Body),
    ] {
        assert!(seen.contains(&(what, aspect)), "no request shows {aspect:?} of {what}");
    }
}

/// A body that is not there to be compared is told once, where one of the aspects asks for it.
#[test]
fn unseen_bodies() {
    for Case { what, api, requests } in cases() {
        let (method, target, _) = &requests[0];
        for asked in all_aspects() {
            let found = found(&api, (method, target), asked, Some(Sent::Unseen));
            let unchecked = found.iter().filter(|each| each.kind == Kind::Unchecked).count();
            let is_asked = match what {
                "openapi" => asked.body,
                "grpc" => asked.body || asked.unknown_parameter,
                _ => asked.body || asked.unknown_path,
            };
            assert_eq!(unchecked, usize::from(is_asked), "{what}: {asked:?}");
            assert_eq!(api.asks_for_bodies(asked), is_asked, "{what}: {asked:?}");
        }
    }
}

/// However much differs in one respect, what differs in another one is told.
#[test]
fn no_aspect_crowds_out_another() {
    let many = limits::DEVIATIONS_MAX * 3;
    let wrong: Vec<String> =
        (0..many).map(|_| r#"{"jsonrpc": "2.0", "method": "add", "params": ["x"]}"#.to_owned()).collect();
    let batch = format!(r#"[{}, {{"jsonrpc": "2.0", "method": "drop"}}]"#, wrong.join(", "));
    let found_of = |api: &Api, target: &str, body: &str| {
        found(api, ("POST", target), Aspects::ALL, sent(body.as_bytes()))
    };
    let found = found_of(&api(OPENRPC), "/", &batch);
    assert!(found.iter().any(|each| each.aspect == Aspect::UnknownPath), "{:?}", told(&found));
    assert_eq!(found.len(), limits::DEVIATIONS_MAX + 1);

    let numbers: Vec<String> = (0..many)
        .map(|n| format!(r#"{{"name": "p{n}", "in": "query", "schema": {{"type": "integer"}}}}"#))
        .collect();
    let api = crate::with_paths(&format!(
        r#"{{"/": {{"post": {{"parameters": [{}], "requestBody": {{"content": {{"application/json":
            {{"schema": {{"type": "integer"}}}}}}}}}}}}}}"#,
        numbers.join(", ")
    ));
    let query: Vec<String> = (0..many).map(|n| format!("p{n}=x")).collect();
    let found = found_of(&api, &format!("/?{}&unknown=1", query.join("&")), r#""x""#);
    for aspect in [Aspect::Parameters, Aspect::UnknownParameter, Aspect::Body] {
        assert!(found.iter().any(|each| each.aspect == aspect), "{aspect:?}: {:?}", told(&found));
    }
}

/// A schema without mutations has none that comes in a form which is not read here.
#[test]
fn operations_in_disguise() {
    let api = api(GRAPHQL);
    let only_paths = Aspects { unknown_path: true, ..Aspects::default() };
    let batch = format!("[{}]", [r#"{"query": "{ a }"}"#; 10].join(", "));
    for (body, is_found) in [
        (r#"{"query": "{ a }"}"#, false),
        (r#"{"query": "{ b }"}"#, false),
        (batch.as_str(), false),
        (r#"{"query": "mutation { a }"}"#, true),
        (r#"{"query": "{ a }", "query": "mutation { a }"}"#, true),
        (r#"{"query": "mutation { a } }"}"#, true),
        (r#"{"query": ["mutation { a }"]}"#, true),
        (r#"{"query": "mutation { a }""#, true),
        (&batch.replace('[', r#"[{"query": "mutation { a }"}, "#), true),
    ] {
        let found = found(&api, ("POST", "/"), only_paths, sent(body.as_bytes()));
        assert_eq!(!found.is_empty(), is_found, "{body}: {:?}", told(&found));
    }
}

/// Servers that take a message in another way than it is written find no method that is not declared.
#[test]
fn methods_in_disguise() {
    let only_paths = Aspects { unknown_path: true, ..Aspects::default() };
    for (what, api) in [("openrpc", api(OPENRPC)), ("mcp", api(TOOLS))] {
        for body in [
            r#"{"jsonrpc": "2.0", "method": "add", "method": "drop"}"#,
            r#"{"jsonrpc": "2.0", "method": "ping", "Method": "drop"}"#,
            r#"{"jsonrpc": "2.0", "result": 1, "METHOD": "drop"}"#,
            r#"{"jsonrpc": "1.0", "method": "drop"}"#,
            r#"{"method": "drop"}"#,
            r#"{"jsonrpc": "2.0", "method": ["drop"]}"#,
            r#"{"jsonrpc": "2.0", "method": "drop""#,
            "\u{feff}{\"jsonrpc\": \"2.0\", \"method\": \"drop\"}",
            r#"{"jsonrpc": "2.0", "method": "drop"} x"#,
        ] {
            let found = found(&api, ("POST", "/"), only_paths, sent(body.as_bytes()));
            assert!(!found.is_empty(), "{what}: {body}");
            assert!(found.iter().all(|each| each.aspect == Aspect::UnknownPath), "{what}: {body}");
        }
    }
}
