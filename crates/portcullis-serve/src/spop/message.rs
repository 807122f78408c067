//! The messages of a NOTIFY frame: requests and responses, with the arguments of coraza-spoa, in any order.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use portcullis_http::h1::{
    Compat, Limits, Parsed, RequestParser, RequestParts, ResponseParser, assemble_request, assemble_response,
};
use portcullis_http::message::{BodyFraming, Refusal, RequestHead, ResponseError, ResponseHead, Version};

use super::data::{Invalid, Reader, Value};

/// A request or a response that HAProxy shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Message<'a> {
    pub(super) id: &'a [u8],
    source: Option<IpAddr>,
    source_port: u64,
    target: Option<IpAddr>,
    target_port: u64,
    method: &'a [u8],
    path: &'a [u8],
    query: Option<&'a [u8]>,
    version: &'a [u8],
    headers: &'a [u8],
    pub(super) body: &'a [u8],
    status: Option<u64>,
    /// The client of HAProxy came by TLS.
    pub(super) tls: bool,
    pub(super) wants_rule_ids: bool,
}

impl<'a> Message<'a> {
    /// The next message of a frame.
    pub(super) fn read(payload: &mut Reader<'a>) -> Result<Message<'a>, Invalid> {
        let _name = payload.string()?;
        let count = payload.byte()?;
        let mut message = Message::default();
        for _ in 0..count {
            let (name, value) = (payload.string()?, payload.value()?);
            match name {
                b"id" => message.id = value.bytes(),
                b"src-ip" => message.source = value.address(),
                b"src-port" => message.source_port = value.number().unwrap_or(0),
                b"dst-ip" => message.target = value.address(),
                b"dst-port" => message.target_port = value.number().unwrap_or(0),
                b"method" => message.method = value.bytes(),
                b"path" => message.path = value.bytes(),
                b"query" => message.query = Some(value.bytes()).filter(|query| !query.is_empty()),
                b"version" => message.version = value.bytes(),
                b"headers" => message.headers = value.bytes(),
                b"body" => message.body = value.bytes(),
                b"status" => message.status = value.number(),
                b"tls" => message.tls = value == Value::Bool(true),
                b"exportRuleIDs" => message.wants_rule_ids = value == Value::Bool(true),
                // `app` chooses among policies elsewhere; one process has one policy here.
                _ => {}
            }
        }
        Ok(message)
    }

    /// It tells of a response.
    pub(super) fn is_response(&self) -> bool {
        self.status.is_some()
    }

    pub(super) fn client(&self, peer: SocketAddr) -> SocketAddr {
        let port = u16::try_from(self.source_port).unwrap_or(0);
        self.source.map_or(peer, |address| SocketAddr::new(address, port))
    }

    pub(super) fn server(&self) -> SocketAddr {
        let address = self.target.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        SocketAddr::new(address, u16::try_from(self.target_port).unwrap_or(0))
    }

    /// The head of the request. A message without method or path tells of none.
    pub(super) fn request(&self) -> Result<Parsed, Invalid> {
        if self.method.is_empty() || self.path.is_empty() {
            return Err(Invalid);
        }
        let mut target = self.path.to_vec();
        if let Some(query) = self.query {
            target.push(b'?');
            target.extend_from_slice(query);
        }
        // HAProxy writes HTTP/2 and HTTP/3 as it forwards them: as HTTP/1.1 fields, with their version.
        let version = match self.version {
            b"1.0" => Version::Http10,
            b"2.0" | b"2" => Version::Http2,
            b"3.0" | b"3" => Version::Http3,
            _ => Version::Http11,
        };
        let Some(fields) = fields(self.headers) else {
            // A text that is no list of fields: what the parser says of it is the refusal.
            let text = [self.method, b" ", &target, b" HTTP/1.1\r\n", self.headers, b"\r\n\r\n"].concat();
            return Ok(match RequestParser::new(Limits::default(), Compat::Strict).parse(&text) {
                Parsed::Refused { partial, refusal } => Parsed::Refused { partial, refusal },
                Parsed::NeedMore | Parsed::Head(_) => {
                    Parsed::Refused { partial: RequestHead::default(), refusal: Refusal::MissingColon }
                }
            });
        };
        let framing = framing(&fields, self.body);
        let method = self.method;
        let parts =
            RequestParts { method, target: &target, version, framing, websocket: false, fields: &fields };
        Ok(assemble_request(&parts, &Limits::default()))
    }

    /// The head of the response.
    pub(super) fn response(&self) -> Result<ResponseHead, ResponseError> {
        let status = self.status.and_then(|status| u16::try_from(status).ok()).unwrap_or(0);
        let fields = fields(self.headers).ok_or(ResponseError::InvalidHeader)?;
        match assemble_response(status, &fields, false, &Limits::default()) {
            Ok(head) => Ok(head),
            // Fields of the connection, which HTTP/2 does not have.
            Err(_) => {
                let text = [format!("HTTP/1.1 {status:03} \r\n").as_bytes(), self.headers, b"\r\n"].concat();
                let head = ResponseParser::new(Limits::default()).parse(&text)?;
                head.ok_or(ResponseError::Incomplete)
            }
        }
    }

    /// Bytes of the body that were not sent, at least; none if all of it is there. `frame_bytes_max` tells
    /// for a body without a length: one that nearly fills the frame was most likely cut.
    pub(super) fn missing(&self, length: Option<u64>, frame_bytes_max: u32) -> Option<u64> {
        let shown = self.body.len() as u64;
        match length {
            Some(length) => length.checked_sub(shown).filter(|missing| *missing > 0),
            None => {
                let all = shown + (self.headers.len() + self.path.len()) as u64;
                (shown > 0 && all > u64::from(frame_bytes_max) / 4 * 3).then_some(1)
            }
        }
    }
}

/// A field: name and value.
type Field<'a> = (&'a [u8], &'a [u8]);

/// The fields of a text as `req.hdrs` gives it; none if it is no such text.
fn fields(text: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        fields.push((&line[..colon], line[colon + 1..].trim_ascii()));
    }
    Some(fields)
}

