//! `compression`: responses that are sent in a content coding, of the document, a site or a route.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::hint;
use crate::mistakes::Mistakes;
use crate::spanned::Spanned;
use crate::units::Size;

const MIN_BYTES: u64 = 1024;

/// Media types of files that are the same for everybody, and the default.
pub const PUBLIC_TYPES: [&str; 9] = [
    "text/css",
    "text/javascript",
    "application/javascript",
    "application/wasm",
    "application/manifest+json",
    "image/svg+xml",
    "image/x-icon",
    "font/ttf",
    "font/otf",
];

/// Compression of responses that the upstream does not compress itself.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// `false`: none. Default: `true`.
    pub enabled: Option<bool>,
    /// `zstd`, `br`, `gzip`: those that clients are offered; the first wins where a client has no preference.
    /// Default: all, in this order.
    pub codings: Option<Vec<Spanned<String>>>,
    /// Media types that are compressed, for example `text/html` or `text/*`. Default: style sheets, scripts,
    /// fonts, SVG and other files that are the same for everybody.
    pub types: Option<Vec<Spanned<String>>>,
    /// Shorter bodies are sent as they are. Default: 1KiB.
    pub min_size: Option<Size>,
    /// What it may cost. Default: `medium`.
    pub level: Option<Level>,
    /// `true`: bodies of other types than the default ones are compressed for requests with `Cookie` or
    /// `Authorization`, too. Where such a body repeats what a request says, an attacker who sees lengths can
    /// find out secrets in it (BREACH). Default: `false`.
    pub with_credentials: Option<bool>,
}

/// What compression may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// Least time: gzip 1, br 1, zstd 1.
    Fast,
    /// gzip 5, br 4, zstd 3.
    Medium,
    /// Fewest bytes: gzip 9, br 8, zstd 12.
    Best,
}

/// Compression of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The codings that clients are offered, best first; at least one.
    pub codings: Vec<Coding>,
    /// Media types in lower case; `*` at the end stands for anything.
    pub types: Vec<String>,
    /// Bytes below which a body is sent as it is.
    pub min_bytes: u64,
    /// The compression level.
    pub level: CompressionLevel,
    /// Other types than [`PUBLIC_TYPES`] are compressed for requests with credentials, too.
    pub with_credentials: bool,
}

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// RFC 8878.
    Zstd,
    /// RFC 7932.
    Br,
    /// RFC 1952.
    Gzip,
}

impl Coding {
    /// All of them; `ALL[coding as usize] == coding`.
    pub const ALL: [Coding; 3] = [Coding::Zstd, Coding::Br, Coding::Gzip];

    /// As in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Br => "br",
            Coding::Gzip => "gzip",
        }
    }
}

/// The compression level: time against size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionLevel {
    /// Least time.
    Fast,
    /// In between.
    Medium,
    /// Fewest bytes.
    Best,
}

/// Checks `raw`; `base` if it is absent.
pub(crate) fn check(
    mistakes: &mut Mistakes<'_>,
    raw: Option<&Spanned<Raw>>,
    base: Option<&Compression>,
) -> Option<Compression> {
    let Some(spanned) = raw else { return base.cloned() };
    let raw = &spanned.value;
    if raw.enabled == Some(false) {
        return None;
    }
    let codings = match &raw.codings {
        None => Coding::ALL.to_vec(),
        Some(names) => codings(mistakes, names, spanned),
    };
    let types = match &raw.types {
        None => PUBLIC_TYPES.iter().map(ToString::to_string).collect(),
        Some(types) => types.iter().map(|text| media_type(mistakes, text)).collect(),
    };
    Some(Compression {
        codings,
        types,
        min_bytes: raw.min_size.map_or(MIN_BYTES, |size| size.0),
        level: match raw.level {
            Some(Level::Fast) => CompressionLevel::Fast,
            Some(Level::Best) => CompressionLevel::Best,
            Some(Level::Medium) | None => CompressionLevel::Medium,
        },
        with_credentials: raw.with_credentials.unwrap_or(false),
    })
}

fn codings(mistakes: &mut Mistakes<'_>, names: &[Spanned<String>], at: &Spanned<Raw>) -> Vec<Coding> {
    if names.is_empty() {
        let hint = "`enabled = false` turns compression off".to_string();
        mistakes.wrong_with_hint(at.span.clone(), "the list of codings is empty".to_string(), hint);
    }
    let mut found = Vec::new();
    for name in names {
        match Coding::ALL.into_iter().find(|coding| coding.name() == name.value) {
            Some(coding) if found.contains(&coding) => {
                mistakes.wrong(name.span.clone(), format!("`{}` is listed twice", name.value));
            }
            Some(coding) => found.push(coding),
            None => {
                let known = Coding::ALL.map(Coding::name);
                let message = format!("`{}` is not a supported content coding", name.value);
                mistakes.wrong_with_hint(name.span.clone(), message, hint::suggest(name, &known));
            }
        }
    }
    found
}

fn media_type(mistakes: &mut Mistakes<'_>, text: &Spanned<String>) -> String {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
    let parts = text.split_once('/').filter(|(kind, name)| {
        let name = if *name == "*" { "any" } else { name };
        !kind.is_empty() && !name.is_empty() && kind.bytes().chain(name.bytes()).all(fits)
    });
    if parts.is_none() {
        let hint = "write `text/html` or `text/*`, without parameters".to_string();
        let message = format!("`{}` is not a media type", text.value);
        mistakes.wrong_with_hint(text.span.clone(), message, hint);
    }
    text.to_ascii_lowercase()
}
