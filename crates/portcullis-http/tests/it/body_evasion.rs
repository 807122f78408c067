//! The body-parsing evasions of the corpora: every form must come out as the payload, or be refused or
//! flagged.
//!
//! Five payloads, each inside unusual multipart, JSON, form and XML bodies. `control` forms must come out as
//! the payload. Any other form may instead be an error, a multipart flag or an ambiguity: then nothing about
//! it is silent. Forms that the body parsers cannot decide are listed by name, so that a new one is noticed.

use std::collections::BTreeMap;
use std::path::Path;

use crate::corpora_folder;
use portcullis_http::body::content_type::Processor;
use portcullis_http::body::{Arg, BodyParser, BodySink, Limits, Options, parse_query};
use portcullis_http::cookie;

/// Cases that pass silently, each with the part that handles it.
const NOT_OURS: &[(&str, &str, &str)] = &[
    ("request-line", "cookie-quoted", "octal escapes in a value: transformations, semantic decoding"),
    ("request-line", "double-encoded", "further encoding of a value"),
    ("request-line", "header-custom", "a header"),
    ("request-line", "path-param", "the path"),
    ("request-line", "path-segment", "the path"),
    ("request-line", "referer", "a header"),
    ("request-line", "user-agent", "a header"),
    ("request-line", "x-original-url", "a header"),
    ("urlencoded", "base64-value", "further encoding of a value"),
    (
        "urlencoded",
        "content-encoding-gzip",
        "content codings are undone, or refused, before the body parsers",
    ),
    ("urlencoded", "double-encoded", "further encoding of a value"),
    ("urlencoded", "hex-value", "further encoding of a value"),
    ("urlencoded", "overlong-3", "further encoding of a value"),
    ("urlencoded", "triple-encoded", "further encoding of a value"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// A name or value holds the payload.
    Payload,
    /// An error or a multipart flag.
    Refused,
    /// An ambiguity.
    Flagged,
    /// No known type: read by a guess, and the payload was there.
    Guessed,
    /// None of these.
    Silent,
}

struct Row {
    family: String,
    mutator: String,
    class: String,
    uri: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Row {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct Everything {
    values: Vec<Vec<u8>>,
    /// All values in one: some servers join repeated fields.
    joined: Vec<u8>,
}

impl BodySink for Everything {
    fn arg(&mut self, arg: Arg<'_>) {
        self.values.extend([arg.name.to_vec(), arg.value.to_vec()]);
        self.joined.extend_from_slice(arg.value);
    }
    fn part_header(&mut self, _: &[u8], line: &[u8]) {
        self.values.push(line.to_vec());
    }
    fn file_begin(&mut self, _: &[u8], filename: &[u8]) {
        self.values.extend([filename.to_vec(), Vec::new()]);
    }
    fn file_data(&mut self, data: &[u8]) {
        if let Some(last) = self.values.last_mut() {
            last.extend_from_slice(data);
        }
    }
    fn xml_start(&mut self, _: &[u8]) {
        self.values.push(Vec::new());
    }
    fn xml_attribute(&mut self, _: &[u8], value: &[u8]) {
        self.values.extend([value.to_vec(), Vec::new()]);
    }
    fn xml_text(&mut self, text: &[u8]) {
        self.file_data(text);
    }
    fn xml_instruction(&mut self, _: &[u8], data: &[u8]) {
        self.values.push(data.to_vec());
    }
}

impl Everything {
    fn holds(&self, payload: &[u8]) -> bool {
        let holds = |value: &[u8]| value.windows(payload.len()).any(|window| window == payload);
        holds(&self.joined) || self.values.iter().any(|value| holds(value))
    }
}

fn outcome(row: &Row, payload: &[u8]) -> Outcome {
    let mut sink = Everything::default();
    if row.family == "request-line" {
        let query = row.uri.split_once('?').map_or("", |(_, query)| query);
        parse_query(query.as_bytes(), b'&', &Limits::default(), &mut sink);
        let header = row.header("cookie").unwrap_or_default().as_bytes();
        let cookies = cookie::parse(header, cookie::CookieFormat::V0, None).cookies;
        for cookie in cookies {
            parse_query(cookie.value(header), b'&', &Limits::default(), &mut sink);
        }
    }
    let content_type = row.header("content-type").unwrap_or_default().as_bytes();
    let typed = Processor::by_media_type(content_type);
    let processor = typed.unwrap_or_else(|| Processor::sniff(&row.body));
    let mut parser = BodyParser::new(processor, content_type, &Options::default());
    parser.feed(&row.body, &mut sink);
    let report = parser.finish(&mut sink);
    let refused = report.error.is_some()
        || report.multipart.strict_error()
        || report.multipart.unmatched_boundary()
        || report.invalid_encodings > 0;
    match sink.holds(payload) {
        true if typed.is_none() && !row.body.is_empty() => Outcome::Guessed,
        true => Outcome::Payload,
        false if refused => Outcome::Refused,
        false if !report.ambiguities.is_empty() => Outcome::Flagged,
        false => Outcome::Silent,
    }
}

/// In the forms below, as it is or in their spelling.
const PAYLOAD: &str = "<script>alert(1)</script>";

/// Forms of bodies: a name, the media type, the body.
#[rustfmt::skip]
const FORMS: &[(&str, &str, &str)] = &[
    ("control form", "application/x-www-form-urlencoded", "a=1&f=%3Cscript%3Ealert(1)%3C/script%3E"),
    ("form in small hexadecimal", "application/x-www-form-urlencoded", "f=%3cscript%3ealert%281%29%3c%2fscript%3e"),
    ("form, parameters of the type", "Application/X-WWW-Form-Urlencoded ; charset=utf-8", "f=%3Cscript%3Ealert(1)%3C/script%3E"),
    ("form, the payload is a name", "application/x-www-form-urlencoded", "%3Cscript%3Ealert(1)%3C/script%3E=1"),
    ("form, a field twice", "application/x-www-form-urlencoded", "f=%3Cscript%3E&f=alert(1)%3C/script%3E"),
    ("form, half an escape", "application/x-www-form-urlencoded", "f=%3Cscript%3Ealert(1)%3C/script%3E&g=%4"),
    ("control json", "application/json", r#"{"f":"<script>alert(1)</script>"}"#),
    ("json escapes", "application/json", r#"{"f":"\u003cscript\u003ealert(1)\u003c\/script\u003e"}"#),
    ("json, the payload is a name", "application/json", r#"{"<script>alert(1)</script>":1}"#),
    ("json, deep", "application/json", r#"[[[[{"a":[{"b":["<script>alert(1)</script>"]}]}]]]]"#),
    ("json, a name twice", "application/json", r#"{"f":1,"f":"<script>alert(1)</script>"}"#),
    ("json, a comma too many", "application/json", r#"{"f":"<script>alert(1)</script>",}"#),
    ("json, single quotes", "application/json", "{'f':'<script>alert(1)</script>'}"),
    ("json with a comment", "application/json", r#"{/* */"f":"<script>alert(1)</script>"}"#),
    ("json, another type of the family", "application/vnd.api+json; charset=utf-8", r#"{"f":"<script>alert(1)</script>"}"#),
    ("json behind a byte order mark", "application/json", "\u{feff}{\"f\":\"<script>alert(1)</script>\"}"),
    ("control multipart", "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n<script>alert(1)</script>\r\n--b--\r\n"),
    ("multipart, quoted boundary", "Multipart/Form-Data; Boundary=\"b\"",
        "--b\r\ncontent-disposition: form-data; name=f\r\n\r\n<script>alert(1)</script>\r\n--b--\r\n"),
    ("multipart, lines of LF", "multipart/form-data; boundary=b",
        "--b\nContent-Disposition: form-data; name=\"f\"\n\n<script>alert(1)</script>\n--b--\n"),
    ("multipart without an end", "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n<script>alert(1)</script>"),
    ("multipart, text before and behind", "multipart/form-data; boundary=b",
        "x\r\n--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n<script>alert(1)</script>\r\n--b--\r\ny"),
    ("multipart, a file", "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.svg\"\r\nContent-Type: image/svg+xml\r\n\r\n\
         <script>alert(1)</script>\r\n--b--\r\n"),
    ("multipart, the payload is a file's name", "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"<script>alert(1)</script>\"\r\n\r\n\r\n--b--\r\n"),
    ("multipart, two boundaries", "multipart/form-data; boundary=x; boundary=b",
        "--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n<script>alert(1)</script>\r\n--b--\r\n"),
    ("multipart without a name", "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data\r\n\r\n<script>alert(1)</script>\r\n--b--\r\n"),
    ("multipart, a folded line", "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data;\r\n name=\"f\"\r\n\r\n<script>alert(1)</script>\r\n--b--\r\n"),
    ("multipart in Base64", "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data; name=\"f\"\r\nContent-Transfer-Encoding: base64\r\n\r\n\
         PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==\r\n--b--\r\n"),
    ("control xml", "application/xml", "<a>&lt;script&gt;alert(1)&lt;/script&gt;</a>"),
    ("xml, CDATA", "text/xml", "<a><![CDATA[<script>alert(1)</script>]]></a>"),
    ("xml, CDATA in pieces", "text/xml", "<a><![CDATA[<script>]]>alert(1)<![CDATA[</script>]]></a>"),
    ("xml, numeric references", "application/xml", "<a>&#60;script&#x3e;alert(1)&#60;/script&#x3e;</a>"),
    ("xml, an attribute", "application/soap+xml", "<a b='&lt;script>alert(1)&lt;/script>'/>"),
    ("xml, an entity of its own", "application/xml", "<!DOCTYPE a [<!ENTITY e '&#60;script>alert(1)&#60;/script>'>]><a>&e;</a>"),
    ("xml without an end", "application/xml", "<a>&lt;script&gt;alert(1)&lt;/script&gt;"),
    ("no type", "", r#"{"f":"<script>alert(1)</script>"}"#),
];

#[test]
fn no_form_is_silent() {
    for (name, media_type, body) in FORMS {
        let row = Row {
            family: String::new(),
            mutator: String::new(),
            class: String::new(),
            uri: "/".to_owned(),
            headers: vec![("Content-Type".to_owned(), (*media_type).to_owned())],
            body: body.as_bytes().to_vec(),
        };
        let outcome = outcome(&row, PAYLOAD.as_bytes());
        let is_control = name.starts_with("control");
        assert!(
            outcome != Outcome::Silent && (outcome == Outcome::Payload || !is_control),
            "{name}: {outcome:?}"
        );
    }
}

#[test]
fn nothing_of_the_corpora_is_silent() {
    let Some(corpora) = corpora_folder::for_test() else { return };
    let rows = rows(&corpora);
    // The payloads, as the plain JSON bodies have them.
    let is_control = |row: &&Row| row.family == "json" && row.mutator == "control";
    let payloads: BTreeMap<_, _> = rows
        .iter()
        .filter(is_control)
        .map(|row| {
            let body: serde_json::Value = serde_json::from_slice(&row.body).expect("control bodies are JSON");
            (row.class.clone(), body["field1"].as_str().expect("a string").to_owned())
        })
        .collect();
    assert_eq!(payloads.len(), 5);

    let mut counts: BTreeMap<(&str, Outcome), usize> = BTreeMap::new();
    let mut silent = BTreeMap::new();
    for row in &rows {
        let outcome = outcome(row, payloads[&row.class].as_bytes());
        *counts.entry((&row.family, outcome)).or_default() += 1;
        if row.mutator.starts_with("control") {
            assert_eq!(outcome, Outcome::Payload, "{} {} {}", row.family, row.mutator, row.class);
        }
        if outcome == Outcome::Silent {
            *silent.entry((row.family.as_str(), row.mutator.as_str())).or_insert(0) += 1;
        }
    }
    for ((family, outcome), count) in &counts {
        println!("{family:12} {count:4} {outcome:?}");
    }
    assert_eq!(rows.len(), 658, "rows run");
    let silent: Vec<_> = silent.into_keys().collect();
    let known: Vec<_> = NOT_OURS.iter().map(|(family, mutator, _)| (*family, *mutator)).collect();
    assert_eq!(silent, known, "silent forms against the known ones");
}

fn rows(corpora: &Path) -> Vec<Row> {
    let path = corpora.join("robustness/body-parsing-evasion.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let row = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect("a JSON object in each line");
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let headers = value["headers"].as_array().expect("headers");
        Row {
            family: text(&value["family"]),
            mutator: text(&value["mutator"]),
            class: text(&value["class"]),
            uri: text(&value["uri"]),
            headers: headers.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect(),
            body: base64(&text(&value["body_b64"])),
        }
    };
    text.lines().map(row).collect()
}

fn base64(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    portcullis_decode::Transformation::Base64Decode.apply(text.as_bytes(), &mut out);
    out
}
