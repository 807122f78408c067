//! Answers that take long: so many at a time, in all and of one identity.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Waiting, Poll};

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::access::Principal;
use crate::context::{Context, lock};
use crate::problem::{Kind, Problem};

/// A place among the streams, of all and of an identity.
pub(crate) struct Seat {
    context: Arc<Context>,
    key: String,
    _permit: OwnedSemaphorePermit,
}

impl Seat {
    pub(crate) fn take(context: &Arc<Context>, principal: &Principal) -> Result<Seat, Problem> {
        let full =
            |what: &str| Problem::with(Kind::Busy, format!("{what} has too many streams")).retry_after(10);
        let permit = Arc::clone(&context.streams).try_acquire_owned();
        let permit = permit.map_err(|_| full("the program"))?;
        let key = principal.key();
        let mut streams = lock(&context.streams_of);
        let count = streams.entry(key.clone()).or_insert(0);
        if *count >= context.limits.identity_streams_max {
            return Err(full("this identity"));
        }
        *count += 1;
        drop(streams);
        Ok(Seat { context: Arc::clone(context), key, _permit: permit })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut streams = lock(&self.context.streams_of);
        if let Some(count) = streams.get_mut(&self.key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                streams.remove(&self.key);
            }
        }
    }
}

/// A body whose pieces come through a channel. An error ends the connection, so that nobody takes a part for
/// the whole.
pub(crate) struct Channel(pub(crate) mpsc::Receiver<io::Result<Bytes>>);

impl http_body::Body for Channel {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        waiting: &mut Waiting<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(waiting).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
