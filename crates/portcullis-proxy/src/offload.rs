//! Phases of long heads and bodies, on the threads beside the workers.

use std::time::Instant;

use portcullis_exchange::{Lifecycle, upload};
use portcullis_http::message::RequestHead;
use portcullis_inspect::{Inspection, Step};

use crate::beside::{Asker, Busy, Weight};
use crate::budget::Full;

/// Phase 1 of a long head, beside the worker.
pub(crate) async fn request_head(
    life: &mut Lifecycle,
    head: &RequestHead,
    by: Asker<'_>,
) -> Result<Step, Full> {
    let (head, bytes) = (head.clone(), head.received_len() as u64);
    let work = move |inspection: &mut Inspection| inspection.request_head(&head, None);
    run(life, Some("inspection phase 1"), by, bytes, work).await
}

/// Phase 2, beside the worker if the body is large.
pub(crate) async fn request_end(life: &mut Lifecycle, truncated: bool, by: Asker<'_>) -> Result<Step, Full> {
    let shown = life.call(|inspection| inspection.request_body_shown());
    let Some(bytes) = shown.filter(|shown| *shown >= by.large_from) else {
        return Ok(life.request_end(truncated));
    };
    let work = move |inspection: &mut Inspection| inspection.request_end(truncated);
    run(life, Some("inspection phase 2"), by, bytes, work).await
}

/// Phase 4, beside the worker if the body is large and there is room.
pub(crate) async fn response_end(life: &mut Lifecycle, truncated: bool, by: Asker<'_>) -> Step {
    let shown = life.call(|inspection| inspection.response_body_shown());
    if let Some(bytes) = shown.filter(|shown| *shown >= by.large_from) {
        let work = move |inspection: &mut Inspection| inspection.response_end(truncated);
        if let Ok(step) = run(life, Some("inspection phase 4"), by, bytes, work).await {
            return step;
        }
    }
    life.response_end(truncated)
}

/// A piece of an upload behind phase 2, the last one or not, beside the worker if there is room: with however
/// little of it a long field may come to its end.
pub(crate) async fn upload_piece(life: &mut Lifecycle, piece: &[u8], is_last: bool, by: Asker<'_>) -> Step {
    let (copy, bytes) = (piece.to_vec(), piece.len() as u64);
    let work = move |inspection: &mut Inspection| upload(inspection, &copy, is_last);
    match run(life, None, by, bytes, work).await {
        Ok(step) => step,
        Err(_) => life.upload(piece, is_last),
    }
}

/// Does `work`, a phase or a part of one, on a thread beside the workers, and waits for it. An error leaves
/// the inspection as it was.
async fn run(
    life: &mut Lifecycle,
    phase: Option<&'static str>,
    by: Asker<'_>,
    bytes: u64,
    work: impl FnOnce(&mut Inspection) -> Step + Send + 'static,
) -> Result<Step, Full> {
    let Some(inspection) = life.lend() else { return Ok(life.after(None)) };
    let begin = Instant::now();
    let weight = Weight { bytes, account: by.account };
    match by.pool.run(inspection, by.member, weight, work).await {
        Err(Busy(inspection)) => {
            life.take_back(inspection);
            Err(Full::Busy)
        }
        Ok(done) => Ok(life.give_back(phase, begin, done)),
    }
}
