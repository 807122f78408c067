//! Bytes received and not yet used.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Room offered to a read.
const READ_BYTES: usize = 16 * 1024;
/// Room offered to the reads after one that was filled: a large body is coming.
const READ_MORE_BYTES: usize = 64 * 1024;

/// A growing buffer with a front that moves: what is used is dropped without moving the rest.
#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    /// The last read took all the room it was offered.
    filled: bool,
}

impl Buffer {
    /// What has been received and not used.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Marks `count` bytes as used.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.bytes.len());
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    /// Gives memory back; for connections that wait for the next request.
    pub(crate) fn rest(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > 2 * READ_BYTES {
            *self = Buffer::default();
        }
    }

    /// Reads more from `stream`, as much as there is room for. Zero is the end of the stream.
    pub(crate) async fn fill<R: AsyncRead + Unpin>(&mut self, stream: &mut R) -> io::Result<usize> {
        std::future::poll_fn(|context| self.poll_fill(stream, context)).await
    }

    /// As [`fill`](Buffer::fill).
    pub(crate) fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        stream: &mut R,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let room = if self.filled { READ_MORE_BYTES } else { READ_BYTES };
        if self.start > 0 && self.bytes.capacity() - self.bytes.len() < room {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.reserve(room);
        // `read_buf` keeps no state between polls, so a fresh future each time is the same as one that is kept.
        let polled = pin!(stream.read_buf(&mut self.bytes)).poll(context);
        if polled.is_ready() {
            self.filled = self.bytes.len() == self.bytes.capacity();
        }
        polled
    }
}
