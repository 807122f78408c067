//! A count of the requests that wait because a rule says `pause`.
//!
//! A waiting request costs a connection and what it holds, so how long one waits and how many wait at a time
//! are limited: a client that makes rules pause could otherwise exhaust both.

use std::cell::Cell;
use std::rc::Rc;

/// The requests of one worker that wait at present.
#[derive(Default)]
pub(crate) struct Pauses(Rc<Cell<usize>>);

/// Counts one that waits, until it is dropped.
pub(crate) struct PausePermit(Rc<Cell<usize>>);

impl Pauses {
    /// Counts one more, unless there are `max`.
    pub(crate) fn take(&self, max: usize) -> Option<PausePermit> {
        let waiting = self.0.get();
        (waiting < max).then(|| {
            self.0.set(waiting + 1);
            PausePermit(Rc::clone(&self.0))
        })
    }
}

impl Drop for PausePermit {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_limited_and_come_back() {
        let pauses = Pauses::default();
        let first = pauses.take(2);
        let second = pauses.take(2);
        assert!(first.is_some() && second.is_some() && pauses.take(2).is_none());
        drop(first);
        assert!(pauses.take(2).is_some());
        assert!(pauses.take(0).is_none());
    }
}
