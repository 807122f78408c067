use std::time::Duration;

use portcullis_access::{Key, Limiter, Rate};
use portcullis_metrics::{Counter, Registry, catalogue};

/// Events of one control in a second, and at once.
const EVENTS_PER_SECOND: u64 = 10;
const EVENTS_BURST: u64 = 100;

/// Says which of many refusals or failures make an event, so that a flood does not push attacks out of the event queue.
#[derive(Debug)]
pub(crate) struct Teller {
    limiter: Limiter,
    key: Key,
    omitted: Counter,
}

impl Teller {
    pub(crate) fn new(registry: &Registry) -> Teller {
        Teller::counting(registry.counter(&catalogue::ACCESS_EVENTS_OMITTED, &[]))
    }

    /// One that counts what makes no event here.
    pub(crate) fn counting(omitted: Counter) -> Teller {
        let limiter = Limiter::new(Rate::new(EVENTS_PER_SECOND, Duration::from_secs(1), EVENTS_BURST), 1);
        Teller { key: limiter.key([]), limiter, omitted }
    }

    /// True if there is to be an event.
    pub(crate) fn tells(&self, now: u64) -> bool {
        let tells = self.limiter.check(self.key, now).wait.is_none();
        if !tells {
            self.omitted.inc();
        }
        tells
    }
}
