//! Measures what of public test data the crate reads and how it judges it.
//!
//! ```text
//! measure suite tests/draft2020-12/*.json     JSON Schema Test Suite: each schema as that of a request's body
//! measure documents FILE...                   OpenAPI documents: how many load, and why others do not
//! measure cost                                a GET with three parameters, a body of 1 KB
//! ```

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a program that reads files and prints"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use portcullis_declared::{Api, Aspects, Deviation, Head, Kind, Sent};
use serde_json::{Value, json};

const AT: &str = "/paths/~1/post/requestBody/content/application~1json/schema";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((what, files)) if what == "suite" => suite(files),
        Some((what, files)) if what == "documents" => documents(files),
        Some((what, _)) if what == "cost" => cost(),
        _ => {
            eprintln!("measure suite|documents FILE...");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn suite(files: &[String]) {
    let (mut right, mut total) = (0, 0);
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let groups: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let name = file.rsplit('/').next().unwrap_or(file);
        for group in &groups {
            let mut schema = group["schema"].clone();
            below(&mut schema);
            let media = json!({"application/json": {"schema": schema}});
            let item = json!({"post": {"requestBody": {"content": media}}});
            let api = Api::compile(&json!({"openapi": "3.1.0", "paths": {"/": item}}).to_string());
            for test in group["tests"].as_array().unwrap() {
                total += 1;
                let reason = match &api {
                    Err(problems) => Some(format!("refused: {}", kind_of(&problems[0].message))),
                    Ok(api) => {
                        let is_valid = compare(api, &test["data"].to_string()).is_empty();
                        let told = api.warnings().first().map(|each| kind_of(&each.message));
                        (test["valid"] != is_valid).then(|| told.unwrap_or_else(|| format!("wrong: {name}")))
                    }
                };
                match reason {
                    None => right += 1,
                    Some(reason) => {
                        let text =
                            |value: &Value| value["description"].as_str().unwrap_or_default().to_owned();
                        wrong.entry(reason).or_default().push(format!(
                            "{name}: {}: {}",
                            text(group),
                            text(test)
                        ));
                    }
                }
            }
        }
    }
    println!("{right} of {total} as the suite says");
    for (reason, cases) in wrong {
        println!("{:5}  {reason}   e. g. {}", cases.len(), cases[0]);
    }
}

/// References of the schema lead to where it stands in the document.
fn below(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(rest) = reference.strip_prefix('#')
                && (rest.is_empty() || rest.starts_with('/'))
            {
                *reference = format!("#{AT}{rest}");
            }
            members.values_mut().for_each(below);
        }
        Value::Array(items) => items.iter_mut().for_each(below),
        _ => {}
    }
}

fn compare(api: &Api, body: &str) -> Vec<Deviation> {
    let fields = [(&b"content-type"[..], &b"application/json"[..])];
    let head = Head { method: b"POST", path: b"/", query: None, fields: fields.iter().copied() };
    let mut found = Vec::new();
    let operation = api.head(&head, Aspects::ALL, &mut found).unwrap();
    api.body(operation, std::iter::once(fields[0].1), Sent::Whole(body.as_bytes()), Aspects::ALL, &mut found);
    found.retain(|deviation| deviation.kind != Kind::ContentType);
    found
}

fn documents(files: &[String]) {
    let (mut loaded, mut operations, mut slowest) = (0, 0, (0, String::new()));
    let (mut refused, mut left_out) =
        (BTreeMap::<String, (usize, String)>::new(), BTreeMap::<String, usize>::new());
    for file in files {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        let begin = Instant::now();
        let api = Api::compile(&text);
        slowest = slowest.max((begin.elapsed().as_millis(), file.clone()));
        match api {
            Ok(api) => {
                loaded += 1;
                operations += api.counts().1;
                for warning in api.warnings() {
                    *left_out.entry(kind_of(&warning.message)).or_default() += 1;
                }
            }
            Err(problems) => {
                let entry = refused.entry(kind_of(&problems[0].message)).or_default();
                *entry = (entry.0 + 1, format!("{file} {}", problems[0]));
            }
        }
    }
    println!(
        "{loaded} of {} loaded, {operations} operations; slowest {} ms: {}",
        files.len(),
        slowest.0,
        slowest.1
    );
    for (reason, (count, example)) in refused {
        println!("{count:5}  refused: {reason}   e. g. {example}");
    }
    for (reason, count) in left_out {
        println!("{count:5}  not enforced: {reason}");
    }
}

/// A message without what it names.
fn kind_of(message: &str) -> String {
    message.split(": ").next().unwrap_or(message).chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn cost() {
    let api = Api::compile(
        r#"{"openapi": "3.1.0", "paths": {"/orders/{id}": {
            "get": {"parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}},
                {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 100}},
                {"name": "sort", "in": "query", "schema": {"type": "string", "enum": ["name", "date"]}},
                {"name": "q", "in": "query", "schema": {"type": "string", "maxLength": 50}}]},
            "post": {"requestBody": {"content": {"application/json": {"schema": {"type": "object", "additionalProperties": false,
                "properties": {"lines": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string", "maxLength": 40}, "quantity": {"type": "integer", "minimum": 1, "maximum": 100},
                    "price": {"type": "number", "exclusiveMinimum": 0}, "gift": {"type": "boolean"}}}}}}}}}}}}}"#,
    )
    .unwrap();
    let head = |method: &'static [u8], query: Option<&'static [u8]>| Head {
        method,
        path: b"/orders/123",
        query,
        fields: std::iter::empty(),
    };
    let get = head(b"GET", Some(b"limit=20&sort=date&q=blue+pens"));
    let line = r#"{"name": "a pen that writes in blue", "quantity": 12, "price": 1.5, "gift": false}"#;
    let body = format!(r#"{{"lines": [{}]}}"#, [line; 12].join(", "));
    let post = head(b"POST", None);
    let mut found = Vec::new();
    let begin = Instant::now();
    for _ in 0..100_000 {
        black_box(api.head(black_box(&get), Aspects::ALL, &mut found));
    }
    let of_get = begin.elapsed() / 100_000;
    let operation = api.head(&post, Aspects::ALL, &mut found).unwrap();
    let begin = Instant::now();
    for _ in 0..10_000 {
        let types = std::iter::once(&b"application/json"[..]);
        api.body(operation, types, Sent::Whole(black_box(body.as_bytes())), Aspects::ALL, &mut found);
    }
    assert!(found.is_empty(), "{found:?}");
    println!(
        "GET with three parameters {of_get:?}; body of {} bytes {:?}",
        body.len(),
        begin.elapsed() / 10_000
    );
}
