//! Labelled requests, responses and values, from files.

use std::path::{Path, PathBuf};

use portcullis_semantic::Place;
use serde::Deserialize;

use crate::zones::zones;
use crate::{EvaluateError, PlaceArg};

/// The label of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// Must be blocked or rejected
    Attack,
    /// Must pass
    Benign,
}

/// The samples of one file or folder.
#[derive(Debug)]
pub struct Set {
    pub name: String,
    pub samples: Vec<Sample>,
}

#[derive(Debug)]
pub struct Sample {
    pub label: Label,
    /// Source, family, tier or file.
    pub source: String,
    pub content: Content,
}

/// The content of a sample.
#[derive(Clone, Debug)]
pub enum Content {
    /// A bare value, in a place of a request.
    Value {
        /// The place.
        place: Place,
        /// Its name there.
        name: &'static str,
        /// The value, not encoded.
        bytes: Vec<u8>,
    },
    /// A request in parts.
    Request {
        /// The method.
        method: String,
        /// The request target.
        uri: Vec<u8>,
        /// Header fields in order.
        headers: Vec<(String, Vec<u8>)>,
        /// The body, without codings.
        body: Vec<u8>,
    },
    /// A request as a person saved it.
    Raw(Vec<u8>),
    /// A response in parts, and the request that it answers.
    Response {
        /// The status.
        status: u16,
        /// Header fields in order.
        headers: Vec<(String, Vec<u8>)>,
        /// The body, without codings.
        body: Vec<u8>,
        /// Method of the request.
        method: String,
        /// Target of the request.
        uri: Vec<u8>,
    },
    /// A response as a person saved it.
    RawResponse(Vec<u8>),
}

impl Content {
    /// A message as a person saved it: a response if it begins as one.
    fn raw(bytes: Vec<u8>) -> Content {
        match bytes.starts_with(b"HTTP/") {
            true => Content::RawResponse(bytes),
            false => Content::Raw(bytes),
        }
    }

