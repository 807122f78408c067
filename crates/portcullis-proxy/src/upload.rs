//! Sending a request body to an upstream while reading what the upstream already says.
//!
//! An upstream may answer before it has read everything. If nobody read its answer, both sides could wait for
//! the other to read; so what comes early is buffered up to a limit.

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use portcullis_event::{ExceptionCause, ExceptionPolicy};
use portcullis_exchange::TOO_LARGE;
use portcullis_http::h1::{BodyDecoder, CHUNK_END, LAST_CHUNK, write_chunk_size};
use portcullis_inspect::{Interruption, Step};
use tokio::io::AsyncWrite;

use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::request_body::Upload;
use crate::state::Shared;
use crate::stream::Stream;
use crate::timer::Timer;
use crate::transaction::Transaction;
use crate::upstream::UpstreamConnection;

/// Bytes of an early answer that are kept while the request is still being sent.
const EARLY_BYTES_MAX: usize = 1 << 20;

/// Pieces of a body are gathered up to this size before they are written, so that a peer that sends a byte in
/// each chunk does not cost a system call for each.
pub(crate) const SMALL_BYTES: usize = 4096;

/// Why sending stopped.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The client has gone.
    Client,
    /// The body is late or not a body; the status and text to answer.
    RequestBody(u16, &'static str),
    /// The upstream does not take more.
    Upstream,
    /// Something was found in it.
    Verdict(Interruption),
}

/// The part of the rest of a body that was sent.
pub(crate) struct Uploaded {
    pub(crate) bytes: u64,
    /// All of it; otherwise the upstream answered and closed first.
    pub(crate) whole: bool,
}

/// Inspects a piece of an upload that goes on while it is inspected.
async fn inspect(
    transaction: &mut Transaction,
    upload: Upload,
    piece: &[u8],
    is_last: bool,
    shared: &Shared,
) -> Result<(), Stopped> {
    transaction.life.outcome.request_body_bytes += piece.len() as u64;
    if upload.is_over(transaction) {
        transaction.life.exception(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Closed);
        return Err(Stopped::RequestBody(TOO_LARGE.0, TOO_LARGE.1));
    }
    match transaction.upload(piece, is_last, shared).await {
        Step::Interrupt(what) => Err(Stopped::Verdict(what)),
        Step::Continue | Step::Ask => Ok(()),
    }
}

/// Tells the upstream that the body is incomplete.
fn give_up(upstream: &mut UpstreamConnection) {
    if let Stream::Http2(pipe) = &mut upstream.stream {
        pipe.give_up(h2::Reason::CANCEL);
    }
}

