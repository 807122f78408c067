//! Parameters of operations, and how their texts are read.

use portcullis_http::body::content_type::Processor;
use portcullis_types::Place;
use serde_json::Value;

use super::{Compiler, WORDS_MAX};
use crate::parameter::{ObjectStyle, Parameter, Quick, Reading};
use crate::problem::child;
use crate::schema::Types;

impl Compiler<'_> {
    pub(super) fn parameter(&mut self, at: &str) -> Option<Parameter> {
        let (pointer, raw) = self.follow(at)?;
        let text = |name: &str| raw.get(name).and_then(Value::as_str);
        let (Some(name), Some(place)) = (text("name"), text("in")) else {
            self.wrong(&pointer, "a parameter has a `name` and an `in`");
            return None;
        };
        let is_set = |name: &str| raw.get(name).and_then(Value::as_bool);
        let (place, usual) = match place {
            "query" => (Place::Query, "form"),
            "path" => (Place::PathSegment, "simple"),
            "cookie" => (Place::Cookie, "form"),
            // The specification has these left to what it says of bodies and security.
            "header"
                if ["accept", "content-type", "authorization"]
                    .iter()
                    .any(|own| name.eq_ignore_ascii_case(own)) =>
            {
                return None;
            }
            "header" => (Place::Header, "simple"),
            other => {
                self.left_out(&pointer, format!("parameters in `{other}` are not compared"));
                return None;
            }
        };
        let style = text("style").unwrap_or(usual);
        let explodes = is_set("explode").unwrap_or(style == "form" || style == "cookie");
        let (at_schema, is_json) = match (raw.get("schema"), raw.get("content").and_then(Value::as_object)) {
            (Some(_), _) => (Some(child(&pointer, "schema")), false),
            (None, Some(content)) => {
                let json = content
                    .keys()
                    .find(|name| Processor::by_media_type(name.as_bytes()) == Some(Processor::Json));
                let at = json.map(|name| child(&child(&child(&pointer, "content"), name), "schema"));
                (at.filter(|at| self.root.pointer(at).is_some()), true)
            }
            (None, None) => (None, false),
        };
        let schema = at_schema.as_deref().and_then(|at| self.schemas.compile(at));
        let reading = match (&schema, at_schema.as_deref()) {
            (Some(_), _) if is_json => Reading::Json,
            (Some(schema), Some(at)) => self.reading(&pointer, at, schema.types, style, explodes),
            _ => Reading::Unread,
        };
        let quick = match (&reading, at_schema.as_deref()) {
            (Reading::One, Some(at)) => self.quick(at),
            _ => None,
        };
        Some(Parameter {
            name: name.to_owned(),
            place,
            required: is_set("required").unwrap_or(false) || place == Place::PathSegment,
            allows_empty: is_set("allowEmptyValue").unwrap_or(false),
            pointer,
            reading,
            schema,
            quick,
        })
    }

    fn reading(&mut self, pointer: &str, at: &str, types: Types, style: &str, explodes: bool) -> Reading {
        let Types { array, object, string, number, integer, boolean, .. } = types;
        // Where anything may come, a text is as good as a list.
        let is_scalar = string || number || integer || boolean;
        if is_scalar || !array && !object {
            let is_known = ["form", "simple", "cookie", "spaceDelimited", "pipeDelimited", "deepObject"];
            if !is_known.contains(&style) {
                self.left_out(pointer, format!("values in the style `{style}` are not compared"));
                return Reading::Unread;
            }
            if array && (style == "form" && explodes) {
                // One text, or several: both readings are those of a list that may be a text.
                return Reading::Unread;
            }
            return Reading::One;
        }
        let separator = match style {
            "form" | "simple" | "cookie" => Some(b','),
            "spaceDelimited" => Some(b' '),
            "pipeDelimited" => Some(b'|'),
            _ => None,
        };
        match array {
            true => {
                let items = self.types_at(at, "items");
                match (separator, style) {
                    (Some(_), "form" | "cookie" | "spaceDelimited" | "pipeDelimited") if explodes => {
                        Reading::List { separator: None, items }
                    }
                    (Some(separator), _) => Reading::List { separator: Some(separator), items },
                    (None, _) => {
                        self.left_out(pointer, format!("lists in the style `{style}` are not compared"));
                        Reading::Unread
                    }
                }
            }
            false => {
                let style = match style {
                    "deepObject" => ObjectStyle::Deep,
                    "form" | "cookie" if explodes => ObjectStyle::Exploded,
                    "simple" if explodes => ObjectStyle::Equals(b','),
                    _ => match separator {
                        Some(separator) => ObjectStyle::Pairs(separator),
                        None => {
                            self.left_out(
                                pointer,
                                format!("objects in the style `{style}` are not compared"),
                            );
                            return Reading::Unread;
                        }
                    },
                };
                let members = self.members(at);
                let others = self.others(at);
                Reading::Object { style, members, others }
            }
        }
    }

    pub(super) fn types_at(&self, at: &str, keyword: &str) -> Types {
        match self.schemas.resolve(at) {
            Some((pointer, schema)) if schema.get(keyword).is_some() => {
                self.schemas.types(&child(&pointer, keyword))
            }
            _ => Types { string: true, ..Types::default() },
        }
    }

    /// The declared members of an object with their types.
    pub(super) fn members(&self, at: &str) -> Vec<(String, Types)> {
        let Some((pointer, schema)) = self.schemas.resolve(at) else { return Vec::new() };
        let properties = child(&pointer, "properties");
        let names = schema.get("properties").and_then(Value::as_object).map(|members| members.keys());
        let names = names.into_iter().flatten();
        names.map(|name| (name.clone(), self.schemas.types(&child(&properties, name)))).collect()
    }

    /// The types of members that are not declared by name, where a schema for them is.
    fn others(&self, at: &str) -> Option<Types> {
        let (pointer, schema) = self.schemas.resolve(at)?;
        match schema.get("additionalProperties")? {
            Value::Object(_) => Some(self.schemas.types(&child(&pointer, "additionalProperties"))),
            Value::Bool(true) => Some(Types { string: true, ..Types::default() }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    /// A fast test for schemas that say little.
    fn quick(&self, at: &str) -> Option<Quick> {
        let (_, schema) = self.schemas.resolve(at)?;
        let members = schema.as_object()?;
        let says = [
            "type",
            "description",
            "title",
            "default",
            "example",
            "examples",
            "deprecated",
            "nullable",
            "format",
            "minimum",
            "maximum",
            "minLength",
            "maxLength",
            "enum",
        ];
        if members.keys().any(|name| !says.contains(&name.as_str()) && !name.starts_with("x-")) {
            return None;
        }
        let (has, get) = (|name: &str| members.contains_key(name), |name: &str| members.get(name));
        let number = |name: &str, usual: i64| get(name).map_or(Some(usual), Value::as_i64);
        let size =
            |name: &str, usual: u64| get(name).map_or(Some(usual), Value::as_u64).map(|size| size as usize);
        // A list of words says the type, too.
        let kind = get("type").map_or_else(|| has("enum").then_some("string"), Value::as_str)?;
        match kind {
            "integer" if !has("enum") => {
                let (low, high) = match get("format").and_then(Value::as_str) {
                    Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
                    _ => (i64::MIN, i64::MAX),
                };
                Some(Quick::Integer { min: number("minimum", low)?, max: number("maximum", high)? })
            }
            "boolean" if !has("enum") => Some(Quick::Boolean),
            "string" if has("enum") => {
                let words = get("enum")?.as_array()?;
                let words: Option<Vec<_>> =
                    words.iter().map(|word| word.as_str().map(|word| word.as_bytes().to_vec())).collect();
                let is_plain = !has("format") && !has("minLength") && !has("maxLength");
                words.filter(|words| is_plain && words.len() <= WORDS_MAX).map(Quick::Words)
            }
            "string" if !has("format") => {
                Some(Quick::Text { min: size("minLength", 0)?, max: size("maxLength", u64::from(u32::MAX))? })
            }
            _ => None,
        }
    }
}
