//! A connection whose writes may not wait for ever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use portcullis_admin::{Activity, Waiting};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Fails a write that has made no progress for a time: the client does not read what it asked for.
pub(crate) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Runs while a write waits.
    timer: Pin<Box<Sleep>>,
    /// That of the connection.
    activity: Arc<Activity>,
    /// While a write waits.
    waits: Option<Waiting>,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, patience: Duration, activity: Arc<Activity>) -> Patient<S> {
        Patient { stream, patience, timer: Box::pin(sleep(patience)), activity, waits: None }
    }

    /// Passes on what a write said, and gives up on one that has waited too long.
    fn watch<T>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.waits = None;
            return result;
        }
        if self.waits.is_none() {
            self.waits = Some(self.activity.wait());
            self.timer.as_mut().reset(Instant::now() + self.patience);
        }
        match self.timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, result)
    }
}
