//! `upstreams`, groups of endpoints, as written in the document.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};

use super::tls::UpstreamTls;
use crate::spanned::Spanned;
use crate::units::Time;

/// A group of endpoints that serve the same.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Upstream {
    /// `http://host:port` or `https://host:port`, all of one scheme, each plain or as a table with weight and
    /// priority.
    pub endpoints: Spanned<Vec<Spanned<Endpoint>>>,
    /// The protocol towards the endpoints. Default: `http1`.
    pub protocol: Option<Spanned<crate::protocol::Raw>>,
    /// Load balancing: how an endpoint is chosen. Default: `round_robin`.
    pub balance: Option<Spanned<Balance>>,
    /// The key of `balance = "hash"`: `client` (its address), `header:NAME` or `cookie:NAME`. Requests
    /// without it take turns.
    pub hash_by: Option<Spanned<String>>,
    /// A cookie of this name keeps a client at the endpoint it was at first. Default: none.
    pub sticky_cookie: Option<Spanned<String>>,
    /// The share of an endpoint that comes back or joins grows over this time. Default: at once.
    pub slow_start: Option<Spanned<Time>>,
    /// Active checks: whether an endpoint is up is asked at intervals. Default: none.
    pub health: Option<Spanned<Health>>,
    /// Leaves endpoints out that fail several requests in a row.
    #[serde(default)]
    pub ejection: Ejection,
    /// Stops sending requests to an endpoint that only fails, even to the last one. Default: none.
    pub breaker: Option<Breaker>,
    /// Limits of concurrent and waiting requests for each endpoint. Default: no limit.
    pub limits: Option<Limits>,
    /// Which requests are tried again at another endpoint.
    #[serde(default)]
    pub retry: Retry,
    /// DNS resolution of endpoint host names.
    #[serde(default)]
    pub resolve: Resolve,
    /// TLS towards the endpoints; only with `https`.
    pub tls: Option<Spanned<UpstreamTls>>,
    /// Time to connect, TLS included. Default: 5s.
    pub connect_timeout: Option<Time>,
    /// Longest silence of the endpoint while its response is awaited or read. Default: 60s.
    pub read_timeout: Option<Time>,
    /// For the head of the answer, in each try. Default: `read_timeout`.
    pub try_timeout: Option<Time>,
    /// For the head of the answer, all tries together. Default: none.
    pub total_timeout: Option<Time>,
    /// Longest time without progress while the request is sent. Default: 60s.
    pub write_timeout: Option<Time>,
    /// The longest idle time of a connection. Default: 60s.
    pub idle_timeout: Option<Time>,
    /// Unused connections kept for each endpoint and worker. Default: 64.
    pub idle_connections: Option<u32>,
}

/// One endpoint: its URL, or a table.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub url: String,
    pub weight: Option<Spanned<u32>>,
    pub priority: Option<u32>,
}

/// One endpoint, with more than its URL.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EndpointTable {
    /// `http://host:port` or `https://host:port`.
    url: String,
    /// Its share of the requests, 1 to 1000. Default: 1.
    #[schemars(range(min = 1, max = 1000))]
    weight: Option<Spanned<u32>>,
    /// Endpoints of a higher number get requests only while none of a lower number is available. Default: 0.
    priority: Option<u32>,
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EndpointVisitor)
    }
}

struct EndpointVisitor;

impl<'de> Visitor<'de> for EndpointVisitor {
    type Value = Endpoint;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a URL such as \"http://10.0.0.5:9000\", or a table with `url`")
    }

    fn visit_str<E: Error>(self, url: &str) -> Result<Endpoint, E> {
        Ok(Endpoint { url: url.to_string(), weight: None, priority: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Endpoint, A::Error> {
        let EndpointTable { url, weight, priority } =
            Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Endpoint { url, weight, priority })
    }
}

impl JsonSchema for Endpoint {
    fn schema_name() -> Cow<'static, str> {
        "Endpoint".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "oneOf": [{ "type": "string" }, generator.subschema_for::<EndpointTable>()],
            "description": "One endpoint: `http://host:port` or `https://host:port`, or a table with `url`."
        })
    }
}

/// DNS resolution of endpoint host names: repeated when the answer expires, within these bounds. Every
/// address of a name is an endpoint.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resolve {
    /// Not sooner, and so often where the system resolves names, which does not say when answers expire.
    /// Default: 5s.
    pub min: Option<Time>,
    /// Not later. Default: 5m.
    pub max: Option<Spanned<Time>>,
}

