use super::bytes::is_token;
use super::field::{split_field, value_problem};
use super::lines::Line;
use super::request::{Parsed, refusal_of};
use super::request_line::read_target;
use super::{BodyError, Compat, Limits, ResponseParser, semantics};
use crate::message::{
    BodyFraming, Field, Fields, Refusal, RequestHead, ResponseError, ResponseHead, TargetForm, Version,
};
use portcullis_types::{Span, reason_phrase};

/// A request that came by another way than an HTTP/1 byte stream: HTTP/2, a recording, a module in another
/// server.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The target; `:path` of HTTP/2.
    pub target: &'a [u8],
    /// The version.
    pub version: Version,
    /// Framing of the body, as the other protocol tells: [`BodyFraming::Chunked`] stands for a body of
    /// unknown length.
    pub framing: BodyFraming,
    /// The request asks for a WebSocket by extended CONNECT (RFC 8441). `method` and `fields` are those of
    /// the handshake that HTTP/1 has for it.
    pub websocket: bool,
    /// The header fields. `:authority` goes in front as `host`.
    pub fields: &'a [(&'a [u8], &'a [u8])],
}

/// Makes a head from parts, with the same checks that a parsed head goes through. Its bytes are those of the
/// HTTP/1 head it would have been. Never [`Parsed::NeedMore`].
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
        // Split anew: the value loses its outer blanks, and a name that holds a colon shows what it would be
        // read as.
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
        if parts.version >= Version::Http2
            && let Some(why) = not_in_http2(name.of(&bytes), field.value.of(&bytes), parts.websocket)
        {
            refuse(why);
        }
        head.fields.push(field);
    }
    bytes.extend_from_slice(b"\r\n");
    if bytes.len() > limits.head_bytes_max {
        refuse(Refusal::HeadTooLong);
    }
    head.received = bytes.len();
    head.bytes = bytes;
    // No other form can be distinguished from what an HTTP/1 upstream would make of it.
    let plain = match head.target.form {
        TargetForm::Origin => true,
        TargetForm::Asterisk => parts.method == b"OPTIONS",
        TargetForm::Absolute | TargetForm::Authority | TargetForm::Invalid => false,
    };
    if parts.version >= Version::Http2 && !plain {
        refuse(Refusal::InvalidTarget);
    }
    let settled = semantics::settle(&mut head, limits, Compat::Strict);
    match (head.framing, parts.framing) {
        // The body has another length than the head says.
        (BodyFraming::Length(said), BodyFraming::Length(is)) if said != is => {
            refuse(Refusal::InvalidContentLength);
        }
        (BodyFraming::Length(1..), BodyFraming::None) => refuse(Refusal::InvalidContentLength),
        _ => {}
    }
    head.framing = parts.framing;
    if parts.websocket {
        head.upgrade = head.fields.iter().find(|f| f.name.of(&head.bytes) == b"upgrade").map(|f| f.value);
    }
    match refusal.or(settled) {
        Some(refusal) => Parsed::Refused { partial: head, refusal },
        None => Parsed::Head(head),
    }
}

/// Makes the head of an answer that came over HTTP/2, with the checks that a parsed head goes through.
/// `ended`: it has no body. A body without a length has [`BodyFraming::Chunked`], which is how it is sent to
/// an HTTP/1 client.
pub fn assemble_response(
    status: u16,
    fields: &[(&[u8], &[u8])],
    ended: bool,
    limits: &Limits,
) -> Result<ResponseHead, ResponseError> {
    if fields.iter().any(|(name, _)| is_of_connection(name)) {
        return Err(ResponseError::InvalidHeader);
    }
    let mut head = response_of_lines(status, fields, limits)?;
    if ended {
        head.length.get_or_insert(0);
    }
    head.chunked = head.length.is_none();
    Ok(head)
}

