//! The back end the CRS regression suite expects: an empty 200 to everything, and responses made to order.
//!
//! It behaves as coreruleset/albedo 0.3 where a test can tell: `POST /reflect` takes a JSON document with
//! `status`, `headers`, `body` or `encodedBody`; `POST /configure_reflection` makes other endpoints answer
//! so; `PUT /reset` forgets them. It does not redirect unclean paths (`//`, `/../`) as a Go mux would: the
//! tests expect the application's 200 there.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::sniff::content_type;
use super::{Request, Response};
use crate::base64;

/// Most endpoints that `/configure_reflection` may hold.
const ENDPOINTS_MAX: usize = 1000;

/// The back end. Shared by all connections.
#[derive(Default)]
pub struct Reflector {
    endpoints: Mutex<HashMap<(String, String), Value>>,
}

impl Reflector {
    /// Answers one request.
    pub fn answer(&self, request: &Request) -> Response {
        let path = request.path();
        let is = |endpoint: &str| {
            path.strip_prefix(endpoint).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let empty = Response { status: 200, ..Response::default() };
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        match request.method.as_str() {
            "POST" if is("/reflect") => match specification(&request.body) {
                Some(specification) => reflect(&specification),
                None => text(400, "Invalid JSON in request body"),
            },
            "POST" if is("/configure_reflection") => match specification(&request.body) {
                Some(specification) => {
                    let list = specification.get("endpoints").and_then(Value::as_array);
                    for endpoint in list.into_iter().flatten() {
                        let word = |name| endpoint.get(name).and_then(Value::as_str).unwrap_or_default().to_string();
                        if endpoints.len() < ENDPOINTS_MAX {
                            endpoints.insert((word("method"), word("url")), specification.clone());
                        }
                    }
                    empty
                }
                None => text(400, "Invalid JSON in request body"),
            },
            "PUT" if is("/reset") => {
                endpoints.clear();
                empty
            }
            _ if is("/capabilities") => Response {
                status: 200,
                headers: vec![("Content-Type".into(), "application/json".into())],
                body: br#"{"endpoints":[{"path":"/*"},{"path":"/capabilities"},{"path":"/reflect"},{"path":"/configure_reflection"},{"path":"/reset"}]}"#.to_vec(),
            },
            method => match endpoints.get(&(method.to_string(), request.target.clone())) {
                Some(specification) => reflect(specification),
                None => empty,
            },
        }
    }
}

fn text(status: u16, text: &str) -> Response {
    let headers = vec![("Content-Type".into(), "text/plain; charset=utf-8".into())];
    Response { status, headers, body: text.into() }
}

/// A JSON object whose known fields have their types.
fn specification(body: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_str(&String::from_utf8_lossy(body)).ok()?;
    let object = value.as_object()?;
    let right = object.iter().all(|(name, value)| match name.as_str() {
        "status" => value.is_i64() || value.is_null(),
        "headers" => {
            value.is_null() || value.as_object().is_some_and(|map| map.values().all(Value::is_string))
        }
        "body" | "encodedBody" | "logMessage" => value.is_string() || value.is_null(),
        _ => true,
    });
    right.then_some(value)
}

fn reflect(specification: &Value) -> Response {
    let word = |name| specification.get(name).and_then(Value::as_str).unwrap_or_default();
    let status = match specification.get("status").and_then(Value::as_i64).unwrap_or(0) {
        0 => 200,
        status @ 100..=599 => status as u16,
        status => return text(400, &format!("Invalid status code: {status}")),
    };
    let body = match (word("body"), word("encodedBody")) {
        ("", encoded) => match base64::decode(encoded) {
            Some(body) => body,
            None => b"invalid base64 encoding of response body".to_vec(),
        },
        (body, _) => body.as_bytes().to_vec(),
    };
    let mut headers = Vec::new();
    for (name, value) in specification.get("headers").and_then(Value::as_object).into_iter().flatten() {
        let valid = !name.is_empty() && name.bytes().all(is_token);
        if valid && let Some(value) = value.as_str() {
            headers.push((name.clone(), value.replace(['\r', '\n'], " ").trim().to_string()));
        }
    }
    let has = |name: &str| headers.iter().any(|(have, _)| have.eq_ignore_ascii_case(name));
    if !body.is_empty() && !has("content-type") && !has("content-encoding") {
        headers.push(("Content-Type".into(), content_type(&body).into()));
    }
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
    Response { status, headers, body }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client;
    use crate::upstream::Server;

    #[test]
    fn answers() {
        let reflector = Reflector::default();
        let server = Server::start("127.0.0.1:0", move |request| reflector.answer(request)).unwrap();
        let check = |method: &str, target: &str, body: &str, want: (u16, &str, &str)| {
            let request = format!(
                "{method} {target} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let have =
                client::exchange(server.address(), None, request.as_bytes(), Duration::from_secs(5)).unwrap();
            let kind = String::from_utf8_lossy(have.header("content-type").unwrap_or_default()).into_owned();
            let body = String::from_utf8_lossy(have.after_head()).into_owned();
            assert_eq!((have.status, kind.as_str(), body.as_str()), want, "{method} {target}");
        };
        let plain = "text/plain; charset=utf-8";
        check("GET", "/any?x=<>", "", (200, "", ""));
        check("GET", "/reflect", "", (200, "", ""));
        check("POST", "/reflect", r#"{"body":"a"}"#, (200, plain, "a"));
        check(
            "POST",
            "/reflect/x?y",
            r#"{"status":500,"encodedBody":"Yg==","headers":{"Content-Type":"a/b"}}"#,
            (500, "a/b", "b"),
        );
        check("POST", "/reflect", "nonsense", (400, plain, "Invalid JSON in request body"));
        check("POST", "/reflect", r#"{"status":"x"}"#, (400, plain, "Invalid JSON in request body"));
        check("POST", "/reflect", r#"{"status":600}"#, (400, plain, "Invalid status code: 600"));
        let configure = r#"{"body":"z","endpoints":[{"method":"GET","url":"/q?1"}]}"#;
        check("POST", "/configure_reflection", configure, (200, "", ""));
        check("GET", "/q?1", "", (200, plain, "z"));
        check("GET", "/q?2", "", (200, "", ""));
        check("PUT", "/reset", "", (200, "", ""));
        check("GET", "/q?1", "", (200, "", ""));
    }
}
