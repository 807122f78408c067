//! Logs on disk, as written in the document.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::spanned::Spanned;
use crate::units::Size;

/// The event file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Events {
    /// Its path.
    pub file: String,
    /// It is renamed to `<file>.1` when it grows above this. Default: 1GiB.
    pub rotate_at: Option<Size>,
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
