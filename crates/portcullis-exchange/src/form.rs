//! The form of our own answers that a client can read, from what it accepts and sends.
//!
//! ```text
//! a call of gRPC > a request of S3 > Accept > Content-Type > asked on behalf of a script > a page
//! ```

use portcullis_http::message::RequestHead;
use portcullis_types::reason_phrase;

use crate::grpc;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A page for a person.
    Html,
    /// A problem document (RFC 9457) in JSON, under this media type.
    Json(&'static str),
    /// A problem document in XML, under this media type.
    Xml(&'static str),
    /// The error document of S3.
    S3,
    /// The fields of gRPC, and no body; the media type of the call.
    Grpc(&'static str),
}

const PROBLEM_JSON: &str = "application/problem+json";
const PROBLEM_XML: &str = "application/problem+xml";

impl Form {
    /// The form for the client that sent this head.
    pub fn of(head: &RequestHead) -> Form {
        if let Some(media_type) = grpc::media_type(head) {
            return Form::Grpc(media_type);
        }
        let sent = head.header("content-type").next().unwrap_or_default();
        if is_of_aws(head) {
            // Other services of AWS than S3 send JSON, under types of their own.
            return match Kind::of(sent) {
                Some(Kind::Json) => Form::Json("application/json"),
                _ => Form::S3,
            };
        }
        let accept: Vec<u8> = head.header("accept").collect::<Vec<_>>().join(&b',');
        if let Some(form) = accepted(&accept) {
            return form;
        }
        let says = |name, wanted: &[u8]| {
            head.header(name).any(|value| value.trim_ascii().eq_ignore_ascii_case(wanted))
        };
        let is_script = says("x-requested-with", b"XMLHttpRequest") || says("sec-fetch-dest", b"empty");
        match Kind::of(sent) {
            Some(Kind::Json) => Form::Json(PROBLEM_JSON),
            Some(Kind::Xml) => Form::Xml(PROBLEM_XML),
            Some(Kind::Html) | None if is_script => Form::Json(PROBLEM_JSON),
            Some(Kind::Html) | None => Form::Html,
        }
    }
}

/// Families of media types that we can answer in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Json,
    Xml,
}

impl Kind {
    /// The family of a media type, whatever its parameters.
    fn of(media_type: &[u8]) -> Option<Kind> {
        let name = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let name = name.to_ascii_lowercase();
        let (kind, subtype) = name.split_at(name.iter().position(|byte| *byte == b'/')? + 1);
        match (kind, subtype) {
            (b"text/", b"html") | (b"application/", b"xhtml+xml") => Some(Kind::Html),
            (b"application/", b"json" | b"x-amz-json-1.0" | b"x-amz-json-1.1") => Some(Kind::Json),
            (b"application/", subtype) if subtype.ends_with(b"+json") => Some(Kind::Json),
            (b"application/" | b"text/", b"xml") => Some(Kind::Xml),
            (b"application/", subtype) if subtype.ends_with(b"+xml") => Some(Kind::Xml),
            _ => None,
        }
    }
}

/// The request is signed as those to S3 and services like it are.
fn is_of_aws(head: &RequestHead) -> bool {
    let is_amz = |name: &[u8]| name.len() > 6 && name[..6].eq_ignore_ascii_case(b"x-amz-");
    let is_signed = |value: &[u8]| value.starts_with(b"AWS4-") || value.starts_with(b"AWS ");
    head.fields().any(|(name, _)| is_amz(name))
        || head.header("authorization").any(is_signed)
        || head.target().windows(16).any(|text| text == b"X-Amz-Signature=")
}

/// The form that a list of media ranges (RFC 9110, 12.5.1) names with the highest quality, or names first;
/// none if it names none of our forms. A problem document has its own type where the client names that, else
/// the general one of its syntax, which all read who name another.
fn accepted(accept: &[u8]) -> Option<Form> {
    let mut best: Option<(Kind, f32)> = None;
    let (mut takes_problem_json, mut takes_problem_xml) = (false, false);
    for range in accept.split(|byte| *byte == b',') {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let Some(kind) = Kind::of(name) else { continue };
        let weight = parts.find_map(|part| part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q=")));
        let weight =
            weight.and_then(|text| std::str::from_utf8(text).ok()?.parse::<f32>().ok()).unwrap_or(1.0);
        if weight > best.map_or(0.0, |(_, weight)| weight) {
            best = Some((kind, weight));
        }
        takes_problem_json |= weight > 0.0 && name.eq_ignore_ascii_case(PROBLEM_JSON.as_bytes());
        takes_problem_xml |= weight > 0.0 && name.eq_ignore_ascii_case(PROBLEM_XML.as_bytes());
    }
    Some(match best?.0 {
        Kind::Html => Form::Html,
        Kind::Json => Form::Json(if takes_problem_json { PROBLEM_JSON } else { "application/json" }),
        Kind::Xml => Form::Xml(if takes_problem_xml { PROBLEM_XML } else { "application/xml" }),
    })
}

/// A problem document (RFC 9457) in JSON.
pub(crate) fn json(status: u16, text: &str, request_id: &str) -> String {
    let problem = serde_json::json!({
        "type": "about:blank",
        "title": reason_phrase(status),
        "status": status,
        "detail": text,
        "request_id": request_id,
    });
    format!("{problem}\n")
}

/// The same in XML (RFC 9457, appendix B).
pub(crate) fn xml(status: u16, text: &str, request_id: &str) -> String {
    let (title, text, id) = (escaped(reason_phrase(status)), escaped(text), escaped(request_id));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<problem xmlns=\"urn:ietf:rfc:7807\"><type>about:blank</type>\
         <title>{title}</title><status>{status}</status><detail>{text}</detail><request_id>{id}</request_id>\
         </problem>\n"
    )
}

/// The error document of S3. Its codes are those of S3, as far as there is one for our status.
pub(crate) fn s3(status: u16, text: &str, request_id: &str) -> String {
    let code = match status {
        401 | 403 => "AccessDenied",
        404 => "NoSuchBucket",
        405 => "MethodNotAllowed",
        408 => "RequestTimeout",
        413 => "EntityTooLarge",
        431 => "RequestHeaderSectionTooLarge",
        429 => "SlowDown",
        502..=504 => "ServiceUnavailable",
        500.. => "InternalError",
        _ => "InvalidRequest",
    };
    let (text, id) = (escaped(text), escaped(request_id));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{text}</Message>\
         <RequestId>{id}</RequestId></Error>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser};

    use super::*;

    fn form(fields: &str) -> Form {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        match RequestParser::new(Limits::default(), Compat::Strict).parse(text.as_bytes()) {
            Parsed::Head(head) => Form::of(&head),
            _ => panic!("a head: {text}"),
        }
    }

    #[test]
    fn by_what_is_accepted_and_sent() {
        let (json, xml) = (Form::Json("application/json"), Form::Xml("application/xml"));
        let (problem, problem_xml) = (Form::Json(PROBLEM_JSON), Form::Xml(PROBLEM_XML));
        for (fields, expected) in [
            ("", Form::Html),
            ("Accept: */*\r\n", Form::Html),
            ("Accept: application/json\r\n", json),
            ("Accept: application/json, text/plain, */*\r\n", json),
            ("Accept: application/vnd.elasticsearch+json; compatible-with=8\r\n", json),
            ("Accept: application/problem+JSON;q=0.9, */*\r\n", problem),
            ("Accept: application/json, application/problem+json\r\n", problem),
            ("Accept: application/json, application/problem+json;q=0\r\n", json),
            ("Accept: text/html, application/json\r\n", Form::Html),
            ("Accept: text/html;q=0.5, application/json\r\n", json),
            ("Accept: application/json;q=0, text/html;q=0.1\r\n", Form::Html),
            ("Accept: application/json; q=nonsense\r\n", json),
            ("Accept: text/plain\r\nAccept: application/json\r\n", json),
            ("Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n", Form::Html),
            ("Accept: text/html,*/*;q=0.8\r\nContent-Type: application/json\r\n", Form::Html),
            ("Accept: application/xml\r\n", xml),
            ("Accept: application/json;q=0.5, text/xml\r\n", xml),
            ("Accept: application/problem+xml, application/xml\r\n", problem_xml),
            ("Accept: image/svg+xml, image/*\r\n", Form::Html),
            ("Accept: */*\r\nContent-Type: application/json; charset=utf-8\r\n", problem),
            ("Accept: */*\r\nContent-Type: application/jsonx\r\n", Form::Html),
            ("Accept: */*\r\nContent-Type: text/xml; charset=\"utf-8\"\r\n", problem_xml),
            ("Content-Type: application/soap+xml\r\n", problem_xml),
            ("Accept: */*\r\nSec-Fetch-Dest: empty\r\n", problem),
            ("X-Requested-With: xmlhttprequest\r\n", problem),
            ("Content-Type: application/grpc+proto\r\nAccept: text/html\r\n", Form::Grpc("application/grpc")),
            ("X-Amz-Date: 20261129T000000Z\r\n", Form::S3),
            ("Authorization: AWS4-HMAC-SHA256 Credential=a\r\nAccept: */*\r\n", Form::S3),
            ("Authorization: AWS a:b=\r\nContent-Type: text/plain\r\n", Form::S3),
            ("x-amz-content-sha256: UNSIGNED-PAYLOAD\r\nContent-Type: image/png\r\n", Form::S3),
            ("X-Amz-Date: 20261129T000000Z\r\nContent-Type: application/x-amz-json-1.0\r\n", json),
            ("X-Amz: 1\r\n", Form::Html),
        ] {
            assert_eq!(form(fields), expected, "{fields}");
        }
        let text = "PUT /bucket/key?X-Amz-Signature=0a HTTP/1.1\r\nHost: a\r\n\r\n";
        match RequestParser::new(Limits::default(), Compat::Strict).parse(text.as_bytes()) {
            Parsed::Head(head) => assert_eq!(Form::of(&head), Form::S3),
            _ => panic!("a head"),
        }
    }

    #[test]
    fn documents() {
        let problem: serde_json::Value = serde_json::from_str(&json(403, "a \"b\"", "01\"23")).unwrap();
        assert_eq!(problem["status"], 403);
        assert_eq!((&problem["detail"], &problem["request_id"]), (&"a \"b\"".into(), &"01\"23".into()));
        assert!(
            xml(403, "a < b & c", "01")
                .contains("<detail>a &lt; b &amp; c</detail><request_id>01</request_id>")
        );
        for (status, code) in [
            (403, "AccessDenied"),
            (413, "EntityTooLarge"),
            (415, "InvalidRequest"),
            (429, "SlowDown"),
            (431, "RequestHeaderSectionTooLarge"),
            (500, "InternalError"),
            (502, "ServiceUnavailable"),
        ] {
            let text = s3(status, "no", "0a");
            let expected =
                format!("<Error><Code>{code}</Code><Message>no</Message><RequestId>0a</RequestId></Error>");
            assert!(text.contains(&expected), "{text}");
        }
    }

    /// Each row of the table in docs/configuration.md is an example.
    #[test]
    fn the_manual_has_them() {
        let manual = include_str!("../../../docs/configuration.md");
        let (_, rest) = manual.split_once("| the request has | the answer is |\n|---|---|\n").unwrap();
        let rows: Vec<_> = rest.lines().take_while(|line| line.starts_with("| ")).collect();
        assert_eq!(rows.len(), 11);
        for row in rows {
            let (has, answer) = row.split_once(" | ").unwrap();
            let code = |text: &'static str| text.split('`').skip(1).step_by(2);
            let fields = code(has).filter(|text| text.contains(": ")).map(|field| format!("{field}\r\n"));
            let media_type = match form(&fields.collect::<String>()) {
                Form::Html => "text/html",
                Form::S3 => "application/xml",
                Form::Json(name) | Form::Xml(name) | Form::Grpc(name) => name,
            };
            assert_eq!(code(answer).next(), Some(media_type), "{row}");
        }
    }
}
