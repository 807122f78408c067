//! Text to [`Node`] tree: TOML through `toml`, YAML through `serde-saphyr`.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use toml::de::{DeTable, DeValue};

use crate::node::{Key, Node, Value};
use crate::{ConfigError, Format, Mistake};

/// A syntax error: the message of the parser and the byte it points at.
pub(crate) struct SyntaxError {
    pub message: String,
    pub offset: usize,
}

impl SyntaxError {
    /// The error of a document.
    pub(crate) fn in_text(self, text: &str, name: &str) -> ConfigError {
        let span = self.offset..self.offset + 1;
        ConfigError::new(vec![Mistake::at(name, text, span, self.message, None)])
    }
}

/// Reads `text` as `format` says. An empty YAML document is an empty table, as an empty TOML file is.
pub(crate) fn parse(text: &str, format: Format) -> Result<Node, SyntaxError> {
    match format {
        Format::Toml => parse_toml(text),
        Format::Yaml => parse_yaml(text),
    }
}

fn parse_toml(text: &str) -> Result<Node, SyntaxError> {
    let table = DeTable::parse(text).map_err(|error| SyntaxError {
        message: error.message().to_string(),
        offset: error.span().map_or(0, |span| span.start),
    })?;
    let span = table.span();
    Ok(Node { span, value: toml_table(table.get_ref())? })
}

fn toml_table(table: &DeTable<'_>) -> Result<Value, SyntaxError> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table.iter() {
        let node = toml_value(value.get_ref(), value.span())?;
        entries.push((Key { span: key.span(), name: key.get_ref().to_string() }, node));
    }
    Ok(Value::Table(entries))
}

fn toml_value(value: &DeValue<'_>, span: std::ops::Range<usize>) -> Result<Node, SyntaxError> {
    let value =
        match value {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(truth) => Value::Bool(*truth),
            DeValue::Integer(number) => {
                Value::Integer(i64::from_str_radix(number.as_str(), number.radix()).map_err(|_| {
                    SyntaxError { message: "integer out of range".to_string(), offset: span.start }
                })?)
            }
            DeValue::Float(number) => Value::Float(number.as_str().parse().map_err(|_| SyntaxError {
                message: "float out of range".to_string(),
                offset: span.start,
            })?),
            // No setting takes a date; as text it fails the type check of its key with the right place.
            DeValue::Datetime(date) => Value::Text(date.to_string()),
            DeValue::Array(items) => Value::List(
                items.iter().map(|item| toml_value(item.get_ref(), item.span())).collect::<Result<_, _>>()?,
            ),
            DeValue::Table(table) => toml_table(table)?,
        };
    Ok(Node { span, value })
}

fn parse_yaml(text: &str) -> Result<Node, SyntaxError> {
    if text.lines().all(|line| line.trim_start().starts_with('#') || line.trim().is_empty()) {
        return Ok(Node { span: 0..0, value: Value::Table(Vec::new()) });
    }
    serde_saphyr::from_str::<YamlNode>(text).map(|node| node.0).map_err(|error| {
        let offset = error.location().map_or(0, |at| offset(text, at.line(), at.column()));
        // The first line says what is wrong; the rest repeats the text, and our own report shows text and
        // place.
        let message = error.to_string();
        let message = message.lines().next().unwrap_or("not YAML");
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let message = match message.split_once(": ") {
            Some((place, rest)) if place.starts_with("line ") => rest,
            _ => message,
        };
        SyntaxError { message: message.to_string(), offset }
    })
}

/// The byte at a line and column, both counted from 1, columns in characters.
fn offset(text: &str, line: u64, column: u64) -> usize {
    let before = (line as usize).saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
    let line = text[start..].split_inclusive('\n').next().unwrap_or("");
    let column = (column as usize).saturating_sub(1);
    start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
}

struct YamlNode(Node);

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = serde_saphyr::Spanned::<YamlValue>::deserialize(deserializer)?;
        Ok(YamlNode(Node { span: yaml_span(&spanned.referenced), value: spanned.value.0 }))
    }
}

struct YamlValue(Value);

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor).map(YamlValue)
    }
}

fn yaml_span(at: &serde_saphyr::Location) -> std::ops::Range<usize> {
    let start = at.span().byte_offset().unwrap_or(0) as usize;
    start..start + at.span().byte_len().unwrap_or(0) as usize
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }
    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value).map(Value::Integer).map_err(|_| E::custom("integer out of range"))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(YamlNode(node)) = items.next_element()? {
            list.push(node);
        }
        Ok(Value::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut table: Vec<(Key, Node)> = Vec::new();
        while let Some(key) = entries.next_key::<serde_saphyr::Spanned<String>>()? {
            if table.iter().any(|(seen, _)| seen.name == key.value) {
                return Err(A::Error::custom(format!("duplicate key `{}`", key.value)));
            }
            let YamlNode(node) = entries.next_value()?;
            table.push((Key { span: yaml_span(&key.referenced), name: key.value }, node));
        }
        Ok(Value::Table(table))
    }
}
