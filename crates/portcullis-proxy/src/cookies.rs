//! The cookies that the upstreams of a site have set, and their metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portcullis_inspect::{CookieCounts, IssuedCookies};
use portcullis_metrics::{Counter, EnumCounters, Gauge, Registry, catalogue};

/// Label values of cookies with findings.
const FOUND: [&str; 2] = ["issued", "unknown"];

/// The cookies of a site. Reloads keep them.
pub(crate) struct SiteCookies {
    pub(crate) issued: Arc<IssuedCookies>,
    held: Gauge,
    found: EnumCounters,
    declined: Risen,
    rotations: Risen,
}

/// A counter that follows a number which others let rise.
struct Risen {
    counter: Counter,
    counted: AtomicU64,
}

impl Risen {
    fn new(counter: Counter) -> Risen {
        Risen { counter, counted: AtomicU64::new(0) }
    }

    fn follow(&self, now: u64) {
        let before = self.counted.load(Ordering::Relaxed);
        // Of two that see the same rise one counts it.
        let counts =
            |before| self.counted.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if now > before && counts(before) {
            self.counter.add(now - before);
        }
    }
}

impl SiteCookies {
    pub(crate) fn new(registry: &Registry, site: &str) -> SiteCookies {
        SiteCookies {
            issued: Arc::default(),
            held: registry.gauge(&catalogue::ISSUED_COOKIES, &[site]),
            found: registry.enum_counters(&catalogue::ISSUED_COOKIE_FINDINGS, &[site], &FOUND),
            declined: Risen::new(registry.counter(&catalogue::ISSUED_COOKIES_DECLINED, &[site])),
            rotations: Risen::new(registry.counter(&catalogue::ISSUED_COOKIE_ROTATIONS, &[site])),
        }
    }

    /// Counts what an exchange had, and what became of the cookies since the one before.
    pub(crate) fn count(&self, found: CookieCounts) {
        for (of, count) in
            [found.issued, found.unknown].into_iter().enumerate().filter(|(_, count)| *count > 0)
        {
            self.found.add(of, count.into());
        }
        let now = self.issued.statistics();
        let held = i64::try_from(now.held).unwrap_or(i64::MAX);
        if self.held.value() != held {
            self.held.set(held);
        }
        self.declined.follow(now.declined);
        self.rotations.follow(now.rotations);
    }
}
