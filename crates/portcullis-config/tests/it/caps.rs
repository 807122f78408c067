//! The table of resource caps in docs/operations.md names keys that exist, with their defaults; the packaged
//! document is valid.

use std::path::Path;

use serde_json::Value;

const ROWS_WITH_KEYS: usize = 48;

#[test]
fn the_table_of_resource_caps_names_keys_that_exist_with_their_defaults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let (_, table) = text.split_once("## Resource caps").expect("the table");
    let schema: Value = serde_json::from_str(&portcullis_config::json_schema()).expect("a schema");
    let mut found = 0;
    for row in table.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, default, key] = cells[..] else { panic!("not a row: {row}") };
        if key.is_empty() {
            continue;
        }
        found += 1;
        let description =
            description(&schema, key.trim_matches('`')).unwrap_or_else(|| panic!("no key: {row}"));
        // What must be given where its table is, as `requests` of `limits`, has no default of its own.
        let Some((before, _)) =
            description.to_lowercase().rsplit_once("default: ").map(|(a, b)| (a.len(), b.len()))
        else {
            assert!(default == "no limit" || default.contains(' '), "{row}: the schema says no default");
            continue;
        };
        let said = description[before + "default: ".len()..].trim_end_matches('.');
        let depends = said.contains(' ');
        assert!(depends || said.trim_matches('`') == default, "{row}: the schema says {said}");
    }
    assert_eq!(found, ROWS_WITH_KEYS);
}

#[test]
fn the_document_of_the_packages_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/portcullis.toml");
    portcullis_config::Config::from_file(&path).unwrap_or_else(|error| panic!("{error}"));
}

/// Returns the schema's description of a key such as `sites.request_body.limit`.
fn description(schema: &Value, key: &str) -> Option<String> {
    let mut at = schema;
    let mut said = None;
    for name in key.split('.') {
        at = inside(schema, at);
        at = at.get("properties")?.get(name)?;
        said = at.get("description").and_then(Value::as_str);
    }
    said.map(str::to_string)
}

/// The object that a property is, or holds.
fn inside<'s>(schema: &'s Value, mut at: &'s Value) -> &'s Value {
    loop {
        let variant = |list: &'s Value| list.as_array()?.iter().find(|one| one.get("$ref").is_some());
        at = match at {
            _ if at.get("properties").is_some() => return at,
            _ if let Some(name) = at.get("$ref").and_then(Value::as_str) => {
                match schema.pointer(name.trim_start_matches('#')) {
                    Some(found) => found,
                    None => return at,
                }
            }
            _ if let Some(found) = at.get("anyOf").and_then(variant) => found,
            _ if let Some(found) = at.get("items") => found,
            _ if let Some(found) = at.get("additionalProperties").filter(|found| found.is_object()) => found,
            _ => return at,
        };
    }
}
