//! Bytes received and not yet used.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Room offered to a read.
const READ_BYTES: usize = 16 * 1024;
/// Room offered to the reads after one that was filled: a large body is coming.
const READ_MORE_BYTES: usize = 64 * 1024;

/// Buffers of a worker that nothing uses at the moment. A connection takes one when bytes come and gives it
/// back when it has used them, so what waits holds none.
#[derive(Default)]
pub(crate) struct Spares(RefCell<Vec<Vec<u8>>>);

/// Spares kept; what comes back beyond them is freed.
const SPARES_MAX: usize = 64;

impl Spares {
    fn take(&self) -> Vec<u8> {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    fn give(&self, mut bytes: Vec<u8>) {
        let mut spares = self.0.borrow_mut();
        if spares.len() < SPARES_MAX && (READ_BYTES..=2 * READ_BYTES).contains(&bytes.capacity()) {
            bytes.clear();
            spares.push(bytes);
        }
    }
}

/// A growing buffer with a front that moves: what is used is dropped without moving the rest.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    /// The last read took all the room it was offered.
    filled: bool,
    spares: Rc<Spares>,
}

impl Buffer {
    /// An empty buffer that takes its memory from `spares`.
    pub(crate) fn new(spares: Rc<Spares>) -> Self {
        Buffer { bytes: Vec::new(), start: 0, filled: false, spares }
    }

    /// Bytes that were received and not used.
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

    /// Gives the memory back if nothing is in it; for connections that wait.
    pub(crate) fn rest(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > 0 {
            self.filled = false;
            self.spares.give(std::mem::take(&mut self.bytes));
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
        if self.bytes.capacity() == 0 {
            self.bytes = self.spares.take();
        }
        self.bytes.reserve(room);
        // `read_buf` keeps no state between polls, so a fresh future each time is the same as one that is
        // kept.
        let polled = pin!(stream.read_buf(&mut self.bytes)).poll(context);
        match polled.is_ready() {
            true => self.filled = self.bytes.len() == self.bytes.capacity(),
            // Where much is coming the memory is wanted again at once.
            false if self.filled => {}
            false => self.rest(),
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_buffer_holds_memory_only_while_it_holds_bytes() {
        let spares = Rc::new(Spares::default());
        let mut buffer = Buffer::new(Rc::clone(&spares));
        let (mut near, mut far) = tokio::io::duplex(64);
        let waits =
            std::future::poll_fn(|context| Poll::Ready(buffer.poll_fill(&mut near, context).is_pending()));
        assert!(waits.await);
        assert_eq!((buffer.bytes.capacity(), spares.0.borrow().len()), (0, 1));
        tokio::io::AsyncWriteExt::write_all(&mut far, b"GET /").await.unwrap();
        assert_eq!(buffer.fill(&mut near).await.unwrap(), 5);
        assert_eq!((buffer.unread(), spares.0.borrow().len()), (&b"GET /"[..], 0));
        buffer.consume(4);
        buffer.rest();
        assert_eq!(buffer.unread(), b"/", "what is unread stays");
        buffer.consume(1);
        buffer.rest();
        assert_eq!((buffer.bytes.capacity(), spares.0.borrow().len()), (0, 1));
    }
}
