//! The translation of schemas to those that are compiled.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{FORMATS, LIST, NAMED, ONE, PLAIN, Schemas, local, options};
use crate::limits::{ENUM_MAX, PATTERNS_MAX};
use crate::problem::child;

impl Schemas<'_> {
    /// Documents are so deep that this recursion is bounded ([`crate::limits::DOCUMENT_DEPTH_MAX`]).
    pub(super) fn translate(&mut self, schema: &Value, pointer: &str, refers: &mut BTreeSet<usize>) -> Value {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(_) => return schema.clone(),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.wrong(pointer, "a schema is an object, true or false");
                return Value::Bool(true);
            }
        };
        let mut out = Map::new();
        if let Some(target) = members.get("$ref") {
            match target.as_str().ok_or("`$ref` is a text".to_owned()).and_then(local) {
                Ok(target) if self.document.pointer(&target).is_none() => {
                    self.wrong(pointer, format!("`$ref` leads to nothing: {target}"));
                }
                Ok(target) => {
                    let number = self.define(&target);
                    refers.insert(number);
                    out.insert("$ref".to_owned(), Value::String(format!("#/$defs/{number}")));
                }
                Err(message) => self.wrong(pointer, message),
            }
            if self.is_old {
                return Value::Object(out);
            }
        }
        for (name, value) in members {
            let at = child(pointer, name);
            let name = name.as_str();
            match name {
                "$ref" => {}
                "enum" => self.enumeration(value, &at, &mut out),
                "pattern" => {
                    if let Some(pattern) = value.as_str().filter(|pattern| self.is_linear(pattern, &at)) {
                        out.insert("pattern".to_owned(), Value::String(pattern.to_owned()));
                    }
                }
                "format" => {
                    if let Some(format) = value.as_str().filter(|format| FORMATS.contains(format)) {
                        out.insert("format".to_owned(), Value::String(format.to_owned()));
                    }
                }
                "$id" | "$dynamicRef" | "$recursiveRef" | "$dynamicAnchor" | "dependencies"
                    if !self.is_old =>
                {
                    self.left_out(&at, format!("`{name}` is not enforced"));
                }
                "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => {}
                "minimum" | "maximum" => {
                    let exclusive = if name == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                    let is_exclusive = members.get(exclusive) == Some(&Value::Bool(true));
                    out.insert(if is_exclusive { exclusive } else { name }.to_owned(), value.clone());
                }
                _ if PLAIN.contains(&name) => {
                    out.insert(name.to_owned(), value.clone());
                }
                _ if ONE.iter().any(|(one, _)| *one == name) => {
                    // A list of schemas is what drafts before 2020-12 have.
                    if value.is_array() {
                        self.left_out(&at, format!("`{name}` with a list of schemas is not enforced"));
                    } else if name != "additionalItems" {
                        out.insert(name.to_owned(), self.translate(value, &at, refers));
                    }
                }
                _ if LIST.iter().any(|(list, _)| *list == name) => {
                    let Some(items) = value.as_array() else {
                        self.wrong(&at, "this is a list of schemas");
                        continue;
                    };
                    let each = items.iter().enumerate();
                    let each =
                        each.map(|(i, item)| self.translate(item, &child(&at, &i.to_string()), refers));
                    out.insert(name.to_owned(), Value::Array(each.collect()));
                }
                _ if NAMED.iter().any(|(named, _)| *named == name) => {
                    let named = self.named(name, value, &at, refers);
                    out.insert(name.to_owned(), Value::Object(named));
                }
                _ => {}
            }
        }
        self.without_hidden(members, pointer, &mut out);
        self.bound_integer(members, &mut out);
        if self.is_old && members.get("nullable") == Some(&Value::Bool(true)) {
            return nullable(out);
        }
        Value::Object(out)
    }

    fn enumeration(&mut self, value: &Value, at: &str, out: &mut Map<String, Value>) {
        match value.as_array() {
            Some(members) if members.len() > ENUM_MAX => {
                self.left_out(at, format!("an `enum` of more than {ENUM_MAX} members is not enforced"));
            }
            // An empty one, which 2020-12 allows, lets nothing pass.
            _ => {
                out.insert("enum".to_owned(), value.clone());
            }
        }
    }

    fn named(
        &mut self,
        name: &str,
        value: &Value,
        at: &str,
        refers: &mut BTreeSet<usize>,
    ) -> Map<String, Value> {
        let mut named = Map::new();
        let Some(members) = value.as_object() else {
            self.wrong(at, "these are schemas by name");
            return named;
        };
        for (key, schema) in members {
            let at = child(at, key);
            if name == "patternProperties" && !self.is_linear(key, &at) {
                continue;
            }
            let schema = match name == "properties" && self.is_hidden(&at) {
                true => {
                    self.hidden.insert(at.clone());
                    Value::Bool(false)
                }
                false => self.translate(schema, &at, refers),
            };
            named.insert(key.clone(), schema);
        }
        named
    }

    fn is_hidden(&self, pointer: &str) -> bool {
        let says = |schema: &Value| schema.get(self.direction.hides()) == Some(&Value::Bool(true));
        self.document.pointer(pointer).is_some_and(says)
            || self.resolve(pointer).is_some_and(|(_, schema)| says(schema))
    }

    /// What is read-only is not required of a request, and what is write-only not of an answer.
    fn without_hidden(&self, members: &Map<String, Value>, pointer: &str, out: &mut Map<String, Value>) {
        let Some(Value::Array(required)) = out.get_mut("required") else { return };
        if members.contains_key("properties") {
            let at = child(pointer, "properties");
            let is_hidden =
                |name: &Value| name.as_str().is_some_and(|name| self.hidden.contains(&child(&at, name)));
            required.retain(|name| !is_hidden(name));
        }
    }

    /// The formats of OpenAPI that bound whole numbers.
    fn bound_integer(&self, members: &Map<String, Value>, out: &mut Map<String, Value>) {
        let bounds = match members.get("format").and_then(Value::as_str) {
            Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
            Some("int64") => (i64::MIN, i64::MAX),
            _ => return,
        };
        if out.get("type").and_then(Value::as_str) == Some("integer") {
            for (name, exclusive, bound) in
                [("minimum", "exclusiveMinimum", bounds.0), ("maximum", "exclusiveMaximum", bounds.1)]
            {
                if !out.contains_key(name) && !out.contains_key(exclusive) {
                    out.insert(name.to_owned(), bound.into());
                }
            }
        }
    }

    /// True if the pattern runs in linear time here. Those that do not are reported, and not enforced.
    fn is_linear(&mut self, pattern: &str, at: &str) -> bool {
        if let Some(known) = self.patterns.get(pattern) {
            return *known;
        }
        let trouble = match self.patterns.len() >= PATTERNS_MAX {
            true => Some(format!("more than {PATTERNS_MAX} patterns")),
            false => options().build(&json!({ "pattern": pattern })).err().map(|error| error.to_string()),
        };
        if let Some(trouble) = &trouble {
            let first = trouble.lines().last().unwrap_or_default().trim().to_owned();
            self.left_out(
                at,
                format!("the pattern is not enforced, as it does not run in linear time: {first}"),
            );
        }
        self.patterns.insert(pattern.to_owned(), trouble.is_none());
        trouble.is_none()
    }
}

fn nullable(mut out: Map<String, Value>) -> Value {
    match out.get_mut("type") {
        Some(Value::String(name)) => {
            let types = json!([name, "null"]);
            out.insert("type".to_owned(), types);
            if let Some(Value::Array(members)) = out.get_mut("enum")
                && !members.contains(&Value::Null)
            {
                members.push(Value::Null);
            }
            Value::Object(out)
        }
        // The specification gives it no meaning without a type; who writes it means it.
        _ => json!({ "anyOf": [{ "type": "null" }, out] }),
    }
}
