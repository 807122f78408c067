use portcullis_declared::{Api, Kind, Sent};

use crate::{api, deviations, of_json, told};

const NONE: [&str; 0] = [];

const TOOLS: &str = r##"{"jsonrpc": "2.0", "id": 1, "result": {"tools": [
    {"name": "read_file", "inputSchema": {"type": "object", "required": ["path"], "additionalProperties": false,
        "properties": {"path": {"$ref": "#/$defs/path"}}, "$defs": {"path": {"type": "string", "pattern": "^/srv/[a-z/.]*$"}}}},
    {"name": "now"}]}}"##;

fn call(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {{"name": "{tool}", "arguments": {arguments}}}}}"#
    )
}

/// The list that a server of the Model Context Protocol publishes is the description.
#[test]
fn tools_of_mcp() {
    let api = api(TOOLS);
    assert_eq!(api.counts(), (0, 2));
    for (body, expected) in [
        (call("read_file", r#"{"path": "/srv/a.txt"}"#), None),
        (call("now", r#"{"any": 1}"#), None),
        (
            call("read_file", r#"{"path": "/etc/passwd"}"#),
            Some(
                "json:params.arguments.path `params.arguments.path` must match the pattern `^/srv/[a-z/.]*$`",
            ),
        ),
        (
            call("read_file", r#"{"path": "/srv/a", "as": "root"}"#),
            Some("json:params.arguments.as `params.arguments.as` is not declared"),
        ),
        (
            call("run_command", "{}"),
            Some("json:params.name `params.name` must be one of the 2 tools that are declared"),
        ),
        (
            r#"{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "read_file"}}"#.to_owned(),
            Some("json:params.arguments.path `params.arguments.path` is required"),
        ),
        (
            r#"{"jsonrpc": "2.0", "method": "tools/call"}"#.to_owned(),
            Some("json:params.name `params.name` must be one of the 2 tools that are declared"),
        ),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}"#.to_owned(), None),
        (r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#.to_owned(), None),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "debug/eval"}"#.to_owned(),
            Some("json:method `method` is not declared"),
        ),
        (
            r#"{"jsonrpc": "1.0", "method": "ping"}"#.to_owned(),
            Some(r#"json:jsonrpc `jsonrpc` must be "2.0""#),
        ),
        (
            format!("[{}]", call("nothing", "{}")),
            Some("json:array.array.params.name `0.params.name` must be one of the 2 tools that are declared"),
        ),
        ("[]".to_owned(), Some("json: the body must have 1 to 100 messages, has 0")),
        ("1".to_owned(), Some("json: the body must be an object")),
    ] {
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(of_json(&api, "POST /mcp", &body), expected, "{body}");
    }
    let path = deviations(
        &api,
        "POST /",
        &[("Content-Type", "application/json")],
        Sent::Whole(call("read_file", r#"{"path": "/"}"#).as_bytes()),
    );
    assert_eq!(path[0].pointer, "/result/tools/0/inputSchema/$defs/path/pattern");
    let of = |line: &str, types: &[(&str, &str)], body| told(&deviations(&api, line, types, body));
    assert_eq!(of("GET /mcp", &[], Sent::Whole(b"")), NONE);
    assert_eq!(of("PUT /mcp", &[], Sent::Whole(b"")), ["method: must be POST, GET, DELETE"]);
    assert_eq!(
        of("POST /mcp", &[("Content-Type", "text/plain")], Sent::Whole(b"{}")),
        [
            "json: no method can be read: must be application/json",
            "header:content-type must be application/json"
        ]
    );
    let unseen = deviations(&api, "POST /mcp", &[("Content-Type", "application/json")], Sent::Unseen);
    assert_eq!(unseen[0].kind, Kind::Unchecked);
}

#[test]
fn methods_of_openrpc() {
    let api = api(r##"{"openrpc": "1.2.6", "methods": [{"name": "add", "params": [
            {"name": "a", "required": true, "schema": {"$ref": "#/components/schemas/Number"}},
            {"$ref": "#/components/contentDescriptors/B"}]}],
            "components": {"schemas": {"Number": {"type": "integer", "maximum": 9}},
                "contentDescriptors": {"B": {"name": "b", "schema": {"type": "string"}}}}}"##);
    let of = |method: &str, params: &str| {
        of_json(&api, "POST /", &format!(r#"{{"jsonrpc": "2.0", "method": "{method}", "params": {params}}}"#))
    };
    assert_eq!(of("add", "[1]"), NONE);
    assert_eq!(of("add", r#"{"a": 1, "b": "x"}"#), NONE);
    assert_eq!(of("rpc.discover", "[]"), NONE);
    assert_eq!(
        of("add", "[10, 1, 2]"),
        [
            "json:params.params `params.0` must be at most 9, is 10",
            "json:params.params `params.1` must be a text, is a number",
            "json:params.params `params.2` is not declared",
        ]
    );
    assert_eq!(
        of("add", r#"{"b": "x", "c": 1}"#),
        ["json:params.c `params.c` is not declared", "json:params.a `params.a` is required"]
    );
    assert_eq!(of("add", "7"), ["json:params `params` must be a list or an object"]);
    assert_eq!(of("drop", "[]"), ["json:method `method` is not declared"]);
}

#[test]
fn mistakes() {
    let first =
        |text: &str| Api::compile(text).err().map(|problems| problems[0].to_string()).unwrap_or_default();
    assert_eq!(first(r#"{"tools": 1}"#), "line 1: /tools: `tools` is a list");
    assert_eq!(first(r#"{"tools": [{}]}"#), "line 1: /tools/0: a tool has a `name`");
    assert_eq!(
        first(r#"{"tools": [{"name": "a"}, {"name": "a"}]}"#),
        "line 1: /tools/1: the tool `a` is there twice"
    );
    assert_eq!(
        first(r##"{"tools": [{"name": "a", "inputSchema": {"$ref": "#/x"}}]}"##),
        "line 1: /tools/0/inputSchema: `$ref` leads to nothing: /x"
    );
    assert_eq!(first(r#"{"openrpc": "1.3.0"}"#), "line 1: /methods: the document has no `methods`");
}
