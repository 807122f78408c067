use super::hop::{Named, is_framing, is_hop_by_hop};
use portcullis_types::{Decimal, reason_phrase};

use super::semantics::reads_as;
use super::write::{FieldWriter, write_framing};
use crate::message::{BodyFraming, ResponseHead, Version};

/// A response's statement about the client's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientConnection {
    /// Nothing: an HTTP/1.1 client takes it as open.
    #[default]
    Open,
    /// `Connection: keep-alive`, which HTTP/1.0 clients need to keep it.
    KeepAlive,
    /// `Connection: close`
    Close,
    /// `Connection: upgrade` and the upstream's `Upgrade`, with 101.
    Upgrade,
}

impl ClientConnection {
    /// For a client that speaks `version`, if the connection is to stay open or not.
    pub fn of(version: Version, open: bool) -> Self {
        match version {
            _ if !open => ClientConnection::Close,
            Version::Http10 => ClientConnection::KeepAlive,
            Version::Http09 | Version::Http11 | Version::Http2 | Version::Http3 | Version::Other => {
                ClientConnection::Open
            }
        }
    }
}

/// The changes to a response on its way to the client. Anything not named here is sent as received.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseRewrite<'a> {
    /// Framing of the body as sent. With [`BodyFraming::UntilClose`] the head says `Connection: close`.
    pub framing: BodyFraming,
    /// Pass the received `Content-Length` on although no body follows, as answers to HEAD and 304 may have
    /// it. A 204 never has it (RFC 9110, section 8.6).
    pub describes_length: bool,
    /// The statement about the connection.
    pub connection: ClientConnection,
    /// Fields to add at the end, each replacing those of the same name.
    pub set: &'a [(&'a str, &'a [u8])],
    /// Fields to add at the end, beside those of the same name.
    pub add: &'a [(&'a str, &'a [u8])],
    /// Names of fields to drop, in lower case.
    pub remove: &'a [&'a str],
}

/// Returns the framing for a client that speaks `version`, for a body received as `received`: HTTP/1.0 knows
/// no chunks.
pub fn client_framing(received: BodyFraming, version: Version) -> BodyFraming {
    match received {
        BodyFraming::Chunked if version < Version::Http11 => BodyFraming::UntilClose,
        BodyFraming::UntilClose if version >= Version::Http11 => BodyFraming::Chunked,
        same @ (BodyFraming::None
        | BodyFraming::Length(_)
        | BodyFraming::Chunked
        | BodyFraming::UntilClose) => same,
    }
}

/// Appends the head as it goes to the client to `out`.
pub fn write_response(head: &ResponseHead, how: &ResponseRewrite<'_>, out: &mut Vec<u8>) {
    out.reserve(head.received_len() + 128);
    write_status_line(head.status(), head.reason(), out);
    let mut fields = FieldWriter::new(out);
    let framing = match how.framing {
        BodyFraming::None if how.describes_length && head.status() != 204 => {
            head.content_length().map_or(BodyFraming::None, BodyFraming::Length)
        }
        framing @ (BodyFraming::None
        | BodyFraming::Length(_)
        | BodyFraming::Chunked
        | BodyFraming::UntilClose) => framing,
    };
    let named = if head.connection.other { Named::of(head.fields()) } else { Named::default() };
    let mut framing_written = false;
    for field in head.field_spans() {
        let name = field.name.of(head.bytes());
        if is_framing(name) {
            if !framing_written {
                framing_written = true;
                write_framing(framing, &mut fields);
            }
            continue;
        }
        let dropped = is_hop_by_hop(name)
            || named.contains(name)
            || how.remove.iter().any(|other| reads_as(name, other.as_bytes()))
            || how.set.iter().any(|(other, _)| name.eq_ignore_ascii_case(other.as_bytes()));
        if !dropped {
            fields.received(head.bytes(), field);
        }
    }
    if !framing_written {
        write_framing(framing, &mut fields);
    }
    for (name, value) in how.set.iter().chain(how.add) {
        fields.field(name.as_bytes(), value);
    }
    match how.connection {
        ClientConnection::Upgrade => {
            fields.list(b"Upgrade", head.header("upgrade"));
            fields.field(b"Connection", b"upgrade");
        }
        ClientConnection::Close => fields.field(b"Connection", b"close"),
        _ if framing == BodyFraming::UntilClose => fields.field(b"Connection", b"close"),
        ClientConnection::KeepAlive => fields.field(b"Connection", b"keep-alive"),
        ClientConnection::Open => {}
    }
    fields.end();
}