/// Streams what is left of the body from the client. `inspected`: it is an upload that is inspected as it
/// goes on.
pub(crate) async fn upload(
    exchange: &mut Exchange<'_>,
    upstream: &mut UpstreamConnection,
    patience: Duration,
    (decoder, chunked): (&mut BodyDecoder, bool),
    inspected: Option<Upload>,
) -> Result<Uploaded, Stopped> {
    let Exchange { connection, generation, transaction, .. } = exchange;
    let deadline = Instant::now() + generation.timeouts.body_total;
    let Connection { stream, input, timer, worker, .. } = &mut **connection;
    let shared = &worker.shared;
    let mut bytes = 0;
    let mut size = Vec::new();
    let mut small = Vec::new();
    loop {
        while !decoder.is_done() && !input.unread().is_empty() {
            let step = decoder
                .decode(input.unread())
                .map_err(|error| Stopped::RequestBody(error.status(), error.explanation()))?;
            bytes += step.data.len() as u64;
            // With its last byte the upstream has the whole of it.
            if let Some(upload) = inspected {
                let looked = inspect(transaction, upload, step.data, step.done, shared).await;
                looked.inspect_err(|_| give_up(upstream))?;
            }
            let consumed = step.consumed;
            let more = !step.done && consumed < input.unread().len();
            if more && small.len() + step.data.len() < SMALL_BYTES {
                small.extend_from_slice(step.data);
            } else if small.len() + step.data.len() > 0 {
                size.clear();
                let mut end: &[u8] = b"";
                if chunked {
                    write_chunk_size(small.len() + step.data.len(), &mut size);
                    end = CHUNK_END;
                }
                let parts = [&size[..], &small, step.data, end];
                write(upstream, timer, patience, &mut parts.map(IoSlice::new)).await?;
                small.clear();
            }
            input.consume(consumed);
        }
        if decoder.is_done() {
            finish(upstream, timer, patience, chunked).await?;
            return Ok(Uploaded { bytes, whole: true });
        }
        timer.arm_within(generation.timeouts.body, deadline);
        let wait = poll_fn(|context| {
            if let Poll::Ready(read) = input.poll_fill(stream, context) {
                return Poll::Ready(
                    read.map(|count| if count == 0 { Came::ClientEnd } else { Came::Client }),
                );
            }
            while upstream.input.unread().len() < EARLY_BYTES_MAX {
                match upstream.input.poll_fill(&mut upstream.stream, context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(count)) if count > 0 => {}
                    Poll::Ready(_) => return Poll::Ready(Ok(Came::UpstreamEnd)),
                }
            }
            Poll::Ready(Ok(Came::UpstreamEnd))
        });
        match timer.run(wait).await {
            Err(_) => return Err(Stopped::RequestBody(408, "The request body did not come in time.")),
            Ok(Ok(Came::Client)) => {}
            Ok(Ok(Came::UpstreamEnd)) => return Ok(Uploaded { bytes, whole: false }),
            Ok(Ok(Came::ClientEnd)) => match decoder.close() {
                Ok(()) => {
                    if let Some(upload) = inspected {
                        let looked = inspect(transaction, upload, &[], true, shared).await;
                        looked.inspect_err(|_| give_up(upstream))?;
                    }
                    finish(upstream, timer, patience, chunked).await?;
                    return Ok(Uploaded { bytes, whole: true });
                }
                Err(error) => return Err(Stopped::RequestBody(error.status(), error.explanation())),
            },
            Ok(Err(_)) => return Err(Stopped::Client),
        }
    }
}

/// Ends the body.
async fn finish(
    upstream: &mut UpstreamConnection,
    timer: &Timer,
    patience: Duration,
    chunked: bool,
) -> Result<(), Stopped> {
    match &mut upstream.stream {
        Stream::Http2(pipe) => pipe.finish(None).map_err(|_| Stopped::Upstream),
        _ if chunked => write(upstream, timer, patience, &mut [IoSlice::new(LAST_CHUNK)]).await,
        Stream::Plain(_) | Stream::Tls(_) => Ok(()),
    }
}

enum Came {
    Client,
    ClientEnd,
    UpstreamEnd,
}

/// Writes all of `slices`, buffering what the upstream says meanwhile.
pub(crate) async fn write(
    upstream: &mut UpstreamConnection,
    timer: &Timer,
    patience: Duration,
    mut slices: &mut [IoSlice<'_>],
) -> Result<(), Stopped> {
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let mut armed = false;
        let UpstreamConnection { stream, input, .. } = upstream;
        let attempt = poll_fn(|context| {
            loop {
                match Pin::new(&mut *stream).poll_write_vectored(context, slices) {
                    Poll::Pending => {}
                    Poll::Ready(result) => return Poll::Ready(result),
                }
                if !std::mem::replace(&mut armed, true) {
                    timer.arm(patience);
                }
                if input.unread().len() >= EARLY_BYTES_MAX {
                    return Poll::Ready(Ok(0));
                }
                match input.poll_fill(stream, context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(count)) if count > 0 => {}
                    Poll::Ready(_) => return Poll::Ready(Ok(0)),
                }
            }
        });
        let Ok(Ok(written @ 1..)) = timer.run(attempt).await else { return Err(Stopped::Upstream) };
        IoSlice::advance_slices(&mut slices, written);
    }
    if let Stream::Tls(_) = upstream.stream {
        timer.arm(patience);
        let flushed = poll_fn(|context| Pin::new(&mut upstream.stream).poll_flush(context));
        let Ok(Ok(())) = timer.run(flushed).await else { return Err(Stopped::Upstream) };
    }
    Ok(())
}
