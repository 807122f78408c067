//! The corpora: files of values and of requests, kept beside the workspace because some of them are under
//! licences that must not mix with ours.
//!
//! Value files have one JSON object a line with `p` (text) or `b64` (bytes) and `src`; request files have
//! `method`, `uri`, `headers` (pairs), and `body` or `body_b64`. A line that is neither is an error with its
//! number: a reader that skips what it cannot read would report success on nothing.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use crate::corpora_folder::{VARIABLE, for_test};
use crate::{TestkitError, base64, corpora_folder};

/// The corpora folder: `PORTCULLIS_CORPORA`, or `../shared/corpora` beside the workspace root.
pub fn root() -> Result<PathBuf, TestkitError> {
    let path = corpora_folder::folder();
    match path.is_dir() {
        true => Ok(path),
        false => Err(TestkitError::Missing {
            what: "the corpora",
            path,
            how: "put the corpora folder there, or name it in PORTCULLIS_CORPORA",
        }),
    }
}

/// One value of a value file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Its source; empty where the file does not say.
    pub source: String,
}

/// One request of a request file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Family, mutator or other group the file gives; empty without.
    pub family: String,
    /// `easy`, `medium` or `hard` where the file says.
    pub tier: String,
    /// Method.
    pub method: String,
    /// Request target as sent.
    pub uri: String,
    /// Header fields in order. `Content-Length` is only there if the file has it.
    pub headers: Vec<(String, String)>,
    /// Body; `None` if the file has none.
    pub body: Option<Vec<u8>>,
}

impl Request {
    /// The request as HTTP/1.1 bytes: the header fields as given, `Host` and `Content-Length` added where
    /// they are missing and needed, `Connection: close` unless `keep_alive`.
    pub fn wire(&self, keep_alive: bool) -> Vec<u8> {
        let has = |name: &str| self.headers.iter().any(|(have, _)| have.eq_ignore_ascii_case(name));
        let mut out = format!("{} {} HTTP/1.1\r\n", self.method, self.uri).into_bytes();
        let mut field = |name: &str, value: &str| {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        };
        if !has("host") {
            field("Host", "app.example.com");
        }
        for (name, value) in &self.headers {
            field(name, value);
        }
        if let Some(body) = &self.body
            && !has("content-length")
            && !has("transfer-encoding")
        {
            field("Content-Length", &body.len().to_string());
        }
        if !keep_alive && !has("connection") {
            field("Connection", "close");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body.as_deref().unwrap_or_default());
        out
    }
}

/// Reads a value file, named relative to [`root`], such as `attack/sqli.jsonl`.
pub fn values(name: &str) -> Result<Vec<Value>, TestkitError> {
    #[derive(Deserialize)]
    struct Line {
        p: Option<String>,
        b64: Option<String>,
        #[serde(default)]
        src: String,
    }
    let path = root()?.join(name);
    lines(&path, |line: Line| {
        let bytes = match (line.p, line.b64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(text)) => base64::decode(&text).ok_or("`b64` is not Base64")?,
            _ => return Err("a value has either `p` or `b64`"),
        };
        Ok(Value { bytes, source: line.src })
    })
}

/// Reads a request file, named relative to [`root`], such as `benign/synthetic-requests.jsonl`.
pub fn requests(name: &str) -> Result<Vec<Request>, TestkitError> {
    #[derive(Deserialize)]
    struct Line {
        method: String,
        uri: String,
        #[serde(default)]
        host: Option<String>,
        #[serde(default)]
        headers: Vec<(String, String)>,
        body: Option<String>,
        body_b64: Option<String>,
        #[serde(default)]
        family: String,
        #[serde(default)]
        tier: String,
    }
    let path = root()?.join(name);
    lines(&path, |line: Line| {
        let body = match (line.body, line.body_b64) {
            (Some(_), Some(_)) => return Err("a request has either `body` or `body_b64`"),
            (Some(text), None) => Some(text.into_bytes()),
            (None, Some(text)) => Some(base64::decode(&text).ok_or("`body_b64` is not Base64")?),
            (None, None) => None,
        };
        let mut headers = line.headers;
        if let Some(host) = line.host
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"))
        {
            headers.insert(0, ("Host".into(), host));
        }
        Ok(Request {
            family: line.family,
            tier: line.tier,
            method: line.method,
            uri: line.uri,
            headers,
            body,
        })
    })
}

/// Reads any JSON-lines file of the corpora into a type of the caller's.
pub fn records<T: DeserializeOwned>(name: &str) -> Result<Vec<T>, TestkitError> {
    lines(&root()?.join(name), Ok)
}

fn lines<L: DeserializeOwned, T>(
    path: &Path,
    turn: impl Fn(L) -> Result<T, &'static str>,
) -> Result<Vec<T>, TestkitError> {
    let text = std::fs::read_to_string(path).map_err(|source| TestkitError::io(path, source))?;
    let mut out = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let record =
            serde_json::from_str(line).map_err(|error| TestkitError::parse(path, Some(index + 1), error))?;
        out.push(turn(record).map_err(|message| TestkitError::parse(path, Some(index + 1), message))?);
    }
    match out.is_empty() {
        true => Err(TestkitError::parse(path, None, "no record in this file")),
        false => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name, the least number of lines it may have, and which reader it is for.
    #[track_caller]
    fn check(name: &str, want: usize, have: Result<usize, TestkitError>) {
        assert_eq!(have.unwrap_or_else(|error| panic!("{error}")), want, "{name}");
    }

    #[test]
    fn value_files_are_read_whole() {
        let Some(_) = for_test() else { return };
        for (name, want) in
            [("attack/sqli.jsonl", 26_463), ("attack/lfi.jsonl", 7_952), ("attack/xpath.jsonl", 13)]
        {
            check(name, want, values(name).map(|list| list.len()));
        }
    }

    #[test]
    fn request_files_are_read_whole() {
        let Some(_) = for_test() else { return };
        let name = "benign/synthetic-requests.jsonl";
        check(name, 6_000, requests(name).map(|list| list.len()));
        let name = "robustness/body-parsing-evasion.jsonl";
        check(name, 658, requests(name).map(|list| list.len()));
        let name = "benign/access-log-apache.jsonl";
        check(name, 5_961, requests(name).map(|list| list.len()));
    }

    #[test]
    fn a_bad_line_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        std::fs::write(&path, "{\"p\":\"a\"}\n{\"p\":1}\n").unwrap();
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only its shape matters")]
        struct Line {
            p: String,
        }
        let error = lines(&path, |line: Line| Ok(line)).unwrap_err().to_string();
        assert!(error.contains("x.jsonl:2: "), "{error}");
    }

    #[test]
    fn wire_adds_only_what_is_missing() {
        let mut request = Request {
            family: String::new(),
            tier: String::new(),
            method: "POST".into(),
            uri: "/a".into(),
            headers: vec![("host".into(), "x".into())],
            body: Some(b"ab".to_vec()),
        };
        assert_eq!(request.wire(true), b"POST /a HTTP/1.1\r\nhost: x\r\nContent-Length: 2\r\n\r\nab");
        request.headers = vec![("content-length".into(), "9".into())];
        request.body = None;
        assert_eq!(
            request.wire(false),
            b"POST /a HTTP/1.1\r\nHost: app.example.com\r\ncontent-length: 9\r\nConnection: close\r\n\r\n"
        );
    }
}
