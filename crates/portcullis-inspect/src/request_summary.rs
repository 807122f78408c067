//! The request line as events show it. Most requests make no event, so bytes are kept and become text only
//! for those that do.

use portcullis_event::{Request, limits, text};
use portcullis_http::message::{Oddity, RequestHead};

/// Method, target, protocol and host, in one buffer that goes from exchange to exchange.
#[derive(Debug, Default)]
pub(crate) struct RequestSummary {
    bytes: Vec<u8>,
    /// The end of each part.
    ends: [usize; 4],
    head_bytes: u64,
    /// A bit for each anomaly of the head.
    oddities: u32,
}

impl RequestSummary {
    /// Nothing, in a buffer whose content does not matter.
    pub(crate) fn in_buffer(mut bytes: Vec<u8>) -> RequestSummary {
        bytes.clear();
        RequestSummary { bytes, ..RequestSummary::default() }
    }

    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn fill(&mut self, head: &RequestHead) {
        self.bytes.clear();
        self.head_bytes = head.received_len() as u64;
        self.oddities = head.oddities().iter().fold(0, |all, oddity| all | 1 << *oddity as u32);
        let parts = [head.method(), head.target(), head.version_bytes(), head.host()];
        for (end, part) in self.ends.iter_mut().zip(parts) {
            self.bytes.extend_from_slice(part);
            *end = self.bytes.len();
        }
    }

    pub(crate) fn request(&self) -> Request {
        Request {
            method: text(self.part(0), limits::REQUEST_TOKEN_BYTES_MAX),
            target: text(self.part(1), limits::REQUEST_TARGET_BYTES_MAX),
            protocol: text(self.part(2), limits::REQUEST_TOKEN_BYTES_MAX),
            head_bytes: self.head_bytes,
            oddities: self.oddities().map(Into::into).collect(),
            ..Request::default()
        }
    }

    /// The anomalies of the head, by name.
    pub(crate) fn oddities(&self) -> impl Iterator<Item = &'static str> {
        let seen = self.oddities;
        Oddity::ALL.iter().filter(move |oddity| seen >> **oddity as u32 & 1 == 1).map(|oddity| oddity.name())
    }

    pub(crate) fn method(&self) -> &[u8] {
        self.part(0)
    }

    /// The path of the target, as sent.
    pub(crate) fn path(&self) -> &[u8] {
        let target = self.part(1);
        let start = match target.first() {
            Some(b'/') => 0,
            // `http://host/path`
            _ => match target.windows(3).position(|part| part == b"://") {
                Some(scheme) => {
                    let host = scheme + 3;
                    target[host..].iter().position(|b| *b == b'/').map_or(target.len(), |slash| host + slash)
                }
                None => 0,
            },
        };
        let path = &target[start..];
        path.split(|b| matches!(b, b'?' | b'#')).next().unwrap_or_default()
    }

    pub(crate) fn host(&self) -> String {
        text(self.part(3), limits::REQUEST_TOKEN_BYTES_MAX)
    }

    fn part(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}
