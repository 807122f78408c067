//! [`Node`] tree to typed document. Errors carry the place of the innermost value they are about, and an
//! unknown key its nearest known neighbour.

use std::cell::RefCell;
use std::ops::Range;

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::hint;
use crate::node::{Key, Node, Value};

/// A type or name mistake, with its place once known.
#[derive(Debug)]
pub(crate) struct DeError {
    pub message: String,
    pub hint: Option<String>,
    pub span: Option<Range<usize>>,
    pub is_missing_key: bool,
}

impl DeError {
    fn new(message: String, hint: Option<String>) -> Self {
        DeError { message, hint, span: None, is_missing_key: false }
    }

    fn at(mut self, span: &Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }
}

impl std::fmt::Display for DeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DeError {}

impl de::Error for DeError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        DeError::new(message.to_string(), None)
    }
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        DeError::new(format!("unknown key `{field}`"), Some(hint::suggest(field, expected)))
    }
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        DeError::new(format!("unknown value `{variant}`"), Some(hint::suggest(variant, expected)))
    }
    fn missing_field(field: &'static str) -> Self {
        DeError { is_missing_key: true, ..DeError::new(format!("the key `{field}` is missing"), None) }
    }
}

/// The marker under which [`crate::spanned::Spanned`] asks for a value with its place.
pub(crate) const SPANNED: &str = "$portcullis-spanned";

/// A node that is turned into a value of the document. Unknown keys are noted and passed over, so that all of
/// them are found.
#[derive(Clone, Copy)]
pub(crate) struct Typed<'de> {
    node: &'de Node,
    unknown: &'de RefCell<Vec<DeError>>,
}

impl<'de> Typed<'de> {
    /// `unknown` gets the unknown keys.
    pub(crate) fn new(node: &'de Node, unknown: &'de RefCell<Vec<DeError>>) -> Self {
        Typed { node, unknown }
    }

    fn of(self, node: &'de Node) -> Self {
        Typed { node, ..self }
    }
}

impl<'de> Deserializer<'de> for Typed<'de> {
    type Error = DeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(value) => visitor.visit_borrowed_str(value),
            Value::List(items) => visitor.visit_seq(Items(items.iter(), self)),
            Value::Table(entries) => {
                visitor.visit_map(Entries { rest: entries.iter(), value: None, known: None, within: self })
            }
        }
        .map_err(|error| error.at(&self.node.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        match &self.node.value {
            Value::Null => visitor.visit_none(),
            Value::Bool(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Table(_) => visitor.visit_some(self),
        }
        .map_err(|error| error.at(&self.node.span))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        match &self.node.value {
            Value::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Table(_) => {
                Err(de::Error::custom(format!("expected a string, found {}", self.node.value.kind())))
            }
        }
        .map_err(|error: DeError| error.at(&self.node.span))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeError> {
        match name {
            SPANNED => visitor.visit_seq(WithSpan { typed: self, step: 0 }),
            _ => visitor.visit_newtype_struct(self),
        }
        .map_err(|error| error.at(&self.node.span))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        match &self.node.value {
            // Serde would also take a list for a struct, by position; a document must name its keys.
            Value::List(_) => {
                Err(DeError::new("expected a table, found a list".to_string(), None).at(&self.node.span))
            }
            Value::Table(entries) => visitor
                .visit_map(Entries { rest: entries.iter(), value: None, known: Some(fields), within: self })
                .map_err(|error| error.at(&self.node.span)),
            Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {
                self.deserialize_any(visitor)
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

struct Items<'de>(std::slice::Iter<'de, Node>, Typed<'de>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = DeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DeError> {
        let within = self.1;
        let item = |node| seed.deserialize(within.of(node)).map_err(|error| error.at(&node.span));
        self.0.next().map(item).transpose()
    }
}

struct Entries<'de> {
    rest: std::slice::Iter<'de, (Key, Node)>,
    value: Option<&'de Node>,
    /// The keys of a struct; none: any key is welcome.
    known: Option<&'static [&'static str]>,
    within: Typed<'de>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = DeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DeError> {
        // A seed is good for one key, so that unknown ones are passed over before it is used.
        let (key, node) = loop {
            let Some((key, node)) = self.rest.next() else { return Ok(None) };
            match self.known {
                Some(known) if !known.contains(&key.name.as_str()) => {
                    let error: DeError = de::Error::unknown_field(&key.name, known);
                    self.within.unknown.borrow_mut().push(error.at(&key.span));
                }
                _ => break (key, node),
            }
        };
        self.value = Some(node);
        let name: de::value::BorrowedStrDeserializer<'de, DeError> =
            de::value::BorrowedStrDeserializer::new(&key.name);
        seed.deserialize(name).map(Some).map_err(|error| error.at(&key.span))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DeError> {
        let node = self.value.take().ok_or_else(|| de::Error::custom("a value without its key"))?;
        seed.deserialize(self.within.of(node)).map_err(|error| error.at(&node.span))
    }
}

/// Start, end and value, in this order.
struct WithSpan<'de> {
    typed: Typed<'de>,
    step: u8,
}

impl<'de> SeqAccess<'de> for WithSpan<'de> {
    type Error = DeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DeError> {
        self.step += 1;
        match self.step {
            1 => seed.deserialize((self.typed.node.span.start as u64).into_deserializer()).map(Some),
            2 => seed.deserialize((self.typed.node.span.end as u64).into_deserializer()).map(Some),
            3 => seed.deserialize(self.typed).map(Some),
            _ => Ok(None),
        }
    }
}
