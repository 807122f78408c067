use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

use crate::Moment;
use crate::breaker::{Breaker, BreakerState};
use crate::ejection::Ejection;

/// The state of one endpoint. All workers share it, and it outlives a reload that leaves the endpoint in
/// place.
#[derive(Debug, Default)]
#[repr(align(64))] // neighbours in memory are endpoints that other threads write to
pub struct Endpoint {
    pub(crate) breaker: Breaker,
    pub(crate) ejection: Ejection,
    /// Active checks say that it is down.
    unhealthy: AtomicBool,
    /// Requests in flight.
    active: AtomicU32,
    /// Since when it takes requests again, for slow start; 0 if it always has.
    back_since: AtomicU64,
}

impl Endpoint {
    /// An endpoint that joins a group that serves already: it starts slowly.
    pub fn joining(now: Moment) -> Endpoint {
        let endpoint = Endpoint::default();
        endpoint.is_back(now);
        endpoint
    }

    /// Active checks say that it is healthy, or nothing.
    pub fn is_healthy(&self) -> bool {
        !self.unhealthy.load(Relaxed)
    }

    /// Sets the result of active checks from now on.
    pub fn set_healthy(&self, healthy: bool, now: Moment) {
        if self.unhealthy.swap(!healthy, Relaxed) && healthy {
            self.is_back(now);
        }
    }

    /// It failed too often and is left out.
    pub fn is_ejected(&self) -> bool {
        self.ejection.is_ejected()
    }

    /// The state of its circuit breaker.
    pub fn breaker_state(&self) -> BreakerState {
        self.breaker.state()
    }

    /// Requests in flight.
    pub fn active(&self) -> u32 {
        self.active.load(Relaxed)
    }

    pub(crate) fn is_back(&self, now: Moment) {
        self.back_since.store(now.0.max(1), Relaxed);
    }

    /// Counts a request in, unless `limit` of them are there.
    pub(crate) fn enter(&self, limit: Option<u32>) -> bool {
        let Some(limit) = limit else {
            self.active.fetch_add(1, Relaxed);
            return true;
        };
        // Sequentially consistent, as is what waits for a place: it must not miss the one that is given back.
        let enter = |active| (active < limit).then(|| active + 1);
        self.active.fetch_update(SeqCst, SeqCst, enter).is_ok()
    }

    pub(crate) fn leave(&self) {
        self.active.fetch_sub(1, SeqCst);
    }

    /// The share of its weight, in 64ths, that it gets at present.
    pub(crate) fn warmth(&self, window: Option<Duration>, now: Moment) -> u64 {
        const WHOLE: u64 = 64;
        let (Some(window), since @ 1..) = (window, self.back_since.load(Relaxed)) else { return WHOLE };
        let elapsed = now.since(Moment(since)).as_millis();
        let window = window.as_millis().max(1);
        if elapsed >= window {
            return WHOLE;
        }
        // A tenth at least: without any request it would never get warm.
        (elapsed as u64 * WHOLE / window as u64).max(WHOLE / 10)
    }
}
