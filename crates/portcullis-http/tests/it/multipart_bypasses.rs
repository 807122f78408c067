//! Multipart bodies that are known to pass firewalls, one small case each: nothing about any of them is
//! silent.
//!
//! A case is what the parser must come to: the payload is seen, or the body is refused (an error or a
//! strictness flag), or it is flagged as ambiguous. The groups are those of published bypasses of firewalls
//! in front of PHP, Java, .NET, Node, Go and Python; RFC numbers are those of the rule that such readers
//! bend.

use portcullis_http::body::content_type::Processor;
use portcullis_http::body::{Ambiguity, Arg, BodyParser, BodySink, Options};

const PAYLOAD: &str = "<script>";
const TYPE: &str = "multipart/form-data; boundary=B";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// The payload is among the values, names or file contents.
    Payload,
    /// An error or a strictness flag.
    Refused,
    Flagged(Ambiguity),
    Silent,
}
use Seen::{Flagged, Payload, Refused};

#[derive(Default)]
struct Everything(Vec<Vec<u8>>);

impl BodySink for Everything {
    fn arg(&mut self, arg: Arg<'_>) {
        self.0.extend([arg.name.to_vec(), arg.value.to_vec()]);
    }
    fn file_begin(&mut self, field: &[u8], filename: &[u8]) {
        self.0.extend([field.to_vec(), filename.to_vec()]);
    }
    fn arg_reading(&mut self, _: &[u8], value: &[u8]) {
        self.0.push(value.to_vec());
    }
}

fn read(content_type: &str, body: &str) -> Seen {
    let options = Options { second_readings: true, ..Options::default() };
    let mut sink = Everything::default();
    let mut parser = BodyParser::new(Processor::Multipart, content_type.as_bytes(), &options);
    parser.feed(body.as_bytes(), &mut sink);
    let report = parser.finish(&mut sink);
    let refused = report.error.is_some() || report.multipart.strict_error();
    let has_payload = |value: &Vec<u8>| String::from_utf8_lossy(value).contains(PAYLOAD);
    match report.ambiguities.iter().next() {
        _ if refused => Seen::Refused,
        Some(ambiguity) => Seen::Flagged(ambiguity),
        None if sink.0.iter().any(has_payload) => Seen::Payload,
        None => Seen::Silent,
    }
}

#[track_caller]
fn check(content_type: &str, body: &str, want: Seen) {
    assert_eq!(read(content_type, body), want, "{content_type}\n{body}");
}

/// A body of one part with these headers.
fn part(headers: &str) -> String {
    format!("--B\r\n{headers}\r\n\r\n{PAYLOAD}\r\n--B--\r\n")
}

fn field(parameters: &str) -> String {
    part(&format!("Content-Disposition: form-data{parameters}"))
}

#[test]
fn the_plain_form() {
    check(TYPE, &field("; name=\"a\""), Payload);
}

// 1. The boundary: RFC 2046 5.1.1, RFC 2231.
#[test]
fn boundary_parameters() {
    let body = field("; name=\"a\"");
    for content_type in [
        "multipart/form-data; boundary=A; boundary=B",
        "multipart/form-data; boundary=B; boundary=A",
        "multipart/form-data; boundary=A; BOUNDARY=B",
        "multipart/form-data; boundary*=us-ascii''B",
        "multipart/form-data; boundary*0=B",
        "multipart/form-data; boundary*0=\"\"; boundary*1=B",
        "multipart/form-data; boundary=A; boundary*0=B; boundary*1=",
        "multipart/form-data; x=\"; boundary=A\"; boundary=B",
        "multipart/form-data; boundary=\"B",
        "multipart/form-data; boundary=\"B\"x",
        "multipart/form-data; boundary=\"B\"",
        "multipart/form-data; boundary =B",
        "multipart/form-data, boundary=B",
        "multipart/form-data boundary=B",
        "multipart/form-data; boundary=B,A",
        "multipart/form-data; boundary=B A",
        "multipart/form-data; boundary=",
        "multipart/form-data",
        "multipart/form-data; BOUNDARY=B",
        "multipart/mixed; boundary=B",
    ] {
        check(content_type, &body, Refused);
    }
    check("Multipart/Form-Data; boundary=B", &body, Payload);
}

