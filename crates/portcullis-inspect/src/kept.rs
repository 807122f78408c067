//! The request that is kept with an event, for people to look at and for replays.

use portcullis_engine::{Class, HeadParts};
use portcullis_event::{KeptRequest, RawRequest, Redactor};
use portcullis_types::Variable;

use crate::exchange::Outcome;
use crate::inspection::Inspection;

/// The beginning of a request's body, content codings undone.
#[derive(Debug, Default)]
pub(crate) struct KeptBody {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// Bytes that were shown.
    seen: u64,
}

impl KeptBody {
    /// The parts of a request's head that are kept with its body.
    pub(crate) const HEAD_PARTS: HeadParts = HeadParts::LINE.with(HeadParts::FIELDS);

    /// Nothing yet, and at most so many bytes, in a buffer whose content does not matter.
    pub(crate) fn in_buffer(mut bytes: Vec<u8>, bytes_max: usize) -> KeptBody {
        bytes.clear();
        KeptBody { bytes, bytes_max, seen: 0 }
    }

    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    pub(crate) fn take(&mut self, data: &[u8]) {
        self.seen += data.len() as u64;
        let room = self.bytes_max - self.bytes.len();
        self.bytes.extend_from_slice(&data[..data.len().min(room)]);
    }
}

impl Inspection {
    /// The request without its secrets; none if it is not to be kept.
    pub(crate) fn kept_request(&self, outcome: &Outcome) -> Option<Box<KeptRequest>> {
        if self.kept_body.bytes_max == 0 {
            return None;
        }
        // What cannot be decoded could hide secrets in its coding.
        let is_readable = self.request_coded.error().is_none();
        let body = if is_readable { &self.kept_body.bytes[..] } else { b"" };
        let all = match self.request_coded.is_coded() && is_readable {
            true => self.kept_body.seen,
            false => outcome.request_body_bytes.max(self.kept_body.seen),
        };
        let transaction = &self.transaction;
        let request = RawRequest {
            line: transaction.scalar_text(Variable::RequestLine).unwrap_or_default(),
            fields: transaction.values_of(Class::RequestHeaders).collect(),
            body,
            omitted: all - body.len() as u64,
        };
        let hidden = self.hidden();
        let by_rules = hidden.as_ref().map(|hidden| Redactor::new(&hidden.names));
        let redactors: Vec<&Redactor> = [&*self.inspector.redactor].into_iter().chain(&by_rules).collect();
        let secrets = hidden.as_ref().map_or(&[][..], |hidden| &hidden.values);
        Some(Box::new(KeptRequest::new(&request, &redactors, secrets)))
    }
}
