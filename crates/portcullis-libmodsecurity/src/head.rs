//! Heads of messages, collected field by field as a server hands them over.

use portcullis_http::h1::{
    BodyFraming, Limits, Parsed, RequestHead, RequestParts, ResponseHead, Version, assemble_request,
    shown_response,
};

/// Bytes of the fields of a head. Servers take less; what would be more is refused, since rules would not see
/// it.
const BYTES_MAX: usize = 4 << 20;
/// Fields of a head.
const COUNT_MAX: usize = 16_384;

/// The fields of a head.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    bytes: Vec<u8>,
    /// Where a name ends, and where its value does.
    ends: Vec<(usize, usize)>,
    is_over: bool,
}

impl Fields {
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        if self.ends.len() >= COUNT_MAX || self.bytes.len() + name.len() + value.len() > BYTES_MAX {
            self.is_over = true;
            return;
        }
        self.bytes.extend_from_slice(name);
        let name_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((name_end, self.bytes.len()));
    }

    /// There were more than are kept.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// They say that a body follows.
    pub(crate) fn announce_body(&self) -> bool {
        self.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case(b"transfer-encoding")
                || name.eq_ignore_ascii_case(b"content-length") && value.trim_ascii() != b"0"
        })
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        starts
            .zip(&self.ends)
            .map(|(start, (middle, end))| (&self.bytes[start..*middle], &self.bytes[*middle..*end]))
    }
}

/// The head of a request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) version: Version,
    pub(crate) fields: Fields,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            method: Vec::new(),
            target: Vec::new(),
            version: Version::Http11,
            fields: Fields::default(),
        }
    }
}

impl Request {
    /// As rules see it. That a head would be refused by our own server does not matter here: the server that
    /// took it decides that, and all of it is shown.
    pub(crate) fn head(&self) -> RequestHead {
        let fields: Vec<(&[u8], &[u8])> = self.fields.iter().collect();
        let parts = RequestParts {
            method: &self.method,
            target: &self.target,
            version: self.version,
            framing: BodyFraming::Chunked,
            websocket: false,
            fields: &fields,
        };
        let limits = Limits {
            request_line_bytes_max: usize::MAX,
            header_bytes_max: usize::MAX,
            head_bytes_max: usize::MAX,
            header_count_max: usize::MAX,
            ..Limits::default()
        };
        match assemble_request(&parts, &limits) {
            Parsed::Head(head) | Parsed::Refused { partial: head, .. } => head,
            Parsed::NeedMore => RequestHead::default(),
        }
    }

    /// The path, decoded, for log lines.
    pub(crate) fn path(&self) -> String {
        let path = self.target.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
        String::from_utf8_lossy(&decoded(path)).into_owned()
    }
}

/// The head of a response.
pub(crate) fn response(status: u16, protocol: &[u8], fields: &Fields) -> ResponseHead {
    // The module of nginx says "HTTP 1.1".
    let version = version(protocol.get(5..).unwrap_or_default());
    shown_response(version, status, fields.iter())
}

/// From `1.1`, `2.0` and the like.
pub(crate) fn version(text: &[u8]) -> Version {
    match text {
        b"0.9" => Version::Http09,
        b"1.0" => Version::Http10,
        b"1.1" => Version::Http11,
        b"2" | b"2.0" => Version::Http2,
        b"3" | b"3.0" => Version::Http3,
        _ => Version::Other,
    }
}

fn decoded(path: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(&byte) = path.get(at) {
        match (byte, digit(path.get(at + 1)), digit(path.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_shown_whatever_it_is() {
        let mut request =
            Request { method: b"GET".to_vec(), target: b"/a%20b?c".to_vec(), ..Request::default() };
        let fields: [(&[u8], &[u8]); 5] =
            [(b"A", b"1"), (b"a b", b"2"), (b"", b""), (b"X:Y", b"z"), (b"Transfer-Encoding", b"x")];
        for (name, value) in fields {
            request.fields.add(name, value);
        }
        let head = request.head();
        let mut shown: Vec<_> = head.fields().collect();
        // The value also shows what the name would be read as behind its first colon.
        assert_eq!(std::mem::replace(&mut shown[3], fields[3]), (&b"X:Y"[..], &b"Y: z"[..]));
        assert_eq!(shown, fields);
        assert_eq!((head.line(), request.path().as_str()), (&b"GET /a%20b?c HTTP/1.1"[..], "/a b"));
    }

    #[test]
    fn more_than_there_is_room_for_is_told() {
        let mut fields = Fields::default();
        for _ in 0..COUNT_MAX {
            fields.add(b"a", b"b");
        }
        assert!(!fields.is_over());
        fields.add(b"a", b"b");
        assert!(fields.is_over() && fields.iter().count() == COUNT_MAX);
        let mut fields = Fields::default();
        fields.add(b"a", &vec![0; BYTES_MAX]);
        assert!(fields.is_over());
    }
}
