use portcullis_declared::{Kind, Sent};

use crate::{api, deviations, of_json, told, with_paths, with_schema};

const NONE: [&str; 0] = [];

#[test]
fn json() {
    let api = with_schema(
        r#"{"type": "object", "required": ["item"], "additionalProperties": false, "properties": {
            "item": {"type": "string", "pattern": "^[a-z]+$"}, "quantity": {"type": "integer", "maximum": 100},
            "tags": {"type": "array", "uniqueItems": true, "items": {"type": "string", "maxLength": 5}},
            "lines": {"type": "array", "items": {"type": "object", "properties": {"price": {"type": "number", "exclusiveMinimum": 0}}}},
            "id": {"type": "integer", "readOnly": true}}}"#,
    );
    for (body, expected) in [
        (r#"{"item": "pen", "quantity": 3, "tags": ["a"], "lines": [{"price": 0.5}]}"#, None),
        (r#"{"item": "pen", "quantity": 3.0}"#, None),
        (
            r#"{"item": "pen", "quantity": 5000}"#,
            Some("json:quantity `quantity` must be at most 100, is 5,000"),
        ),
        (
            r#"{"item": "pen", "quantity": "5"}"#,
            Some("json:quantity `quantity` must be a whole number, is a text"),
        ),
        (
            r#"{"item": "pen", "quantity": {"$gt": 0}}"#,
            Some("json:quantity `quantity` must be a whole number, is an object"),
        ),
        (r#"{"item": "Pen"}"#, Some("json:item `item` must match the pattern `^[a-z]+$`")),
        ("{}", Some("json:item `item` is required")),
        (r#"{"item": "pen", "admin": true}"#, Some("json:admin `admin` is not declared")),
        (r#"{"item": "pen", "tags": ["a", "a"]}"#, Some("json:tags `tags` must not have an item twice")),
        (
            r#"{"item": "pen", "tags": ["abcdef"]}"#,
            Some("json:tags.tags `tags.0` must have at most 5 characters, has 6"),
        ),
        (
            r#"{"item": "pen", "lines": [{"price": 0}]}"#,
            Some("json:lines.lines.price `lines.0.price` must be more than 0, is 0"),
        ),
        (r#"{"item": "pen", "id": 1}"#, Some("json:id `id` is read-only, and must not be sent")),
        (r#"{"item": "pen", "item": "x"}"#, Some("raw-body: the body has a member twice")),
        (r#"{"item": "pen""#, Some("raw-body: the body is JSON without its end")),
        (
            r#"{"item": "pen"} {"item": "pen"}"#,
            Some("raw-body: the body is not JSON from line 1, column 17 on"),
        ),
        ("item=pen", Some("raw-body: the body is not JSON from line 1, column 1 on")),
        ("\u{feff}{\"item\": \"pen\"}", Some("raw-body: the body is not JSON from line 1, column 1 on")),
        (r#"["item"]"#, Some("json: the body must be an object, is a list")),
    ] {
        let expected: Vec<&str> = expected.into_iter().collect();
        let found = of_json(&api, "POST /", body);
        let found: Vec<String> = found.iter().map(|each| each.replace("`the body`", "the body")).collect();
        assert_eq!(found, expected, "{body}");
    }
}

#[test]
fn pointers_lead_into_the_document() {
    let api = api(
        r##"{"openapi": "3.1.0", "paths": {"/": {"post": {"requestBody": {"$ref": "#/components/requestBodies/Order"}}}},
            "components": {"requestBodies": {"Order": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}}},
                "schemas": {"Order": {"properties": {"lines": {"type": "array", "items": {"$ref": "#/components/schemas/a~1b"}}}},
                    "a/b": {"properties": {"n": {"type": "integer", "maximum": 1}, "own": {"$ref": "#/components/schemas/Own"}}},
                    "Own": {"type": "string", "readOnly": true}}}}"##,
    );
    let found = |body: &str| {
        let types = [("Content-Type", "application/json")];
        deviations(&api, "POST /", &types, Sent::Whole(body.as_bytes()))
    };
    assert_eq!(found(r#"{"lines": [{"n": 2}]}"#)[0].pointer, "/components/schemas/a~1b/properties/n/maximum");
    let own = found(r#"{"lines": [{"own": "x"}]}"#);
    assert_eq!(
        (own[0].kind, own[0].pointer.as_str()),
        (Kind::ReadOnly, "/components/schemas/a~1b/properties/own")
    );
}

#[test]
fn media_types() {
    let api = with_paths(
        r#"{"/": {"post": {"requestBody": {"required": true, "content": {
            "application/json": {"schema": {"type": "object", "required": ["a"]}},
            "application/*": {}, "text/plain": {}}}}, "get": {}}}"#,
    );
    let of = |types: &[&str], body: &[u8]| {
        let fields: Vec<(&str, &str)> = types.iter().map(|name| ("Content-Type", *name)).collect();
        told(&deviations(&api, "POST /", &fields, Sent::Whole(body)))
    };
    let must = "must be application/* or application/json or text/plain";
    let must = |what: &str| format!("header:content-type {what}{must}");
    assert_eq!(of(&["application/json; charset=UTF-8"], b"{\"a\":1}"), NONE);
    assert_eq!(of(&["Application/JSON"], b"{}"), ["json:a `a` is required"]);
    assert_eq!(of(&["text/plain"], b"{}"), NONE);
    assert_eq!(of(&["application/octet-stream"], b"{}"), NONE);
    assert_eq!(of(&["image/png"], b"{}"), [must("")]);
    assert_eq!(of(&["application/json", "text/plain"], b"{}"), ["header:content-type must be there once"]);
    assert_eq!(of(&[], b"{}"), [must("is required, and ")]);
    assert_eq!(of(&[""], b"{}"), [must("")]);
    assert_eq!(of(&["application/json"], b""), ["raw-body: the body is required"]);
    let foreign = ["header:content-type must name no character set but UTF-8"];
    assert_eq!(of(&["application/json; charset=utf-16"], b"{\"a\":1}"), foreign);
    assert_eq!(of(&["application/json; charset=utf-7"], b"{\"a\":1}"), foreign);
    assert_eq!(of(&["application/json; charset=ibm037"], b"{\"a\":1}"), foreign);
    let get = deviations(&api, "GET /", &[], Sent::Whole(b"{}"));
    assert_eq!(told(&get), ["raw-body: must have no body"]);
}

#[test]
fn forms() {
    let schema = r#"{"type": "object", "required": ["n"], "additionalProperties": false, "properties": {"n": {"type": "integer"}, "l": {"type": "array", "maxItems": 2, "items": {"type": "integer"}}, "file": {"type": "string", "format": "binary", "minLength": 1}}}"#;
    let api = with_paths(&format!(
        r#"{{"/": {{"post": {{"requestBody": {{"content": {{"application/x-www-form-urlencoded": {{"schema": {schema}}}, "multipart/form-data": {{"schema": {schema}}}}}}}}}}}}}"#
    ));
    let form = |body: &str| {
        let types = [("Content-Type", "application/x-www-form-urlencoded")];
        told(&deviations(&api, "POST /", &types, Sent::Whole(body.as_bytes())))
    };
    assert_eq!(form("n=1&l=1&l=2"), NONE);
    assert_eq!(form("n=x"), ["form:n `n` must be a whole number, is a text"]);
    assert_eq!(form("n=1&n=2"), ["form:n `n` must be a whole number, is a list"]);
    assert_eq!(form("n=1&l=1&l=2&l=3"), ["form:l `l` must have at most 2 items, has 3"]);
    assert_eq!(form("n=1&role=admin"), ["form:role `role` is not declared"]);
    let part = |name: &str, more: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n{value}\r\n")
    };
    let multipart = |parts: &[String]| {
        let types = [("Content-Type", "multipart/form-data; boundary=b")];
        let body = format!("{}--b--\r\n", parts.concat());
        told(&deviations(&api, "POST /", &types, Sent::Whole(body.as_bytes())))
    };
    assert_eq!(multipart(&[part("n", "", "1"), part("file", "; filename=\"a\"", "")]), NONE);
    assert_eq!(multipart(&[part("n", "", "x")]), ["multipart-field:n `n` must be a whole number, is a text"]);
    assert_eq!(
        multipart(&[part("n", "", "1"), part("shell", "; filename=\"a.php\"", "x")]),
        ["multipart-field:shell `shell` is not declared"]
    );
}

/// A body that is not there as a whole is told. One that is beyond a limit deviates: who sends it would
/// choose not to be compared.
#[test]
fn not_compared() {
    let api = with_schema(r#"{"type": "array"}"#);
    let types = [("Content-Type", "application/json")];
    let unseen = deviations(&api, "POST /", &types, Sent::Unseen);
    assert_eq!(unseen[0].kind, Kind::Unchecked);
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let found = deviations(&api, "POST /", &types, Sent::Whole(deep.as_bytes()));
    assert_eq!(
        (found[0].kind, found[0].rule.as_str()),
        (Kind::Body, "the body has too many values inside each other to be compared")
    );
    let fits = format!("{}{}", "[".repeat(64), "]".repeat(64));
    assert_eq!(deviations(&api, "POST /", &types, Sent::Whole(fits.as_bytes())), []);
    let wide = format!("[{}1]", "1,".repeat(200_000));
    let found = deviations(&api, "POST /", &types, Sent::Whole(wide.as_bytes()));
    assert_eq!(found[0].kind, Kind::Body);
}

/// Where the description has a range of media types, bodies of JSON are compared all the same.
#[test]
fn ranges_of_media_types() {
    for range in ["*/*", "application/*"] {
        let api = with_paths(&format!(
            r#"{{"/": {{"post": {{"requestBody": {{"content": {{"{range}": {{"schema": {{"properties": {{"n": {{"type": "integer"}}}}}}}}}}}}}}}}}}"#
        ));
        let found = |content_type: &str| {
            let types = [("Content-Type", content_type)];
            told(&deviations(&api, "POST /", &types, Sent::Whole(br#"{"n": "x"}"#)))
        };
        assert_eq!(found("application/json"), ["json:n `n` must be a whole number, is a text"]);
        assert_eq!(found("application/merge-patch+json").len(), 1);
        assert_eq!(found("application/octet-stream"), NONE);
    }
}

/// OpenAPI 3.0 has keywords that mean other things than those of JSON Schema.
#[test]
fn schemas_of_3_0() {
    let api = api(
        r##"{"openapi": "3.0.3", "paths": {"/": {"post": {"requestBody": {"content": {"application/json": {"schema": {"properties": {
            "a": {"type": "string", "nullable": true, "enum": ["x"]}, "b": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
            "c": {"nullable": true, "allOf": [{"$ref": "#/components/schemas/C"}]}, "d": {"$ref": "#/components/schemas/C", "nullable": true},
            "e": {"type": "integer", "format": "int32"}}}}}}}}},
            "components": {"schemas": {"C": {"type": "object"}}}}"##,
    );
    for (body, expected) in [
        (r#"{"a": null, "b": 0.1, "c": null}"#, None),
        (r#"{"a": "y"}"#, Some(r#"json:a `a` must be one of "x", null"#)),
        (r#"{"b": 0}"#, Some("json:b `b` must be more than 0, is 0")),
        (r#"{"c": 1}"#, Some("json:c `c` must have one of 2 forms, and has none of them")),
        (r#"{"d": null}"#, Some("json:d `d` must be an object, is null")),
        (r#"{"e": 2147483648}"#, Some("json:e `e` must be at most 2,147,483,647, is 2,147,483,648")),
    ] {
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(of_json(&api, "POST /", body), expected, "{body}");
    }
}
