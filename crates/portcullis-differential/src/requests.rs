//! Requests, with the responses they get: generated, and from the corpora.

use std::net::Ipv4Addr;

use bstr::{BString, ByteSlice};
use portcullis_reference::{Request, Response};
use portcullis_testkit::{TestkitError, corpora};

use crate::Random;
use crate::words::{VALUES, WORDS};

/// Values and whole requests of the corpora.
pub struct Corpora {
    values: Vec<Vec<u8>>,
    requests: Vec<corpora::Request>,
}

const VALUE_FILES: &[&str] = &[
    "attack/sqli.jsonl",
    "attack/xss.jsonl",
    "attack/lfi.jsonl",
    "attack/rce.jsonl",
    "benign/english-text.jsonl",
    "mixed/naughty-strings.jsonl",
];
const REQUEST_FILES: &[&str] = &["robustness/body-parsing-evasion.jsonl", "benign/synthetic-requests.jsonl"];
/// Longer ones only make differences hard to read.
const VALUE_BYTES_MAX: usize = 400;
const BODY_BYTES_MAX: usize = 8_000;
/// So that rules in the middle of nowhere do not ask for each of 6,000 ordinary requests.
const REQUESTS_OF_A_FILE_MAX: usize = 1_000;

impl Corpora {
    /// Reads them.
    pub fn read() -> Result<Corpora, TestkitError> {
        let mut out = Corpora { values: Vec::new(), requests: Vec::new() };
        for name in VALUE_FILES {
            let values = corpora::values(name)?.into_iter().map(|value| value.bytes);
            out.values.extend(values.filter(|bytes| bytes.len() <= VALUE_BYTES_MAX));
        }
        for name in REQUEST_FILES {
            let requests = corpora::requests(name)?.into_iter().take(REQUESTS_OF_A_FILE_MAX);
            out.requests
                .extend(requests.filter(|r| r.body.as_ref().is_none_or(|b| b.len() <= BODY_BYTES_MAX)));
        }
        Ok(out)
    }
}

/// A request that Apache takes: its head has no byte that ends the connection before any rule has run.
pub fn request(random: &mut Random, corpora: Option<&Corpora>) -> Request {
    let mut request = match corpora {
        Some(corpora) if random.chance(12) => {
            from_corpus(&corpora.requests[random.below(corpora.requests.len())])
        }
        _ => generated(random, corpora),
    };
    // As Apache sees it.
    request.client = Ipv4Addr::LOCALHOST.into();
    request.server = Ipv4Addr::LOCALHOST.into();
    respond(random, &mut request);
    request.headers.push(("Connection".into(), "close".into()));
    request
}

fn from_corpus(found: &corpora::Request) -> Request {
    let mut request = Request::get(&found.uri);
    request.method = found.method.as_str().into();
    request.line = format!("{} {} HTTP/1.1", found.method, found.uri).into();
    let dropped = ["connection", "transfer-encoding", "content-length", "expect"];
    let headers = found
        .headers
        .iter()
        .filter(|(name, _)| !dropped.iter().any(|dropped| name.eq_ignore_ascii_case(dropped)));
    let has_host = found.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
    if has_host {
        request.headers.clear();
    }
    request.headers.extend(headers.map(|(name, value)| (name.as_str().into(), value.as_str().into())));
    if let Some(body) = &found.body {
        request.headers.push(("Content-Length".into(), body.len().to_string().into()));
        request.body = Some(body.as_slice().into());
    }
    request
}

