//! An event on its way to the store, with the request that is kept of it.

use std::sync::Arc;

use portcullis_event::{Event, KeptRequest};
use portcullis_log::Weigh;

use crate::codec::{Damaged, Reader, put_bytes, put_u64};

/// An event, and its request if that is kept.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) event: Arc<Event>,
    pub(crate) request: Option<Arc<KeptRequest>>,
}

impl Weigh for Recorded {
    fn weight(&self) -> usize {
        self.event.size_estimate() + self.request.as_ref().map_or(0, |request| request.bytes.len())
    }
}

/// A request as the store has it; nothing if none was kept.
pub(crate) fn encode(request: Option<&KeptRequest>, out: &mut Vec<u8>) {
    out.clear();
    if let Some(request) = request {
        put_u64(out, request.omitted);
        put_bytes(out, &request.bytes);
    }
}

/// The request that was stored; none if none was.
pub(crate) fn decode(stored: &[u8]) -> Result<Option<KeptRequest>, Damaged> {
    if stored.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader(stored);
    let (omitted, bytes) = (reader.u64()?, reader.bytes()?.to_vec());
    reader.end()?;
    Ok(Some(KeptRequest { bytes, omitted }))
}
