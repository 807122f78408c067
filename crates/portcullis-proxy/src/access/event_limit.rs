//! A limit on events about refusals and failures.

use std::time::Duration;

use portcullis_access::{Key, Limiter, Rate};
use portcullis_metrics::{Counter, Registry, catalogue};

/// Events of one control in a second, and at once.
const EVENTS_PER_SECOND: u64 = 10;
const EVENTS_BURST: u64 = 100;

/// A limit on events about refusals or failures, so that a flood of these does not push attacks out of the
/// event queue.
#[derive(Debug)]
pub(crate) struct EventLimit {
    limiter: Limiter,
    key: Key,
    omitted: Counter,
}

impl EventLimit {
    pub(crate) fn new(registry: &Registry) -> EventLimit {
        EventLimit::counting(registry.counter(&catalogue::ACCESS_EVENTS_OMITTED, &[]))
    }

    /// The same with another counter of the events that are left out.
    pub(crate) fn counting(omitted: Counter) -> EventLimit {
        let limiter = Limiter::new(Rate::new(EVENTS_PER_SECOND, Duration::from_secs(1), EVENTS_BURST), 1);
        EventLimit { key: limiter.key([]), limiter, omitted }
    }

    /// True if there is room for one more event.
    pub(crate) fn admits(&self, now: u64) -> bool {
        let admits = self.limiter.check(self.key, now).wait.is_none();
        if !admits {
            self.omitted.inc();
        }
        admits
    }
}