/// The same for the answer that accepts a WebSocket asked for by extended CONNECT (RFC 8441): as HTTP/1 has
/// it, a 101 with `accept`, the digest of the client's key, which the peer did not get to see.
pub fn assemble_websocket(
    fields: &[(&[u8], &[u8])],
    accept: &[u8],
    limits: &Limits,
) -> Result<ResponseHead, ResponseError> {
    if fields.iter().any(|(name, _)| is_of_connection(name)) {
        return Err(ResponseError::InvalidHeader);
    }
    let is_ours = |name: &[u8]| matches!(name, b"content-length" | b"sec-websocket-accept");
    let mut fields: Vec<_> = fields.iter().copied().filter(|(name, _)| !is_ours(name)).collect();
    fields.extend([(&b"upgrade"[..], &b"websocket"[..]), (b"sec-websocket-accept", accept)]);
    response_of_lines(101, &fields, limits)
}

fn is_of_connection(name: &[u8]) -> bool {
    matches!(name, b"transfer-encoding" | b"connection" | b"upgrade")
}

fn response_of_lines(
    status: u16,
    fields: &[(&[u8], &[u8])],
    limits: &Limits,
) -> Result<ResponseHead, ResponseError> {
    let mut bytes = format!("HTTP/1.1 {status:03} {}\r\n", reason_phrase(status)).into_bytes();
    for (name, value) in fields {
        for part in [name, &b": "[..], value, b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    let whole = bytes.len();
    let head = ResponseParser::new(*limits).parse(&bytes)?.ok_or(ResponseError::Incomplete)?;
    // A value that ended the head early would have been two messages.
    if head.received_len() != whole || head.fields().len() != fields.len() {
        return Err(ResponseError::InvalidHeader);
    }
    let mut head = head;
    head.version = Version::Http2;
    Ok(head)
}

/// Trailers that came over HTTP/2, with the checks of those that come in chunks.
#[derive(Clone, Debug, Default)]
pub struct Trailers {
    bytes: Vec<u8>,
    fields: Vec<Field>,
}

impl Trailers {
    /// Checks and keeps them.
    pub fn assemble<'f>(
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
        limits: &Limits,
    ) -> Result<Trailers, BodyError> {
        let mut trailers = Trailers::default();
        for (name, value) in fields {
            if semantics::forbidden_trailer(name) {
                return Err(BodyError::ForbiddenTrailer);
            }
            if !is_token(name) || value_problem(value).is_some() {
                return Err(BodyError::InvalidTrailer);
            }
            let start = trailers.bytes.len();
            let name = append(&mut trailers.bytes, name);
            let value = append(&mut trailers.bytes, value);
            let line = Span::new(start, trailers.bytes.len());
            trailers.fields.push(Field { name, value, line });
            if trailers.bytes.len() > limits.trailer_bytes_max
                || trailers.fields.len() > limits.trailer_count_max
            {
                return Err(BodyError::TrailersTooLong);
            }
        }
        Ok(trailers)
    }

    /// The fields, in the order sent.
    pub fn fields(&self) -> Fields<'_> {
        Fields::new(&self.bytes, &self.fields)
    }
}

