//! The document as a tree of values that know where they stand, the same for TOML and YAML.

use std::ops::Range;

/// A value and the bytes of the text that spell it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub span: Range<usize>,
    pub value: Value,
}

/// The kinds of values both syntaxes share.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<(Key, Node)>),
}

/// A key of a table and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub span: Range<usize>,
    pub name: String,
}

impl Value {
    /// The value without its places.
    pub(crate) fn into_json(self) -> serde_json::Value {
        match self {
            Value::Null => serde_json::Value::Null,
            Value::Bool(truth) => truth.into(),
            Value::Integer(number) => number.into(),
            Value::Float(number) => number.into(),
            Value::Text(text) => text.into(),
            Value::List(items) => items.into_iter().map(|item| item.value.into_json()).collect(),
            Value::Table(entries) => {
                entries.into_iter().map(|(key, node)| (key.name, node.value.into_json())).collect()
            }
        }
    }

    /// The name of this kind of value in messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}
