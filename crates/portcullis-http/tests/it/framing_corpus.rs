//! The framing corpus: ways to write `Transfer-Encoding`, `Content-Length` and chunked bodies that servers
//! read differently. Only the plain forms get through, and what gets through goes upstream in exactly one
//! form.

use crate::corpora_folder;
use crate::framing;
use portcullis_http::h1::{
    BodyDecoder, BodyError, BodyFraming, Compat, Limits, Parsed, Refusal, RequestHead, RequestParser,
    RequestRewrite, write_request,
};
use std::path::Path;

/// Rows of the file. A runner that reads none of them must not pass.
const ROWS: usize = 94;

/// The names of the rows that are accepted, by place. All others are refused.
const ACCEPTED: [(&str, &[&str]); 4] = [
    (
        "te-value",
        // Blanks around the value are no part of it. `utf8` is plain ASCII in the file.
        &[
            "plain",
            "upper",
            "mixed",
            "leading-space",
            "double-space",
            "tab",
            "trailing-space",
            "trailing-tab",
            "utf8",
        ],
    ),
    ("te-name", &["name-lower", "name-upper"]),
    ("cl", &["octal-lead", "overflow32"]),
    ("chunk-body", &["ok", "ext", "leading-zero", "trailer", "00-last", "0-ext", "upper-hex"]),
];

struct Row {
    place: String,
    name: String,
    bytes: Vec<u8>,
}

fn rows(corpora: &Path) -> Vec<Row> {
    let path = corpora.join("robustness/http1-framing-variants.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let row = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect("a JSON object in each line");
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let encoded = text("header_line_b64") + &text("body_b64");
        Row { place: text("where"), name: text("name"), bytes: base64(&encoded) }
    };
    text.lines().map(row).collect()
}

fn base64(text: &str) -> Vec<u8> {
    let (mut bits, mut count, mut out) = (0u32, 0, Vec::new());
    for b in text.bytes() {
        let digit = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = (bits << 6) | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

fn parse(bytes: &[u8]) -> Result<RequestHead, Refusal> {
    match RequestParser::new(Limits::default(), Compat::Strict).end(bytes) {
        Some(Parsed::Head(head)) => Ok(head),
        Some(Parsed::Refused { refusal, .. }) => Err(refusal),
        other => panic!("{other:?}"),
    }
}

/// Parses a request with `line` among its headers. If it is accepted, what goes upstream has one framing line
/// in its one plain form, and reads as the same framing.
fn check_head(row: &Row) -> Result<(), Refusal> {
    let mut request = b"POST / HTTP/1.1\r\nHost: a.example\r\n".to_vec();
    request.extend_from_slice(&row.bytes);
    request.extend_from_slice(b"\r\n\r\n0\r\n\r\n");
    let head = parse(&request)?;
    assert_ne!(
        head.framing(),
        BodyFraming::None,
        "{}/{}: accepted as no framing at all",
        row.place,
        row.name
    );

    let mut forwarded = Vec::new();
    write_request(
        &head,
        &RequestRewrite { framing: head.framing(), ..RequestRewrite::default() },
        &mut forwarded,
    );
    let text = String::from_utf8(forwarded).expect("nothing but ASCII is left");
    let framing_line = match head.framing() {
        BodyFraming::Length(n) => format!("Content-Length: {n}"),
        _ => "Transfer-Encoding: chunked".to_owned(),
    };
    assert_eq!(text, format!("POST / HTTP/1.1\r\nHost: a.example\r\n{framing_line}\r\n\r\n"), "{}", row.name);
    assert_eq!(parse(text.as_bytes()).map(|head| head.framing()), Ok(head.framing()), "{}", row.name);
    Ok(())
}

fn check_body(row: &Row) -> Result<(), BodyError> {
    let mut decoder = BodyDecoder::request(BodyFraming::Chunked, &Limits::default());
    let (mut rest, mut body) = (&row.bytes[..], Vec::new());
    while !rest.is_empty() && !decoder.is_done() {
        let step = decoder.decode(rest)?;
        body.extend_from_slice(step.data);
        rest = &rest[step.consumed..];
    }
    decoder.close()?;
    let expected: &[u8] = if row.name == "upper-hex" { b"hellohello" } else { b"hello" };
    assert_eq!(body, expected, "{}", row.name);
    assert!(rest.is_empty(), "{}", row.name);
    Ok(())
}

/// `accepted`: whether a row is to get through.
#[track_caller]
fn check(rows: &[Row], accepted: impl Fn(&Row) -> bool) {
    let mut wrong = Vec::new();
    for row in rows {
        let outcome = match row.place.as_str() {
            "chunk-body" => check_body(row).map_err(BodyError::name),
            _ => check_head(row).map_err(Refusal::name),
        };
        if outcome.is_ok() != accepted(row) {
            wrong.push(format!("{}/{}: {outcome:?}", row.place, row.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_plain_forms_get_through() {
    let row = |form: &framing::Form| Row {
        place: form.place.to_owned(),
        name: form.name.to_owned(),
        bytes: if form.place == "chunk-body" { form.body } else { form.line }.to_vec(),
    };
    let rows: Vec<Row> = framing::FORMS.iter().map(row).collect();
    let plain = |row: &Row| {
        framing::FORMS.iter().any(|form| (form.place, form.name) == (&row.place, &row.name) && form.plain)
    };
    check(&rows, plain);
}

#[test]
fn only_plain_forms_of_the_corpora_get_through() {
    let Some(corpora) = corpora_folder::for_test() else { return };
    let rows = rows(&corpora);
    check(&rows, |row| {
        ACCEPTED.iter().any(|(place, names)| *place == row.place && names.contains(&row.name.as_str()))
    });
    assert_eq!(rows.len(), ROWS);
}
