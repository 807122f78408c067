//! The message model: a request or response head as it was received, and what was understood of it.
//!
//! A head owns the bytes that came over the wire ("evidence") and a table of spans into them. Rules see names
//! and values in the order, case and number they were sent; what is forwarded is made from the same spans, so
//! the two cannot differ.
//!
//! ```text
//! bytes  G E T _ / x _ H T T P / 1 . 1 \r\n H o s t : _ a \r\n \r\n | values that had to be joined
//!        ^method ^target              ^line ^name    ^value        ^ received ends here
//! ```

mod oddity;
mod refusal;
mod request;
mod response;
mod target;

pub use oddity::{Oddity, OddityClass};
pub use refusal::Refusal;
pub use request::RequestHead;
pub use response::{ResponseError, ResponseHead};
pub use target::{Authority, TargetForm};
pub(crate) use target::{Target, split_target};

use portcullis_types::Span;

/// One header field: spans into the bytes of the head that owns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// The name as sent.
    pub name: Span,
    /// The value without the blanks around it. Points behind the received bytes where lines had to be joined
    /// (folded lines, headers merged under [`Compat::Apache`](crate::h1::Compat::Apache)) or were changed.
    pub value: Span,
    /// The whole line as received with its line end; all lines of a folded field.
    pub line: Span,
}

/// The framing of a body: how its end is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body.
    #[default]
    None,
    /// `Content-Length`: exactly this many bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// Everything until the peer closes. Responses only.
    UntilClose,
}

/// The protocol version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// A request line without a version.
    Http09,
    /// `HTTP/1.0`
    Http10,
    /// `HTTP/1.1`
    Http11,
    /// HTTP/2, from another codec.
    Http2,
    /// HTTP/3, from another codec.
    Http3,
    /// Anything else that was written in the version's place; see `version_bytes`.
    Other,
}

impl Version {
    /// As it is written in a request line; [`Version::Other`] gives `HTTP/?`.
    pub fn as_str(self) -> &'static str {
        match self {
            Version::Http09 => "HTTP/0.9",
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
            Version::Http3 => "HTTP/3.0",
            Version::Other => "HTTP/?",
        }
    }
}

/// The header fields of a head as (name, value), in the order sent.
#[derive(Clone, Debug, Default)]
pub struct Fields<'h> {
    bytes: &'h [u8],
    fields: std::slice::Iter<'h, Field>,
}

impl<'h> Fields<'h> {
    pub(crate) fn new(bytes: &'h [u8], fields: &'h [Field]) -> Self {
        Fields { bytes, fields: fields.iter() }
    }
}

impl<'h> Iterator for Fields<'h> {
    type Item = (&'h [u8], &'h [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.fields.next()?;
        Some((field.name.of(self.bytes), field.value.of(self.bytes)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.fields.size_hint()
    }
}

impl DoubleEndedIterator for Fields<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let field = self.fields.next_back()?;
        Some((field.name.of(self.bytes), field.value.of(self.bytes)))
    }
}

impl ExactSizeIterator for Fields<'_> {}

/// The options in the `Connection` fields of a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionOptions {
    pub close: bool,
    pub keep_alive: bool,
    pub upgrade: bool,
    /// Options beside these three: names of fields to remove.
    pub other: bool,
}

impl ConnectionOptions {
    /// Adds the options of one `Connection` value.
    pub fn read(&mut self, value: &[u8]) {
        for option in list(value) {
            match option {
                _ if option.eq_ignore_ascii_case(b"close") => self.close = true,
                _ if option.eq_ignore_ascii_case(b"keep-alive") => self.keep_alive = true,
                _ if option.eq_ignore_ascii_case(b"upgrade") => self.upgrade = true,
                _ => self.other = true,
            }
        }
    }

    /// True if a message of `version` with these options leaves the connection usable (RFC 9112, section
    /// 9.3).
    pub fn persistent(self, version: Version) -> bool {
        match version {
            Version::Http09 => false,
            Version::Http10 => self.keep_alive && !self.close,
            Version::Http11 | Version::Http2 | Version::Http3 | Version::Other => !self.close,
        }
    }
}

/// The elements of a comma-separated list, trimmed, empty ones left out.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty())
}

/// Appends `first`, `glue` and `second` behind the `received` bytes of a head and returns where the joined
/// value is.
pub(crate) fn join(bytes: &mut Vec<u8>, received: usize, first: Span, glue: &[u8], second: Span) -> Span {
    let start = if first.end as usize == bytes.len() && first.start as usize >= received {
        first.start as usize // grows in place: joining n lines stays linear
    } else {
        let start = bytes.len();
        bytes.extend_from_within(first.range());
        start
    };
    bytes.extend_from_slice(glue);
    bytes.extend_from_within(second.range());
    Span::new(start, bytes.len())
}
