//! Reads a body piece by piece, within a time.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::Body;
use tokio::time::{Instant, timeout_at};

/// The next part of a body.
pub(crate) enum Part<E> {
    Data(Bytes),
    Trailers(HeaderMap),
    End,
    Failed(E),
    /// It did not come in time.
    Late,
}

/// The next part; waits until `deadline`, if there is one.
pub(crate) async fn next<B: Body>(body: &mut Pin<Box<B>>, deadline: Option<Instant>) -> Part<B::Error> {
    let frame = poll_fn(|context| body.as_mut().poll_frame(context));
    let frame = match deadline {
        None => frame.await,
        Some(deadline) => match timeout_at(deadline, frame).await {
            Ok(frame) => frame,
            Err(_) => return Part::Late,
        },
    };
    match frame {
        None => Part::End,
        Some(Err(error)) => Part::Failed(error),
        Some(Ok(frame)) => match frame.into_data() {
            Ok(mut data) => Part::Data(data.copy_to_bytes(data.remaining())),
            Err(other) => Part::Trailers(other.into_trailers().unwrap_or_default()),
        },
    }
}
