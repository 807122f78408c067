//! Text to values: JSON or YAML, within limits.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::limits::{DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX, DOCUMENT_VALUES_MAX};
use crate::problem::Problem;

/// The values of a document: JSON where the text begins as JSON does, else YAML.
pub(crate) fn read(text: &str) -> Result<Value, Problem> {
    if text.len() > DOCUMENT_BYTES_MAX {
        let message = format!("the document has more than {} MiB", DOCUMENT_BYTES_MAX >> 20);
        return Err(Problem::new("", message));
    }
    let value = match is_json(text) {
        true => serde_json::from_str::<Value>(text).map_err(|error| Problem {
            pointer: String::new(),
            line: Some(error.line() as u64),
            message: format!("this is not JSON: {error}"),
        })?,
        false => serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
            let line = error.location().map(|at| at.line());
            // The first line says what is wrong; the rest repeats the text.
            let message = error.to_string();
            let message = message.lines().next().unwrap_or("not YAML");
            let message = message.strip_prefix("error: ").unwrap_or(message);
            let message = match message.split_once(": ") {
                Some((place, rest)) if place.starts_with("line ") => rest,
                _ => message,
            };
            Problem { pointer: String::new(), line, message: format!("this is not YAML: {message}") }
        })?,
    };
    measure(&value)?;
    Ok(value)
}

fn is_json(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('{')
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DOCUMENT_DEPTH_MAX,
            max_nodes: DOCUMENT_VALUES_MAX,
            max_events: 4 * DOCUMENT_VALUES_MAX,
            max_aliases: 10_000,
            max_documents: 1,
        },
        // `n`, `yes` and `no` are names here, and codes of countries.
        strict_booleans: true,
    }
}

/// Refuses what is too deep or too much.
fn measure(value: &Value) -> Result<(), Problem> {
    let (mut open, mut values) = (vec![(value, 1)], 0);
    while let Some((value, depth)) = open.pop() {
        values += 1;
        if depth > DOCUMENT_DEPTH_MAX {
            let message = format!("the document has more than {DOCUMENT_DEPTH_MAX} values inside each other");
            return Err(Problem::new("", message));
        }
        match value {
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    match values > DOCUMENT_VALUES_MAX {
        true => Err(Problem::new("", format!("the document has more than {DOCUMENT_VALUES_MAX} values"))),
        false => Ok(()),
    }
}

/// Adds the lines of the pointers, as far as the text shows them.
pub(crate) fn locate(text: &str, problems: &mut [Problem]) {
    // JSON is YAML but for tabs, which count as nothing here.
    let text = if is_json(text) { text.replace('\t', " ") } else { text.to_owned() };
    let Ok(root) = serde_saphyr::from_str_with_options::<Lines>(&text, options()) else { return };
    for problem in problems.iter_mut().filter(|problem| problem.line.is_none()) {
        let mut at = &root;
        for step in problem.pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let Some((_, next)) = at.members.iter().find(|(key, _)| *key == step) else { break };
            at = next;
        }
        problem.line = Some(at.line).filter(|line| *line > 0);
    }
}

/// The lines of a document's values.
struct Lines {
    line: u64,
    members: Vec<(String, Lines)>,
}

struct Members(Vec<(String, Lines)>);

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lines, D::Error> {
        let spanned = serde_saphyr::Spanned::<Members>::deserialize(deserializer)?;
        Ok(Lines { line: spanned.referenced.line(), members: spanned.value.0 })
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        deserializer.deserialize_any(LinesVisitor)
    }
}

struct LinesVisitor;

impl<'de> Visitor<'de> for LinesVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Members, E> {
        Ok(Members(Vec::new()))
    }
    fn visit_none<E>(self) -> Result<Members, E> {
        Ok(Members(Vec::new()))
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Members, D::Error> {
        deserializer.deserialize_any(LinesVisitor)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Members, E> {
        Ok(Members(Vec::new()))
    }
    fn visit_i64<E>(self, _: i64) -> Result<Members, E> {
        Ok(Members(Vec::new()))
    }
    fn visit_u64<E>(self, _: u64) -> Result<Members, E> {
        Ok(Members(Vec::new()))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Members, E> {
        Ok(Members(Vec::new()))
    }
    fn visit_str<E>(self, _: &str) -> Result<Members, E> {
        Ok(Members(Vec::new()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(item) = items.next_element::<Lines>()? {
            members.push((members.len().to_string(), item));
        }
        Ok(Members(members))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = entries.next_key::<serde_saphyr::Spanned<String>>()? {
            let line = key.referenced.line();
            // Scalars stand beside their key; so do the problems that are reported of them.
            let value = entries.next_value::<Lines>()?;
            members.push((key.value, Lines { line, members: value.members }));
        }
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Members(members))
    }
}
