use super::bytes::has_control;
use super::field::{FieldProblem, continuation, is_continuation, split_field};
use super::lines::{Found, Line, Lines};
use super::semantics::{Coding, parse_length};
use super::{Limits, request};
use crate::message::{ResponseError, ResponseHead, Version};
use portcullis_types::Span;

/// Parses response heads from a growing buffer, in the manner of [`RequestParser`](super::RequestParser).
///
/// More lenient than requests are read, where one reading is left after the head has been written anew: lines
/// may end in LF, folded values are joined with a space, the same `Content-Length` may be repeated. What
/// could make two readers see different bodies is an error.
#[derive(Clone, Debug)]
pub struct ResponseParser {
    limits: Limits,
    lines: Lines,
    in_fields: bool,
    folded: bool,
    head: ResponseHead,
}

impl ResponseParser {
    /// A parser for one connection.
    pub fn new(limits: Limits) -> Self {
        ResponseParser {
            limits,
            lines: Lines::default(),
            in_fields: false,
            folded: false,
            head: ResponseHead::default(),
        }
    }

    /// Looks for a whole head at the start of `buf`; `None` if more bytes are needed. After an error the
    /// connection is of no further use.
    pub fn parse(&mut self, buf: &[u8]) -> Result<Option<ResponseHead>, ResponseError> {
        if !self.in_fields {
            let known = buf.len().min(5);
            if buf[..known] != b"HTTP/"[..known] {
                return Err(ResponseError::NotHttp);
            }
            match self.lines.next(buf, self.limits.request_line_bytes_max) {
                Found::NeedMore => return Ok(None),
                Found::TooLong => return Err(ResponseError::StatusLineTooLong),
                Found::Line(line) => read_status_line(buf, line, &mut self.head)?,
            }
            self.in_fields = true;
            self.head.fields.reserve(16);
        }
        loop {
            let left = self.limits.head_bytes_max.saturating_sub(self.lines.start);
            let line = match self.lines.next(buf, left.min(self.limits.header_bytes_max)) {
                Found::NeedMore => return Ok(None),
                Found::TooLong if left <= self.limits.header_bytes_max => {
                    return Err(ResponseError::HeadTooLong);
                }
                Found::TooLong => return Err(ResponseError::HeaderTooLong),
                Found::Line(line) => line,
            };
            if line.start == line.end {
                return self.complete(buf, line.next).map(Some);
            }
            if self.head.fields.len() == self.limits.header_count_max {
                return Err(ResponseError::TooManyHeaders);
            }
            self.read_field(buf, line)?;
        }
    }

    fn read_field(&mut self, buf: &[u8], line: Line) -> Result<(), ResponseError> {
        let (field, problem) = if is_continuation(buf, line) {
            if self.head.fields.is_empty() {
                return Err(ResponseError::InvalidHeader);
            }
            self.folded = true;
            continuation(buf, line)
        } else {
            split_field(buf, line)
        };
        match problem {
            None => self.head.fields.push(field),
            Some(FieldProblem::Control | FieldProblem::BareCarriageReturn) => {
                return Err(ResponseError::ControlByte);
            }
            Some(_) => return Err(ResponseError::InvalidHeader),
        }
        Ok(())
    }

    fn complete(&mut self, buf: &[u8], end: usize) -> Result<ResponseHead, ResponseError> {
        let parser = std::mem::replace(self, ResponseParser::new(self.limits));
        let mut head = parser.head;
        head.bytes = buf[..end].to_vec();
        head.received = end;
        if parser.folded {
            let ResponseHead { bytes, received, fields, .. } = &mut head;
            request::unfold(bytes, *received, fields);
        }
        settle(&mut head, &self.limits)?;
        Ok(head)
    }
}

fn read_status_line(buf: &[u8], line: Line, head: &mut ResponseHead) -> Result<(), ResponseError> {
    let text = &buf[line.start..line.end];
    head.line = Span::new(line.start, line.end);
    let (version, rest) = text.split_at_checked(8).ok_or(ResponseError::MalformedStatusLine)?;
    head.version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
            return Err(ResponseError::UnsupportedVersion);
        }
        _ => return Err(ResponseError::MalformedStatusLine),
    };
    let [b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', reason @ ..] = rest else {
        return Err(ResponseError::MalformedStatusLine);
    };
    head.status = [a, b, c].iter().fold(0, |n, &&digit| n * 10 + u16::from(digit - b'0'));
    match reason {
        [] => head.reason = Span::new(line.end, line.end),
        [b' ', text @ ..] if has_control(text) => return Err(ResponseError::ControlByte),
        [b' ', ..] => head.reason = Span::new(line.start + 13, line.end),
        _ => return Err(ResponseError::MalformedStatusLine),
    }
    Ok(())
}

