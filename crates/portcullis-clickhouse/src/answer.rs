//! Answers: a JSON object a line, whose values are texts.

use portcullis_event_store::QueryError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::cursor::from_hex;

/// The rows of an answer.
pub(crate) fn rows<T: DeserializeOwned>(body: &[u8]) -> Result<Vec<T>, QueryError> {
    // Other programs that write to the table may write what is no UTF-8.
    let text = String::from_utf8_lossy(body);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let row = |line: &str| {
        serde_json::from_str(line)
            .map_err(|error| QueryError::Unavailable(format!("its answer cannot be read: {error}")))
    };
    lines.map(row).collect()
}

/// A number that is written as a text: servers differ in how they write 64 bits.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// Bytes that are written as hexadecimal digits.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    from_hex(&text).ok_or_else(|| serde::de::Error::custom("these are no hexadecimal digits"))
}

/// True for one JSON object in one line, as sinks write it.
pub(crate) fn is_event(text: &str) -> bool {
    text.starts_with('{')
        && !text.contains(['\n', '\r'])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
