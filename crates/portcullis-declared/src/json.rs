//! JSON bodies to values, strictly: what applications read differently is an error.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::limits::{BODY_DEPTH_MAX, BODY_VALUES_MAX};

/// The value of a body; the error is the rule that it breaks. One that is beyond a limit is wrong, too: who
/// could choose not to be compared, would.
pub(crate) fn read(body: &[u8]) -> Result<Value, String> {
    let state = State { values: Cell::new(0), beyond: Cell::new(None), twice: Cell::new(false) };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let read = Seed { state: &state, depth: 1 }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| match state.beyond.get() {
        Some(rule) => rule.to_owned(),
        None if state.twice.get() => "the body has a member twice".to_owned(),
        None if error.is_eof() => "the body is JSON without its end".to_owned(),
        None => {
            format!("the body is not JSON from line {}, column {} on", error.line(), error.column())
        }
    })
}

struct State {
    values: Cell<usize>,
    beyond: Cell<Option<&'static str>>,
    twice: Cell<bool>,
}

#[derive(Clone, Copy)]
struct Seed<'s> {
    state: &'s State,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let values = self.state.values.get() + 1;
        self.state.values.set(values);
        let beyond = match () {
            () if self.depth > BODY_DEPTH_MAX => {
                Some("the body has too many values inside each other to be compared")
            }
            () if values > BODY_VALUES_MAX => Some("the body has too many values to be compared"),
            () => None,
        };
        if beyond.is_some() {
            self.state.beyond.set(beyond);
            return Err(D::Error::custom("beyond a limit"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let inner = Seed { depth: self.depth + 1, ..self };
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        let inner = Seed { depth: self.depth + 1, ..self };
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(inner)?;
            if members.insert(key, value).is_some() {
                self.state.twice.set(true);
                return Err(A::Error::custom("a member twice"));
            }
        }
        Ok(Value::Object(members))
    }
}
