//! Coverage: how much of an exchange was inspected.

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::names::NotInspected;

/// The numbers of bytes that were inspected and that were not.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Coverage {
    /// Bytes of heads and bodies that rules could see.
    pub bytes_inspected: u64,
    /// Bytes they could not.
    #[serde(default, skip_serializing_if = "ByReason::is_empty")]
    pub bytes_not_inspected: ByReason,
}

impl Coverage {
    /// Adds `bytes` to those not inspected for `reason`.
    pub fn not_inspected(&mut self, reason: NotInspected, bytes: u64) {
        self.bytes_not_inspected.0[reason as usize] += bytes;
    }
}

/// Bytes by reason, in place: every exchange has one. Serialized as a map without the reasons that have none.
#[derive(Clone, Debug, Default)]
pub struct ByReason([u64; NotInspected::ALL.len()]);

impl ByReason {
    /// No bytes at all.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The reasons that have bytes, in the order of [`NotInspected::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (NotInspected, u64)> {
        NotInspected::ALL.iter().copied().zip(self.0).filter(|(_, bytes)| *bytes > 0)
    }
}

impl Serialize for ByReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (reason, bytes) in self.iter() {
            map.serialize_entry(&reason, &bytes)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ByReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ByReason, D::Error> {
        let mut bytes = ByReason::default();
        for (reason, number) in BTreeMap::<NotInspected, u64>::deserialize(deserializer)? {
            bytes.0[reason as usize] = number;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_without_bytes_are_left_out() {
        let mut coverage = Coverage { bytes_inspected: 7, ..Coverage::default() };
        coverage.not_inspected(NotInspected::OverLimit, 0);
        assert!(coverage.bytes_not_inspected.is_empty());
        assert_eq!(serde_json::to_string(&coverage).unwrap(), r#"{"bytes_inspected":7}"#);
        let (first, last) = (NotInspected::ALL[0], *NotInspected::ALL.last().unwrap());
        coverage.not_inspected(last, 2);
        coverage.not_inspected(first, 1);
        coverage.not_inspected(last, 3);
        assert_eq!(coverage.bytes_not_inspected.iter().collect::<Vec<_>>(), [(first, 1), (last, 5)]);
        let expected = format!(r#"{{"bytes_inspected":7,"bytes_not_inspected":{{"{first}":1,"{last}":5}}}}"#);
        assert_eq!(serde_json::to_string(&coverage).unwrap(), expected);
    }
}