fn settle(head: &mut ResponseHead, limits: &Limits) -> Result<(), ResponseError> {
    let mut transfer: Option<Coding> = None;
    for field in &head.fields {
        let (name, value) = (field.name.of(&head.bytes), field.value.of(&head.bytes));
        match name.len() {
            10 if name.eq_ignore_ascii_case(b"connection") => head.connection.read(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let n = parse_length(value)
                    .filter(|&n| n <= limits.content_length_max && head.length.is_none_or(|seen| seen == n));
                head.length = Some(n.ok_or(ResponseError::InvalidContentLength)?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                transfer = Some(Coding::of(transfer, value))
            }
            _ => {}
        }
    }
    match transfer {
        None => Ok(()),
        Some(_) if head.length.is_some() => Err(ResponseError::LengthAndTransferEncoding),
        Some(Coding::Chunked) if head.version == Version::Http11 => {
            head.chunked = true;
            Ok(())
        }
        Some(_) => Err(ResponseError::InvalidTransferEncoding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::BodyFraming;

    fn parse(text: &str) -> Result<Option<ResponseHead>, ResponseError> {
        ResponseParser::new(Limits::default()).parse(text.as_bytes())
    }

    #[test]
    fn framing_follows_status_method_and_headers() {
        use BodyFraming::{Chunked, Length, None as Empty, UntilClose};
        let rows = [
            ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Length(5), true),
            ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Empty, true),
            ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", Empty, true),
            ("GET", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", Empty, true),
            ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", Chunked, true),
            ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n", Length(5), true),
            ("GET", "HTTP/1.1 200\r\n\r\n", UntilClose, true),
            ("GET", "HTTP/1.1 200 OK\nConnection: x, CLOSE\n\n", UntilClose, false),
            ("GET", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", Length(0), false),
            (
                "GET",
                "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n",
                Length(0),
                true,
            ),
            ("GET", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", Empty, false),
            ("GET", "HTTP/1.1 100 Continue\r\n\r\n", Empty, true),
            ("CONNECT", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Empty, true),
        ];
        for (method, text, framing, keep_alive) in rows {
            let head = parse(text).unwrap().unwrap();
            assert_eq!(head.framing(method.as_bytes()), framing, "{text:?}");
            assert_eq!(head.keep_alive(), keep_alive, "{text:?}");
            assert_eq!(head.received_len(), text.len());
            for cut in 0..text.len() {
                let mut parser = ResponseParser::new(Limits::default());
                assert!(parser.parse(&text.as_bytes()[..cut]).unwrap().is_none(), "{text:?} at {cut}");
                assert!(parser.parse(text.as_bytes()).unwrap().is_some(), "{text:?} at {cut}");
            }
        }
    }

    #[test]
    fn bad_answers_are_named() {
        use ResponseError as E;
        let rows = [
            ("ICY 200 OK\r\n\r\n", E::NotHttp),
            ("\r\nHTTP/1.1 200 OK\r\n\r\n", E::NotHttp),
            ("HTTP/2.0 200 OK\r\n\r\n", E::UnsupportedVersion),
            ("HTTP/1.1  200 OK\r\n\r\n", E::MalformedStatusLine),
            ("HTTP/1.1 20 OK\r\n\r\n", E::MalformedStatusLine),
            ("HTTP/1.1 2000 OK\r\n\r\n", E::MalformedStatusLine),
            ("HTTP/1.1 099 OK\r\n\r\n", E::MalformedStatusLine),
            ("HTTP/1.1\r\n\r\n", E::MalformedStatusLine),
            ("HTTP/1.1 200 O\rK\r\n\r\n", E::ControlByte),
            ("HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n", E::ControlByte),
            ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", E::InvalidHeader),
            ("HTTP/1.1 200 OK\r\n A: b\r\n\r\n", E::InvalidHeader),
            ("HTTP/1.1 200 OK\r\nAb\r\n\r\n", E::InvalidHeader),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", E::InvalidContentLength),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", E::InvalidContentLength),
            ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", E::InvalidContentLength),
            ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", E::InvalidContentLength),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                E::LengthAndTransferEncoding,
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", E::InvalidTransferEncoding),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                E::InvalidTransferEncoding,
            ),
            ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", E::InvalidTransferEncoding),
        ];
        for (text, error) in rows {
            assert_eq!(parse(text).err(), Some(error), "{text:?}");
        }
    }

    #[test]
    fn folded_values_are_joined() {
        let head = parse("HTTP/1.1 200 OK\r\nA: b\r\n\tc \r\n  d\r\nE: f\r\n\r\n").unwrap().unwrap();
        let fields: Vec<_> = head.fields().collect();
        assert_eq!(fields, [(&b"A"[..], &b"b c d"[..]), (b"E", b"f")]);
    }
}
