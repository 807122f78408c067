//! Clients that go away while their request is at work. What is done for them is given up: an upstream hears
//! of it by the end of its connection, or of its stream.
//!
//! Over HTTP/2 a reset says so. Over HTTP/1 it is the end of what the client sends; whether it still reads
//! cannot be known, and few that half-close do. A listener with `half_close = true` takes them for readers.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

use crate::buffer::Buffer;
use crate::stream::Stream;

/// Bytes of later requests that are read ahead, so that the end behind them is seen.
const AHEAD_BYTES_MAX: usize = 64 * 1024;

/// The client has gone.
#[derive(Debug)]
pub(crate) struct Aborted;

/// A client that may go away.
pub(crate) struct Client<'c> {
    pub(crate) stream: &'c mut Stream,
    /// Bytes behind the request.
    pub(crate) input: &'c mut Buffer,
    /// It may end its side and still read.
    pub(crate) half_close: bool,
}

impl Client<'_> {
    /// Runs `work`, unless the client goes away before it is done.
    pub(crate) async fn unless_gone<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Aborted> {
        let mut work = pin!(work);
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => self.poll_gone(context).map(|()| Err(Aborted)),
        })
        .await
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Stream::Http2(pipe) = self.stream {
            return pipe.poll_reset(context);
        }
        while self.input.unread().len() < AHEAD_BYTES_MAX {
            match self.input.poll_fill(self.stream, context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0)) if self.half_close => return Poll::Pending,
                Poll::Ready(_) => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }
}
