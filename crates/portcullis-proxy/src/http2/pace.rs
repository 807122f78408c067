//! The rate at which a client must read an answer over HTTP/2 or HTTP/3.

use std::time::{Duration, Instant};

use portcullis_metrics::{EnumCounters, Http2Limit};

/// The rate at which the peer takes the answer, while that is what we wait for.
pub(crate) struct Pace {
    /// Bytes in each second.
    rate_min: u64,
    /// From when on that counts.
    grace: Duration,
    limits: EnumCounters,
    waited: Duration,
    since: Option<Instant>,
    sent: u64,
}

impl Pace {
    /// `rate_min` bytes in each second once we have waited for `grace`; `limits` counts who is slower.
    pub(crate) fn new(rate_min: u64, grace: Duration, limits: EnumCounters) -> Self {
        Pace { rate_min, grace, limits, waited: Duration::ZERO, since: None, sent: 0 }
    }

    /// The window is closed.
    pub(super) fn waits(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// The peer has taken so many bytes.
    pub(super) fn took(&mut self, count: usize) {
        self.sent += count as u64;
    }

    /// The peer is given up for it.
    pub(super) fn count_stalled(&self) {
        self.limits.inc(Http2Limit::SendRate as usize);
    }

    /// The window is open again. False if it has been closed for too long in all.
    pub(super) fn goes_on(&mut self) -> bool {
        if let Some(since) = self.since.take() {
            self.waited += since.elapsed();
        }
        self.waited <= self.grace || self.sent >= self.waited.as_secs_f64() as u64 * self.rate_min
    }
}
