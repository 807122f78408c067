//! The end of a sink towards its receiver.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_event::Event;

/// Events that an output gets at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batches {
    /// Events at most, at least 1.
    pub(crate) events_max: usize,
    /// How long one waits for others.
    pub(crate) time: Duration,
}

/// What became of a batch. The events of it that are not counted here are still to be delivered.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Of the first events of the batch, so many are settled.
    pub(crate) settled: usize,
    /// Of these, so many were delivered.
    pub(crate) sent: u64,
    /// The others, by reason.
    pub(crate) dropped: Vec<(usize, u64)>,
    /// Why the others are not.
    pub(crate) failure: Option<Failure>,
}

/// A receiver took nothing more for now.
#[derive(Debug)]
pub(crate) struct Failure {
    /// For the operator; without secrets.
    pub(crate) why: String,
    /// When it wants to be asked again.
    pub(crate) after: Option<Duration>,
}

impl Outcome {
    /// All of a batch is delivered.
    pub(crate) fn all(count: usize) -> Outcome {
        Outcome { settled: count, sent: count as u64, ..Outcome::default() }
    }

    /// All of a batch is lost.
    pub(crate) fn none(count: usize, reason: usize) -> Outcome {
        Outcome { settled: count, dropped: vec![(reason, count as u64)], ..Outcome::default() }
    }

    /// Nothing of it is settled.
    pub(crate) fn failed(why: String, after: Option<Duration>) -> Outcome {
        Outcome { failure: Some(Failure { why, after }), ..Outcome::default() }
    }
}

/// Delivers events. It may block for as long as the time limits of the sink allow.
pub(crate) trait Output: Send {
    /// How many events it takes at a time.
    fn batches(&self) -> Batches;

    /// Delivers the events in their order.
    fn deliver(&mut self, events: &[Arc<Event>]) -> Outcome;

    /// When it wants [`tick`](Output::tick) to be called, though no event came.
    fn next_tick(&self) -> Option<Instant> {
        None
    }

    /// Something to do without an event; `ends`: it is the last time.
    fn tick(&mut self, _ends: bool) -> Outcome {
        Outcome::default()
    }

    /// A line for the operator about what it gave up for good, once.
    fn complaint(&mut self) -> Option<String> {
        None
    }
}
