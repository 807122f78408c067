//! The part of JSON Schema that our schema uses, and a panic for any word beyond it.

use serde_json::Value;

const KNOWN: [&str; 20] = [
    "anyOf",
    "$schema",
    "$id",
    "$ref",
    "$defs",
    "title",
    "description",
    "type",
    "required",
    "properties",
    "additionalProperties",
    "propertyNames",
    "items",
    "minItems",
    "maxItems",
    "enum",
    "const",
    "minimum",
    "maximum",
    "format",
];

/// Returns the errors of `value`, one line each.
pub fn errors(root: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(root, root, value, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    if *schema == Value::Bool(true) {
        return;
    }
    let Some(object) = schema.as_object() else { panic!("{at}: a schema is an object") };
    if let Some(unknown) = object.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        panic!("{at}: the validator does not know {unknown:?}");
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        check(root, root.pointer(pointer).expect("the reference resolves"), value, at, found);
    }
    let mut fail = |message: String| found.push(format!("{at}: {message}"));
    if let Some(kind) = schema["type"].as_str()
        && !is_type(kind, value)
    {
        return fail(format!("{value} is not of type {kind}"));
    }
    if let Some(ways) = schema["anyOf"].as_array() {
        let fits = |way: &Value| {
            let mut errors = Vec::new();
            check(root, way, value, at, &mut errors);
            errors.is_empty()
        };
        if !ways.iter().any(fits) {
            fail(format!("{value} fits none of {}", schema["anyOf"]));
        }
    }
    if object.get("const").is_some_and(|c| c != value) {
        fail(format!("{value} is not the constant"));
    }
    if let Some(list) = schema["enum"].as_array()
        && !list.contains(value)
    {
        fail(format!("{value} is not listed"));
    }
    if let (Some(min), Some(n)) = (schema["minimum"].as_i64(), value.as_i64())
        && n < min
    {
        fail(format!("{n} is below {min}"));
    }
    if let (Some(max), Some(n)) = (schema["maximum"].as_i64(), value.as_i64())
        && n > max
    {
        fail(format!("{n} is above {max}"));
    }
    if schema["format"] == "date-time" && value.as_str().is_none_or(|t| t.len() != 24 || !t.ends_with('Z')) {
        fail(format!("{value} is not a time"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            fail(format!("{name} is missing"));
        }
    }
    if let Some(items) = value.as_array() {
        let within = |key: &str, ok: fn(u64, u64) -> bool| {
            schema[key].as_u64().is_none_or(|limit| ok(items.len() as u64, limit))
        };
        if !within("minItems", |n, limit| n >= limit) || !within("maxItems", |n, limit| n <= limit) {
            fail(format!("{} items", items.len()));
        }
        for (i, item) in items.iter().enumerate() {
            check(root, &schema["items"], item, &format!("{at}/{i}"), found);
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let at = format!("{at}/{name}");
        if let Some(names) = object.get("propertyNames") {
            check(root, names, &Value::from(name.as_str()), &at, found);
        }
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(schema), _) => check(root, schema, member, &at, found),
            (None, Value::Bool(false)) => found.push(format!("{at}: unknown member")),
            (None, Value::Null) => {}
            (None, schema) => check(root, schema, member, &at, found),
        }
    }
}

fn is_type(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("the validator does not know the type {other:?}"),
    }
}

/// Paths of all members that the schema names, sorted.
pub fn members(root: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(root, "", &mut found);
    found.sort();
    found
}

fn collect(schema: &Value, at: &str, found: &mut Vec<String>) {
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path = if at.is_empty() { name.clone() } else { format!("{at}/{name}") };
        found.push(path.clone());
        collect(member, &path, found);
        collect(&member["items"], &path, found);
    }
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        collect(definition, name, found);
    }
}
