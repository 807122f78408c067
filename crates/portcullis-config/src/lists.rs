//! `lists`: addresses of clients that are fetched from a server, or found by the names of hosts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use data_encoding::HEXLOWER;
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::hint;
use crate::mistakes::Mistakes;
use crate::receiver;
use crate::sinks::Secret;
use crate::spanned::Spanned;
use crate::units::{Size, Time};
use crate::values::is_token;

/// A list of addresses that is kept up to date.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// The name that `lists` of access lists and rate limits use: letters, digits, `-`, `_`.
    pub name: Spanned<String>,
    /// Where it is fetched: `https://...` or `http://...`. Redirects are not followed.
    pub url: Option<Spanned<String>>,
    /// In place of `url`: names of hosts whose addresses are looked up, for example of dynamic DNS.
    #[serde(default)]
    pub hosts: Vec<Spanned<String>>,
    /// How often, 1m to 30d. Default: 1h, for `hosts` 5m.
    pub every: Option<Spanned<Time>>,
    /// The format of the answer. Default: `text`.
    pub format: Option<Spanned<Format>>,
    /// For JSON: where the addresses are, as JSON pointers (RFC 6901) in which `*` stands for each element or
    /// member, for example `/prefixes/*/ip_prefix`.
    #[serde(default)]
    pub pointers: Vec<Spanned<String>>,
    /// Bytes of the answer at most. Default: 16MiB; at most 128MiB.
    pub limit: Option<Spanned<Size>>,
    /// For one answer. Default: 30s; at most 5m.
    pub timeout: Option<Spanned<Time>>,
    /// PEM file with the only authorities to trust. Default: those of the system.
    pub ca: Option<Spanned<String>>,
    /// Headers of the request, by name.
    #[serde(default)]
    pub headers: BTreeMap<String, Spanned<String>>,
    /// URL of a file that begins with the SHA-256 checksum of the list in hexadecimal digits. A list with
    /// another checksum is rejected.
    pub checksum: Option<Spanned<String>>,
    /// A list that could not be fetched for so long becomes empty. Default: the last one stays in effect.
    pub max_age: Option<Spanned<Time>>,
}

/// The format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// An address, network or range (`192.0.2.1-192.0.2.9`) in each line; `#` and `;` begin comments.
    Text,
    /// A JSON document.
    Json,
    /// A JSON document in each line.
    JsonLines,
}

/// A list of addresses that is kept up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Its name.
    pub name: String,
    /// Where the addresses come from.
    pub source: ListSource,
    /// The time between two looks.
    pub every: Duration,
    /// The age at which a list that cannot be fetched becomes empty.
    pub max_age: Option<Duration>,
}

impl List {
    /// The name of the file that keeps it. Another source has another file, so that addresses of one are
    /// never taken for those of the other.
    pub(crate) fn file_name(&self) -> String {
        let mut digest = Sha256::new();
        let mut add = |part: &str| {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        };
        match &self.source {
            ListSource::Hosts(hosts) => hosts.iter().for_each(|host| add(host)),
            ListSource::Fetched(list) => {
                let FetchedList { url, checksum, format, ca, headers, bytes_max: _, timeout: _ } = &**list;
                add(url.expose());
                add(checksum.as_ref().map_or("", Secret::expose));
                add(&format!("{format:?} {ca:?}"));
                headers.iter().flat_map(|(name, value)| [name.as_str(), value.expose()]).for_each(add);
            }
        }
        format!("{}-{}.txt", self.name, HEXLOWER.encode(&digest.finalize()[..8]))
    }
}

/// Where the addresses of a list come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListSource {
    /// A server.
    Fetched(Box<FetchedList>),
    /// Names of hosts.
    Hosts(Vec<String>),
}

/// A list that a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedList {
    /// `http://` or `https://`. It may be a secret.
    pub url: Secret,
    /// That of the checksum.
    pub checksum: Option<Secret>,
    /// The format of the answer.
    pub format: ListFormat,
    /// Bytes of the answer at most.
    pub bytes_max: u64,
    /// For one answer.
    pub timeout: Duration,
    /// PEM file of the only authorities to trust.
    pub ca: Option<PathBuf>,
    /// Headers of the request.
    pub headers: Vec<(String, Secret)>,
}

