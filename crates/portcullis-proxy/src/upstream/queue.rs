//! Requests that wait because every endpoint has as many as it may. They are of all workers, and served in
//! their order.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use tokio::sync::{Notify, futures::Notified};

/// The queue of a group.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: AtomicU32,
    freed: Notify,
}

impl Queue {
    /// There are waiters; a new one queues behind them.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting() > 0
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.load(SeqCst)
    }

    /// Stands in line, unless `max` do.
    pub(crate) fn enter(&self, max: u32) -> Option<Waiting<'_>> {
        let enter = |waiting| (waiting < max).then(|| waiting + 1);
        self.waiting.fetch_update(SeqCst, SeqCst, enter).ok().map(|_| Waiting { queue: self })
    }

    /// An endpoint has a place again. Sequentially consistent like the number in flight: either this sees who
    /// waits, or who waits sees the place.
    pub(crate) fn freed(&self) {
        if self.is_awaited() {
            self.freed.notify_one();
        }
    }
}

/// A request in the queue.
pub(crate) struct Waiting<'q> {
    queue: &'q Queue,
}

impl Waiting<'_> {
    /// Done when a place is free and it is this one's turn.
    pub(crate) fn turn(&self) -> Notified<'_> {
        self.queue.freed.notified()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.queue.waiting.fetch_sub(1, SeqCst);
    }
}
