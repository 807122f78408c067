use portcullis_declared::Sent;

use crate::{deviations, of_line, told, with_paths};

const NONE: [&str; 0] = [];

fn query(parameters: &str) -> portcullis_declared::Api {
    with_paths(&format!(r#"{{"/": {{"get": {{"parameters": [{parameters}]}}}}}}"#))
}

fn check(parameter: &str, cases: &[(&str, Option<&str>)]) {
    let api = query(parameter);
    for (text, rule) in cases {
        let expected: Vec<&str> = rule.iter().copied().collect();
        assert_eq!(of_line(&api, &format!("GET /?{text}")), expected, "{parameter}\n{text}");
    }
}

#[test]
fn scalars() {
    let limit =
        r#"{"name": "n", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 100}}"#;
    check(
        limit,
        &[
            ("n=1", None),
            ("n=007", None),
            ("n=%31", None),
            ("n=5000", Some("query:n `n` must be at most 100, is 5,000")),
            ("n=0", Some("query:n `n` must be at least 1, is 0")),
            ("n=", Some("query:n `n` must be a whole number, is a text")),
            ("n", Some("query:n `n` must be a whole number, is a text")),
            ("n=1.5", Some("query:n `n` must be a whole number, is a number")),
            ("n=1'%20or%201=1", Some("query:n `n` must be a whole number, is a text")),
            ("n=0x10", Some("query:n `n` must be a whole number, is a text")),
            ("n=1e400", Some("query:n `n` must be a whole number, is a text")),
            ("n=1&n=2", Some("query:n `n` is there more than once")),
            ("n=1&N=2", Some("query:N is not declared")),
            ("n[]=1", Some("query:n[] is not declared")),
            ("", None),
        ],
    );
    check(
        r#"{"name": "q", "in": "query", "allowEmptyValue": true, "schema": {"type": "string", "minLength": 2, "maxLength": 3}}"#,
        &[
            ("q=", None),
            ("q=ab", None),
            ("q=%C3%A4%C3%B6%C3%BC", None),
            ("q=a", Some("query:q `q` must have at least 2 characters, has 1")),
            ("q=abcd", Some("query:q `q` must have at most 3 characters, has 4")),
        ],
    );
    check(
        r#"{"name": "b", "in": "query", "schema": {"type": ["boolean", "null"]}}"#,
        &[
            ("b=true", None),
            ("b=", None),
            ("b=TRUE", Some("query:b `b` must be null or true or false, is a text")),
        ],
    );
    check(
        r#"{"name": "e", "in": "query", "schema": {"type": "string", "enum": ["x", "y"]}}"#,
        &[("e=x", None), ("e=z", Some(r#"query:e `e` must be one of "x", "y""#))],
    );
    check(
        r#"{"name": "either", "in": "query", "schema": {"oneOf": [{"type": "integer"}, {"type": "string", "pattern": "^[a-z]+$"}]}}"#,
        &[
            ("either=12", None),
            ("either=ab", None),
            ("either=A", Some("query:either `either` must have one of 2 forms, and has none of them")),
        ],
    );
}

#[test]
fn styles_of_lists() {
    let list = |style: &str| {
        format!(
            r#"{{"name": "l", "in": "query", {style} "schema": {{"type": "array", "items": {{"type": "integer"}}, "maxItems": 3}}}}"#
        )
    };
    let wrong = Some("query:l `l.1` must be a whole number, is a text");
    check(
        &list(""),
        &[
            ("l=1&l=2", None),
            ("l=1&l=x", wrong),
            ("l=1&l=2&l=3&l=4", Some("query:l `l` must have at most 3 items, has 4")),
        ],
    );
    check(&list(r#""explode": false,"#), &[("l=1,2", None), ("l=1%2C2", None), ("l=1,x", wrong)]);
    check(
        &list(r#""style": "spaceDelimited", "explode": false,"#),
        &[("l=1%202", None), ("l=1+2", None), ("l=1+x", wrong)],
    );
    check(
        &list(r#""style": "pipeDelimited", "explode": false,"#),
        &[("l=1|2", None), ("l=1%7C2", None), ("l=1|x", wrong)],
    );
}

#[test]
fn styles_of_objects() {
    let object = |style: &str| {
        format!(
            r#"{{"name": "o", "in": "query", {style} "schema": {{"type": "object", "additionalProperties": false, "properties": {{"a": {{"type": "integer"}}, "b": {{"type": "string"}}}}}}}}"#
        )
    };
    let wrong = Some("query:o `o.a` must be a whole number, is a text");
    check(
        &object(r#""style": "deepObject","#),
        &[
            ("o[a]=1&o[b]=x", None),
            ("o%5Ba%5D=1", None),
            ("o[a]=x", wrong),
            ("o[c]=x", Some("query:o `o.c` is not declared")),
        ],
    );
    check(&object(""), &[("a=1&b=x", None), ("a=x", wrong), ("c=1", Some("query:c is not declared"))]);
    check(
        &object(r#""explode": false,"#),
        &[
            ("o=a,1,b,x", None),
            ("o=a,x", wrong),
            ("o=a", Some("query:o `o` is not written as its style says")),
        ],
    );
    check(
        r#"{"name": "j", "in": "query", "content": {"application/json": {"schema": {"type": "object", "required": ["a"]}}}}"#,
        &[
            ("j=%7B%22a%22:1%7D", None),
            ("j=%7B%7D", Some("query:j `j.a` is required")),
            ("j=x", Some("query:j `j` must be JSON")),
        ],
    );
}

#[test]
fn required_ones_and_other_places() {
    let api = query(
        r#"{"name": "X-Tenant", "in": "header", "required": true, "schema": {"type": "string", "pattern": "^[a-z]+$"}},
           {"name": "session", "in": "cookie", "schema": {"type": "string", "format": "uuid"}},
           {"name": "ids", "in": "header", "schema": {"type": "array", "items": {"type": "integer"}}},
           {"name": "Authorization", "in": "header", "required": true, "schema": {"type": "string"}}"#,
    );
    let of = |fields: &[(&str, &str)]| told(&deviations(&api, "GET /", fields, Sent::Whole(b"")));
    assert_eq!(
        of(&[
            ("x-tenant", "abc"),
            ("Cookie", "a=1; session=0d3aa4bd-3bf2-4b4d-a6c2-7d0ff1a3c5a8"),
            ("ids", "1,2")
        ]),
        NONE
    );
    assert_eq!(of(&[]), ["header:X-Tenant `X-Tenant` is required"]);
    assert_eq!(
        of(&[("X-Tenant", "A"), ("Cookie", "session=1"), ("Ids", "1,x")]),
        [
            "header:X-Tenant `X-Tenant` must match the pattern `^[a-z]+$`",
            "cookie:session `session` must be a UUID",
            "header:ids `ids.1` must be a whole number, is a text"
        ]
    );
}

#[test]
fn credentials() {
    let api = crate::api(
        r#"{"openapi": "3.0.0", "security": [{"key": []}, {"login": [], "id": []}],
            "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "k"},
                "login": {"type": "http", "scheme": "Bearer"}, "id": {"type": "apiKey", "in": "header", "name": "X-Id"}}},
            "paths": {"/": {"get": {}}, "/open": {"get": {"security": []}}, "/maybe": {"get": {"security": [{}, {"key": []}]}}}}"#,
    );
    let needs = [
        "header:authorization needs the parameter `k`, or the header field `X-Id` and `Authorization: bearer`",
    ];
    assert_eq!(of_line(&api, "GET /?k=1"), NONE);
    assert_eq!(of_line(&api, "GET /?k="), needs);
    assert_eq!(of_line(&api, "GET /"), needs);
    assert_eq!(of_line(&api, "GET /open"), NONE);
    assert_eq!(of_line(&api, "GET /maybe"), NONE);
    let of = |fields: &[(&str, &str)]| told(&deviations(&api, "GET /", fields, Sent::Whole(b"")));
    assert_eq!(of(&[("Authorization", "bearer abc"), ("x-id", "1")]), NONE);
    assert_eq!(of(&[("Authorization", "Bearer abc")]), needs);
    assert_eq!(of(&[("Authorization", "Basic abc"), ("x-id", "1")]), needs);
}

/// Parameters that a fast test knows, that it does not, lists and objects: whichever stand beside one another
/// in a query, and however often, the deviations are those of each of them alone.
#[test]
fn each_as_if_it_were_alone() {
    let declared = [
        (
            r#"{"name": "word", "in": "query", "required": true, "schema": {"enum": ["books", "music"]}}"#,
            "word",
        ),
        (r#"{"name": "code", "in": "query", "schema": {"type": "string", "pattern": "^[a-z]+$"}}"#, "code"),
        (r#"{"name": "n", "in": "query", "schema": {"type": "integer", "maximum": 9}}"#, "n"),
        (
            r#"{"name": "all", "in": "query", "schema": {"type": "array", "items": {"type": "integer"}}}"#,
            "all",
        ),
        (
            r#"{"name": "o", "in": "query", "style": "deepObject", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}"#,
            "o",
        ),
    ];
    let pairs = [
        "word=books",
        "word=wine",
        "code=x",
        "code=7",
        "n=7",
        "n=1%30",
        "all=1",
        "all=x",
        "o[a]=1",
        "o[a]=x",
    ];
    let alone: Vec<_> = declared.iter().map(|(parameter, name)| (query(parameter), *name)).collect();
    let together = query(&declared.map(|(parameter, _)| parameter).join(","));
    let is_of = |pair: &str, name: &str| pair.split(['=', '[']).next() == Some(name);
    for chosen in 0u32..1 << pairs.len() {
        let mut sent: Vec<&str> =
            pairs.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1).map(|(_, pair)| *pair).collect();
        if chosen % 3 == 0 {
            sent.reverse();
        }
        if chosen % 5 == 0 {
            sent.insert(sent.len() / 2, "x=1");
        }
        let mut expected: Vec<String> = Vec::new();
        for (api, name) in &alone {
            let own: Vec<&str> = sent.iter().filter(|pair| is_of(pair, name)).copied().collect();
            expected.extend(of_line(api, &format!("GET /?{}", own.join("&"))));
        }
        if sent.contains(&"x=1") {
            expected.push("query:x is not declared".to_owned());
        }
        assert_eq!(of_line(&together, &format!("GET /?{}", sent.join("&"))), expected, "{sent:?}");
    }
}
