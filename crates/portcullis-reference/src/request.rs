//! The input: a request and its surroundings.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, SystemTime};

use bstr::BString;

/// A whole request, and its response if there was one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `REMOTE_ADDR`.
    pub client: IpAddr,
    /// `REMOTE_PORT`.
    pub client_port: u16,
    /// `SERVER_ADDR`.
    pub server: IpAddr,
    /// `SERVER_PORT`.
    pub server_port: u16,
    /// `UNIQUE_ID`.
    pub unique_id: BString,
    /// The clock, for `TIME_...` (UTC).
    pub time: SystemTime,
    /// `REQUEST_LINE`.
    pub line: BString,
    /// `REQUEST_METHOD`.
    pub method: BString,
    /// The target: `REQUEST_URI_RAW`.
    pub uri: BString,
    /// `REQUEST_PROTOCOL`.
    pub protocol: BString,
    /// Header fields in order. ModSecurity 2 sees what Apache made of them: duplicates joined with `, `.
    pub headers: Vec<(BString, BString)>,
    /// The body; `None` if the head does not announce one.
    pub body: Option<BString>,
    /// The response.
    pub response: Option<Response>,
    /// The facts that rules can find out beside it.
    pub world: World,
}

/// The world outside, as data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Addresses of names in lower case; `None`: no answer. Other names do not exist.
    pub dns: BTreeMap<BString, Option<Ipv4Addr>>,
    /// The verdict of a scanner on a file with these bytes; `None`: no verdict. Other files are clean.
    pub scans: BTreeMap<BString, Option<BString>>,
    /// Keys and values of `GEO`. Other addresses are in no database.
    pub places: BTreeMap<IpAddr, Vec<(BString, BString)>>,
}

/// A whole response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// `RESPONSE_STATUS`.
    pub status: u16,
    /// `RESPONSE_PROTOCOL`.
    pub protocol: BString,
    /// Header fields in order.
    pub headers: Vec<(BString, BString)>,
    /// The body, decoded.
    pub body: BString,
}

impl Request {
    /// `GET uri HTTP/1.1` with a `Host` field.
    pub fn get(uri: &str) -> Request {
        Request::with_method("GET", uri)
    }

    /// `POST uri HTTP/1.1` with a body.
    pub fn post(uri: &str, content_type: &str, body: impl Into<BString>) -> Request {
        let body = body.into();
        let mut request = Request::with_method("POST", uri);
        request.headers.push(("Content-Type".into(), content_type.into()));
        request.headers.push(("Content-Length".into(), body.len().to_string().into()));
        request.body = Some(body);
        request
    }

    /// The same with another header field.
    pub fn header(mut self, name: &str, value: impl Into<BString>) -> Request {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same with a response.
    pub fn answered(mut self, status: u16, content_type: &str, body: impl Into<BString>) -> Request {
        let body = body.into();
        self.response = Some(Response {
            status,
            protocol: "HTTP/1.1".into(),
            headers: vec![
                ("Content-Type".into(), content_type.into()),
                ("Content-Length".into(), body.len().to_string().into()),
            ],
            body,
        });
        self
    }

    fn with_method(method: &str, uri: &str) -> Request {
        Request {
            client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            client_port: 49152,
            server: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 80)),
            server_port: 80,
            unique_id: "reference".into(),
            time: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
            line: format!("{method} {uri} HTTP/1.1").into(),
            method: method.into(),
            uri: uri.into(),
            protocol: "HTTP/1.1".into(),
            headers: vec![("Host".into(), "a.example".into())],
            body: None,
            response: None,
            world: World::default(),
        }
    }

    /// Path and query of the target. A target that is neither a path nor absolute counts as path up to its
    /// question mark.
    pub(crate) fn path_and_query(&self) -> (&[u8], Option<&[u8]>) {
        let uri = self.uri.as_slice();
        let start = if uri.starts_with(b"/") {
            0
        } else if self.method == "CONNECT" {
            uri.len()
        } else {
            after_authority(uri).unwrap_or(0)
        };
        let rest = &uri[start..];
        match rest.iter().position(|&b| b == b'?') {
            Some(mark) => (&rest[..mark], Some(&rest[mark + 1..])),
            None => (rest, None),
        }
    }
}

/// Returns the start of the path in `scheme://authority/path`.
fn after_authority(uri: &[u8]) -> Option<usize> {
    let colon = uri.iter().position(|&b| !(b.is_ascii_alphanumeric() || b"+-.".contains(&b)))?;
    if !uri.first()?.is_ascii_alphabetic() || !uri[colon..].starts_with(b"://") {
        return None;
    }
    let start = colon + 3;
    let length = uri[start..].iter().position(|b| b"/?".contains(b)).unwrap_or(uri.len() - start);
    Some(start + length)
}
