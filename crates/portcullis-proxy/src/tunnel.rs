//! Bytes in both directions after an upgrade, until both sides have ended or nothing moves for too long.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;

use crate::buffer::Buffer;
use crate::connection::Connection;
use crate::stream::Stream;
use crate::upstream::UpstreamConnection;

/// A tunnel in which nothing moves for this long is closed; WebSocket peers ping more often.
const QUIET_MAX: Duration = Duration::from_secs(3600);

/// Copies until the end; the bytes moved upstream and downstream.
pub(crate) async fn run(connection: &mut Connection, upstream: &mut UpstreamConnection) -> (u64, u64) {
    let Connection { stream, input, timer, .. } = connection;
    let (mut up, mut down) = (Direction::default(), Direction::default());
    timer.arm(QUIET_MAX);
    let copy = poll_fn(|context| {
        let before = up.moved + down.moved;
        let first = up.poll(stream, input, &mut upstream.stream, context);
        let second = down.poll(&mut upstream.stream, &mut upstream.input, stream, context);
        if up.moved + down.moved > before {
            timer.arm(QUIET_MAX);
        }
        match (first, second) {
            (Poll::Ready(Err(_)), _) | (_, Poll::Ready(Err(_))) => Poll::Ready(()),
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    });
    let _ = timer.run(copy).await;
    (up.moved, down.moved)
}

#[derive(Default)]
struct Direction {
    moved: u64,
    ended: bool,
    shut: bool,
}

impl Direction {
    /// Moves what can be moved. Ready once the source has ended and the sink knows.
    fn poll(
        &mut self,
        from: &mut Stream,
        buffer: &mut Buffer,
        to: &mut Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            while !buffer.unread().is_empty() {
                let slices = &[IoSlice::new(buffer.unread())];
                let count = ready!(Pin::new(&mut *to).poll_write_vectored(context, slices))?;
                if count == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.moved += count as u64;
                buffer.consume(count);
            }
            if self.shut {
                return Poll::Ready(Ok(()));
            }
            if self.ended {
                ready!(Pin::new(&mut *to).poll_shutdown(context))?;
                self.shut = true;
                continue;
            }
            match buffer.poll_fill(from, context) {
                Poll::Ready(Ok(0)) => self.ended = true,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    // Nothing more to send for now; TLS may still hold some of it.
                    ready!(Pin::new(&mut *to).poll_flush(context))?;
                    return Poll::Pending;
                }
            }
        }
    }
}
