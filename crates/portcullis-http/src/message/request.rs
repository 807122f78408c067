use super::{BodyFraming, ConnectionOptions, Field, Fields, Oddity, Target, TargetForm, Version};
use portcullis_types::Span;

/// A request head: the bytes as received and what they mean.
///
/// A head that came with a refusal is partial: any of its parts may be empty, and
/// [`framing`](RequestHead::framing) is not to be relied on. Rules run over it all the same.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// The received bytes, then values that had to be joined or that were changed.
    pub(crate) bytes: Vec<u8>,
    pub(crate) received: usize,
    pub(crate) fields: Vec<Field>,
    pub(crate) line: Span,
    pub(crate) method: Span,
    pub(crate) target: Target,
    pub(crate) version_text: Span,
    pub(crate) version: Version,
    pub(crate) framing: BodyFraming,
    pub(crate) connection: ConnectionOptions,
    /// False if the connection must close whatever the headers say.
    pub(crate) reusable: bool,
    pub(crate) expects_continue: bool,
    pub(crate) upgrade: Option<Span>,
    pub(crate) oddities: Vec<Oddity>,
}

impl Default for RequestHead {
    fn default() -> Self {
        RequestHead {
            bytes: Vec::new(),
            received: 0,
            fields: Vec::new(),
            line: Span::default(),
            method: Span::default(),
            target: Target::default(),
            version_text: Span::default(),
            version: Version::Other,
            framing: BodyFraming::None,
            connection: ConnectionOptions::default(),
            reusable: true,
            expects_continue: false,
            upgrade: None,
            oddities: Vec::new(),
        }
    }
}

impl RequestHead {
    /// The method as sent.
    pub fn method(&self) -> &[u8] {
        self.method.of(&self.bytes)
    }

    /// The request target as sent: REQUEST_URI_RAW.
    pub fn target(&self) -> &[u8] {
        self.target.whole.of(&self.bytes)
    }

    /// The form of the target.
    pub fn target_form(&self) -> TargetForm {
        self.target.form
    }

    /// Path and query as they go upstream and as REQUEST_URI shows them: the target without scheme and
    /// authority.
    pub fn path_and_query(&self) -> &[u8] {
        let path = self.target.path;
        let end = self.target.query.map_or(path.end, |query| query.end);
        Span { start: path.start, end }.of(&self.bytes)
    }

    /// The target's path, not decoded. Empty for `http://host` and `host:port`.
    pub fn path(&self) -> &[u8] {
        self.target.path.of(&self.bytes)
    }

    /// The query: the target after its first question mark; `None` if it has none.
    pub fn query(&self) -> Option<&[u8]> {
        self.target.query.map(|query| query.of(&self.bytes))
    }

    /// The authority in the target, for the absolute and authority forms.
    pub fn target_authority(&self) -> Option<&[u8]> {
        matches!(self.target.form, TargetForm::Absolute | TargetForm::Authority)
            .then(|| self.target.authority.of(&self.bytes))
    }

    /// The request line as sent, without its line end: REQUEST_LINE.
    pub fn line(&self) -> &[u8] {
        self.line.of(&self.bytes)
    }

    /// The protocol version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The version as written: REQUEST_PROTOCOL. `HTTP/0.9` for a simple request.
    pub fn version_bytes(&self) -> &[u8] {
        match self.version {
            Version::Http09 => Version::Http09.as_str().as_bytes(),
            Version::Http10 | Version::Http11 | Version::Http2 | Version::Http3 | Version::Other => {
                self.version_text.of(&self.bytes)
            }
        }
    }

    /// The header fields in the order sent.
    pub fn fields(&self) -> Fields<'_> {
        Fields::new(&self.bytes, &self.fields)
    }

    /// The spans of the header fields, into [`bytes`](RequestHead::bytes).
    pub fn field_spans(&self) -> &[Field] {
        &self.fields
    }

    /// Every value of the header `name` (any case), in the order sent.
    pub fn header<'h>(&'h self, name: &'h str) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        self.fields().filter(move |(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// The bytes that [`field_spans`](RequestHead::field_spans) point into: the received ones and, behind
    /// them, joined values.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The head as received, from the first byte to the end of the empty line.
    pub fn received(&self) -> &[u8] {
        &self.bytes[..self.received]
    }

    /// Number of input bytes that the head took; the body, or the next request, begins there.
    pub fn received_len(&self) -> usize {
        self.received
    }

    /// The framing of the body.
    pub fn framing(&self) -> BodyFraming {
        self.framing
    }

    /// The unusual things in the head, in no particular order, each once.
    pub fn oddities(&self) -> &[Oddity] {
        &self.oddities
    }

    /// True if the client allows another request on this connection after this one.
    pub fn keep_alive(&self) -> bool {
        self.reusable && self.connection.persistent(self.version)
    }

    /// True if the client waits for `100 Continue` before it sends the body.
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// The protocols of the `Upgrade` header, if `Connection` names it, the request is HTTP/1.1 without a
    /// body, and none of them is `h2c`: an upstream that switched to HTTP/2 would take requests that are not
    /// inspected.
    pub fn upgrade(&self) -> Option<&[u8]> {
        self.upgrade.map(|value| value.of(&self.bytes))
    }

    /// Replaces values of the header `name` (any case) by what `change` makes of them. It leaves those as
    /// they are of which it makes nothing; a field whose value becomes empty goes.
    pub fn change_header(&mut self, name: &str, mut change: impl FnMut(&[u8]) -> Option<Vec<u8>>) {
        let RequestHead { bytes, fields, .. } = self;
        fields.retain_mut(|field| {
            if !field.name.of(bytes).eq_ignore_ascii_case(name.as_bytes()) {
                return true;
            }
            let Some(value) = change(field.value.of(bytes)) else { return true };
            let start = bytes.len();
            bytes.extend_from_slice(&value);
            field.value = Span::new(start, bytes.len());
            !value.is_empty()
        });
    }

    /// The first `Host` value; empty if there is none.
    pub fn host(&self) -> &[u8] {
        self.header("host").next().unwrap_or_default()
    }

    pub(crate) fn note(&mut self, oddity: Oddity) {
        if !self.oddities.contains(&oddity) {
            self.oddities.push(oddity);
        }
    }
}