/// Load balancing: how an endpoint is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Balance {
    /// In turn, by weight.
    RoundRobin,
    /// The one with the fewest requests in flight for its weight.
    LeastConnections,
    /// The less busy one of two random ones.
    PowerOfTwo,
    /// Consistently by what `hash_by` names.
    Hash,
}

/// Active checks of each endpoint. An endpoint that does not pass gets no requests.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Health {
    /// Path and query of a GET request that a healthy endpoint answers.
    pub path: Option<Spanned<String>>,
    /// Instead of a request: a connection, TLS included, is enough.
    pub tcp: Option<bool>,
    /// Instead: the service that the health service of gRPC (`grpc.health.v1`) must call SERVING; empty for
    /// the whole server. The upstream speaks `h2` or `h2c`.
    pub grpc: Option<Spanned<String>>,
    /// The `Host` of the request. Default: that of the endpoint.
    pub host: Option<Spanned<String>>,
    /// Statuses that pass: numbers and ranges, with commas between them. Default: `200-399`.
    pub status: Option<Spanned<String>>,
    /// From one check to the next, a tenth more or less. Default: 5s.
    pub interval: Option<Time>,
    /// For a check. Default: 2s.
    pub timeout: Option<Time>,
    /// Checks passed in a row that make an endpoint healthy. Default: 2.
    #[schemars(range(min = 1, max = 1000))]
    pub healthy: Option<Spanned<u32>>,
    /// Checks failed in a row that make it unhealthy; the first check at a start decides alone. Default: 2.
    #[schemars(range(min = 1, max = 1000))]
    pub unhealthy: Option<Spanned<u32>>,
}

/// When endpoints that fail are left out. A failure is a connection that cannot be made, breaks or stays
/// silent, or an answer 502, 503 or 504.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ejection {
    /// Failures in a row that eject an endpoint; 0 ejects none. Default: 3.
    pub failures: Option<u16>,
    /// For how long the first time; doubled each time that it happens again soon. Default: 5s.
    pub time: Option<Time>,
    /// The longest time. Default: 5m.
    pub time_max: Option<Spanned<Time>>,
    /// Endpoints out at one time, in percent; one always may be, the last one never. Default: 50.
    #[schemars(range(max = 100))]
    pub share: Option<Spanned<u8>>,
}

/// Limits of concurrent requests for each endpoint, counted over all workers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// Requests in flight at each endpoint, at least 1.
    #[schemars(range(min = 1))]
    pub requests: Spanned<u32>,
    /// Requests of the upstream that wait while all endpoints are full; more are answered 503. Default: 100.
    pub queue: Option<u32>,
    /// The longest that a request waits; then 503. Default: 5s.
    pub queue_timeout: Option<Time>,
}

/// Which requests are tried again, each time at another endpoint. A connection that cannot be made always is.
/// Anything else only if the request has no body or one that was held for inspection, and its method is
/// idempotent (GET, HEAD, OPTIONS, TRACE, PUT, DELETE) or its route says `idempotent = true`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retry {
    /// Tries after the first, 0 to 10. Default: 2.
    #[schemars(range(max = 10))]
    pub attempts: Option<Spanned<u8>>,
    /// Failures after which a request is tried again, beside the connection that cannot be made. Default:
    /// none.
    #[serde(default)]
    pub on: Vec<RetryOn>,
    /// Statuses after which a request is tried again, 500 to 599. Default: none.
    #[serde(default)]
    pub statuses: Vec<Spanned<u16>>,
    /// Retries for each hundred requests, 0 to 1000. Default: 20.
    #[schemars(range(max = 1000))]
    pub budget: Option<Spanned<u16>>,
    /// And this many each second in any case, 0 to 1000. Default: 10.
    #[schemars(range(max = 1000))]
    pub per_second: Option<Spanned<u16>>,
}

/// A failure after which a request is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RetryOn {
    /// The endpoint closed the connection before the head of an answer.
    Closed,
    /// There was no head of an answer in time.
    Timeout,
    /// The answer is not HTTP.
    Invalid,
}

/// The circuit breaker of each endpoint.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Breaker {
    /// Failures in a row that open it, 1 to 4095. Default: 5.
    #[schemars(range(min = 1, max = 4095))]
    pub failures: Option<Spanned<u16>>,
    /// Successful probes that close it, 1 to 4095. Default: 2.
    #[schemars(range(min = 1, max = 4095))]
    pub successes: Option<Spanned<u16>>,
    /// The time that it stays open. Default: 10s.
    pub open: Option<Time>,
    /// Requests let through at one time to probe, 1 to 63. Default: 2.
    #[schemars(range(min = 1, max = 63))]
    pub probes: Option<Spanned<u8>>,
}
