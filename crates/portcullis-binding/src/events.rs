//! A bounded queue of events, from the engine to the sink of the application.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Events that may wait to be taken.
const EVENTS_MAX: usize = 10_000;

/// Bytes of events that may wait.
const EVENT_BYTES_MAX: usize = 64 << 20;

/// A queue of events, each a line of JSON; clones share it. The engine never waits for it: an event for which
/// there is no room is dropped, and counted.
#[derive(Clone, Debug, Default)]
pub struct Events(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<String>,
    bytes: usize,
    dropped: u64,
}

impl Events {
    /// Adds an event, if there is room.
    pub fn push(&self, line: String) {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.lines.len() < EVENTS_MAX && queue.bytes + line.len() <= EVENT_BYTES_MAX {
            queue.bytes += line.len();
            queue.lines.push_back(line);
        } else {
            queue.dropped += 1;
        }
    }

    /// Takes all events.
    pub fn take(&self) -> Vec<String> {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.bytes = 0;
        queue.lines.drain(..).collect()
    }

    /// The number of events that were dropped.
    pub fn dropped(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).dropped
    }
}
