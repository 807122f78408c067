//! A body of which the beginning was held.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use portcullis_embed::Passed;

/// A body as it came: what was held for its inspection, then the rest, then the trailers.
pub struct Replay<B: Body> {
    held: Option<Bytes>,
    rest: Option<Pin<Box<B>>>,
    /// An error that came while the beginning was held.
    error: Option<B::Error>,
    trailers: Option<HeaderMap>,
    passed: Passed,
}

impl<B: Body> fmt::Debug for Replay<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.held.as_ref().map_or(0, Bytes::len);
        f.debug_struct("Replay").field("held", &held).field("has_rest", &self.rest.is_some()).finish()
    }
}

impl<B: Body> Replay<B> {
    /// Nothing held yet; what is read of the rest is counted in `passed`.
    pub(crate) fn new(rest: Pin<Box<B>>, passed: Passed) -> Replay<B> {
        Replay { held: None, rest: Some(rest), error: None, trailers: None, passed }
    }

    /// The same with the beginning, which was held.
    pub(crate) fn behind(mut self, held: Bytes) -> Replay<B> {
        self.held = Some(held).filter(|held| !held.is_empty());
        self
    }

    /// The rest is not read any more: it has come to its end, with these trailers or this error.
    pub(crate) fn ended(mut self, trailers: Option<HeaderMap>, error: Option<B::Error>) -> Replay<B> {
        (self.rest, self.trailers, self.error) = (None, trailers, error);
        self
    }
}

/// No field is ever pinned in place: the rest has a box of its own.
impl<B: Body> Unpin for Replay<B> {}

impl<B: Body> Body for Replay<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(held) = self.held.take() {
            return Poll::Ready(Some(Ok(Frame::data(held))));
        }
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        let frame = match ready!(rest.as_mut().poll_frame(context)) {
            Some(Ok(frame)) => frame.map_data(|mut data| data.copy_to_bytes(data.remaining())),
            other => {
                self.rest = None;
                return Poll::Ready(other.and_then(Result::err).map(Err));
            }
        };
        if let Some(data) = frame.data_ref() {
            self.passed.add(data.len());
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        let is_over = self.rest.as_ref().is_none_or(|rest| rest.is_end_stream());
        self.held.is_none() && self.error.is_none() && self.trailers.is_none() && is_over
    }

    fn size_hint(&self) -> SizeHint {
        let held = self.held.as_ref().map_or(0, Bytes::len) as u64;
        let rest = self.rest.as_ref().map_or(SizeHint::with_exact(0), |rest| rest.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(held.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper() {
            hint.set_upper(held.saturating_add(upper));
        }
        hint
    }
}
