//! The discovery of a site's interfaces.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::mistakes::Mistakes;
use crate::spanned::Spanned;
use crate::values::number;

/// Discovery: `true`, or a table.
#[derive(Clone, Debug)]
pub(crate) struct Raw(Option<Table>);

/// The endpoints that a site answers are listed, with their parameters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DiscoveryTable")]
struct Table {
    /// Endpoints that are kept; requests of more are counted. Most take 2 KiB of memory, none more than
    /// 32 KiB. Default: 2000.
    #[schemars(range(min = 100, max = 20_000))]
    max: Option<Spanned<u32>>,
    /// Days from the first request during which new endpoints are expected; later ones are reported.
    /// Default: 7.
    #[schemars(range(min = 1, max = 90))]
    learning_days: Option<Spanned<u32>>,
    /// Days after which an endpoint that nobody has asked is reported as gone. Default: 30.
    #[schemars(range(min = 1, max = 90))]
    idle_days: Option<Spanned<u32>>,
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`true`, `false`, or a table such as `{ max = 2000 }`")
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<Raw, E> {
        Ok(Raw(is_on.then(Table::default)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Raw, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(map)).map(|table| Raw(Some(table)))
    }
}

impl JsonSchema for Raw {
    fn schema_name() -> Cow<'static, str> {
        "Discovery".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "oneOf": [{ "type": "boolean" }, generator.subschema_for::<Table>()],
            "description": "Discovery of the site's interfaces: `true`, or a table."
        })
    }
}

/// The discovery of a site's interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Discovery {
    /// The name of the site.
    pub site: String,
    /// Endpoints that are kept.
    pub max: usize,
    /// Days during which all endpoints are new.
    pub learning_days: u32,
    /// Days after which an endpoint that nobody asks is gone.
    pub idle_days: u32,
}

pub(crate) fn check(mistakes: &mut Mistakes<'_>, site: &str, raw: &Raw) -> Option<Discovery> {
    let table = raw.0.as_ref()?;
    let mut within = |raw: &Option<Spanned<u32>>, range, name, default| {
        number(mistakes, raw.clone(), range, name, default)
    };
    Some(Discovery {
        site: site.to_owned(),
        max: within(&table.max, 100..=20_000, "max", 2_000) as usize,
        learning_days: within(&table.learning_days, 1..=90, "learning_days", 7),
        idle_days: within(&table.idle_days, 1..=90, "idle_days", 30),
    })
}

impl Raw {
    /// True if it is on.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }
}