// 2. Boundary lines: RFC 2046 5.1.1.
#[test]
fn boundary_lines() {
    let content = format!("\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{PAYLOAD}\r\n");
    check(TYPE, &format!("--B {content}--B--\r\n"), Refused);
    check(TYPE, &format!("--B\t{content}--B--\r\n"), Refused);
    check(TYPE, &format!("-- B{content}--B--\r\n"), Refused);
    check(TYPE, &format!("--Bx{content}--B--\r\n"), Refused);
    check(TYPE, &format!("\r\n--B{content}--B--\r\n"), Refused);
    check(TYPE, &format!("--b{content}--b--\r\n"), Refused);
}

// 3. The begin and end of the body: preamble, epilogue, a missing end.
#[test]
fn preamble_epilogue_and_end() {
    let body = field("; name=\"a\"");
    check(TYPE, &format!("x{body}"), Refused);
    check(TYPE, &format!("{body}{body}"), Refused);
    check(TYPE, &format!("{body}x"), Refused);
    check(TYPE, body.trim_end_matches("--\r\n"), Refused);
    check(TYPE, body.trim_end_matches("\r\n--B--\r\n"), Refused);
    check(TYPE, "", Seen::Silent);
    check(TYPE, "--B--\r\n", Seen::Silent);
    // The end mark, and parts behind it that lenient readers take.
    let hidden = "--B\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n1\r\n--B--\r\n";
    check(TYPE, &format!("{hidden}{body}"), Refused);
}

// 4. Line ends.
#[test]
fn line_ends() {
    let body = field("; name=\"a\"");
    check(TYPE, &body.replace("\r\n", "\n"), Refused);
    check(TYPE, &body.replace("\r\n", "\r"), Refused);
    check(TYPE, &body.replacen("\r\n", "\n", 1), Refused);
    check(TYPE, &body.replacen("form-data;", "form-data;\r", 1), Refused);
    let part = part("X: a\rb\r\nContent-Disposition: form-data; name=\"a\"");
    check(TYPE, &part, Flagged(Ambiguity::LoneCarriageReturn));
}

// 5. NUL and other bytes in headers.
#[test]
fn control_bytes_in_headers() {
    check(TYPE, &field("; name=\"a\0b\""), Refused);
    check(TYPE, &field("\0; name=\"a\""), Refused);
    check(TYPE, &part("\0Content-Disposition: form-data; name=\"a\""), Refused);
}

// 6. Folding: RFC 5322 2.2.3.
#[test]
fn folded_headers() {
    check(TYPE, &field(";\r\n name=\"a\""), Refused);
    check(TYPE, &field(";\r\n\tname=\"a\""), Refused);
    check(TYPE, &field(";\r\n\x0bname=\"a\""), Refused);
    check(TYPE, &part(" Content-Disposition: form-data; name=\"a\""), Refused);
}

// 7. Header lines: no colon, space before it, twice, none at all.
#[test]
fn header_lines() {
    check(TYPE, &part("Content-Disposition form-data; name=\"a\""), Refused);
    check(TYPE, &part("Content-Disposition : form-data; name=\"a\""), Refused);
    check(TYPE, &part(": form-data; name=\"a\""), Refused);
    check(TYPE, &part("X: y"), Refused);
    check(
        TYPE,
        &part("Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"b\""),
        Refused,
    );
    check(TYPE, &format!("--B\r\n\r\n{PAYLOAD}\r\n--B--\r\n"), Refused);
    check(TYPE, &part("content-disposition:form-data; name=a"), Payload);
}

// 8. The disposition: RFC 7578 4.2.
#[test]
fn dispositions() {
    check(TYPE, &part("Content-Disposition: attachment; name=\"a\""), Refused);
    check(TYPE, &part("Content-Disposition: ; name=\"a\""), Refused);
    check(TYPE, &part("Content-Disposition: name=\"a\""), Refused);
    check(TYPE, &part("Content-Disposition: form-datax; name=\"a\""), Refused);
    check(TYPE, &field(""), Refused);
    check(TYPE, &field("; name"), Refused);
    check(TYPE, &field("; x=y; name=\"a\""), Refused);
}

