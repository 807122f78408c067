//! Counts the frames of a connection on their way to and from the library, and ends floods before it works on
//! them.
//!
//! The library keeps its own books and would stop most floods, too; but it does not say which, and it does
//! not know our limits. So frames are counted where they pass, by their nine bytes of header.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use portcullis_config::Http2;
use portcullis_metrics::{Http2Limit, Http2Metrics};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::PREFACE;
use super::bucket::Bucket;
use super::frames::{
    CONTINUATION, DATA, END_STREAM, Frame, Frames, GOAWAY, HEADERS, RST_STREAM, WINDOW_UPDATE,
};
use crate::buffer::Buffer;
use crate::stream::Stream;

/// Bytes of a payload that tell what we need: the code of RST_STREAM, code and reason of GOAWAY.
const PAYLOAD_BYTES: usize = 48;
/// WINDOW_UPDATE frames that a client may send for each of our DATA frames: two, one of them for the
/// connection, and some more for those that read it in pieces. Further ones count as control frames.
const UPDATES_EACH: u32 = 8;
const UPDATES_MAX: u32 = 100_000;
/// Flag of DATA and HEADERS (RFC 9113, section 6.1).
const PADDED: u8 = 8;
/// RST_STREAM codes (RFC 9113, section 7).
const PROTOCOL_ERROR: &[u8] = &[0, 0, 0, 1];
const REFUSED_STREAM: &[u8] = &[0, 0, 0, 7];

/// State that the meter and the task of the connection share.
#[derive(Default)]
pub(super) struct Watch {
    /// A limit that the client broke.
    pub(super) tripped: Cell<Option<Http2Limit>>,
    /// The streams whose requests are ours to answer.
    pub(super) accepted: RefCell<HashSet<u32>>,
}

/// A client connection whose frames are counted.
pub(super) struct Meter {
    stream: Stream,
    /// Bytes that were read before it was known that this is HTTP/2.
    input: Buffer,
    watch: Rc<Watch>,
    metrics: Http2Metrics,
    incoming: Frames,
    outgoing: Frames,
    resets: Bucket,
    controls: Bucket,
    /// WINDOW_UPDATE frames that our own DATA has given reason for, see [`UPDATES_EACH`].
    updates: u32,
    continuations: u32,
    continuations_max: u32,
}

impl Meter {
    pub(super) fn new(
        stream: Stream,
        input: Buffer,
        limits: &Http2,
        metrics: Http2Metrics,
    ) -> (Self, Rc<Watch>) {
        let watch = Rc::<Watch>::default();
        let now = Instant::now();
        let meter = Meter {
            stream,
            input,
            watch: Rc::clone(&watch),
            metrics,
            incoming: Frames::new(PREFACE.len(), 0),
            outgoing: Frames::new(0, PAYLOAD_BYTES),
            resets: Bucket::new(limits.resets_per_minute_max, now),
            controls: Bucket::new(limits.control_frames_per_minute_max, now),
            updates: 0,
            continuations: 0,
            continuations_max: limits.continuations_max,
        };
        (meter, watch)
    }

    /// False if a limit is broken.
    fn take_in(&mut self, bytes: &[u8]) -> bool {
        let Meter { incoming, resets, controls, updates, continuations, continuations_max, watch, .. } = self;
        let mut broken = None;
        incoming.scan(bytes, |frame, _| {
            let limit = match frame {
                Frame { kind: CONTINUATION, .. } => {
                    *continuations += 1;
                    (*continuations > *continuations_max).then_some(Http2Limit::Continuations)
                }
                Frame { kind: HEADERS, .. } => {
                    *continuations = 0;
                    None
                }
                Frame { kind: RST_STREAM, stream, .. } => {
                    watch.accepted.borrow_mut().remove(&stream);
                    (!resets.take(Instant::now())).then_some(Http2Limit::Resets)
                }
                // One with padding may have nothing else in it.
                Frame { kind: DATA, length: 1.., flags, .. } if flags & PADDED == 0 => None,
                Frame { kind: WINDOW_UPDATE, .. } if *updates > 0 => {
                    *updates -= 1;
                    None
                }
                Frame { kind: DATA, flags, .. } if flags & END_STREAM != 0 => None,
                _ => (!controls.take(Instant::now())).then_some(Http2Limit::ControlFrames),
            };
            broken = broken.or(limit);
        });
        watch.tripped.set(broken);
        broken.is_none()
    }

    /// Counts what the library refuses.
    fn let_out(&mut self, bytes: &[u8]) {
        let Meter { outgoing, metrics, watch, updates, .. } = self;
        let mut accepted = watch.accepted.borrow_mut();
        outgoing.scan(bytes, |frame, payload| match frame.kind {
            DATA if frame.length > 0 && frame.flags & END_STREAM == 0 => {
                *updates = updates.saturating_add(UPDATES_EACH).min(UPDATES_MAX);
            }
            // The library itself answers nothing but 431, to a head that is too large.
            HEADERS if frame.flags & END_STREAM != 0 && !accepted.remove(&frame.stream) => {
                metrics.limits.inc(Http2Limit::HeaderList as usize);
            }
            DATA if frame.flags & END_STREAM != 0 => drop(accepted.remove(&frame.stream)),
            RST_STREAM if payload == REFUSED_STREAM => metrics.limits.inc(Http2Limit::Streams as usize),
            RST_STREAM if payload == PROTOCOL_ERROR && !accepted.remove(&frame.stream) => {
                metrics.malformed.inc();
            }
            RST_STREAM => drop(accepted.remove(&frame.stream)),
            GOAWAY => match payload.get(4..).unwrap_or_default().split_at_checked(4) {
                Some((_, b"header_list_way_too_large")) => {
                    metrics.limits.inc(Http2Limit::HeaderList as usize);
                }
                Some((_, b"too_many_continuations")) => {
                    metrics.limits.inc(Http2Limit::Continuations as usize);
                }
                Some((_, b"too_many_resets")) => metrics.limits.inc(Http2Limit::Resets as usize),
                Some((_, b"too_many_data_frames")) => {
                    metrics.limits.inc(Http2Limit::ControlFrames as usize);
                }
                Some(([0, 0, 0, 0 | 11], b"")) | None => {}
                Some(_) => metrics.malformed.inc(),
            },
            _ => {}
        });
    }
}

impl AsyncRead for Meter {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let meter = self.get_mut();
        if meter.watch.tripped.get().is_some() {
            // Nothing more is heard; the task of the connection says goodbye.
            return Poll::Pending;
        }
        let before = into.filled().len();
        if meter.input.unread().is_empty() {
            ready!(Pin::new(&mut meter.stream).poll_read(context, into))?;
        } else {
            let count = meter.input.unread().len().min(into.remaining());
            into.put_slice(&meter.input.unread()[..count]);
            meter.input.consume(count);
            meter.input.rest();
        }
        if !meter.take_in(&into.filled()[before..]) {
            into.set_filled(before);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Meter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let meter = self.get_mut();
        let count = ready!(Pin::new(&mut meter.stream).poll_write_vectored(context, slices))?;
        let mut left = count;
        for slice in slices {
            let written = left.min(slice.len());
            meter.let_out(&slice[..written]);
            left -= written;
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
