//! Answers beside their description.

use portcullis_declared::{Api, Deviation, Sent, Settings};

use crate::told;

fn api(text: &str) -> Api {
    let settings = Settings { answers: true, ..Settings::default() };
    Api::compile_with(text, &settings).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// The deviations of an answer to `GET /users/7`.
fn of_answer(api: &Api, status: u16, content_type: Option<&str>, body: Sent<'_>) -> Vec<Deviation> {
    let head = portcullis_declared::Head {
        method: b"GET",
        path: b"/users/7",
        query: None,
        fields: std::iter::empty(),
    };
    let mut found = Vec::new();
    let operation = api.head(&head, portcullis_declared::Aspects::ALL, &mut found).unwrap();
    assert!(found.is_empty(), "{found:?}");
    let types = content_type.into_iter().map(str::as_bytes);
    let has_body = body != Sent::Whole(b"");
    if let Some(answer) = api.answer(operation, status, has_body, types, &mut found) {
        api.answer_body(answer, body, &mut found);
    }
    found
}

const USERS: &str = r##"{"openapi": "3.1.0", "paths": {"/users/{id}": {"get": {
    "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
    "responses": {
        "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/User"}}}},
        "204": {"description": "nothing"},
        "4XX": {"$ref": "#/components/responses/Problem"}}}}},
  "components": {"responses": {"Problem": {"content": {"application/*": {"schema": {"type": "object", "required": ["title"]}}}}},
    "schemas": {"User": {"type": "object", "additionalProperties": false, "required": ["id", "name", "password"], "properties": {
        "id": {"type": "integer", "readOnly": true}, "name": {"type": "string"},
        "password": {"type": "string", "writeOnly": true}}}}}}"##;

#[test]
fn status_type_and_body() {
    let api = api(USERS);
    let json = Some("application/json; charset=utf-8");
    for (status, content_type, body, expected) in [
        (200, json, r#"{"id": 7, "name": "a"}"#, None),
        (200, json, r#"{"name": "a"}"#, Some("response-body:id `id` is required")),
        (
            200,
            json,
            r#"{"id": 7, "name": "a", "hash": "x"}"#,
            Some("response-body:hash `hash` is not declared"),
        ),
        (
            200,
            json,
            r#"{"id": 7, "name": "a", "password": "secret"}"#,
            Some("response-body:password `password` is write-only, and must not be in an answer"),
        ),
        (200, json, "oops", Some("response-body: the body is not JSON from line 1, column 1 on")),
        (200, Some("text/html"), "<p>", Some("response-header:content-type must be application/json")),
        (200, None, "{}", Some("response-header:content-type must be application/json")),
        (204, None, "", None),
        (304, None, "", None),
        (404, Some("application/problem+json"), r#"{"title": "no"}"#, None),
        (404, Some("application/problem+json"), "{}", Some("response-body:title `title` is required")),
        // A range of types: what is no JSON is not compared.
        (404, Some("application/xml"), "<a/>", None),
        (500, json, "{}", Some("response-header: the status 500 is not declared")),
    ] {
        let found = told(&of_answer(&api, status, content_type, Sent::Whole(body.as_bytes())));
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(found, expected, "{status} {content_type:?} {body}");
    }
    let found = told(&of_answer(&api, 200, json, Sent::Unseen));
    assert_eq!(
        found,
        ["response-body: the body was not compared with its schema: it was not held as a whole"]
    );
}

/// Without the setting nothing is compared, and what is wrong in a schema of an answer stops no load.
#[test]
fn only_if_asked() {
    let api = Api::compile(USERS).unwrap();
    assert!(of_answer(&api, 500, None, Sent::Whole(b"oops")).is_empty());
}

/// The properties of requests and answers are not those of the other side.
#[test]
fn requests_keep_their_side() {
    let text = USERS.replacen("\"get\"", "\"put\"", 1).replacen(
        "\"responses\"",
        "\"requestBody\": {\"content\": {\"application/json\": {\"schema\": {\"$ref\": \"#/components/schemas/User\"}}}}, \"responses\"",
        1,
    );
    let api = api(&text);
    let sent = r#"{"name": "a", "password": "b"}"#;
    assert_eq!(crate::of_json(&api, "PUT /users/7", sent), [""; 0]);
    let sent = r#"{"id": 7, "name": "a", "password": "b"}"#;
    assert_eq!(
        crate::of_json(&api, "PUT /users/7", sent),
        ["json:id `id` is read-only, and must not be sent"]
    );
}