    /// The text in it, for criteria of labels.
    pub(crate) fn text(&self) -> String {
        match self {
            Content::Value { bytes, .. } | Content::Raw(bytes) | Content::RawResponse(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            Content::Request { uri, body, headers, .. } | Content::Response { uri, body, headers, .. } => {
                let mut all = [uri.as_slice(), b"\n", body].concat();
                for (name, value) in headers {
                    all.extend_from_slice(&[b"\n", name.as_bytes(), b": ", value].concat());
                }
                String::from_utf8_lossy(&all).into_owned()
            }
        }
    }

    /// A summary on one line.
    pub fn summary(&self) -> String {
        let text = match self {
            Content::Value { bytes, .. } => bytes.escape_ascii().to_string(),
            Content::Request { method, uri, headers, body } => {
                let mut line = format!("{method} {}", String::from_utf8_lossy(uri));
                for (name, value) in headers.iter().filter(|(name, value)| tells(name, value)) {
                    line.push_str(&format!(" [{name}: {}]", value.escape_ascii()));
                }
                format!("{line} {}", body[..body.len().min(400)].escape_ascii())
            }
            Content::Response { status, headers, body, .. } => {
                let media_type = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
                let media_type = media_type.map_or(&b""[..], |(_, value)| value).escape_ascii();
                format!("{status} [{media_type}] {}", body[..body.len().min(400)].escape_ascii())
            }
            Content::Raw(bytes) | Content::RawResponse(bytes) => {
                bytes[..bytes.len().min(500)].escape_ascii().to_string()
            }
        };
        let end = text.char_indices().nth(300).map_or(text.len(), |(at, _)| at);
        text[..end].to_owned()
    }
}

/// A header field that is more than what every browser sends: it may be what the request is about.
fn tells(name: &str, value: &[u8]) -> bool {
    let is_sign = |b: &u8| !b.is_ascii_alphanumeric() && !b" -_./:=,".contains(b);
    let is_agent = value.starts_with(b"Mozilla/5.0 (");
    !is_agent && !name.to_ascii_lowercase().starts_with("accept") && value.iter().any(is_sign)
}

/// Reads what `path` names.
pub fn read(path: &Path, label: Option<Label>, place: PlaceArg) -> Result<Vec<Set>, EvaluateError> {
    let io = |source| EvaluateError::Io { path: path.to_owned(), source };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let sets = if std::fs::metadata(path).map_err(io)?.is_dir() {
        folder(path, &name, label, place)?
    } else if name.ends_with(".jsonl") {
        vec![Set { name, samples: lines(path, label, place)? }]
    } else {
        let label =
            label.or_else(|| by_extension(path)).ok_or_else(|| EvaluateError::NoLabel(path.to_owned()))?;
        let sample = raw_file(path, label)?;
        let samples = match (&sample.content, by_extension(path)) {
            (Content::Raw(bytes), None) if !begins_as_request(bytes) => values(&sample, bytes, &name, place),
            _ => vec![sample],
        };
        vec![Set { name, samples }]
    };
    if sets.iter().all(|set| set.samples.is_empty()) {
        return Err(EvaluateError::Empty(path.to_owned()));
    }
    Ok(sets)
}

fn by_extension(path: &Path) -> Option<Label> {
    match path.extension()?.to_str()? {
        "black" => Some(Label::Attack),
        "white" => Some(Label::Benign),
        _ => None,
    }
}

fn raw_file(path: &Path, label: Label) -> Result<Sample, EvaluateError> {
    let bytes = std::fs::read(path).map_err(|source| EvaluateError::Io { path: path.to_owned(), source })?;
    Ok(Sample { label, source: path.display().to_string(), content: Content::raw(bytes) })
}

/// True if the first line is that of a request: two blanks at least, and a version at its end.
fn begins_as_request(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    let mut words = line.rsplit(|byte| *byte == b' ');
    words.next().is_some_and(|version| version.starts_with(b"HTTP/")) && words.count() >= 2
}

/// Each line of a list of values.
fn values(list: &Sample, bytes: &[u8], name: &str, place: PlaceArg) -> Vec<Sample> {
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.filter(|line| !line.trim_ascii().is_empty());
    let sample = |line: &[u8]| Sample {
        label: list.label,
        source: list.source.clone(),
        content: placed(line.to_vec(), name, place),
    };
    lines.map(sample).collect()
}

/// All files below a folder: raw requests together are one set, each `.jsonl` is its own.
fn folder(path: &Path, name: &str, label: Option<Label>, place: PlaceArg) -> Result<Vec<Set>, EvaluateError> {
    let mut raw = Set { name: name.to_owned(), samples: Vec::new() };
    let mut sets = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        let io = |source| EvaluateError::Io { path: folder.clone(), source };
        let mut entries: Vec<PathBuf> = std::fs::read_dir(&folder)
            .map_err(io)?
            .collect::<Result<Vec<_>, _>>()
            .map_err(io)?
            .into_iter()
            .map(|entry| entry.path())
            .collect();
        entries.sort();
        for entry in entries {
            if entry.is_dir() {
                open.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "jsonl") {
                let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
                sets.push(Set { name, samples: lines(&entry, label, place)? });
            } else if let Some(label) = by_extension(&entry).or(label) {
                raw.samples.push(raw_file(&entry, label)?);
            }
        }
    }
    if !raw.samples.is_empty() {
        sets.push(raw);
    }
    Ok(sets)
}

#[derive(Deserialize)]
struct Line {
    label: Option<Label>,
    p: Option<String>,
    b64: Option<String>,
    #[serde(default)]
    src: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    family: String,
    #[serde(default)]
    tier: String,
    #[serde(default)]
    tamper: String,
    method: Option<String>,
    uri: Option<String>,
    status: Option<u16>,
    host: Option<String>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body: Option<String>,
    body_b64: Option<String>,
    raw: Option<String>,
    id: Option<serde_json::Value>,
    payload: Option<serde_json::Value>,
    file: Option<String>,
    #[serde(default)]
    mutator: String,
}

