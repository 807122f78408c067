//! The request body up to the verdict: held within limits, or left to be streamed.

use std::time::{Duration, Instant};

use portcullis_event::{ExceptionCause, ExceptionPolicy};
use portcullis_http::h1::{BodyDecoder, BodyError};
use portcullis_http::message::BodyFraming;
use portcullis_inspect::{BodyLimitAction, BodyPlan, Step};
use portcullis_types::ByteBuf;

use crate::agents;
use crate::budget::{Full, Held, NoMemory};
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::sink;
use crate::state::Shared;
use crate::trailers::Trailers;
use crate::transaction::Transaction;

/// A request body after its inspection.
#[derive(Default)]
pub(crate) struct Body {
    /// The part that is held.
    pub(crate) held: ByteBuf,
    /// The decoder of the part that is still to come from the client.
    pub(crate) rest: Option<BodyDecoder>,
    /// There is a body, perhaps an empty one.
    pub(crate) present: bool,
    /// `held` is not what the client sent.
    pub(crate) rewritten: bool,
    truncated: bool,
    /// It goes on while it is inspected.
    pub(crate) upload: Option<Upload>,
    /// The trailers of a body that was held to its end.
    pub(crate) trailers: Trailers,
    /// The memory of `held`, as the budget sees it.
    share: Option<Held>,
}

/// An upload longer than what is held of a body.
#[derive(Clone, Copy)]
pub(crate) struct Upload {
    /// Bytes of what is held that phase 2 saw.
    shown: usize,
    /// Bytes that it may have.
    limit: u64,
}

impl Upload {
    /// It decoded to more than it may have.
    pub(crate) fn is_over(self, transaction: &Transaction) -> bool {
        transaction.life.outcome.request_body_bytes > self.limit
    }
}

/// Why there is no body to go on with.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// Larger than the limit, and the policy is to refuse.
    OverLimit,
    /// Too much is held already.
    NoMemory(Full),
    /// The client is too slow.
    Late,
    /// The client has gone.
    Gone,
    /// Not a body.
    Malformed(BodyError),
}

impl Body {
    /// All of it is here.
    fn whole(held: ByteBuf, trailers: Trailers, share: Held) -> Body {
        Body { held, trailers, share: Some(share), present: true, ..Body::default() }
    }

    /// Everything of it has been read from the client.
    pub(crate) fn is_read(&self) -> bool {
        self.rest.is_none()
    }

    /// Puts another body in the place of the one that is held.
    pub(crate) fn replace(&mut self, body: Vec<u8>) -> Result<(), NoMemory> {
        let more = body.len().saturating_sub(self.held.len());
        if self.share.as_mut().is_some_and(|share| !share.grow(more)) {
            return Err(NoMemory);
        }
        (self.held, self.rewritten) = (body.into(), true);
        Ok(())
    }

    /// Inspects the held part of an upload that phase 2 did not see, and its end, if it has come.
    pub(crate) async fn inspect_upload(&self, transaction: &mut Transaction, shared: &Shared) -> Step {
        let Some(upload) = self.upload else { return Step::Continue };
        transaction.upload(&self.held[upload.shown..], self.rest.is_none(), shared).await
    }

    /// Releases the held part of an upload: it has been sent, and cannot be sent again.
    pub(crate) fn let_go(&mut self) {
        if self.upload.is_some() && self.rest.is_some() {
            (self.held, self.share) = (ByteBuf::new(), None);
        }
    }

    /// Bytes that are charged for what is held.
    pub(crate) fn charged(&self) -> u64 {
        self.share.as_ref().map_or(0, Held::bytes)
    }

    /// Rules saw only the first part.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated
    }
}

/// Reads as much of the body as the rules want to see. What comes behind it may go on if it is one of
/// `trailers`, in lower case.
pub(crate) async fn take(exchange: &mut Exchange<'_>, trailers: &[String]) -> Result<Body, Obstacle> {
    let framing = exchange.head.framing();
    if framing == BodyFraming::None {
        return Ok(Body::default());
    }
    let decoder = exchange.connection.body_decoder(framing);
    let transaction = &mut exchange.transaction;
    let plan = transaction.life.request_body_plan();
    let (limit, over) = match agents::request_plan(transaction, plan) {
        BodyPlan::Skip => {
            let rest = (!decoder.is_done()).then_some(decoder);
            return Ok(Body { rest, present: true, ..Body::default() });
        }
        BodyPlan::Hold { limit_bytes, over_limit } => (limit_bytes, over_limit),
    };
    let declared = if let BodyFraming::Length(length) = framing { Some(length) } else { None };
    // Other readers of bodies get what is held.
    let uploads = match transaction.agents {
        None => transaction.life.upload_limit(),
        Some(_) => None,
    };
    let most = uploads.unwrap_or(limit);
    if over == BodyLimitAction::Reject && declared.is_some_and(|length| length > most) {
        return Err(Obstacle::OverLimit);
    }
    if exchange.head.expects_continue() && exchange.connection.input.unread().is_empty() {
        let sent = sink::send_continue(exchange.connection, exchange.generation.timeouts.write).await;
        sent.map_err(|_| Obstacle::Gone)?;
    }
    let bounds = Bounds { limit, over, uploads, expected: declared };
    let mut body = hold(exchange, decoder, bounds).await?;
    let came = body.trailers.len();
    // Trailers that nobody inspects do not go on.
    let is_inspected = plan != BodyPlan::Skip && !body.truncated;
    body.trailers.keep(if is_inspected { trailers } else { &[] });
    exchange.transaction.trailers_dropped = (came - body.trailers.len()) as u32;
    Ok(body)
}

