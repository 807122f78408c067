//! Phases over large bodies, on threads for blocking work.

use portcullis_embed::Exchange;

/// Bytes of a body above which a phase runs on such a thread.
const LARGE_BYTES: usize = 64 << 10;

/// The threads for blocking work have ended: the process is about to.
pub(crate) struct ShuttingDown;

/// Runs a phase, on another thread if it is about many bytes and tokio runs. A caller that goes away leaves
/// the phase to come to its end.
pub(crate) async fn beside(
    mut exchange: Exchange,
    bytes: usize,
    phase: impl FnOnce(&mut Exchange) + Send + 'static,
) -> Result<Exchange, ShuttingDown> {
    let runtime = tokio::runtime::Handle::try_current().ok().filter(|_| bytes >= LARGE_BYTES);
    let Some(runtime) = runtime else {
        phase(&mut exchange);
        return Ok(exchange);
    };
    let work = runtime.spawn_blocking(move || {
        phase(&mut exchange);
        exchange
    });
    work.await.map_err(|_| ShuttingDown)
}
