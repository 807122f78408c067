//! `events.read_from`, as a person writes it.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::spanned::Spanned;
use crate::units::Time;

/// A database of events that many nodes write to. The console and `portcullis events --config` read it in
/// place of the event store of this node.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFrom {
    /// What it is.
    pub kind: Spanned<DatabaseKind>,
    /// `http://host:port` or `https://host:port`.
    pub url: Option<Spanned<String>>,
    /// PEM file with the only authorities to trust over TLS. Default: those of the system.
    pub ca: Option<Spanned<String>>,
    /// User; one that may only read is enough (`readonly` 2). Default: that of the server.
    pub user: Option<Spanned<String>>,
    /// Password of the user.
    pub password: Option<Spanned<String>>,
    /// File with the password of the user, read at the start.
    pub password_file: Option<Spanned<String>>,
    /// Database. Default: `default`.
    pub database: Option<Spanned<String>>,
    /// Table. Default: `portcullis_events`.
    pub table: Option<Spanned<String>>,
    /// Longest time of a question. Default: 10s.
    pub timeout: Option<Spanned<Time>>,
}

/// The kind of a database of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DatabaseKind {
    /// The table that sinks of this kind write, over HTTP.
    #[serde(rename = "clickhouse")]
    ClickHouse,
}
