//! `pause` of a rule: a request that waits, within limits.
//!
//! A waiting request costs a connection and what it holds, so how long one waits and how many wait at a time are
//! limited: whoever could make a rule pause could otherwise make us run out of both.

use std::cell::Cell;
use std::rc::Rc;

use portcullis_metrics::Pause;

use crate::connection::Connection;
use crate::generation::Generation;
use crate::transaction::Transaction;

/// The requests of one worker that wait at present.
#[derive(Default)]
pub(crate) struct Pauses(Rc<Cell<usize>>);

/// A place among them, given back when dropped.
struct Place(Rc<Cell<usize>>);

impl Pauses {
    fn take(&self, max: usize) -> Option<Place> {
        let waiting = self.0.get();
        (waiting < max).then(|| {
            self.0.set(waiting + 1);
            Place(Rc::clone(&self.0))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Waits as long as the rules that have just run asked for.
pub(crate) async fn rest(connection: &Connection, generation: &Generation, transaction: &mut Transaction) {
    let asked = transaction.inspection.take_pause();
    if asked.is_zero() {
        return;
    }
    let counters = &connection.worker.shared.services.metrics.pauses;
    let Some(_place) = connection.worker.pauses.take(generation.pauses_max) else {
        return counters.inc(Pause::Skipped as usize);
    };
    let kind = if asked > generation.pause_max { Pause::Shortened } else { Pause::Full };
    counters.inc(kind as usize);
    connection.timer.arm(asked.min(generation.pause_max));
    let _ = connection.timer.run(std::future::pending::<()>()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_limited_and_come_back() {
        let pauses = Pauses::default();
        let first = pauses.take(2);
        let second = pauses.take(2);
        assert!(first.is_some() && second.is_some() && pauses.take(2).is_none());
        drop(first);
        assert!(pauses.take(2).is_some());
        assert!(pauses.take(0).is_none());
    }
}