/// The format of a list. Pointers are split into their parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListFormat {
    /// An address, network or range in each line.
    Text,
    /// A JSON document.
    Json(Vec<Vec<String>>),
    /// A JSON document in each line.
    JsonLines(Vec<Vec<String>>),
}

/// Lists of one document.
const LISTS_MAX: usize = 64;
/// Names of hosts of one list.
const HOSTS_MAX: usize = 64;
const EVERY: Duration = Duration::from_secs(3600);
const EVERY_OF_HOSTS: Duration = Duration::from_secs(300);
const EVERY_MIN: Duration = Duration::from_secs(60);
const EVERY_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
const BYTES_MAX: u64 = 16 << 20;
const BYTES_MAX_MAX: u64 = 128 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT_MAX: Duration = Duration::from_secs(300);

/// Checks the lists of a document.
pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: Vec<Spanned<Raw>>) -> Vec<List> {
    if let Some(list) = raw.get(LISTS_MAX) {
        mistakes.wrong(list.span.clone(), format!("there are more than {LISTS_MAX} lists"));
    }
    let mut lists: Vec<List> = Vec::new();
    for Spanned { value: raw, .. } in raw {
        if lists.iter().any(|list| list.name == raw.name.value) {
            mistakes.wrong(raw.name.span.clone(), format!("there are two lists `{}`", raw.name.value));
        }
        lists.push(list(mistakes, raw));
    }
    lists
}

/// The names of lists that clients are looked up in.
pub(crate) fn named(mistakes: &mut Mistakes<'_>, names: &[Spanned<String>], known: &[String]) -> Vec<String> {
    for name in names.iter().filter(|name| !known.contains(name)) {
        let hint = match known.is_empty() {
            true => "describe it in `[[lists]]`".to_string(),
            false => hint::suggest(name, known),
        };
        mistakes.wrong_with_hint(name.span.clone(), format!("there is no list `{}`", name.value), hint);
    }
    names.iter().map(|name| name.value.clone()).collect()
}

fn list(mistakes: &mut Mistakes<'_>, raw: Raw) -> List {
    let name = raw.name.clone();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) {
        let message = format!("`{}` is not a name: 1 to 64 letters, digits, `-`, `_`", name.value);
        mistakes.wrong(name.span.clone(), message);
    }
    let default = if raw.url.is_some() { EVERY } else { EVERY_OF_HOSTS };
    let every = time(mistakes, raw.every.as_ref(), EVERY_MIN..=EVERY_MAX, "every must be 1m to 30d", default);
    let max_age = raw.max_age.as_ref().map(|age| {
        if age.value.0 < every {
            mistakes.wrong(age.span.clone(), "max_age must be at least `every`".to_string());
        }
        age.value.0
    });
    List { name: name.value, source: source(mistakes, raw), every, max_age }
}

fn source(mistakes: &mut Mistakes<'_>, raw: Raw) -> ListSource {
    let of_url: [(&str, Option<Range<usize>>); 7] = [
        ("format", raw.format.as_ref().map(|key| key.span.clone())),
        ("pointers", raw.pointers.first().map(|key| key.span.clone())),
        ("limit", raw.limit.as_ref().map(|key| key.span.clone())),
        ("timeout", raw.timeout.as_ref().map(|key| key.span.clone())),
        ("ca", raw.ca.as_ref().map(|key| key.span.clone())),
        ("headers", raw.headers.values().next().map(|key| key.span.clone())),
        ("checksum", raw.checksum.as_ref().map(|key| key.span.clone())),
    ];
    match (&raw.url, raw.hosts.first()) {
        (Some(url), Some(_)) => {
            mistakes.wrong(url.span.clone(), "a list has `url` or `hosts`, not both".to_string());
        }
        (Some(_), None) => return ListSource::Fetched(Box::new(fetched(mistakes, raw))),
        (None, Some(_)) => {
            for (key, span) in of_url {
                if let Some(span) = span {
                    mistakes.wrong(span, format!("`{key}` belongs to lists with a `url`"));
                }
            }
        }
        (None, None) => {
            let hint = "add `url = \"https://...\"`, or `hosts = [\"home.example.net\"]`".to_string();
            mistakes.wrong_with_hint(raw.name.span.clone(), "this list has no source".to_string(), hint);
        }
    }
    if let Some(host) = raw.hosts.get(HOSTS_MAX) {
        mistakes.wrong(host.span.clone(), format!("a list has at most {HOSTS_MAX} hosts"));
    }
    ListSource::Hosts(raw.hosts.into_iter().map(|name| host(mistakes, name)).collect())
}

