//! `events.sinks`: receivers of events beside the event file.

use std::path::PathBuf;
use std::time::Duration;

use portcullis_query::Filter;

use crate::upstream::Endpoint;

pub(crate) mod check;
mod place;
mod template;

pub use template::{JsonTemplate, Placeholder, TemplatePart};

/// A receiver of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSink {
    /// Its name in metrics and messages; no other sink has it.
    pub name: String,
    /// Only events that pass.
    pub filter: Option<Filter>,
    /// Events that wait, at least 1.
    pub queue_events_max: usize,
    /// Bytes of the events that wait.
    pub queue_bytes_max: u64,
    /// For a connection, and for a request or a message.
    pub timeout: Duration,
    /// How long events are tried again.
    pub retry: Duration,
    /// The receiver.
    pub to: SinkTarget,
}

/// What a sink sends to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkTarget {
    /// Messages of syslog.
    Syslog(Syslog),
    /// Logs of OpenTelemetry.
    Otlp(OtlpLogs),
    /// Rows of ClickHouse.
    ClickHouse(ClickHouse),
    /// POST requests.
    Webhook(Webhook),
}

/// The form of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventForm {
    /// The JSON object of the event file.
    Json,
    /// ArcSight Common Event Format.
    Cef,
    /// OCSF, Detection Finding.
    Ocsf,
}

/// A receiver of syslog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Syslog {
    /// Where it listens.
    pub address: SyslogAddress,
    /// The form of messages.
    pub form: EventForm,
    /// The number of the facility, 0 to 23.
    pub facility: u8,
    /// The length stands before each message in a stream, not a line break behind it.
    pub octet_counting: bool,
    /// Bytes of a message.
    pub message_bytes_max: usize,
}

/// Where a receiver of syslog listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyslogAddress {
    /// TCP.
    Tcp(Endpoint),
    /// TLS, with the PEM file of the only authorities to trust.
    Tls(Endpoint, Option<PathBuf>),
    /// UDP.
    Udp(Endpoint),
    /// A Unix socket that takes datagrams.
    Unix(PathBuf),
    /// A Unix socket that takes a stream.
    UnixStream(PathBuf),
}

/// A collector of OpenTelemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpLogs {
    /// `http://host:port/v1/logs`, or the same with https.
    pub url: String,
    /// PEM file of the only authorities to trust.
    pub ca: Option<PathBuf>,
    /// Headers of requests.
    pub headers: Vec<(String, Secret)>,
    /// The name of this service.
    pub service: String,
    /// The form of bodies.
    pub form: EventForm,
    /// Events in one request.
    pub batch: Batch,
}

/// A table of ClickHouse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClickHouse {
    /// `http://host:port`, or the same with https.
    pub url: String,
    /// PEM file of the only authorities to trust.
    pub ca: Option<PathBuf>,
    /// User and password, without a colon in the former.
    pub login: Option<(String, Secret)>,
    /// The database: letters, digits and `_`.
    pub database: String,
    /// The table: letters, digits and `_`.
    pub table: String,
    /// It is created at the start if it is not there.
    pub create: bool,
    /// Events in one request.
    pub batch: Batch,
}

/// A receiver of POST requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its URL, which often is a secret.
    pub url: Secret,
    /// PEM file of the only authorities to trust.
    pub ca: Option<PathBuf>,
    /// Headers of requests.
    pub headers: Vec<(String, Secret)>,
    /// The body.
    pub template: JsonTemplate,
    /// Requests in a minute, at least 1.
    pub per_minute: u32,
}

/// How many events one request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Events at most, at least 1.
    pub events_max: usize,
    /// How long one waits for others.
    pub time: Duration,
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The text, for the receiver alone.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}