/// The limits within which a body is held.
struct Bounds {
    limit: u64,
    /// The policy for a longer one.
    over: BodyLimitAction,
    /// Bytes that an upload may have which goes on while it is inspected, if the body may be one.
    uploads: Option<u64>,
    /// Bytes that the client promises.
    expected: Option<u64>,
}

async fn hold(
    exchange: &mut Exchange<'_>,
    mut decoder: BodyDecoder,
    Bounds { mut limit, over, uploads, expected }: Bounds,
) -> Result<Body, Obstacle> {
    let Exchange { connection, generation, transaction, .. } = exchange;
    transaction.charge(connection);
    let mut share = connection.memory(transaction.client().ip());
    let mut held = ByteBuf::new();
    let piece_max = if transaction.life.is_request_coded() { CODED_PIECE_BYTES } else { usize::MAX };
    let mut unfinished = None;
    let mut turn = transaction.life.cost();
    let timeouts = &generation.timeouts;
    let deadline = Instant::now() + timeouts.body_total;
    loop {
        while !decoder.is_done() && !connection.input.unread().is_empty() {
            let unread = connection.input.unread().len().min(piece_max);
            if uploads.is_some() {
                // What may go on while it is inspected does so before it has all that its client may have.
                let copies = unread.saturating_mul(transaction.life.request_copies());
                let more = copies.saturating_add(transaction.life.request_end_bytes());
                if share.takes_most(more, transaction.charged()) {
                    limit = limit.min(held.len() as u64);
                }
            }
            let room = usize::try_from(limit - held.len() as u64).unwrap_or(usize::MAX);
            // One byte more than there is room for tells a body that fits from one that does not.
            let length = unread.min(room.saturating_add(1));
            let copies = length.saturating_mul(transaction.life.request_copies());
            if share.reserve(copies).is_err() {
                let beside = transaction.charged();
                share.wait_to_reserve(copies, beside).await.map_err(Obstacle::NoMemory)?;
            }
            let offered = &connection.input.unread()[..length];
            let step = decoder.decode(offered).map_err(Obstacle::Malformed)?;
            let fits = step.data.len().min(room);
            if held.is_empty() {
                let expected = expected.unwrap_or(step.data.len() as u64).min(limit);
                held.expect(usize::try_from(expected).unwrap_or(usize::MAX));
            }
            held.extend_from_slice(&step.data[..fits]);
            transaction.life.request_body(&step.data[..fits]);
            transaction.recharge();
            share.set(held.held_bytes());
            agents::body(transaction, &step.data[..fits]).await;
            transaction.life.outcome.request_body_bytes += step.data.len() as u64;
            if fits < step.data.len() {
                let upload = match over {
                    BodyLimitAction::Reject => uploads.map(|limit| Upload { shown: held.len(), limit }),
                    BodyLimitAction::ProcessPartial => {
                        uploads.map(|_| Upload { shown: held.len(), limit: u64::MAX })
                    }
                };
                match upload {
                    Some(_) => {
                        if !transaction.life.begin_upload(&held) {
                            transaction
                                .life
                                .exception(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Open);
                        }
                    }
                    None if over == BodyLimitAction::Reject => return Err(Obstacle::OverLimit),
                    None => transaction
                        .life
                        .exception(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Open),
                }
                let trailers = match decoder.is_done() {
                    true => Trailers::of(&connection.stream, &decoder).map_err(Obstacle::Malformed)?,
                    false => Trailers::default(),
                };
                let beyond = &step.data[fits..];
                held.extend_from_slice(beyond);
                let consumed = step.consumed;
                connection.input.consume(consumed);
                let rest = (!decoder.is_done()).then_some(decoder);
                let body = Body::whole(held, trailers, share);
                return Ok(Body { rest, upload, truncated: true, ..body });
            }
            let consumed = step.consumed;
            connection.input.consume(consumed);
            // What is read of it costs the worker, too: others have their turn in between.
            let cost = transaction.life.cost();
            if cost.saturating_sub(turn) >= TURN_MAX {
                turn = cost;
                tokio::task::yield_now().await;
            }
        }
        // A body that never ends has cost what it has.
        transaction.charge_time(&connection.worker.shared, Instant::now());
        if decoder.is_done() {
            let trailers = Trailers::of(&connection.stream, &decoder).map_err(Obstacle::Malformed)?;
            return Ok(Body::whole(held, trailers, share));
        }
        if unfinished.is_none() {
            unfinished = Some(share.begin_body().map_err(Obstacle::NoMemory)?);
        }
        connection.timer.arm_within(timeouts.body, deadline);
        let Connection { timer, input, stream, .. } = &mut **connection;
        let wait = async {
            tokio::select! {
                biased;
                read = input.fill(stream) => Some(read),
                () = share.shed(transaction.charged()) => None,
            }
        };
        match timer.run(wait).await {
            Err(_) => return Err(Obstacle::Late),
            Ok(None) => return Err(Obstacle::NoMemory(Full::Shed)),
            Ok(Some(Err(_))) => return Err(Obstacle::Gone),
            // A client that ends its side within the body may still read an answer.
            Ok(Some(Ok(0))) => {
                decoder.close().map_err(Obstacle::Malformed)?;
                let trailers = Trailers::of(&connection.stream, &decoder).map_err(Obstacle::Malformed)?;
                return Ok(Body::whole(held, trailers, share));
            }
            Ok(Some(Ok(_))) => {}
        }
    }
}

/// The processor time after which a body that is read lets other requests of its worker go on.
const TURN_MAX: Duration = Duration::from_millis(1);

/// A body in a content coding is taken in pieces of this size, so that what comes out of one is little.
const CODED_PIECE_BYTES: usize = 4096;
