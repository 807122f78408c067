//! `events.sinks`, as a person writes them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::spanned::Spanned;
use crate::units::{Size, Time};

/// The form of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventForm {
    /// The JSON object of the event file.
    Json,
    /// ArcSight Common Event Format.
    Cef,
    /// OCSF 1.4, Detection Finding.
    Ocsf,
}

/// A receiver of events beside the event file. Each has a queue and a thread of its own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sink {
    /// What it is.
    pub kind: Spanned<SinkKind>,
    /// Its name in metrics and messages. Default: its kind.
    pub name: Option<Spanned<String>>,
    /// Only events that pass, in the language of `portcullis events`, for example `verdict = deny`. Default:
    /// all.
    pub filter: Option<Spanned<String>>,
    /// `syslog`: `tcp://host:port`, `tls://host:port`, `udp://host:port`, `unix:/path` (datagrams) or
    /// `unix-stream:/path`. The default ports are 601, 6514 and 514.
    pub address: Option<Spanned<String>>,
    /// `otlp`, `clickhouse`, `webhook`: `http://...` or `https://...`. The path of a webhook is kept; `otlp`
    /// adds `/v1/logs`.
    pub url: Option<Spanned<String>>,
    /// PEM file with the only authorities to trust over TLS. Default: those of the system.
    pub ca: Option<Spanned<String>>,
    /// `syslog`, `otlp`: the form of the message. Default: `json`.
    pub format: Option<Spanned<EventForm>>,
    /// `syslog`: facility of messages, such as `auth` or `local4`. Default: `local0`.
    pub facility: Option<Spanned<String>>,
    /// `syslog` over a stream: how messages are delimited. Default: `octet_counting`, over `unix-stream:`
    /// `newline`.
    pub framing: Option<Spanned<SyslogFraming>>,
    /// `syslog`: bytes of a message; an event that needs more is sent without its long parts. Default: 8KiB,
    /// over UDP 2KiB.
    pub message_bytes: Option<Spanned<Size>>,
    /// `otlp`: the name of this service. Default: `portcullis`.
    pub service: Option<Spanned<String>>,
    /// `otlp`, `webhook`: headers of requests, by name.
    #[serde(default)]
    pub headers: BTreeMap<String, Spanned<String>>,
    /// `clickhouse`: user. Default: that of the server.
    pub user: Option<Spanned<String>>,
    /// `clickhouse`: password of the user.
    pub password: Option<Spanned<String>>,
    /// `clickhouse`: database. Default: `default`.
    pub database: Option<Spanned<String>>,
    /// `clickhouse`: table. Default: `portcullis_events`.
    pub table: Option<Spanned<String>>,
    /// `clickhouse`: create the table at the start if it is not there. Default: `false`.
    pub create: Option<Spanned<bool>>,
    /// `otlp`, `clickhouse`: events in one request. Default: 1000.
    pub batch: Option<Spanned<u32>>,
    /// `otlp`, `clickhouse`: how long an event waits for others. Default: 1s.
    pub batch_time: Option<Spanned<Time>>,
    /// `webhook`: `slack`, or a JSON text whose strings have placeholders such as `{summary}` and
    /// `{request_id}`. Default: `{"event": "{event}"}`.
    pub template: Option<Spanned<String>>,
    /// `webhook`: messages in a minute; what is more is counted, and the next message says so. Default: 30.
    pub per_minute: Option<Spanned<u32>>,
    /// Events that wait; more are dropped and counted. Default: 8192.
    pub queue: Option<Spanned<u32>>,
    /// Bytes of the events that wait. Default: 32MiB.
    pub queue_memory: Option<Spanned<Size>>,
    /// For a connection, and for a request or a message. Default: 10s.
    pub timeout: Option<Time>,
    /// How long events are tried again while the receiver is away or refuses them for now. Default: 5m.
    pub retry: Option<Time>,
}

/// The kind of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SinkKind {
    /// Syslog messages (RFC 5424).
    Syslog,
    /// Logs of OpenTelemetry over HTTP.
    Otlp,
    /// Rows of a table of ClickHouse over HTTP.
    #[serde(rename = "clickhouse")]
    ClickHouse,
    /// A POST request with a JSON body for each event.
    Webhook,
}

/// How messages of syslog are delimited in a stream (RFC 6587).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SyslogFraming {
    /// The length stands before each message.
    OctetCounting,
    /// A line break stands behind each message.
    Newline,
}
