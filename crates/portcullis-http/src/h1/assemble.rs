use super::bytes::is_token;
use super::field::{split_field, value_problem};
use super::lines::Line;
use super::request::{Parsed, refusal_of};
use super::request_line::read_target;
use super::{Compat, Limits, semantics};
use crate::message::{BodyFraming, Refusal, RequestHead, Version};
use portcullis_types::Span;

/// A request that came by another way than an HTTP/1 byte stream: HTTP/2, a recording, a module in another server.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The target; `:path` of HTTP/2.
    pub target: &'a [u8],
    /// The version.
    pub version: Version,
    /// How long the body is, as the other protocol tells: [`BodyFraming::Chunked`] stands for a body of unknown length.
    pub framing: BodyFraming,
    /// The header fields. `:authority` goes in front as `host`.
    pub fields: &'a [(&'a [u8], &'a [u8])],
}

/// Makes a head from parts, with the same checks that a parsed head goes through. Its bytes are those of the HTTP/1 head it
/// would have been. Never [`Parsed::NeedMore`].
pub fn assemble_request(parts: &RequestParts<'_>, limits: &Limits) -> Parsed {
    let mut head = RequestHead { version: parts.version, ..RequestHead::default() };
    let mut refusal: Option<Refusal> = None;
    let mut refuse = |why: Refusal| refusal = refusal.or(Some(why));

    let mut bytes = Vec::with_capacity(512);
    head.method = append(&mut bytes, parts.method);
    bytes.push(b' ');
    let target = append(&mut bytes, parts.target);
    bytes.push(b' ');
    head.version_text = append(&mut bytes, parts.version.as_str().as_bytes());
    head.line = Span::new(0, bytes.len());
    bytes.extend_from_slice(b"\r\n");
    if !is_token(parts.method) {
        refuse(Refusal::InvalidMethod);
    }
    if bytes.len() > limits.request_line_bytes_max {
        refuse(Refusal::RequestLineTooLong);
    }
    let mut why = None;
    read_target(&bytes, target, Compat::Strict, &mut head, &mut why);
    if let Some(why) = why {
        refuse(why);
    }

    for (name, value) in parts.fields {
        if head.fields.len() == limits.header_count_max {
            refuse(Refusal::TooManyHeaders);
            break;
        }
        let start = bytes.len();
        let name = append(&mut bytes, name);
        bytes.extend_from_slice(b": ");
        let value = append(&mut bytes, value);
        let end = bytes.len();
        bytes.extend_from_slice(b"\r\n");
        // Split anew: the value loses its outer blanks, and a name that holds a colon shows what it would be read as.
        let (mut field, problem) = split_field(&bytes, Line { start, end, next: end + 2, crlf: true });
        let problem = problem.or_else(|| value_problem(value.of(&bytes)));
        if let Some(problem) = problem {
            refuse(refusal_of(problem));
        }
        if field.name != name {
            field.name = name;
            refuse(Refusal::InvalidHeaderName);
        }
        if bytes.len() - start > limits.header_bytes_max {
            refuse(Refusal::HeaderTooLong);
        }
        head.fields.push(field);
    }
    bytes.extend_from_slice(b"\r\n");
    if bytes.len() > limits.head_bytes_max {
        refuse(Refusal::HeadTooLong);
    }
    head.received = bytes.len();
    head.bytes = bytes;
    if head.header("transfer-encoding").next().is_some() && parts.version >= Version::Http2 {
        refuse(Refusal::InvalidTransferEncoding);
    }
    let settled = semantics::settle(&mut head, limits, Compat::Strict);
    head.framing = parts.framing;
    match refusal.or(settled) {
        Some(refusal) => Parsed::Refused { partial: head, refusal },
        None => Parsed::Head(head),
    }
}

fn append(bytes: &mut Vec<u8>, text: &[u8]) -> Span {
    let start = bytes.len();
    bytes.extend_from_slice(text);
    Span::new(start, bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs<'a> = &'a [(&'a [u8], &'a [u8])];

    fn assemble(method: &str, target: &str, fields: Pairs<'_>) -> Parsed {
        let parts = RequestParts {
            method: method.as_bytes(),
            target: target.as_bytes(),
            version: Version::Http2,
            framing: BodyFraming::None,
            fields,
        };
        assemble_request(&parts, &Limits::default())
    }

    #[test]
    fn a_head_like_a_parsed_one() {
        let Parsed::Head(head) = assemble("GET", "/a?b", &[(b"host", b"a.example"), (b"x", b" y ")]) else {
            panic!()
        };
        assert_eq!(head.received(), b"GET /a?b HTTP/2.0\r\nhost: a.example\r\nx:  y \r\n\r\n");
        assert_eq!((head.line(), head.version_bytes()), (&b"GET /a?b HTTP/2.0"[..], &b"HTTP/2.0"[..]));
        assert_eq!(head.fields().collect::<Vec<_>>(), [(&b"host"[..], &b"a.example"[..]), (b"x", b"y")]);
        assert_eq!(head.query(), Some(&b"b"[..]));
        assert!(head.keep_alive());
    }

    #[test]
    fn the_same_checks() {
        let host: (&[u8], &[u8]) = (b"host", b"a");
        let check = |method: &str, target: &str, fields: Pairs<'_>, expected: Refusal| match assemble(
            method, target, fields,
        ) {
            Parsed::Refused { refusal, .. } => assert_eq!(refusal, expected, "{method} {target} {fields:?}"),
            other => panic!("{other:?}"),
        };
        check("G T", "/", &[host], Refusal::InvalidMethod);
        check("GET", "/ x", &[host], Refusal::SpaceInTarget);
        check("GET", "", &[host], Refusal::InvalidTarget);
        check("GET", "/\r\nX: y", &[host], Refusal::ControlInTarget);
        check("GET", "/", &[], Refusal::MissingHost);
        check("GET", "/", &[host, (b"a", b"b\r\nc: d")], Refusal::BareCarriageReturn);
        check("GET", "/", &[host, (b"a", b"b\n")], Refusal::ControlInHeader);
        check("GET", "/", &[host, (b"a:b", b"c")], Refusal::InvalidHeaderName);
        check("GET", "/", &[host, (b"", b"c")], Refusal::EmptyHeaderName);
        check("GET", "/", &[host, (b"a ", b"c")], Refusal::SpaceBeforeColon);
        check("GET", "/", &[host, (b"transfer-encoding", b"chunked")], Refusal::InvalidTransferEncoding);
    }
}
