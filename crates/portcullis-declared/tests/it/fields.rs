//! Fields that are known by their declared types.

use portcullis_declared::FieldType;

use crate::{api, with_paths};

/// `place:name` of each field of the only operation, with its types, the number of its values, or `text`.
fn known(api: &portcullis_declared::Api) -> Vec<String> {
    let fields = api.fields().next().unwrap().iter();
    fields
        .map(|field| {
            let mut form: Vec<String> = field.form.types.iter().map(|kind| format!("{kind:?}")).collect();
            form.extend(field.form.is_text.then(|| "text".to_owned()));
            form.extend((!field.form.values.is_empty()).then(|| field.form.values.len().to_string()));
            format!("{}:{} {}", field.place.name(), field.name, form.join("|"))
        })
        .collect()
}

#[test]
fn of_the_query() {
    let parameter =
        |name: &str, schema: &str| format!(r#"{{"name": "{name}", "in": "query", "schema": {schema}}}"#);
    let list = [
        parameter("page", r#"{"type": "integer"}"#),
        parameter("rate", r#"{"type": ["number", "null"]}"#),
        parameter("on", r#"{"type": "boolean"}"#),
        parameter("key", r#"{"type": "string", "format": "uuid"}"#),
        parameter("day", r#"{"oneOf": [{"type": "string", "format": "date"}, {"type": "integer"}]}"#),
        parameter("sort", r#"{"type": "string", "enum": ["name", "date"]}"#),
        parameter("ids", r#"{"type": "array", "items": {"type": "integer"}}"#),
        parameter("q", r#"{"type": "string"}"#),
        // What these carry the description does not say.
        parameter("mail", r#"{"type": "string", "format": "email"}"#),
        parameter("code", r#"{"type": "string", "pattern": "^[a-z]+$"}"#),
        parameter("short", r#"{"type": "string", "maxLength": 8}"#),
        parameter("any", "{}"),
        parameter("either", r#"{"oneOf": [{"type": "integer"}, {"type": "object"}]}"#),
    ];
    let api = with_paths(&format!(r#"{{"/": {{"get": {{"parameters": [{}]}}}}}}"#, list.join(", ")));
    assert_eq!(
        known(&api),
        [
            "query:page Whole",
            "query:rate Number|1",
            "query:on Boolean",
            "query:key Uuid",
            "query:day Date|Whole",
            "query:sort 2",
            "query:ids Whole",
            "query:q text"
        ]
    );
    let field = &api.fields().next().unwrap()[0];
    assert_eq!(field.pointer, "/paths/~1/get/parameters/0/schema");
    assert_eq!(field.form.types, [FieldType::Whole]);
}

#[test]
fn of_bodies() {
    let api = api(r##"{"openapi": "3.0.3", "paths": {"/": {"post": {"requestBody": {"content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/Order"}},
            "multipart/form-data": {"schema": {"type": "object", "properties": {"count": {"type": "integer"}}}}}}}}},
        "components": {"schemas": {"Order": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {
            "lines": {"type": "array", "items": {"type": "object", "properties": {
                "quantity": {"type": "integer", "nullable": true}, "note": {"type": "string"}}}},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
            "parent": {"$ref": "#/components/schemas/Order"}}}]},
          "Base": {"type": "object", "properties": {"id": {"type": "string", "format": "uuid"}},
            "oneOf": [{"properties": {"hidden": {"type": "integer"}}}, {}]}}}}"##);
    let known = known(&api);
    for expected in [
        "json:id Uuid",
        "json:lines.lines.quantity Whole|1",
        "json:lines.lines.note text",
        "json:tags.tags 2",
        "json:parent.id Uuid",
        "multipart-field:count Whole",
    ] {
        assert!(known.iter().any(|field| field == expected), "{expected}: {known:?}");
    }
    // An alternative says nothing of a body that is another one.
    assert!(known.iter().all(|field| !field.contains("hidden")), "{known:?}");
}

/// A schema that leads to itself in many ways ends.
#[test]
fn many_ways_round() {
    let members: Vec<String> =
        (0..40).map(|n| format!(r##""m{n}": {{"$ref": "#/components/schemas/A"}}"##)).collect();
    let api = api(&format!(
        r##"{{"openapi": "3.1.0", "paths": {{"/": {{"post": {{"requestBody": {{"content": {{"application/json": {{"schema":
            {{"$ref": "#/components/schemas/A"}}}}}}}}}}}}}}, "components": {{"schemas": {{"A": {{"properties": {{{}, "n": {{"type": "integer"}}}}}}}}}}}}"##,
        members.join(", ")
    ));
    assert_eq!(known(&api), [""; 0]);
}
