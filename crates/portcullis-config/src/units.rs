//! Settings with a unit: durations (`"5s"`) and sizes (`"1MiB"`).

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A duration with its unit: `ms`, `s`, `m`, `h` or `d`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time(pub Duration);

/// A number of bytes, plain or with `KiB`, `MiB`, `GiB`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size(pub u64);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a duration with its unit, such as \"500ms\", \"5s\", \"2m\", \"1h\" or \"30d\"")
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
        let wrong = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
        let (number, unit) = split(text).ok_or_else(wrong)?;
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        // Ten years are more than any setting here means, and keep later additions of durations from
        // overflowing.
        let ms = number.checked_mul(factor).filter(|ms| *ms <= 3660 * 86_400_000).ok_or_else(wrong)?;
        if ms == 0 {
            return Err(E::custom("a duration of zero would expire at once"));
        }
        Ok(Time(Duration::from_millis(ms)))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Size;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a number of bytes, such as 65536, \"64KiB\", \"1MiB\" or \"2GiB\"")
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Size, E> {
        u64::try_from(value)
            .map(Size)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(value), &self))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
        let wrong = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
        let (number, unit) = split(text).ok_or_else(wrong)?;
        let factor = match unit {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(wrong()),
        };
        number.checked_mul(factor).filter(|size| *size <= 1 << 50).map(Size).ok_or_else(wrong)
    }
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim_start()))
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9]+ ?(ms|s|m|h|d)$",
            "description": "A duration with its unit, such as \"500ms\", \"5s\", \"2m\", \"1h\" or \"30d\"."
        })
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "oneOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": "^[0-9]+ ?(B|KiB|MiB|GiB)?$" }
            ],
            "description": "A number of bytes, such as 65536, \"64KiB\", \"1MiB\" or \"2GiB\"."
        })
    }
}
