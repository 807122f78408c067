//! The body of a response: the application's, or our block page.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use portcullis_embed::Exchange;

use crate::replay::Replay;

/// The body of a response. When it has been sent, or is dropped, the exchange ends and its event is reported.
pub struct ResponseBody<R: Body> {
    content: Content<R>,
    exchange: Option<Box<Exchange>>,
}

enum Content<R: Body> {
    Ours(Option<Bytes>),
    Application(Replay<R>),
}

impl<R: Body> fmt::Debug for ResponseBody<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_ours = matches!(self.content, Content::Ours(_));
        f.debug_struct("ResponseBody").field("is_ours", &is_ours).finish_non_exhaustive()
    }
}

impl<R: Body> ResponseBody<R> {
    /// Our own body.
    pub(crate) fn ours(body: Vec<u8>) -> ResponseBody<R> {
        let body = Some(Bytes::from(body)).filter(|body| !body.is_empty());
        ResponseBody { content: Content::Ours(body), exchange: None }
    }

    /// The application's.
    pub(crate) fn application(body: Replay<R>, exchange: Exchange) -> ResponseBody<R> {
        ResponseBody { content: Content::Application(body), exchange: Some(Box::new(exchange)) }
    }
}

impl<R: Body> Unpin for ResponseBody<R> {}

impl<R: Body> Body for ResponseBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        let frame = match &mut self.content {
            Content::Ours(body) => return Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Content::Application(replay) => ready!(Pin::new(replay).poll_frame(context)),
        };
        if frame.is_none() {
            self.exchange = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Ours(body) => body.is_none(),
            Content::Application(replay) => replay.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Ours(body) => SizeHint::with_exact(body.as_ref().map_or(0, Bytes::len) as u64),
            Content::Application(replay) => replay.size_hint(),
        }
    }
}