fn generated(random: &mut Random, corpora: Option<&Corpora>) -> Request {
    let query = pairs(random, corpora, "&");
    let path = random.pick(&["/", "/", "/a/b.php", "/index.html", "/%41b/c", "/a%20b", "/A.b;c=1", "/a+b"]);
    let uri = if query.is_empty() && random.chance(70) { path.to_owned() } else { format!("{path}?{query}") };
    let mut request = match random.below(7) {
        0 | 1 => {
            let body = pairs(random, corpora, "&");
            let kind = random.pick(&[
                "application/x-www-form-urlencoded",
                "application/x-www-form-urlencoded; charset=utf-8",
            ]);
            Request::post(&uri, kind, body)
        }
        2 => {
            let kind = random.pick(&["application/json", "application/json; charset=utf-8"]);
            Request::post(&uri, kind, json(random))
        }
        3 => Request::post(&uri, random.pick(&["text/xml", "application/xml"]), random.pick(XML)),
        4 => multipart(random, &uri),
        _ => Request::get(&uri),
    };
    if random.chance(10) {
        let method = random.pick(&["PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]);
        if !(request.body.is_some() && method == "HEAD") {
            request.method = method.into();
            request.line = format!("{method} {uri} HTTP/1.1").into();
        }
    }
    for _ in 0..random.below(3) {
        let name = random.pick(&["X-A", "x-a", "X-B", "User-Agent", "Accept", "Referer"]);
        let again = request.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
        if again && !random.chance(50) {
            continue;
        }
        let value = header_value(random, corpora);
        request = request.header(name, value);
    }
    if random.chance(40) {
        request = request.header("Cookie", random.pick(COOKIES));
    }
    if random.chance(3) {
        request = request.header("Cookie", random.pick(COOKIES));
    }
    request
}

const COOKIES: &[&str] = &[
    "a=1; b=ab",
    "a=1",
    "=x; a=22",
    "a=1' or '1'='1",
    "a=%41%00; b=\"x y\"",
    "a = b ; c=d",
    "a",
    "a=1;a=2",
    "a==b; c=d=e",
    "ab=union; a=",
    "$Version=1; a=\"b\"; $Path=/",
];

const XML: &[&str] = &[
    "<a b='ab'>22<c/>x</a>",
    "<a>",
    "<a>&lt;</a>",
    "<?xml version=\"1.0\"?><a><b c=\"1\">ab</b><!-- x --><d>union</d></a>",
    "<a><![CDATA[<b>]]></a>",
    "not xml",
    "",
    "<a b=\"&quot;1\" c='2'>\n <b> x y </b>\n</a>",
    "<a><b c='1'>ab</b><b c=\"22\">x y<b/></b><d>union</d></a>",
    "<a xmlns:p='http://u'><p:b c='1'>ab</p:b><b>22</b></a>",
    "<q xmlns='http://u'><b>ab</b><d c='x'/></q>",
    "<a><b>x<!-- y -->z</b><b>a<![CDATA[b]]>c</b></a>",
];

fn json(random: &mut Random) -> BString {
    const WHOLE: &[&str] = &[
        r#"{"a":"ab","b":[1,{"c":null}]}"#,
        "{",
        "[22]",
        r#"{"a":true,"b":false,"c":-1.5e3}"#,
        r#"{"a":{"b":{"c":"union"}},"x":[["y"],[]]}"#,
        r#"{"a":"\u0061\n\"q\"","a":"again"}"#,
        r#""ab""#,
        "[]",
        "{}",
        r#"{"":"x","a b":"y"}"#,
        r#"{"a":1}x"#,
        "",
        "123",
    ];
    if random.chance(70) {
        return random.pick(WHOLE).into();
    }
    format!(r#"{{"a":"{}","b":["{}"]}}"#, random.pick(WORDS), random.pick(&["ab", "x y", "1", "\\u003ca"]))
        .into()
}

fn multipart(random: &mut Random, uri: &str) -> Request {
    let boundary = random.pick(&["B", "----WebKitFormBoundaryX", "0123456789"]);
    let mut body: Vec<u8> = Vec::new();
    if random.chance(5) {
        body.extend_from_slice(b"before\r\n");
    }
    for _ in 0..random.below(4) {
        let name = random.pick(&["a", "b", "f", "x y", ""]);
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"");
        if random.chance(35) {
            let file = random.pick(&["x.php", "a.txt", "..\\b", "", "a\\\"b"]);
            head.push_str(&format!(
                "; filename=\"{file}\"\r\nContent-Type: {}",
                random.pick(&["text/plain", "image/png"])
            ));
        }
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(random.pick(WORDS).as_bytes());
        if random.chance(10) {
            body.extend_from_slice(b"\r\nsecond line");
        }
        body.extend_from_slice(b"\r\n");
    }
    if !random.chance(8) {
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    }
    if random.chance(5) {
        body.extend_from_slice(b"after");
    }
    let quoted = if random.chance(10) { format!("\"{boundary}\"") } else { boundary.to_owned() };
    Request::post(uri, &format!("multipart/form-data; boundary={quoted}"), body)
}

fn pairs(random: &mut Random, corpora: Option<&Corpora>, separator: &str) -> String {
    let mut pairs = Vec::new();
    for _ in 0..random.below(4) {
        let name = random.pick(&["a", "a", "b", "A", "c", "ab", "", "%61", "a.b", "a[]"]);
        let value = match random.below(10) {
            0..=4 => random.pick(WORDS).replace(' ', "+"),
            5..=7 => random.pick(VALUES).replace(' ', "+"),
            _ => match corpora {
                Some(corpora) => escape(&corpora.values[random.below(corpora.values.len())]),
                None => random.pick(VALUES).replace(' ', "+"),
            },
        };
        pairs.push(if random.chance(5) { name.to_owned() } else { format!("{name}={value}") });
    }
    pairs.join(separator)
}

fn header_value(random: &mut Random, corpora: Option<&Corpora>) -> BString {
    if let Some(corpora) = corpora
        && random.chance(25)
    {
        let value = &corpora.values[random.below(corpora.values.len())];
        let kept = value.iter().copied().filter(|byte| (0x20..0x7f).contains(byte));
        return kept.collect::<Vec<u8>>().trim_ascii().to_vec().into();
    }
    let list = if random.chance(70) { WORDS } else { VALUES };
    random.pick(list).trim().into()
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for &byte in bytes {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'.'
            | b'_'
            | b'('
            | b')'
            | b'\''
            | b'*'
            | b'/'
            | b':' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

/// The field by which the back end of the Apache run knows what to answer. All engines see it.
pub(crate) const ANSWER: &str = "X-Answer";

fn respond(random: &mut Random, request: &mut Request) {
    let status = [200, 200, 200, 201, 404, 409][random.below(6)];
    let kind = random.pick(&[
        "text/html",
        "text/html; charset=utf-8",
        "text/plain",
        "image/png",
        "application/json",
    ]);
    let is_head = request.method == "HEAD";
    let body = random.pick(&["", "ab", "<html>a</html>", "union 22", "x y", "SQL error"]);
    let body = if is_head { "" } else { body };
    let extra = random.pick(&["a", "b", "x y", "1"]);
    request.headers.push((ANSWER.into(), format!("{status}|{kind}|{extra}|{body}").into()));
    request.response = Some(Response {
        status,
        protocol: "HTTP/1.1".into(),
        headers: vec![
            ("Content-Type".into(), kind.into()),
            ("X-R".into(), extra.into()),
            ("Content-Length".into(), body.len().to_string().into()),
        ],
        body: body.into(),
    });
}

/// The request as bytes.
pub fn wire(request: &Request) -> Vec<u8> {
    let mut out = request.line.to_vec();
    out.extend_from_slice(b"\r\n");
    for (name, value) in &request.headers {
        for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
            out.extend_from_slice(piece);
        }
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(request.body.as_ref().map_or(b"", |body| body.as_bytes()));
    out
}
