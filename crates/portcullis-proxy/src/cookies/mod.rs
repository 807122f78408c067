//! The cookies that the upstreams of a site have set, with their metrics, those that are expired, and those
//! that are signed.

mod expiry;
mod flags;
mod signing;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portcullis_http::message::RequestHead;
use portcullis_inspect::{CookieCounts, IssuedCookies};
use portcullis_metrics::{Counter, EnumCounters, Gauge, Registry, catalogue};

use expiry::Refusals;
pub(crate) use flags::flagged;
pub(crate) use signing::Signing;

/// Label values of cookies with findings.
const FOUND: [&str; 2] = ["issued", "unknown"];

/// Cookies of a request that are expired.
const EXPIRED_MAX: usize = 4;

/// Sender and time of a request.
pub(crate) struct Sender {
    pub(crate) client: IpAddr,
    pub(crate) is_secure: bool,
    /// In milliseconds since 1970.
    pub(crate) now: u64,
}

/// The cookies of a site. Reloads keep them.
pub(crate) struct SiteCookies {
    pub(crate) issued: Arc<IssuedCookies>,
    held: Gauge,
    bytes: Gauge,
    found: EnumCounters,
    refusals: Refusals,
    expired: Counter,
    declined: Risen,
    rotations: Risen,
    unshared: Risen,
}

/// A counter that follows a number which others let rise.
struct Risen {
    counter: Counter,
    counted: AtomicU64,
}

impl Risen {
    /// What it has risen to before is counted already.
    fn new(counter: Counter, before: u64) -> Risen {
        Risen { counter, counted: AtomicU64::new(before) }
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
    pub(crate) fn new(registry: &Registry, issued: Arc<IssuedCookies>) -> SiteCookies {
        let (now, site) = (issued.statistics(), issued.site());
        let risen = |metric, before| Risen::new(registry.counter(metric, &[site]), before);
        SiteCookies {
            held: registry.gauge(&catalogue::ISSUED_COOKIES, &[site]),
            bytes: registry.gauge(&catalogue::ISSUED_COOKIE_BYTES, &[site]),
            found: registry.enum_counters(&catalogue::ISSUED_COOKIE_FINDINGS, &[site], &FOUND),
            refusals: Refusals::default(),
            expired: registry.counter(&catalogue::EXPIRED_COOKIES, &[site]),
            declined: risen(&catalogue::ISSUED_COOKIES_DECLINED, now.declined),
            rotations: risen(&catalogue::ISSUED_COOKIE_ROTATIONS, now.rotations),
            unshared: risen(&catalogue::ISSUED_COOKIES_UNSHARED, now.unshared),
            issued,
        }
    }

    /// The fields of a refusal that expire the cookies it is for: the client was refused for them before.
    pub(crate) fn expire(&self, names: &[&[u8]], head: &RequestHead, by: &Sender) -> Vec<Vec<u8>> {
        let mut fields = Vec::new();
        for name in names.iter().take(EXPIRED_MAX) {
            let Some(cookie) = expiry::cookie_of(head.header("cookie"), name) else { continue };
            if self.refusals.note(by.client, cookie, by.now) {
                let more = expiry::fields(cookie.0, head.host(), head.path(), by.is_secure);
                self.expired.add(u64::from(!more.is_empty()));
                fields.extend(more);
            }
        }
        fields
    }

    /// Counts what an exchange had, and what became of the cookies since the one before.
    pub(crate) fn count(&self, found: CookieCounts) {
        for (of, count) in
            [found.issued, found.unknown].into_iter().enumerate().filter(|(_, count)| *count > 0)
        {
            self.found.add(of, count.into());
        }
        let now = self.issued.statistics();
        for (gauge, now) in [(&self.held, now.held), (&self.bytes, now.bytes as u64)] {
            let now = i64::try_from(now).unwrap_or(i64::MAX);
            if gauge.value() != now {
                gauge.set(now);
            }
        }
        self.declined.follow(now.declined);
        self.rotations.follow(now.rotations);
        self.unshared.follow(now.unshared);
    }
}