/// The reason why a field cannot be one of HTTP/2 (RFC 9113, sections 8.2.1 and 8.2.2), if it cannot. In an
/// HTTP/1 request it would change where the message ends, or what the connection is.
fn not_in_http2(name: &[u8], value: &[u8], websocket: bool) -> Option<Refusal> {
    if name.iter().any(u8::is_ascii_uppercase) {
        return Some(Refusal::UppercaseHeaderName);
    }
    match name {
        b"transfer-encoding" => Some(Refusal::InvalidTransferEncoding),
        b"connection" | b"upgrade" if websocket => None,
        b"connection" | b"keep-alive" | b"proxy-connection" | b"upgrade" | b"http2-settings" => {
            Some(Refusal::ConnectionHeader)
        }
        b"te" if !value.eq_ignore_ascii_case(b"trailers") => Some(Refusal::ConnectionHeader),
        _ => None,
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
            websocket: false,
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

    #[test]
    fn heads_of_answers() {
        let limits = Limits::default();
        let fields: Pairs<'_> = &[(b"content-length", b"3"), (b"x", b"y")];
        let head = assemble_response(200, fields, false, &limits).unwrap();
        assert_eq!((head.status(), head.framing(b"GET")), (200, BodyFraming::Length(3)));
        let framing = |ended| assemble_response(404, &[], ended, &limits).unwrap().framing(b"GET");
        assert_eq!((framing(false), framing(true)), (BodyFraming::Chunked, BodyFraming::Length(0)));
        for field in [
            (&b"transfer-encoding"[..], &b"chunked"[..]),
            (b"x", b"y\r\nset-cookie: z"),
            (b"x", b"y\r\n\r\nHTTP/1.1 200 OK"),
            (b"x: y\r\nz", b"z"),
        ] {
            assert!(assemble_response(200, &[field], false, &limits).is_err(), "{field:?}");
        }
    }

    #[test]
    fn answers_to_websockets() {
        let limits = Limits::default();
        let fields: Pairs<'_> = &[
            (b"content-length", b"0"),
            (b"sec-websocket-accept", b"theirs"),
            (b"sec-websocket-protocol", b"c"),
        ];
        let head = assemble_websocket(fields, b"ours", &limits).unwrap();
        let expected: Pairs<'_> = &[
            (b"sec-websocket-protocol", b"c"),
            (b"upgrade", b"websocket"),
            (b"sec-websocket-accept", b"ours"),
        ];
        assert_eq!((head.status(), &head.fields().collect::<Vec<_>>()[..]), (101, expected));
        assert!(assemble_websocket(&[(b"upgrade", b"h2c")], b"ours", &limits).is_err());
        assert!(assemble_websocket(&[(b"x", b"y\r\nset-cookie: z")], b"ours", &limits).is_err());
    }

    #[test]
    fn trailers() {
        let assemble = |fields: Pairs<'_>| Trailers::assemble(fields.iter().copied(), &Limits::default());
        let kept = assemble(&[(b"grpc-status", b"0"), (b"x", b"")]).unwrap();
        assert_eq!(kept.fields().collect::<Vec<_>>(), [(&b"grpc-status"[..], &b"0"[..]), (b"x", b"")]);
        assert_eq!(assemble(&[(b"content-length", b"0")]).unwrap_err(), BodyError::ForbiddenTrailer);
        assert_eq!(assemble(&[(b"a", b"b\r\nc: d")]).unwrap_err(), BodyError::InvalidTrailer);
        assert_eq!(assemble(&[(b"a b", b"")]).unwrap_err(), BodyError::InvalidTrailer);
        assert_eq!(assemble(&[(b"a", &[b'x'; 9000])]).unwrap_err(), BodyError::TrailersTooLong);
    }

    /// Heads that would be read differently once written as HTTP/1 are refused.
    #[test]
    fn nothing_that_only_http1_means() {
        let host: (&[u8], &[u8]) = (b"host", b"a");
        let refusal = |method: &str, target: &str, fields: Pairs<'_>| match assemble(method, target, fields) {
            Parsed::Refused { refusal, .. } => Some(refusal),
            _ => None,
        };
        for name in ["connection", "keep-alive", "proxy-connection", "upgrade", "http2-settings"] {
            let fields = [host, (name.as_bytes(), &b"x"[..])];
            assert_eq!(refusal("GET", "/", &fields), Some(Refusal::ConnectionHeader), "{name}");
        }
        assert_eq!(refusal("GET", "/", &[host, (b"te", b"gzip")]), Some(Refusal::ConnectionHeader));
        assert_eq!(refusal("GET", "/", &[host, (b"te", b"trailers")]), None);
        assert_eq!(refusal("GET", "/", &[host, (b"X-A", b"b")]), Some(Refusal::UppercaseHeaderName));
        for target in ["http://b/", "//b:x@", "*", "b:80", "x"] {
            let expected = (target != "//b:x@").then_some(Refusal::InvalidTarget);
            assert_eq!(refusal("GET", target, &[host]), expected, "{target}");
        }
        assert_eq!(refusal("OPTIONS", "*", &[host]), None);
        assert_eq!(refusal("GET", "/", &[host, host]), Some(Refusal::DuplicateHost));
        let length: (&[u8], &[u8]) = (b"content-length", b"5");
        assert_eq!(refusal("POST", "/", &[host, length]), Some(Refusal::InvalidContentLength));
        assert_eq!(refusal("POST", "/", &[host, length, length]), Some(Refusal::DuplicateContentLength));
        assert_eq!(refusal("POST", "/", &[host, (b"content_length", b"5")]), Some(Refusal::DisguisedFraming));
    }
}
