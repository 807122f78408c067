//! YAML as a tree whose values know their lines. The library bounds depth, nodes and aliases.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::error::Error;
use crate::sources::{FileId, Place, Sources};

/// Values inside each other. The parser recurses; this fits the stack of any thread.
const DEPTH_MAX: usize = 24;

/// A value.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// From 1 on.
    pub line: usize,
    pub value: Value,
}

/// The kinds of values; numbers and truths are texts, since configurations write both as either.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Text(String),
    List(Vec<Node>),
    /// Key, its line, value.
    Table(Vec<(String, usize, Node)>),
}

impl Node {
    /// The member of a table.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.members().iter().find(|(key, _, _)| key == name).map(|(_, _, node)| node)
    }

    /// The member at a path of names.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, name| node.get(name))
    }

    /// The text at a path of names.
    pub fn text_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.text()
    }

    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// What is in a list.
    pub fn items(&self) -> &[Node] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    /// What is in a table.
    pub fn members(&self) -> &[(String, usize, Node)] {
        if let Value::Table(members) = &self.value { members } else { &[] }
    }
}

/// The documents of a file.
pub(crate) fn parse(sources: &Sources, file: FileId) -> Result<Vec<Node>, Error> {
    let text = sources.text(file);
    if text.lines().all(|line| line.trim_start().starts_with('#') || line.trim().is_empty()) {
        return Ok(Vec::new());
    }
    let options = serde_saphyr::options! { budget: serde_saphyr::budget! { max_depth: DEPTH_MAX } };
    serde_saphyr::from_multiple_with_options::<Node>(&text, options).map_err(|error| {
        let line = error.location().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1));
        // The first line says what is wrong; the rest repeats the text.
        let message = error.to_string();
        let message = message.lines().next().unwrap_or("not YAML");
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let message = match message.split_once(": ") {
            Some((place, rest)) if place.starts_with("line ") => rest,
            _ => message,
        };
        sources.error(Place { file, line }, format!("this is not YAML: {message}"))
    })
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let spanned = serde_saphyr::Spanned::<Value>::deserialize(deserializer)?;
        Ok(Node {
            line: usize::try_from(spanned.referenced.line()).unwrap_or(1).max(1),
            value: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Values)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Values)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = items.next_element()? {
            list.push(node);
        }
        Ok(Value::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut table = Vec::new();
        while let Some(key) = entries.next_key::<serde_saphyr::Spanned<String>>()? {
            let line = usize::try_from(key.referenced.line()).unwrap_or(1).max(1);
            table.push((key.value, line, entries.next_value()?));
        }
        Ok(Value::Table(table))
    }
}
