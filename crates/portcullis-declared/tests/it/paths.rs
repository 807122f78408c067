use crate::{api, of_line, with_paths};

const NONE: [&str; 0] = [];

#[test]
fn fixed_text_before_parameters() {
    let text = r#"{"type": "string", "maxLength": 3}"#;
    let by = |name: &str| {
        format!(
            r#"{{"parameters": [{{"name": "{name}", "in": "path", "required": true, "schema": {text}}}], "get": {{}}}}"#
        )
    };
    let api = with_paths(&format!(
        r#"{{"/pets/{{id}}": {}, "/pets/mine": {{"get": {{}}}}, "/pets/{{name}}.json": {}, "/{{any}}/mine": {}}}"#,
        by("id"),
        by("name"),
        by("any")
    ));
    for (line, expected) in [
        ("GET /pets/mine", None),
        ("GET /pets/mine/", None),
        ("GET /pets/abc", None),
        ("GET /pets/abcd", Some("path-segment:id `id` must have at most 3 characters, has 4")),
        ("GET /pets/abcd.json", Some("path-segment:name `name` must have at most 3 characters, has 4")),
        ("GET /abcd/mine", Some("path-segment:any `any` must have at most 3 characters, has 4")),
        ("GET /pets", Some("path: is not declared")),
        ("GET /pets/a/b", Some("path: is not declared")),
        ("GET //pets/a", Some("path: is not declared")),
        ("GET /Pets/mine/x", Some("path: is not declared")),
        ("POST /pets/abc", Some("method: must be GET")),
        ("HEAD /pets/abc", None),
        ("OPTIONS /pets/abc", None),
        ("OPTIONS /other", Some("path: is not declared")),
    ] {
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(of_line(&api, line), expected, "{line}");
    }
}

/// A slash that is encoded is part of a value, unless who decodes it first asks for something else.
#[test]
fn encoded_slashes() {
    let segment = r#"{"parameters": [{"name": "a", "in": "path", "required": true, "schema": {"type": "string"}}], "get": {}}"#;
    let api = with_paths(&format!(
        r#"{{"/files/{{a}}": {segment}, "/files/{{a}}/delete": {segment}, "/admin": {{"get": {{}}}}}}"#
    ));
    assert_eq!(of_line(&api, "GET /files/a%2Fb"), NONE);
    assert_eq!(
        of_line(&api, "GET /files/a%2fdelete"),
        ["path: is another path where encoded slashes are decoded first"]
    );
    for outside in ["/files/..", "/files/%2e%2e", "/files/..%2f..%2fadmin", "/files/a%5c..", "/files/./a"] {
        assert_eq!(of_line(&api, &format!("GET {outside}")), ["path: is not declared"], "{outside}");
    }
    assert_eq!(of_line(&api, "GET /%61dmin"), NONE);
}

/// What follows a semicolon some servers leave out.
#[test]
fn parameters_of_segments() {
    let segment = r#"{"parameters": [{"name": "a", "in": "path", "required": true, "schema": {"type": "string"}}], "get": {}}"#;
    let api = with_paths(&format!(r#"{{"/files/{{a}}": {segment}, "/files/all": {{"get": {{}}}}}}"#));
    assert_eq!(of_line(&api, "GET /files/a;v=1"), NONE);
    for path in ["/files/all;v=1", "/files;x/all;", "/files/all%3bv=1"] {
        let found = of_line(&api, &format!("GET {path}"));
        let expected = match path.starts_with("/files;") {
            true => "path: is not declared",
            false => "path: is another path where parameters of its segments are left out",
        };
        assert_eq!(found, [expected], "{path}");
    }
}

#[test]
fn base_paths_of_servers() {
    let api = api(r#"{"openapi": "3.0.3",
        "servers": [{"url": "https://api.example.com/v1/"}, {"url": "/{stage}/v2", "variables": {"stage": {"default": "test", "enum": ["test", "live"]}}}],
        "paths": {"/a": {"get": {}}, "/b": {"servers": [{"url": "https://h/{tenant}/x"}], "get": {}},
            "/c": {"get": {"servers": [{"url": "http://h/c-only"}]}, "put": {}}}}"#);
    for path in
        ["GET /v1/a", "GET /test/v2/a", "GET /live/v2/a", "GET /c-only/c", "PUT /v1/c", "GET /any/x/b"]
    {
        assert_eq!(of_line(&api, path), NONE, "{path}");
    }
    assert_eq!(of_line(&api, "GET /a"), ["path: is not declared"]);
    assert_eq!(of_line(&api, "GET /v1/c"), ["method: must be PUT"]);
    assert_eq!(of_line(&api, "PUT /c-only/c"), ["method: must be GET"]);
}

/// The number of nodes bounds the work, whatever overlaps.
#[test]
fn many_that_overlap() {
    let mut paths = String::new();
    for number in 0..200u32 {
        let segments: Vec<String> = (0..12)
            .map(|i| if number >> (i % 8) & 1 == 1 { format!("{{p{i}}}") } else { "a".to_owned() })
            .collect();
        let _ = std::fmt::Write::write_fmt(
            &mut paths,
            format_args!(
                "{}\"/{}/{number}\": {{\"get\": {{}}}}",
                if number > 0 { "," } else { "" },
                segments.join("/")
            ),
        );
    }
    let api = with_paths(&format!("{{{paths}}}"));
    assert_eq!(of_line(&api, "GET /a/a/a/a/a/a/a/a/a/a/a/a/199"), NONE);
    assert_eq!(of_line(&api, "GET /a/a/a/a/a/a/a/a/a/a/a/a/x"), ["path: is not declared"]);
    assert_eq!(of_line(&api, &format!("GET {}", "/a".repeat(5_000))), ["path: is not declared"]);
}