fn host(mistakes: &mut Mistakes<'_>, name: Spanned<String>) -> String {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 253 || !name.bytes().all(fits) {
        mistakes.wrong(name.span.clone(), format!("`{}` is not the name of a host", name.value));
    } else if name.parse::<std::net::IpAddr>().is_ok() {
        let hint = "write addresses in `networks`".to_string();
        mistakes.wrong_with_hint(name.span.clone(), format!("`{}` is an address", name.value), hint);
    }
    name.value
}

fn fetched(mistakes: &mut Mistakes<'_>, raw: Raw) -> FetchedList {
    let mut url = |text: Option<&Spanned<String>>, ca| {
        let url = receiver::receiver(mistakes, &raw.name.span, text, ca, true)?;
        Some(Secret::new(format!("{}{}", url.origin(), url.path())))
    };
    let list = url(raw.url.as_ref(), raw.ca.as_ref());
    let checksum = raw.checksum.as_ref().and_then(|text| url(Some(text), None));
    for (name, value) in &raw.headers {
        if !is_token(name) || value.bytes().any(|byte| byte.is_ascii_control()) {
            mistakes.wrong(value.span.clone(), format!("`{name}` is not a header that can be sent"));
        }
    }
    let bytes_max = raw.limit.as_ref().map_or(BYTES_MAX, |size| size.value.0);
    if let Some(size) = raw.limit.as_ref().filter(|size| !(1..=BYTES_MAX_MAX).contains(&size.value.0)) {
        mistakes.wrong(size.span.clone(), "limit must be 1 byte to 128MiB".to_string());
    }
    let least = Duration::from_millis(1);
    let message = "timeout must be at most 5m";
    FetchedList {
        url: list.unwrap_or_else(|| Secret::new(String::new())),
        checksum,
        format: format(mistakes, &raw),
        bytes_max,
        timeout: time(mistakes, raw.timeout.as_ref(), least..=TIMEOUT_MAX, message, TIMEOUT),
        ca: raw.ca.as_ref().map(|ca| mistakes.path(ca)),
        headers: raw.headers.into_iter().map(|(name, value)| (name, Secret::new(value.value))).collect(),
    }
}

fn format(mistakes: &mut Mistakes<'_>, raw: &Raw) -> ListFormat {
    let format = raw.format.as_ref().map_or(Format::Text, |format| format.value);
    if format == Format::Text {
        if let Some(pointer) = raw.pointers.first() {
            let hint = "write `format = \"json\"` or `\"json_lines\"`".to_string();
            mistakes.wrong_with_hint(pointer.span.clone(), "a text has no JSON pointers".to_string(), hint);
        }
        return ListFormat::Text;
    }
    if let (Some(format), true) = (&raw.format, raw.pointers.is_empty()) {
        let hint = "add `pointers = [\"/prefixes/*/ip_prefix\"]`".to_string();
        mistakes.wrong_with_hint(
            format.span.clone(),
            "nothing says where the addresses are".to_string(),
            hint,
        );
    }
    let pointers = raw.pointers.iter().filter_map(|text| pointer(mistakes, text)).collect();
    if format == Format::Json { ListFormat::Json(pointers) } else { ListFormat::JsonLines(pointers) }
}

/// The parts of a JSON pointer (RFC 6901).
fn pointer(mistakes: &mut Mistakes<'_>, text: &Spanned<String>) -> Option<Vec<String>> {
    if text.value.is_empty() {
        return Some(Vec::new());
    }
    let Some(rest) = text.strip_prefix('/').filter(|rest| rest.split('/').count() <= 32) else {
        let hint = "write `/prefixes/*/ip_prefix`, at most 32 parts".to_string();
        mistakes.wrong_with_hint(text.span.clone(), format!("`{}` is not a JSON pointer", text.value), hint);
        return None;
    };
    Some(rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
}

fn time(
    mistakes: &mut Mistakes<'_>,
    raw: Option<&Spanned<Time>>,
    range: std::ops::RangeInclusive<Duration>,
    message: &str,
    default: Duration,
) -> Duration {
    let Some(time) = raw else { return default };
    if !range.contains(&time.value.0) {
        mistakes.wrong(time.span.clone(), message.to_string());
    }
    time.value.0
}