/// The framing of a request's body.
fn framing(fields: &[Field<'_>], body: &[u8]) -> BodyFraming {
    let value = |name: &[u8]| {
        let found = fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value)
    };
    let length = value(b"content-length").and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    match length {
        Some(length) => BodyFraming::Length(length),
        None if value(b"transfer-encoding").is_some() || !body.is_empty() => BodyFraming::Chunked,
        None => BodyFraming::None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::{write_string, write_text};
    use super::*;

    fn message(arguments: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        write_string(b"coraza-req", &mut out);
        out.push(arguments.len() as u8);
        for (name, value) in arguments {
            write_string(name.as_bytes(), &mut out);
            write_text(value.as_bytes(), &mut out);
        }
        out
    }

    #[test]
    fn a_request() {
        let headers = "host: a.example\r\ncontent-length: 5\r\n\r\n";
        let arguments =
            [("method", "POST"), ("path", "/a"), ("query", "b=c"), ("headers", headers), ("body", "xy")];
        let bytes = message(&arguments);
        let message = Message::read(&mut Reader(&bytes)).unwrap();
        let Parsed::Head(head) = message.request().unwrap() else { panic!("a head") };
        assert_eq!((head.line(), head.framing()), (&b"POST /a?b=c HTTP/1.1"[..], BodyFraming::Length(5)));
        assert_eq!(message.missing(Some(5), 16380), Some(3));
        assert_eq!(message.missing(Some(2), 16380), None);
        assert_eq!(message.missing(None, 16380), None);
    }

    #[test]
    fn texts_that_are_no_headers_are_refused() {
        for headers in ["no colon\r\n", "host: a\r\nx: y\rz: 1\r\n", "host: a\r\n: b\r\n"] {
            let bytes = message(&[("method", "GET"), ("path", "/"), ("headers", headers)]);
            let message = Message::read(&mut Reader(&bytes)).unwrap();
            assert!(matches!(message.request(), Ok(Parsed::Refused { .. })), "{headers:?}");
        }
        let bytes = message(&[("path", "/")]);
        assert!(Message::read(&mut Reader(&bytes)).unwrap().request().is_err());
        // More arguments are announced than there are.
        let mut bytes = message(&[("path", "/")]);
        bytes[11] = 200;
        assert!(Message::read(&mut Reader(&bytes)).is_err());
    }
}
