//! The messages in Rust against the schema that others read.

use std::collections::BTreeMap;
use std::path::Path;

/// The fields of a message by number: type, with `repeated` before it, and name.
type Messages = BTreeMap<String, BTreeMap<u32, (String, String)>>;

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("a file of the crate")
}

/// The messages of the schema; enums count as `enumeration`, and what is in a `oneof` as any field.
fn schema() -> Messages {
    let text = read("proto/portcullis/agent/v1/agent.proto");
    let (mut messages, mut message, mut is_left_aside) = (Messages::new(), String::new(), false);
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
        match words[..] {
            ["message", name, "{"] => message = name.to_string(),
            ["service", ..] | ["enum", ..] => is_left_aside = true,
            ["}"] => is_left_aside = false,
            _ if is_left_aside => {}
            [.., kind, name, "=", number] => {
                let kind = match kind {
                    "Verdict" | "Kind" => "enumeration",
                    kind if kind.starts_with(char::is_uppercase) => "message",
                    kind => kind,
                };
                let kind = if words[0] == "repeated" { format!("repeated {kind}") } else { kind.to_string() };
                let number = number.parse().expect("a field number");
                messages.entry(message.clone()).or_default().insert(number, (kind, name.to_string()));
            }
            _ => {}
        }
    }
    messages
}

/// The same from the attributes of the structs; the fields of `oneof` enums go to their message.
fn wire() -> Messages {
    let text = read("src/wire.rs");
    let (mut messages, mut message) = (Messages::new(), String::new());
    let mut field: Option<(u32, String)> = None;
    for line in text.lines().map(str::trim) {
        let begins = |word: &str| Some(line.strip_prefix(word)?.trim_end_matches(" {").to_string());
        let attribute = line.strip_prefix("#[prost(").filter(|text| !text.starts_with("oneof"));
        if let Some(name) = begins("pub struct ").or_else(|| begins("pub enum ")) {
            message = match name.as_str() {
                "To" => "ToAgent".to_string(),
                "From" => "FromAgent".to_string(),
                _ => name,
            };
        } else if let Some(attribute) = attribute {
            let parts: Vec<&str> = attribute.trim_end_matches(")]").split(", ").collect();
            let kind = parts[0].split(' ').next().unwrap_or_default();
            let kind =
                if parts.contains(&"repeated") { format!("repeated {kind}") } else { kind.to_string() };
            let tag = parts.iter().find_map(|part| part.strip_prefix("tag = ")).expect("a tag");
            field = Some((tag.trim_matches('"').parse().expect("a number"), kind));
        } else if let Some((number, kind)) = field.take() {
            let name = line.trim_start_matches("pub ").split([':', '(']).next().unwrap_or_default();
            messages.entry(message.clone()).or_default().insert(number, (kind, snake(name)));
        }
    }
    messages
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

#[test]
fn the_messages_in_rust_are_those_of_the_schema() {
    let schema = schema();
    assert_eq!(schema.len(), 12, "{:?}", schema.keys());
    assert_eq!(wire(), schema);
}

#[test]
fn the_call_of_grpc_is_that_of_the_schema() {
    let text = read("proto/portcullis/agent/v1/agent.proto");
    let word = |after: &str| text.split_once(after).and_then(|(_, rest)| rest.split([' ', ';', '(']).next());
    let (package, service, call) = (word("\npackage "), word("\nservice "), word("  rpc "));
    let path = format!("/{}.{}/{}", package.unwrap(), service.unwrap(), call.unwrap());
    assert_eq!(path, portcullis_agent::GRPC_PATH);
}
