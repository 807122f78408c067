//! A response body on its way from the upstream to the client.

use std::time::Duration;

use portcullis_http::h1::{BodyDecoder, Trailers};

use super::Held;
use crate::abort::Aborted;
use crate::sink::Sink;
use crate::transaction::Transaction;
use crate::upload::SMALL_BYTES;
use crate::upstream::UpstreamConnection;

/// The side that broke within the body.
pub(crate) enum Cut {
    Client,
    Upstream,
}

/// The body of an answer on its way from the upstream to the client.
pub(crate) struct Flow<'f> {
    /// The client; the head of the answer has been composed.
    pub(crate) sink: Sink<'f>,
    pub(crate) upstream: &'f mut UpstreamConnection,
    /// The longest time without progress of the upstream.
    pub(crate) patience: Duration,
    pub(crate) transaction: &'f mut Transaction,
    /// Finds the end of the upstream's body.
    pub(crate) decoder: BodyDecoder,
}

/// Sends the composed head, what was held, and the rest as it comes; `append` comes behind the upstream's
/// body.
pub(super) async fn stream(flow: Flow<'_>, held: Held, append: &[u8]) -> Result<(), Cut> {
    let Flow { mut sink, upstream, patience, transaction, mut decoder } = flow;
    transaction.life.outcome.response_body_bytes = held.came;
    let mut small = Vec::new();
    let mut room = Trailers::default();
    let mut ended = false;
    if !held.bytes.is_empty() {
        ended = decoder.is_done();
        let (rest, end) = match ended {
            true => (append, Some(upstream.trailers(&decoder, &mut room).map_err(|_| Cut::Upstream)?)),
            false => (&b""[..], None),
        };
        sink.send([&held.bytes, rest, b""], end).await.map_err(|_| Cut::Client)?;
    }
    drop(held);
    loop {
        // Everything that is here goes in one write: the head with the first data, the last data with the
        // end.
        while !decoder.is_done() && !upstream.input.unread().is_empty() {
            let step = decoder.decode(upstream.input.unread()).map_err(|_| Cut::Upstream)?;
            let consumed = step.consumed;
            transaction.life.outcome.response_body_bytes += step.data.len() as u64;
            let more = !step.done && consumed < upstream.input.unread().len();
            if more && small.len() + step.data.len() < SMALL_BYTES {
                small.extend_from_slice(step.data);
                upstream.input.consume(consumed);
                continue;
            }
            // Over HTTP/2 trailers may follow, which the end below waits for.
            ended = step.done && upstream.stream.tcp().is_some();
            let (rest, end) = if ended { (append, Some(decoder.trailers())) } else { (&b""[..], None) };
            sink.send([&small, step.data, rest], end).await.map_err(|_| Cut::Client)?;
            small.clear();
            upstream.input.consume(consumed);
        }
        if decoder.is_done() {
            if !ended {
                let end = Some(upstream.trailers(&decoder, &mut room).map_err(|_| Cut::Upstream)?);
                sink.send([append, b"", b""], end).await.map_err(|_| Cut::Client)?;
            }
            return Ok(());
        }
        if sink.has_head() {
            // The head does not wait for the body: the client of an event stream wants to know that it is
            // there.
            sink.send([b"", b"", b""], None).await.map_err(|_| Cut::Client)?;
        }
        let UpstreamConnection { stream: from, input, .. } = &mut *upstream;
        match sink.wait(patience, input.fill(from)).await {
            Ok(Err(Aborted)) => return Err(Cut::Client),
            Ok(Ok(Ok(count))) if count > 0 => {}
            Ok(Ok(Ok(_))) if decoder.end().is_ok() => {
                let end = Some(upstream.trailers(&decoder, &mut room).map_err(|_| Cut::Upstream)?);
                return sink.send([append, b"", b""], end).await.map_err(|_| Cut::Client);
            }
            _ => return Err(Cut::Upstream),
        }
    }
}
