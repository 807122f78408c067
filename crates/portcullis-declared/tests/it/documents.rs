use portcullis_declared::Api;

use crate::{api, of_line};

fn problems(text: &str) -> Vec<String> {
    Api::compile(text).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

fn check(text: &str, expected: &str) {
    assert_eq!(problems(text), [expected], "{text}");
}

/// Mistakes are told with line and pointer, all at once.
#[test]
fn mistakes() {
    check(
        "{\"openapi\": \"3.1.0\",\n \"paths\": }",
        "line 2: this is not JSON: expected value at line 2 column 11",
    );
    check("swagger: '2.0'\n", "line 1: /swagger: Swagger 2.0 is not read: convert it to OpenAPI 3");
    check("openapi: 4.0.0\n", "line 1: /openapi: OpenAPI 4.0.0 is not read; 3.0 to 3.2 are");
    check(
        "a: 1\n",
        "line 1: this describes no API that is read here: it has neither `openapi` nor `openrpc` nor `tools`, and is no \
         schema of GraphQL",
    );
    let text = "openapi: 3.1.0
paths:
  /a/{id}:
    get:
      parameters:
        - { name: id, in: path, required: true, schema: { $ref: 'other.yaml#/Id' } }
        - { name: b, in: query, schema: { $ref: '#/components/schemas/Missing' } }
  /a/{name}: {}
  b: {}
  /c:
    post:
      requestBody:
        content:
          application/json:
            schema:
              type: number
              maximum: a lot
";
    assert_eq!(
        problems(text),
        [
            "line 8: /paths/~1a~1{name}: every path that this one fits is one of /paths/~1a~1{id}, too",
            "line 9: /paths/b: a path begins with a slash",
            "line 6: /paths/~1a~1{id}/get/parameters/0/schema: `$ref` leads to another document, and only those within it are followed: other.yaml#/Id",
            "line 7: /paths/~1a~1{id}/get/parameters/1/schema: `$ref` leads to nothing: /components/schemas/Missing",
            "line 17: /paths/~1c/post/requestBody/content/application~1json/schema/maximum: this is no schema: \"a lot\" is not of type \"number\"",
        ]
    );
}

/// What is not enforced is told, and the rest is.
#[test]
fn warnings() {
    let text = r#"{"openapi": "3.1.0", "paths": {"/": {"get": {"parameters": [
        {"name": "a", "in": "query", "schema": {"type": "string", "pattern": "^(?=.*x).*$", "maxLength": 3}},
        {"name": "b", "in": "query", "schema": {"type": "string", "pattern": "(a{1000}){1000}"}},
        {"name": "m", "in": "path", "style": "matrix", "schema": {"type": "string"}}]}}}}"#;
    let api = api(text);
    let told: Vec<String> = api.warnings().iter().map(|each| each.pointer.clone()).collect();
    let at = |rest: &str| format!("/paths/~1/get/parameters/{rest}");
    for pointer in [at("0/schema/pattern"), at("1/schema/pattern"), at("2")] {
        assert!(told.contains(&pointer), "{pointer}: {told:?}");
    }
    assert_eq!(of_line(&api, "GET /?a=abcd"), ["query:a `a` must have at most 3 characters, has 4"]);
    assert_eq!(of_line(&api, "GET /?a=abc&b=zzz"), [""; 0]);
}

/// YAML and JSON come to the same, and YAML's own spellings are read.
#[test]
fn yaml() {
    let api = api("openapi: 3.0.0
x-limit: &limit { type: integer, maximum: 10 }
paths:
  /a:
    get:
      parameters:
        - name: n
          in: query
          schema: *limit
      responses:
        200: { description: yes }
");
    assert_eq!(of_line(&api, "GET /a?n=11"), ["query:n `n` must be at most 10, is 11"]);
}
