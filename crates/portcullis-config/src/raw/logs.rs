//! Logs on disk, as written in the document.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{EventForm, ReadFrom, Sink};
use crate::spanned::Spanned;
use crate::units::{Size, Time};

/// Events: where they go, and how many the store in the data folder keeps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Events {
    /// Path of the event file. Default: none.
    pub file: Option<String>,
    /// Size above which the file is renamed to `<file>.1`. Default: 1GiB.
    pub rotate_at: Option<Spanned<Size>>,
    /// Form of the lines of the file. Default: `json`.
    pub format: Option<Spanned<EventForm>>,
    /// Other receivers. Default: none.
    #[serde(default)]
    pub sinks: Vec<Spanned<Sink>>,
    /// Path of a local socket on which other processes of this machine may send their events: servers with
    /// our libmodsecurity, `portcullis serve --events-socket`. Default: none.
    pub listen: Option<Spanned<String>>,
    /// Users, by name or number, whose processes may do so, for example `www-data`, beside root and the user
    /// of this process. Default: none.
    #[serde(default)]
    pub listen_users: Vec<Spanned<String>>,
    /// The database of events that the console and `portcullis events --config` read. Default: none, the
    /// event store of this node.
    pub read_from: Option<ReadFrom>,
    /// Age at which stored events are deleted. Default: 30d.
    pub keep: Option<Spanned<Time>>,
    /// Size of the event store on disk; the oldest events make room. At least 64MiB. Default: 10GiB.
    pub keep_bytes: Option<Spanned<Size>>,
    /// Age at which hourly statistics of requests are deleted; those by minute live as long as events.
    /// Default: 400d.
    pub keep_rollups: Option<Spanned<Time>>,
    /// Events a second of one kind; further ones become one event with a count. In the event store a kind is
    /// site, client network, class or rule, and path template; for all receivers of events, by worker, it is
    /// client, route, class or rule, and place of what was found. 0: all events stay. Default: 100.
    pub coalesce_above: Option<u32>,
    /// Bytes of a request's body that are stored with its event, beside its head; secrets are replaced by
    /// texts of the same shape. At most 1MiB; 0: requests are not stored. Default: 64KiB.
    pub keep_request: Option<Spanned<Size>>,
    /// A sample of the requests that passed, kept in the data folder for replays. Default: none.
    pub capture: Option<Capture>,
}

/// A sample of the requests that were inspected and passed without an event.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Capture {
    /// The share of them that is kept: above 0, at most 1. A thousandth is `0.001`.
    pub share: Spanned<f64>,
    /// Size of the sample on disk; its oldest requests make room. At least 64MiB. Default: 256MiB.
    pub keep_bytes: Option<Spanned<Size>>,
}

/// The folder of what a running instance keeps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Data {
    /// Its path. Created at the start, for its owner alone.
    pub folder: String,
}

/// Retention of the audit log and the debug log.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditLog {
    /// A file is renamed to `<file>.1` when it grows above this. Default: 1GiB.
    pub rotate_at: Option<Size>,
    /// Files of concurrent records in one storage folder; the oldest make room. Default: 100000.
    pub files: Option<Spanned<u32>>,
    /// All of these files together. Default: 4GiB.
    pub stored: Option<Size>,
    /// Records that wait to be written; further ones are dropped and counted. Default: 64MiB.
    pub queue: Option<Size>,
    /// Values of the names that events redact, in all parts of a record: `hidden`, or `shown` as ModSecurity
    /// shows them. Default: hidden.
    pub secrets: Option<AuditSecrets>,
}

/// Treatment of secrets in audit records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditSecrets {
    /// Their bytes are written as `*`.
    Hidden,
    /// They are written as they came, except those that rules sanitise.
    Shown,
}

/// Uploaded files that rules keep.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Uploads {
    /// Bytes of all files in one `SecUploadDir`; more are not kept, and counted. Default: 1GiB.
    pub folder_limit: Option<Size>,
}

/// The error log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorLog {
    /// Its path.
    pub file: String,
}

/// Names whose values never reach an event.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redact {
    /// Names of headers, cookies, arguments and form fields, any case.
    #[serde(default)]
    pub names: Vec<String>,
}
