//! As a person writes it. Doc comments become the descriptions of the JSON schema.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::spanned::Spanned;
use crate::units::Time;

/// Access lists. `bypass` wins over `allow`, `allow` over `deny`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Access {
    /// Clients allowed without inspection and rate limits.
    #[serde(default)]
    pub bypass: Clients,
    /// Clients allowed even if `deny` has them; their requests are inspected and count in rate limits.
    #[serde(default)]
    pub allow: Clients,
    /// Clients that are refused.
    #[serde(default)]
    pub deny: Clients,
    /// What happens to all other clients. Default: `allow`.
    pub others: Option<Spanned<Others>>,
    /// What happens to refused clients. Default: `block`.
    pub action: Option<RefuseAction>,
    /// Status of the refusal. Default: 403.
    #[schemars(range(min = 400, max = 599))]
    pub status: Option<Spanned<u16>>,
}

/// A set of clients.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clients {
    /// Addresses and networks, for example `192.0.2.0/24`.
    #[serde(default)]
    pub networks: Vec<Spanned<String>>,
    /// Files with an address, network or range in each line; `#` and `;` begin comments. A file that
    /// changes is read again.
    #[serde(default)]
    pub files: Vec<String>,
    /// Names of `lists`.
    #[serde(default)]
    pub lists: Vec<Spanned<String>>,
    /// Countries by their two letters (ISO 3166-1), for example `["DE", "FR"]`; `geo` names the database.
    #[serde(default)]
    pub countries: Vec<Spanned<String>>,
    /// Continents: `AF`, `AN`, `AS`, `EU`, `NA`, `OC`, `SA`.
    #[serde(default)]
    pub continents: Vec<Spanned<String>>,
    /// Numbers of autonomous systems, for example `[64496]`.
    #[serde(default)]
    pub asns: Vec<Spanned<u32>>,
}

/// What happens to clients that no list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Others {
    /// They are let in.
    Allow,
    /// They are refused.
    Deny,
}

/// A rate limit: a leaky bucket for each key. Requests that come too early are refused.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateLimit {
    /// The name in events, metrics and `RateLimit` headers: letters, digits, `-`, `_`, `.`; unique in its
    /// site.
    pub name: Spanned<String>,
    /// What has a bucket of its own: `client` (its address), `path`, `header:NAME`, `cookie:NAME`, `country`,
    /// `continent`, `asn`, `rule` (what a rule says with `ctl:rateLimit`); several together for each
    /// combination; an empty list is one bucket for all. A request without the header or cookie is not
    /// counted. Default: `["client"]`.
    pub key: Option<Vec<Spanned<String>>>,
    /// Requests that are admitted in each `per`.
    #[schemars(range(min = 1))]
    pub rate: Spanned<u32>,
    /// The time for `rate` requests. Default: 1s.
    pub per: Option<Spanned<Time>>,
    /// Requests that may come at once. Default: `rate`.
    #[schemars(range(min = 1))]
    pub burst: Option<Spanned<u32>>,
    /// Clients that are counted. Default: all.
    pub only: Option<Spanned<Clients>>,
    /// Methods that are counted, for example `["POST"]`. Default: all.
    #[serde(default)]
    pub methods: Vec<Spanned<String>>,
    /// Addresses and networks of clients that are not counted.
    #[serde(default)]
    pub except: Vec<Spanned<String>>,
    /// Clients whose IPv4 addresses agree in so many bits share a bucket. Default: 32.
    #[schemars(range(min = 1, max = 32))]
    pub ipv4_prefix: Option<Spanned<u8>>,
    /// Clients whose IPv6 addresses agree in so many bits share a bucket: who has one has 2^64 of them.
    /// Default: 64.
    #[schemars(range(min = 1, max = 128))]
    pub ipv6_prefix: Option<Spanned<u8>>,
    /// `true`: counted together with the other nodes of `limit_store`. Default: `false`.
    pub shared: Option<Spanned<bool>>,
    /// What happens while that store is away. Default: `local`.
    pub unavailable: Option<Spanned<Unavailable>>,
    /// What happens to a request that comes too early. Default: `block`.
    pub action: Option<RefuseAction>,
    /// The status it is answered with. Default: 429.
    #[schemars(range(min = 400, max = 599))]
    pub status: Option<Spanned<u16>>,
    /// Keys that have a bucket at one time, 16 bytes each; beyond it those that used the least are forgotten,
    /// counted. Default: 65536.
    #[schemars(range(min = 8, max = 16_777_216))]
    pub keys: Option<Spanned<u32>>,
}

/// What happens to requests of a shared rate limit while nobody can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unavailable {
    /// Each node counts for itself.
    Local,
    /// They go on.
    Open,
    /// They are refused.
    Closed,
}

/// Where nodes share rate limits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitStore {
    /// `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS; or `memcached://host:port`.
    pub url: Spanned<String>,
    /// Before every key; nodes with the same prefix share. Default: `portcullis:`.
    pub prefix: Option<Spanned<String>>,
}

/// What happens to a request that is to be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefuseAction {
    /// It is refused.
    Block,
    /// It goes on, counted and with an event.
    Log,
}
