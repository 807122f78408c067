//! JSON forms of types that are not ours, and events read back from their JSON form.

use std::fmt;

use portcullis_types::{Class, Phase, Place, RuleId, Severity, Span};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::{Event, SCHEMA_VERSION, limits};

/// Why a text is not an event of this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Not JSON, or not the members of an event: the parser's message.
    Json(String),
    /// An event of another version.
    Schema(u32),
    /// A list with more than an event may have: its name.
    TooMany(&'static str),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Json(message) => write!(f, "not an event: {message}"),
            ReadError::Schema(schema) => write!(f, "an event of schema {schema}, not {SCHEMA_VERSION}"),
            ReadError::TooMany(list) => write!(f, "an event with too many {list}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl Event {
    /// Reads what [`Event::json_line`] returns. Members that are not known are ignored, for a later program
    /// may add some; what JSON leaves out (the arguments of operators, for one) is empty.
    pub fn from_json(text: &[u8]) -> Result<Event, ReadError> {
        let event: Event =
            serde_json::from_slice(text).map_err(|error| ReadError::Json(error.to_string()))?;
        if event.schema() != SCHEMA_VERSION {
            return Err(ReadError::Schema(event.schema()));
        }
        let lists = [
            ("matches", event.matches.len(), limits::MATCHES_MAX),
            ("named matches", event.also_matched.len(), limits::MATCHES_MAX),
            ("trials", event.trials.len(), limits::MATCHES_MAX),
            ("findings", event.findings.len(), limits::FINDINGS_MAX),
            ("semantic scores", event.scores.semantic.len(), limits::SEMANTIC_SCORES_MAX),
            ("forwarded addresses", event.client.forwarded_for.len(), limits::FORWARDED_FOR_MAX),
        ];
        match lists.into_iter().find(|(_, length, most)| length > most) {
            Some((list, ..)) => Err(ReadError::TooMany(list)),
            None => Ok(event),
        }
    }
}

/// Reads a name by `of`.
pub(crate) fn named<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    of: fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    struct Name<T>(fn(&str) -> Option<T>);

    impl<T> Visitor<'_> for Name<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a name of an event")
        }

        fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
            (self.0)(name).ok_or_else(|| E::custom("a name that no event has"))
        }
    }

    deserializer.deserialize_str(Name(of))
}

/// Declares a module for `with`, of a type that JSON has as another one.
macro_rules! wire {
    ($name:ident: $type:ty, $json:ty, $out:expr, $in:expr) => {
        pub(crate) mod $name {
            use super::*;

            pub(crate) fn serialize<S: Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                $out(*value).serialize(serializer)
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let read: $json = Deserialize::deserialize(deserializer)?;
                $in(read).ok_or_else(|| Error::custom(concat!("not a ", stringify!($name))))
            }
        }
    };
}

wire!(rule_id: RuleId, u32, |id: RuleId| id.0, |id| Some(RuleId(id)));
wire!(rule_id_opt: Option<RuleId>, u32, |id: Option<RuleId>| id.map(|id| id.0), |id| Some(Some(RuleId(id))));
wire!(phase: Phase, u8, Phase::number, Phase::from_number);
wire!(phase_opt: Option<Phase>, u8, |phase: Option<Phase>| phase.map(Phase::number), |number| {
    Phase::from_number(number).map(Some)
});
wire!(class: Class, String, Class::name, |name: String| Class::from_name(&name));
wire!(class_opt: Option<Class>, String, |class: Option<Class>| class.map(Class::name), |name: String| {
    Class::from_name(&name).map(Some)
});
wire!(place: Place, String, Place::name, |name: String| Place::from_name(&name));
wire!(severity_opt: Option<Severity>, String, |one: Option<Severity>| one.map(Severity::name), |name: String| {
    Severity::parse(&name).map(Some)
});
wire!(span_opt: Option<Span>, [u32; 2], |span: Option<Span>| span.map(|span| [span.start, span.end]), |[start, end]: [u32; 2]| {
    (start <= end).then_some(Some(Span { start, end }))
});

/// Weights and scores have no more meaning than two digits show.
pub(crate) mod hundredths {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(number: &f32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64((f64::from(*number) * 100.0).round() / 100.0)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
        f32::deserialize(deserializer)
    }
}

/// For numbers that are left out when there is nothing to count.
pub(crate) fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(from: &str, to: &str) -> Result<Event, ReadError> {
        let line = Event::new("r", crate::Timestamp::from_epoch_millis(1)).json_line();
        assert!(line.contains(from), "{line}");
        Event::from_json(line.replacen(from, to, 1).as_bytes())
    }

    #[test]
    fn lies_are_told_apart() {
        assert!(with("", "").is_ok() && with("{", "{\"later\":[{\"a\":1}],").is_ok());
        assert_eq!(with("\"schema\":1", "\"schema\":2").unwrap_err(), ReadError::Schema(2));
        for (from, to) in [
            ("\"pass\"", "\"passed\""),
            ("\"schema\":1", "\"schema\":-1"),
            ("1970-01-01T", "1970-02-30T"),
            ("{", "{{"),
            ("\"r\"", "\"\u{1}\""),
            ("\"verdict\":{", "\"verdict\":{\"phase\":6,"),
            ("\"verdict\":{", "\"verdict\":{\"class\":\"nothing\","),
        ] {
            assert!(matches!(with(from, to).unwrap_err(), ReadError::Json(_)), "{to}");
        }
        let many = format!("\"client\":{{\"forwarded_for\":[{}\"\"],", "\"a\",".repeat(16));
        assert_eq!(with("\"client\":{", &many).unwrap_err(), ReadError::TooMany("forwarded addresses"));
    }
}
