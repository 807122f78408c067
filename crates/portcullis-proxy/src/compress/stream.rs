//! A response body from the upstream through an encoder to the client.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use portcullis_http::h1::Trailers;

use super::Coder;
use crate::abort::Aborted;
use crate::response::{Cut, Flow, Held};
use crate::upstream::UpstreamConnection;

/// So much is sent at once.
const SEND_BYTES: usize = 16 << 10;

/// Sends the composed head, what was held, and the rest as it comes. What the client could wait for does not
/// stay in the encoder while the upstream is silent.
pub(crate) async fn stream(flow: Flow<'_>, held: Held, append: &[u8], mut coder: Coder) -> Result<(), Cut> {
    let Flow { sink: mut to, upstream, patience, transaction, mut decoder } = flow;
    // An encoder into memory does not fail; if it did, the body would end short.
    let broken = |_| Cut::Upstream;
    let gone = |_| Cut::Client;
    transaction.life.outcome.response_body_bytes = held.came;
    transaction.coded(0);
    coder.write(&held.bytes).map_err(broken)?;
    drop(held);
    loop {
        while !decoder.is_done() && !upstream.input.unread().is_empty() {
            let step = decoder.decode(upstream.input.unread()).map_err(|_| Cut::Upstream)?;
            let consumed = step.consumed;
            transaction.life.outcome.response_body_bytes += step.data.len() as u64;
            coder.write(step.data).map_err(broken)?;
            upstream.input.consume(consumed);
            if coder.waiting() >= SEND_BYTES {
                let coded = coder.take();
                to.send([&coded, b"", b""], None).await.map_err(gone)?;
                transaction.coded(coded.len());
            }
        }
        if decoder.is_done() {
            break;
        }
        let UpstreamConnection { stream: from, input, .. } = &mut *upstream;
        let filled = match at_once(input.fill(from)).await {
            Some(filled) => Ok(Ok(filled)),
            None => {
                coder.flush().map_err(broken)?;
                let coded = coder.take();
                to.send([&coded, b"", b""], None).await.map_err(gone)?;
                transaction.coded(coded.len());
                to.wait(patience, input.fill(from)).await
            }
        };
        match filled {
            Ok(Err(Aborted)) => return Err(Cut::Client),
            Ok(Ok(Ok(count))) if count > 0 => {}
            Ok(Ok(Ok(_))) if decoder.end().is_ok() => break,
            _ => return Err(Cut::Upstream),
        }
    }
    coder.write(append).map_err(broken)?;
    let mut rest = coder.take();
    rest.extend(coder.finish().map_err(broken)?);
    let mut room = Trailers::default();
    let trailers = upstream.trailers(&decoder, &mut room).map_err(|_| Cut::Upstream)?;
    to.send([&rest, b"", b""], Some(trailers)).await.map_err(gone)?;
    transaction.coded(rest.len());
    Ok(())
}

/// The output of `future` if it is ready.
async fn at_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
