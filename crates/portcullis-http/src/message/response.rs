use super::{BodyFraming, ConnectionOptions, Field, Fields, Version};
use portcullis_types::Span;

/// A response head: the bytes as received from the upstream and what they mean.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    pub(crate) bytes: Vec<u8>,
    pub(crate) received: usize,
    pub(crate) fields: Vec<Field>,
    pub(crate) line: Span,
    pub(crate) version: Version,
    pub(crate) status: u16,
    pub(crate) reason: Span,
    pub(crate) connection: ConnectionOptions,
    pub(crate) chunked: bool,
    pub(crate) length: Option<u64>,
}

impl Default for ResponseHead {
    fn default() -> Self {
        ResponseHead {
            bytes: Vec::new(),
            received: 0,
            fields: Vec::new(),
            line: Span::default(),
            version: Version::Http11,
            status: 0,
            reason: Span::default(),
            connection: ConnectionOptions::default(),
            chunked: false,
            length: None,
        }
    }
}

impl ResponseHead {
    /// The status code, 100 to 999.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The reason phrase as sent; may be empty.
    pub fn reason(&self) -> &[u8] {
        self.reason.of(&self.bytes)
    }

    /// The protocol version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The status line as sent, without its line end.
    pub fn line(&self) -> &[u8] {
        self.line.of(&self.bytes)
    }

    /// The header fields in the order sent.
    pub fn fields(&self) -> Fields<'_> {
        Fields::new(&self.bytes, &self.fields)
    }

    /// The spans of the header fields, into [`bytes`](ResponseHead::bytes).
    pub fn field_spans(&self) -> &[Field] {
        &self.fields
    }

    /// Every value of the header `name` (any case), in the order sent.
    pub fn header<'h>(&'h self, name: &'h str) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        self.fields().filter(move |(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// The bytes that [`field_spans`](ResponseHead::field_spans) point into.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The head as received, to the end of the empty line.
    pub fn received(&self) -> &[u8] {
        &self.bytes[..self.received]
    }

    /// Number of input bytes that the head took.
    pub fn received_len(&self) -> usize {
        self.received
    }

    /// True for 1xx answers other than 101: the final head is still to come.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }

    /// The framing of the body, for the answer to a request with `method` (RFC 9112, section 6.3).
    pub fn framing(&self, method: &[u8]) -> BodyFraming {
        let bodiless = matches!(self.status, 100..=199 | 204 | 304) || method == b"HEAD";
        let tunnel = method == b"CONNECT" && (200..300).contains(&self.status);
        match self.length {
            _ if bodiless || tunnel => BodyFraming::None,
            _ if self.chunked => BodyFraming::Chunked,
            Some(length) => BodyFraming::Length(length),
            None => BodyFraming::UntilClose,
        }
    }

    /// The value of `Content-Length`. With HEAD and 304 it describes a body that is not there.
    pub fn content_length(&self) -> Option<u64> {
        self.length
    }

    /// True if the upstream allows another request on the connection, once the body of this answer has been
    /// read. With [`BodyFraming::UntilClose`] it never does, whatever this says.
    pub fn keep_alive(&self) -> bool {
        self.status != 101 && self.connection.persistent(self.version)
    }
}

macro_rules! response_errors {
    ($($variant:ident $name:literal $text:literal,)*) => {
        /// The reason why an upstream's response head is not passed on. The client gets 502, and the upstream
        /// connection closes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum ResponseError { $(#[doc = $text] $variant,)* }

        impl ResponseError {
            /// Every error.
            pub const ALL: &'static [ResponseError] = &[$(ResponseError::$variant,)*];

            /// The name used in logs and metrics.
            pub fn name(self) -> &'static str {
                match self { $(ResponseError::$variant => $name,)* }
            }

            /// One sentence for a person.
            pub fn explanation(self) -> &'static str {
                match self { $(ResponseError::$variant => $text,)* }
            }
        }

        impl std::fmt::Display for ResponseError {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.explanation())
            }
        }

        impl std::error::Error for ResponseError {}
    };
}

response_errors! {
    NotHttp "not-http" "The answer does not begin with HTTP/.",
    MalformedStatusLine "malformed-status-line" "The status line is not version, space, three digits.",
    UnsupportedVersion "unsupported-version" "The version is neither HTTP/1.0 nor HTTP/1.1.",
    StatusLineTooLong "status-line-too-long" "The status line exceeds request_line_bytes_max.",
    HeaderTooLong "header-too-long" "One header exceeds header_bytes_max.",
    HeadTooLong "head-too-long" "The head exceeds head_bytes_max.",
    TooManyHeaders "too-many-headers" "The head has more headers than header_count_max.",
    ControlByte "control-byte" "The head holds a control byte or a CR without LF.",
    InvalidHeader "invalid-header" "A header line has no colon, or its name is not a token.",
    InvalidContentLength "invalid-content-length" "Content-Length is not a number, or not always the same one.",
    LengthAndTransferEncoding "length-and-transfer-encoding" "Content-Length and Transfer-Encoding are both present.",
    InvalidTransferEncoding "invalid-transfer-encoding" "Transfer-Encoding is not exactly chunked, or the answer is HTTP/1.0.",
    Incomplete "incomplete" "The connection ended within the head.",
}
