//! As a person writes it. Doc comments become the descriptions of the JSON schema.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};

use crate::raw::policy::OpenOrClosed;
use crate::raw::tls::UpstreamTls;
use crate::raw::upstream::Breaker;
use crate::spanned::Spanned;
use crate::units::{Size, Time};

/// An inspection agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agent {
    /// Where it listens: a Unix socket (`unix:/run/portcullis/agent.sock`), or gRPC (`grpc://host:port`, over
    /// TLS `grpcs://host:port`).
    pub address: Spanned<String>,
    /// TLS towards it; only with `grpcs`.
    pub tls: Option<Spanned<UpstreamTls>>,
    /// How long a request waits for it in all, and then a response: for a place, a connection, credit and the
    /// decision. Default: 1s.
    pub timeout: Option<Time>,
    /// Connections of one worker, 1 to 64. Default: 1.
    #[schemars(range(min = 1, max = 64))]
    pub connections: Option<Spanned<u32>>,
    /// Exchanges at one time, of all workers together, 1 to 65536. Default: 256.
    #[schemars(range(min = 1, max = 65536))]
    pub concurrency: Option<Spanned<u32>>,
    /// Requests that wait for a place among them, 0 to 1000000; for more it gives no decision. Default: 1024.
    #[schemars(range(max = 1_000_000))]
    pub queue: Option<Spanned<u32>>,
    /// Bodies of requests are shown. Default: `false`.
    pub request_body: Option<bool>,
    /// What is shown of responses: `off`, `head`, or `body`. Default: `off`.
    pub response: Option<Response>,
    /// Bytes of one body that are shown; of a longer one the beginning is. Default: 1MiB.
    pub body_limit: Option<Spanned<Size>>,
    /// What happens where it gives no decision: `closed` answers 503, `open` goes on. Default: `closed`.
    pub failure: Option<OpenOrClosed>,
    /// Circuit breaker: when to stop asking it for a while.
    #[serde(default)]
    pub breaker: Breaker,
}

/// What an agent is shown of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Response {
    /// Nothing.
    Off,
    /// Status and headers.
    Head,
    /// Bodies, too, as far as they are held.
    Body,
}

/// An agent that is asked: its name, or a table.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub name: String,
    pub failure: Option<OpenOrClosed>,
}

/// An agent that is asked, with more than its name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UseTable {
    /// The name of the agent.
    name: String,
    /// What happens here where it gives no decision. Default: as the agent says.
    failure: Option<OpenOrClosed>,
}

impl<'de> Deserialize<'de> for Use {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UseVisitor)
    }
}

struct UseVisitor;

impl<'de> Visitor<'de> for UseVisitor {
    type Value = Use;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an agent, or a table with `name`")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Use, E> {
        Ok(Use { name: name.to_string(), failure: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Use, A::Error> {
        let UseTable { name, failure } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Use { name, failure })
    }
}

impl JsonSchema for Use {
    fn schema_name() -> Cow<'static, str> {
        "AgentUse".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "oneOf": [{ "type": "string" }, generator.subschema_for::<UseTable>()],
            "description": "An agent that is asked: its name, or a table with `name`."
        })
    }
}