/// Statuses have three digits.
fn write_status_line(status: u16, reason: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(&Decimal::unsigned(status.into()));
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

/// Appends an answer of our own with a whole `body`. With `head_only` (an answer to HEAD) the body is
/// described, not sent.
pub fn write_answer(
    status: u16,
    fields: &[(&str, &[u8])],
    body: &[u8],
    connection: ClientConnection,
    head_only: bool,
    out: &mut Vec<u8>,
) {
    write_status_line(status, reason_phrase(status).as_bytes(), out);
    let mut writer = FieldWriter::new(out);
    for (name, value) in fields {
        writer.field(name.as_bytes(), value);
    }
    let bodiless = matches!(status, 100..=199 | 204 | 304);
    if !bodiless {
        writer.number(b"Content-Length", body.len() as u64);
    }
    match connection {
        ClientConnection::Close => writer.field(b"Connection", b"close"),
        ClientConnection::KeepAlive => writer.field(b"Connection", b"keep-alive"),
        ClientConnection::Open | ClientConnection::Upgrade => {}
    }
    writer.end();
    if !bodiless && !head_only {
        out.extend_from_slice(body);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, ResponseParser};
    use super::*;

    fn check(input: &str, how: ResponseRewrite<'_>, expected: &str) {
        let head = ResponseParser::new(Limits::default()).parse(input.as_bytes()).unwrap().unwrap();
        let mut out = Vec::new();
        write_response(&head, &how, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{input:?}");
    }

    #[test]
    fn heads() {
        let how = ResponseRewrite { framing: BodyFraming::Length(3), ..ResponseRewrite::default() };
        check(
            "HTTP/1.0 404 No such thing\nServer: x\ncontent-length: 3\nConnection: close, X-Y\nX-Y: z\nA:  b \n\n",
            how,
            "HTTP/1.1 404 No such thing\r\nServer: x\r\nContent-Length: 3\r\nA: b\r\n\r\n",
        );
        let how = ResponseRewrite { framing: BodyFraming::UntilClose, ..ResponseRewrite::default() };
        check("HTTP/1.1 200\r\n\r\n", how, "HTTP/1.1 200 \r\nConnection: close\r\n\r\n");
        let how = ResponseRewrite { describes_length: true, ..ResponseRewrite::default() };
        check(
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
            how,
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
        );
        check("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", how, "HTTP/1.1 204 No Content\r\n\r\n");
        let how = ResponseRewrite { connection: ClientConnection::Upgrade, ..ResponseRewrite::default() };
        check(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: k\r\n\r\n",
            how,
            "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: k\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        );
    }

    #[test]
    fn answers() {
        let mut out = Vec::new();
        write_answer(403, &[("X", b"y")], b"no", ClientConnection::Close, false, &mut out);
        let text = "HTTP/1.1 403 Forbidden\r\nX: y\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
        assert_eq!(String::from_utf8_lossy(&out), text);
    }

    #[test]
    fn framing_for_clients() {
        use BodyFraming::{Chunked, Length, UntilClose};
        assert_eq!(client_framing(Chunked, Version::Http10), UntilClose);
        assert_eq!(client_framing(UntilClose, Version::Http11), Chunked);
        assert_eq!(client_framing(Length(1), Version::Http10), Length(1));
    }
}
