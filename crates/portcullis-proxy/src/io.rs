//! Writing with a deadline that moves with progress.

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::AsyncWrite;

use crate::stream::Stream;
use crate::timer::Timer;

/// Why bytes could not be written or read.
#[derive(Debug)]
pub(crate) enum Broken {
    /// No progress in time.
    Late,
    /// The connection failed or was closed.
    Failed,
}

/// Writes all of `slices`; `patience` is the longest time without progress.
pub(crate) async fn write_all(
    stream: &mut Stream,
    timer: &Timer,
    patience: Duration,
    mut slices: &mut [IoSlice<'_>],
) -> Result<(), Broken> {
    IoSlice::advance_slices(&mut slices, 0);
    let mut armed = false;
    while !slices.is_empty() {
        // Most writes are done at once, so the clock is read only for those that are not.
        let written = {
            let attempt = poll_fn(|context| {
                let result = Pin::new(&mut *stream).poll_write_vectored(context, slices);
                if result.is_pending() && !std::mem::replace(&mut armed, true) {
                    timer.arm(patience);
                }
                result
            });
            timer.run(attempt).await.map_err(|_| Broken::Late)?.map_err(|_| Broken::Failed)?
        };
        if written == 0 {
            return Err(Broken::Failed);
        }
        armed = false;
        IoSlice::advance_slices(&mut slices, written);
    }
    flush(stream, timer, patience).await
}

/// TLS may hold bytes back until it is flushed.
async fn flush(stream: &mut Stream, timer: &Timer, patience: Duration) -> Result<(), Broken> {
    if let Stream::Plain(_) = stream {
        return Ok(());
    }
    let mut armed = false;
    let flushed = poll_fn(|context| {
        let result = Pin::new(&mut *stream).poll_flush(context);
        if result.is_pending() && !std::mem::replace(&mut armed, true) {
            timer.arm(patience);
        }
        result
    });
    timer.run(flushed).await.map_err(|_| Broken::Late)?.map_err(|_| Broken::Failed)
}
