//! `access_log`: of the document, and of its sites.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::mistakes::Mistakes;
use crate::spanned::Spanned;

/// The access log: a line for each request.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// `false`: none. Default: `true`.
    pub enabled: Option<bool>,
    /// Its file; several sites may write to one. Default at a site: that of the document.
    pub file: Option<String>,
    /// How lines look. Default: `json`; at a site: as in the document.
    pub format: Option<Format>,
}

/// How lines of an access log look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// A JSON object.
    Json,
    /// As Apache's and nginx's `combined`.
    Combined,
}

/// An access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// The path of the file.
    pub file: PathBuf,
    /// The format of its lines.
    pub format: AccessLogFormat,
}

/// The format of an access log's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// A JSON object.
    Json,
    /// As Apache's and nginx's `combined`.
    Combined,
}

/// Checks the settings of an access log; those of the document are `base` for its sites.
pub(crate) fn check(
    mistakes: &mut Mistakes<'_>,
    raw: Option<&Spanned<Raw>>,
    base: Option<&AccessLog>,
) -> Option<AccessLog> {
    let Some(raw) = raw else { return base.cloned() };
    if raw.enabled == Some(false) {
        return None;
    }
    let file = raw.file.as_ref().map(|file| mistakes.path(file));
    let Some(file) = file.or_else(|| base.map(|base| base.file.clone())) else {
        let hint = "add `file = \"access.log\"`".to_string();
        mistakes.wrong_with_hint(raw.span.clone(), "this access log has no file".to_string(), hint);
        return None;
    };
    let format = match raw.format {
        Some(Format::Json) => AccessLogFormat::Json,
        Some(Format::Combined) => AccessLogFormat::Combined,
        None => base.map_or(AccessLogFormat::Json, |base| base.format),
    };
    Some(AccessLog { file, format })
}
