//! Descriptions that are made to exhaust who reads them, and bodies that are made to exhaust who compares
//! them.

use std::fmt::Write as _;

use portcullis_declared::{Api, Sent, limits};

use crate::{api, deviations, of_json, with_schema};

fn first_problem(text: &str) -> String {
    Api::compile(text)
        .err()
        .and_then(|problems| problems.first().map(ToString::to_string))
        .unwrap_or_default()
}

#[test]
fn aliases_of_yaml() {
    let mut text = String::from("openapi: 3.1.0\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let before = format!("*a{}", i - 1);
        let _ = writeln!(text, "a{i}: &a{i} [{}]", [before.as_str(); 10].join(", "));
    }
    assert!(first_problem(&text).contains("not YAML"), "{}", first_problem(&text));
}

#[test]
fn depth_and_size() {
    let depth = limits::DOCUMENT_DEPTH_MAX;
    let deep = |levels: usize| {
        format!("{{\"openapi\": \"3.1.0\", \"x\": {}{}}}", "[".repeat(levels), "]".repeat(levels))
    };
    assert_eq!(first_problem(&deep(depth - 1)), "");
    assert!(first_problem(&deep(depth)).contains("values inside each other"));
    assert!(!first_problem(&deep(100_000)).is_empty());
    assert!(
        !first_problem(&format!("openapi: 3.1.0\nx: {}{}", "[".repeat(10_000), "]".repeat(10_000)))
            .is_empty()
    );
    let large = " ".repeat(limits::DOCUMENT_BYTES_MAX + 1);
    assert!(first_problem(&large).contains("16 MiB"));
    let wide = format!("{{\"openapi\": \"3.1.0\", \"x\": [{}0]}}", "0,".repeat(limits::DOCUMENT_VALUES_MAX));
    assert!(first_problem(&wide).contains("1000000 values"), "{}", first_problem(&wide));
}