fn lines(path: &Path, label: Option<Label>, place: PlaceArg) -> Result<Vec<Sample>, EvaluateError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| EvaluateError::Io { path: path.to_owned(), source })?;
    let is_benign = path.components().any(|part| part.as_os_str().to_string_lossy().contains("benign"));
    let label = label.unwrap_or(if is_benign { Label::Benign } else { Label::Attack });
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut samples = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |message: String| EvaluateError::Line { path: path.to_owned(), line: index + 1, message };
        let line: Line = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        let label = line.label.unwrap_or(label);
        let source = source(&line);
        if let Some(payload) = &line.payload {
            samples.extend(zones(payload).into_iter().map(|(label, content)| Sample {
                label,
                source:
                    line.file.clone().unwrap_or_default().split('/').next().unwrap_or_default().to_owned(),
                content,
            }));
            continue;
        }
        let content = content(line, &name, place).map_err(wrong)?;
        samples.push(Sample { label, source, content });
    }
    Ok(samples)
}

fn source(line: &Line) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in [&line.tier, &line.family, &line.kind, &line.mutator, &line.tamper] {
        if !part.is_empty() {
            parts.push(part);
        }
    }
    if parts.is_empty() {
        parts.push(line.src.split(['/', ' ']).next().unwrap_or_default());
        if let Some(rest) = line.src.split('/').next_back().filter(|rest| *rest != parts[0]) {
            parts.push(rest);
        }
    }
    if let Some(id) = line.id.as_ref().and_then(serde_json::Value::as_str) {
        parts.push(id);
    }
    parts.join(" ")
}

fn content(line: Line, file: &str, place: PlaceArg) -> Result<Content, String> {
    if let Some(raw) = line.raw {
        return Ok(Content::raw(raw.into_bytes()));
    }
    if line.uri.is_some() || line.status.is_some() {
        let body = match (line.body, line.body_b64) {
            (_, Some(text)) => base64(&text).ok_or("`body_b64` is not Base64")?,
            (Some(text), None) => text.into_bytes(),
            (None, None) => Vec::new(),
        };
        let host = line.host.map(|host| ("Host".to_owned(), host.into_bytes()));
        let headers = line.headers.into_iter().map(|(name, value)| (name, latin1(&value)));
        let (method, uri) = (line.method.unwrap_or_else(|| "GET".to_owned()), line.uri);
        let uri = uri.unwrap_or_else(|| "/".to_owned()).into_bytes();
        return Ok(match line.status {
            Some(status) => Content::Response { status, headers: headers.collect(), body, method, uri },
            None => {
                Content::Request { method, uri, headers: host.into_iter().chain(headers).collect(), body }
            }
        });
    }
    let bytes = match (line.p, line.b64) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(text)) => base64(&text).ok_or("`b64` is not Base64")?,
        (None, None) => return Err("neither a value nor a request".to_owned()),
    };
    Ok(placed(bytes, file, place))
}

/// Header values of JSON text: as bytes where all characters are Latin-1, as UTF-8 otherwise.
fn latin1(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn placed(bytes: Vec<u8>, file: &str, place: PlaceArg) -> Content {
    if file.contains("user-agents") {
        return Content::Value { place: Place::Header, name: "User-Agent", bytes };
    }
    if file.contains("-posts") {
        return Content::Value { place: Place::Form, name: "body", bytes };
    }
    if file.contains("-query") {
        let uri = [b"/?", bytes.as_slice()].concat();
        return Content::Request { method: "GET".to_owned(), uri, headers: Vec::new(), body: Vec::new() };
    }
    let (place, name) = match place {
        PlaceArg::Query => (Place::Query, "q"),
        PlaceArg::Item => (Place::Query, "item"),
        PlaceArg::Id => (Place::Query, "id"),
        PlaceArg::Form => (Place::Form, "text"),
        PlaceArg::Json => (Place::Json, "json.text"),
        PlaceArg::Header => (Place::Header, "X-Value"),
        PlaceArg::Cookie => (Place::Cookie, "value"),
        PlaceArg::Path => {
            let mut uri = b"/app/".to_vec();
            for b in bytes {
                match b {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => uri.push(b),
                    _ => uri.extend_from_slice(format!("%{b:02X}").as_bytes()),
                }
            }
            return Content::Request { method: "GET".to_owned(), uri, headers: Vec::new(), body: Vec::new() };
        }
    };
    Content::Value { place, name, bytes }
}

/// Standard Base64, padding optional.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut have) = (0u32, 0);
    for b in text.bytes().filter(|&b| b != b'=') {
        let value = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        have += 6;
        if have >= 8 {
            have -= 8;
            out.push((bits >> have) as u8);
        }
    }
    Some(out)
}
