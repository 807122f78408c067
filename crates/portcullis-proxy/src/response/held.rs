//! The part of a response body that is inspected, read before any of it is forwarded.

use std::time::{Duration, Instant};

use portcullis_event::{ExceptionCause, ExceptionPolicy, UpstreamError};
use portcullis_http::h1::BodyDecoder;
use portcullis_inspect::BodyLimitAction;
use portcullis_types::ByteBuf;

use crate::abort::Aborted;
use crate::budget::NoMemory;
use crate::exchange::Exchange;
use crate::upstream::UpstreamConnection;

/// A response body, or its beginning.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) bytes: ByteBuf,
    /// Bytes of the upstream's own.
    pub(crate) came: u64,
    pub(crate) truncated: bool,
    share: Option<crate::budget::Held>,
}

impl Held {
    fn new(bytes: ByteBuf, truncated: bool, share: crate::budget::Held) -> Self {
        Held { came: bytes.len() as u64, bytes, truncated, share: Some(share) }
    }

    /// Puts another body in the place of the one that is held.
    pub(crate) fn replace(&mut self, body: Vec<u8>) -> Result<(), NoMemory> {
        let more = body.len().saturating_sub(self.bytes.len());
        if self.share.as_mut().is_some_and(|share| !share.grow(more)) {
            return Err(NoMemory);
        }
        self.bytes = body.into();
        Ok(())
    }
}

/// Why nothing is held.
pub(super) enum Unheld {
    /// Nobody waits for it any longer.
    Client,
    Upstream(UpstreamError),
    /// There is no memory for it.
    NoMemory,
    /// The status and text to answer.
    Refused(u16, &'static str),
}

/// The limits within which a body is held.
pub(super) struct Bounds {
    pub(super) bytes: u64,
    pub(super) over: BodyLimitAction,
    /// The body is let go where it would wait longer for the upstream in all, or where there is no memory for
    /// it.
    pub(super) wait_max: Option<Duration>,
    /// The longest time without progress.
    pub(super) patience: Duration,
}

/// Reads as much of the body as is to be inspected.
pub(super) async fn hold(
    exchange: &mut Exchange<'_>,
    upstream: &mut UpstreamConnection,
    decoder: &mut BodyDecoder,
    Bounds { bytes: limit, over, wait_max, patience }: Bounds,
) -> Result<Held, Unheld> {
    let Exchange { connection, transaction, .. } = exchange;
    let mut share = connection.memory(transaction.client().ip());
    let mut bytes = ByteBuf::new();
    let mut deadline = None;
    loop {
        while !decoder.is_done() && !upstream.input.unread().is_empty() {
            let room = usize::try_from(limit - bytes.len() as u64).unwrap_or(usize::MAX);
            let length = upstream.input.unread().len().min(room.saturating_add(1));
            let copies = length.saturating_mul(transaction.life.response_copies());
            let mut has_room = share.reserve(copies).is_ok();
            // What others give back comes within moments.
            if !has_room && wait_max.is_none() {
                has_room = share.wait_to_reserve(copies, transaction.charged()).await.is_ok();
            }
            let offered = &upstream.input.unread()[..length];
            let invalid = |_| Unheld::Upstream(UpstreamError::InvalidResponse);
            let step = decoder.decode(offered).map_err(invalid)?;
            let fits = step.data.len().min(room);
            bytes.extend_from_slice(step.data);
            if has_room {
                transaction.life.response_body(&step.data[..fits]);
                transaction.charge(connection);
            }
            share.set(bytes.held_bytes());
            let beyond = (step.data.len() - fits) as u64;
            let consumed = step.consumed;
            upstream.input.consume(consumed);
            if wait_max.is_some() && (beyond > 0 || !has_room) {
                return Ok(Held::new(bytes, true, share));
            }
            if !has_room {
                transaction.life.exception(ExceptionCause::BudgetSpent, ExceptionPolicy::Closed);
                return Err(Unheld::NoMemory);
            }
            if beyond > 0 {
                let policy = match over {
                    BodyLimitAction::Reject => ExceptionPolicy::Closed,
                    BodyLimitAction::ProcessPartial => ExceptionPolicy::Open,
                };
                transaction.life.exception(ExceptionCause::ResponseBodyOverLimit, policy);
                if over == BodyLimitAction::Reject {
                    return Err(Unheld::Refused(500, "The response is larger than can be inspected."));
                }
                return Ok(Held::new(bytes, true, share));
            }
        }
        if decoder.is_done() {
            return Ok(Held::new(bytes, false, share));
        }
        match wait_max {
            Some(wait) => {
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + wait);
                connection.timer.arm_within(patience, deadline);
            }
            None => connection.timer.arm(patience),
        }
        let UpstreamConnection { stream, input, .. } = &mut *upstream;
        let (mut client, timer) = connection.client();
        match timer.run(client.unless_gone(input.fill(stream))).await {
            Err(_) if wait_max.is_some() => return Ok(Held::new(bytes, true, share)),
            Err(_) => return Err(Unheld::Upstream(UpstreamError::ResponseTimeout)),
            Ok(Err(Aborted)) => return Err(Unheld::Client),
            Ok(Ok(Ok(count))) if count > 0 => {}
            Ok(Ok(Ok(_))) if decoder.end().is_ok() => {
                return Ok(Held::new(bytes, false, share));
            }
            Ok(_) => return Err(Unheld::Upstream(UpstreamError::BodyTruncated)),
        }
    }
}