// 9. Names and file names: twice, extended (RFC 5987), encoded (RFC 2047), quotes.
#[test]
fn names_and_file_names() {
    check(TYPE, &field("; name=\"a\"; name=\"b\""), Refused);
    check(TYPE, &field("; name=\"a\"; filename=\"x\"; filename=\"y\""), Refused);
    check(TYPE, &field("; name=\"a\"; filename*=utf-8''x.jpg"), Refused);
    check(TYPE, &field("; name=\"a\"; filename*0=x; filename*1=.jpg"), Refused);
    check(TYPE, &field("; name*=utf-8''a"), Refused);
    check(TYPE, &field("; name*0=a"), Refused);
    check(TYPE, &field("; name='a'"), Refused);
    check(TYPE, &field("; name=\"a"), Refused);
    check(TYPE, &field("; name=\"a\";filename =\"x\""), Refused);
    check(TYPE, &field("; name=\"a\\\"; filename=\\\"x\""), Flagged(Ambiguity::NameEscape));
    // What looks like a file to a simple reader and like a field to a strict one, and the reverse.
    check(TYPE, &field("; name=\"a; filename=x\""), Payload);
    check(TYPE, &field("; name=\"<script>\"; filename=\"x\""), Payload);
    check(TYPE, &field("; name=\"a\"; filename=\"<script>\""), Payload);
    check(TYPE, &field("; name=\"=?utf-8?B?PHNjcmlwdD4=?=\""), Payload);
}

// 10. A file that is none: Go takes an empty file name for a field.
#[test]
fn empty_file_names() {
    check(TYPE, &field("; name=\"a\"; filename=\"\""), Payload);
    check(TYPE, &field("; name=\"a\"; filename="), Refused);
}

// 11. The content's encoding: RFC 7578 4.7, 4.6, 5.1.2.
#[test]
fn encodings_of_the_content() {
    let with = |header: &str| part(&format!("Content-Disposition: form-data; name=\"a\"\r\n{header}"));
    for encoding in ["base64", "quoted-printable", "BASE64", "x-uuencode", "\"base64\""] {
        check(
            TYPE,
            &with(&format!("Content-Transfer-Encoding: {encoding}")),
            Flagged(Ambiguity::TransferEncoding),
        );
    }
    for encoding in ["7bit", "8bit", "binary", "Binary"] {
        check(TYPE, &with(&format!("Content-Transfer-Encoding: {encoding}")), Payload);
    }
    for charset in ["x-unknown", "utf-8; charset=utf-7"] {
        let part = with(&format!("Content-Type: text/plain; charset={charset}"));
        check(TYPE, &part, Flagged(Ambiguity::PartCharset));
    }
    // The bytes as they are, and what they are in their character set.
    for charset in ["utf-8", "iso-8859-1", "shift_jis", "\"UTF-8\"", "utf-7", "ibm037", "utf-16le", "utf-32"]
    {
        check(TYPE, &with(&format!("Content-Type: text/plain; charset={charset}")), Payload);
    }
    let utf_7 = |body: String| body.replace('<', "+ADw-").replace('>', "+AD4-");
    check(TYPE, &utf_7(with("Content-Type: text/plain; charset=utf-7")), Payload);
    let declared = |charset: &str| {
        let field = field("; name=\"a\"");
        format!("--B\r\nContent-Disposition: form-data; name=\"_charset_\"\r\n\r\n{charset}\r\n{field}")
    };
    check(TYPE, &utf_7(declared("utf-7")), Payload);
    check(TYPE, &declared("x-unknown"), Flagged(Ambiguity::PartCharset));
}

// 12. Nesting: RFC 7578 4.3.
#[test]
fn nested_bodies() {
    let nested = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Type: multipart/mixed; boundary=C\r\n\r\n\
                  --C\r\nContent-Disposition: file; filename=\"x\"\r\n\r\n<script>\r\n--C--\r\n\r\n--B--\r\n";
    check(TYPE, nested, Flagged(Ambiguity::NestedMultipart));
}

// 13. Numbers.
#[test]
fn thousands_of_parts() {
    let one = "--B\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n1\r\n";
    check(TYPE, &format!("{}{}", one.repeat(999), field("; name=\"a\"")), Payload);
    check(TYPE, &format!("{}{}", one.repeat(1_000), field("; name=\"a\"")), Refused);
    check(TYPE, &format!("{}{}", one.repeat(5_000), field("; name=\"a\"")), Refused);
    let headers = "X-A: b\r\n".repeat(100);
    check(TYPE, &part(&format!("{headers}Content-Disposition: form-data; name=\"a\"")), Refused);
    let long = "x".repeat(10_000);
    check(TYPE, &field(&format!("; name=\"{long}\"")), Refused);
}
