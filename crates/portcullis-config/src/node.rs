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
