//! Requests beside descriptions, and descriptions that are hostile.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests have threads")]

mod answers;
mod aspects;
mod bodies;
mod descriptors;
mod documents;
mod fields;
mod graphql;
mod grpc;
mod hostile;
mod parameters;
mod paths;
mod rpc;

use portcullis_declared::{Api, Aspects, Deviation, Head, Sent};

/// The deviations of a request: `GET /path?query`, header fields, and a body.
pub fn deviations(api: &Api, line: &str, fields: &[(&str, &str)], body: Sent<'_>) -> Vec<Deviation> {
    let (method, target) = line.split_once(' ').unwrap();
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let bytes: Vec<(&[u8], &[u8])> =
        fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let head = Head {
        method: method.as_bytes(),
        path: path.as_bytes(),
        query: query.map(str::as_bytes),
        fields: bytes.iter().copied(),
    };
    let mut found = Vec::new();
    if let Some(operation) = api.head(&head, Aspects::ALL, &mut found) {
        let types = bytes.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
        api.body(operation, types.map(|(_, value)| *value), body, Aspects::ALL, &mut found);
    }
    found
}

/// Those of a request without header fields and body, as `name: rule`.
pub fn of_line(api: &Api, line: &str) -> Vec<String> {
    told(&deviations(api, line, &[], Sent::Whole(b"")))
}

/// Those of a JSON body, as `name: rule`.
pub fn of_json(api: &Api, line: &str, body: &str) -> Vec<String> {
    told(&deviations(api, line, &[("Content-Type", "application/json")], Sent::Whole(body.as_bytes())))
}

/// Deviations as `place:name rule`.
pub fn told(found: &[Deviation]) -> Vec<String> {
    let one = |each: &Deviation| format!("{}:{} {}", each.place.name(), name(each), each.rule);
    found.iter().map(one).collect()
}

fn name(deviation: &Deviation) -> String {
    String::from_utf8_lossy(&deviation.name).into_owned()
}

/// A description that can be read.
pub fn api(text: &str) -> Api {
    Api::compile(text).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// A document of OpenAPI 3.1 with these paths, and components if there are any.
pub fn with_paths(paths: &str) -> Api {
    api(&format!(r#"{{"openapi": "3.1.0", "info": {{"title": "t", "version": "1"}}, "paths": {paths}}}"#))
}

/// An operation `POST /` whose body of JSON has this schema.
pub fn with_schema(schema: &str) -> Api {
    with_paths(&format!(
        r#"{{"/": {{"post": {{"requestBody": {{"content": {{"application/json": {{"schema": {schema}}}}}}}}}}}}}"#
    ))
}