/// References that lead round without leading into the value.
#[test]
fn circles_of_references() {
    let text = |schemas: &str| {
        format!(
            r##"{{"openapi": "3.1.0", "paths": {{"/": {{"post": {{"requestBody": {{"content": {{"application/json": {{"schema": {{"$ref": "#/components/schemas/A"}}}}}}}}}}}}}}, "components": {{"schemas": {schemas}}}}}"##
        )
    };
    for circle in [
        r##"{"A": {"$ref": "#/components/schemas/A"}}"##,
        r##"{"A": {"$ref": "#/components/schemas/B"}, "B": {"allOf": [{"$ref": "#/components/schemas/A"}]}}"##,
        r##"{"A": {"not": {"anyOf": [{"type": "null"}, {"$ref": "#/components/schemas/A"}]}}}"##,
    ] {
        assert!(
            first_problem(&text(circle)).contains("refers to itself"),
            "{circle}: {}",
            first_problem(&text(circle))
        );
    }
    let tree = text(
        r##"{"A": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/A"}, "n": {"type": "integer"}}}}"##,
    );
    let api = api(&tree);
    assert_eq!(
        of_json(&api, "POST /", r#"{"next": {"next": {"n": "x"}}}"#),
        ["json:next.next.n `next.next.n` must be a whole number, is a text"]
    );
    let path = r##"{"openapi": "3.1.0", "paths": {"/": {"$ref": "#/paths/~1"}}}"##;
    assert!(first_problem(path).contains("in a circle"), "{}", first_problem(path));
}

/// Each level doubles the schemas for a value: few references, many ways.
#[test]
fn ways_that_double() {
    let mut schemas = String::new();
    for i in 0..20 {
        let next = format!("{{\"$ref\": \"#/components/schemas/A{}\"}}", i + 1);
        let _ = write!(schemas, "\"A{i}\": {{\"allOf\": [{next}, {next}]}},");
    }
    let text = format!(
        r##"{{"openapi": "3.1.0", "paths": {{"/": {{"post": {{"requestBody": {{"content": {{"application/json": {{"schema": {{"$ref": "#/components/schemas/A0"}}}}}}}}}}}}}}, "components": {{"schemas": {{{schemas} "A20": {{}}}}}}}}"##
    );
    assert!(first_problem(&text).contains("schemas apply to one value"), "{}", first_problem(&text));
}

/// Alternatives that all lead into the same member: each level of a body would be compared twice as often as
/// the one above it. Levels that the body chooses must not be paid for so.
#[test]
fn bodies_that_double() {
    let (one, two) = (
        r##"{"type": "object", "properties": {"x": {"$ref": "#/components/schemas/A"}, "k": {"const": 1}}}"##,
        2,
    );
    let other = one.replace('1', &two.to_string());
    let recursive = format!(
        r##"{{"openapi": "3.1.0", "paths": {{"/": {{"post": {{"requestBody": {{"content": {{"application/json": {{"schema": {{"$ref": "#/components/schemas/A"}}}}}}}}}}}}}}, "components": {{"schemas": {{"A": {{"anyOf": [{one}, {other}, {{"type": "integer"}}]}}}}}}}}"##
    );
    let mut chain = String::new();
    for i in 0..60 {
        let next = format!(
            "{{\"type\": \"object\", \"properties\": {{\"x\": {{\"$ref\": \"#/components/schemas/A{}\"}}, \"k\": {{\"const\": 1}}}}}}",
            i + 1
        );
        let _ = write!(chain, "\"A{i}\": {{\"anyOf\": [{next}, {next}]}},");
    }
    let straight = format!(
        r##"{{"openapi": "3.1.0", "paths": {{"/": {{"post": {{"requestBody": {{"content": {{"application/json": {{"schema": {{"$ref": "#/components/schemas/A0"}}}}}}}}}}}}}}, "components": {{"schemas": {{{chain} "A60": {{"type": "integer"}}}}}}}}"##
    );
    let body = format!("{}\"text\"{}", "{\"x\":".repeat(58), "}".repeat(58));
    for (what, text) in [("recursive", recursive), ("straight", straight)] {
        let api = api(&text);
        assert_eq!(api.warnings().is_empty(), what == "recursive");
        // In another thread, so that a test which would run for years ends.
        let (sender, receiver) = std::sync::mpsc::channel();
        let body = body.clone();
        std::thread::spawn(move || {
            let _ = sender.send(of_json(&api, "POST /", &body).len());
        });
        let found = receiver.recv_timeout(std::time::Duration::from_secs(20));
        assert!(found.is_ok(), "{what}: the comparison does not end");
    }
}

/// The deepest body beside the longest chain of references that is taken fits the stack of a thread.
#[test]
fn the_deepest_of_both() {
    let mut schemas = String::new();
    for i in 0..20 {
        let _ =
            write!(schemas, "\"A{i}\": {{\"allOf\": [{{\"$ref\": \"#/components/schemas/A{}\"}}]}},", i + 1);
    }
    let text = format!(
        r##"{{"openapi": "3.1.0", "paths": {{"/": {{"post": {{"requestBody": {{"content": {{"application/json": {{"schema": {{"$ref": "#/components/schemas/A0"}}}}}}}}}}}}}}, "components": {{"schemas": {{{schemas} "A20": {{"items": {{"$ref": "#/components/schemas/A0"}}}}}}}}}}"##
    );
    let api = api(&text);
    let deep = format!("{}{}", "[".repeat(limits::BODY_DEPTH_MAX), "]".repeat(limits::BODY_DEPTH_MAX));
    let compare = move || of_json(&api, "POST /", &deep).len();
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(compare).unwrap();
    assert_eq!(thread.join().unwrap(), 0);
}

#[test]
fn large_enumerations() {
    let members: Vec<String> = (0..limits::ENUM_MAX + 1).map(|n| n.to_string()).collect();
    let api = with_schema(&format!("{{\"enum\": [{}]}}", members.join(",")));
    assert_eq!(api.warnings().len(), 1);
    assert!(of_json(&api, "POST /", "-1").is_empty());
    let api = with_schema(&format!("{{\"enum\": [{}]}}", members[1..].join(",")));
    let found = of_json(&api, "POST /", "-1");
    assert_eq!(found, ["json: the body must be one of 1, 2, 3, 4, 5, 6, 9994 others"]);
}

/// However much is wrong, few deviations are told.
#[test]
fn much_that_is_wrong() {
    let api = with_schema(r#"{"items": {"type": "integer"}}"#);
    let body = format!("[{}\"x\"]", "\"x\",".repeat(50_000));
    let types = [("Content-Type", "application/json")];
    let query: Vec<String> = (0..50_000).map(|n| format!("p{n}=1")).collect();
    let line = format!("POST /?{}", query.join("&"));
    let found = deviations(&api, &line, &types, Sent::Whole(body.as_bytes()));
    assert_eq!(found.len(), 2 * limits::DEVIATIONS_MAX, "of parameters, and of the body");
}
