//! Samples as requests on the wire.

use portcullis_semantic::Place;

use crate::Content;

/// Header fields that a client sends along, so that rules which miss them stay quiet.
const ABOUT: &str = "Host: app.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";

impl Content {
    /// The request as a client would send it. A bare value stands in the place that it was given, encoded as
    /// clients encode it.
    pub fn to_wire(&self) -> Vec<u8> {
        match self {
            Content::Raw(file) => with_framing(file),
            Content::Request { method, uri, headers, body } => request(method, uri, headers, body),
            Content::Value { place, name, bytes } => value(*place, name, bytes),
            Content::Response { method, uri, .. } => request(method, uri, &[], b""),
            Content::RawResponse(_) => request("GET", b"/", &[], b""),
        }
    }

    /// The response as a server would send it, if it is one.
    pub fn response_to_wire(&self) -> Option<Vec<u8>> {
        if let Content::Response { status, headers, body, .. } = self {
            let mut head = format!("HTTP/1.1 {status} \r\n").into_bytes();
            for (name, value) in headers {
                head.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
            }
            Some(with_framing(&[&head[..], b"\r\n", body].concat()))
        } else if let Content::RawResponse(file) = self {
            Some(with_framing(file))
        } else {
            None
        }
    }
}

fn value(place: Place, name: &str, bytes: &[u8]) -> Vec<u8> {
    let pair = [name.as_bytes(), b"=", &encoded(bytes)].concat();
    let post = |kind: &str, body: &[u8]| {
        request("POST", b"/", &[("Content-Type".to_owned(), kind.as_bytes().to_vec())], body)
    };
    let header = |name: &str, value: Vec<u8>| request("GET", b"/", &[(name.to_owned(), value)], b"");
    match place {
        Place::Form => post("application/x-www-form-urlencoded", &pair),
        Place::Json => {
            let text = serde_json::Value::from(String::from_utf8_lossy(bytes));
            post("application/json", format!("{{\"text\":{text}}}").as_bytes())
        }
        Place::Cookie => header("Cookie", pair),
        // Bytes that cannot stand in a field are coded, as a client has to.
        Place::Header => header(name, encoded_if(bytes, |b| matches!(b, b'\r' | b'\n' | 0))),
        Place::Method
        | Place::Path
        | Place::PathSegment
        | Place::QueryString
        | Place::Query
        | Place::Name
        | Place::XmlText
        | Place::XmlAttribute
        | Place::XmlDoctype
        | Place::MultipartField
        | Place::FileName
        | Place::FileContent
        | Place::PartHeader
        | Place::HeaderName
        | Place::Text
        | Place::RawBody
        | Place::ResponseBody
        | Place::ResponseHeader => request("GET", &[b"/?", pair.as_slice()].concat(), &[], b""),
    }
}

fn encoded(bytes: &[u8]) -> Vec<u8> {
    encoded_if(bytes, |b| !b.is_ascii_alphanumeric() && !matches!(b, b'-' | b'_' | b'.' | b'~'))
}

fn encoded_if(bytes: &[u8], is_coded: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    for &b in bytes {
        match is_coded(b) {
            true => out.extend_from_slice(format!("%{b:02X}").as_bytes()),
            false => out.push(b),
        }
    }
    out
}

/// A request whose fields are `headers`, with what a client adds to them.
fn request(method: &str, uri: &[u8], headers: &[(String, Vec<u8>)], body: &[u8]) -> Vec<u8> {
    let has = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut out = Vec::with_capacity(256 + uri.len() + body.len());
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(uri);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    for line in
        ABOUT.split_inclusive('\n').filter(|line| line.split(':').next().is_some_and(|name| !has(name)))
    {
        out.extend_from_slice(line.as_bytes());
    }
    let is_framing = |name: &str| {
        name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding")
    };
    for (name, value) in headers.iter().filter(|(name, _)| !is_framing(name)) {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    if !body.is_empty() {
        out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    out
}

/// A message as people save it: line ends of the head may be LF, and the body's length need not be right.
pub(crate) fn with_framing(file: &[u8]) -> Vec<u8> {
    let (mut at, mut end) = (0, file.len());
    for line in file.split_inclusive(|&b| b == b'\n') {
        if at > 0 && matches!(line, b"\n" | b"\r\n") {
            end = at;
            break;
        }
        at += line.len();
    }
    let head = &file[..end];
    let body = match &file[end..] {
        [b'\r', b'\n', body @ ..] | [b'\n', body @ ..] => body,
        body => body,
    };
    let mut out = Vec::with_capacity(file.len() + 64);
    for line in head.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_framing = line.len() > 15 && line[..15].eq_ignore_ascii_case(b"content-length:");
        if !is_framing && !line.is_empty() {
            out.extend_from_slice(line);
            out.extend_from_slice(b"\r\n");
        }
    }
    if !body.is_empty() {
        out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    out
}
