//! The circuit breaker of an endpoint: it stops asking one that only fails, and finds out when it is back.
//!
//! ```text
//!            failures in a row                    after `open`, by the next request
//!  closed ───────────────────────> open ──────────────────────────────────> half-open
//!     ^                              ^                                          │ │
//!     │                              └──────────── a probe failed ──────────────┘ │
//!     └───────────────────────────────── probes succeeded ────────────────────────┘
//! ```
//!
//! All of it is one atomic word, so threads share it without a lock and each change has exactly one author.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::Moment;
use crate::moment::MOMENT_BITS;

/// The conditions under which a breaker opens and closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open it, 1 to 4095.
    pub failures: u16,
    /// Successful probes that close it, 1 to 4095.
    pub successes: u16,
    /// The time for which it stays open. A probe that has not reported for as long counts as lost.
    pub open: Duration,
    /// Probes in flight at one time, 1 to 63.
    pub probes: u8,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        BreakerSettings { failures: 5, successes: 2, open: Duration::from_secs(10), probes: 2 }
    }
}

/// The state of a breaker; the numbers are those of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Requests pass.
    Closed = 0,
    /// None does.
    Open = 1,
    /// Probes do.
    HalfOpen = 2,
}

/// Leave to send one request; its outcome is reported with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// The half-open time in which it is a probe.
    episode: Option<u8>,
}

impl Permit {
    /// An ordinary request's.
    pub(crate) const FREE: Permit = Permit { episode: None };

    /// The breaker waits for the outcome.
    pub fn is_probe(self) -> bool {
        self.episode.is_some()
    }
}

/// The state of a breaker. Settings come with each call, since they may change while the state stays.
#[derive(Debug, Default)]
pub struct Breaker(AtomicU64);

/// The word taken apart. `since`: when it opened, or when the last probe was let through.
#[derive(Clone, Copy)]
struct Word {
    state: BreakerState,
    /// Failures in a row when closed, successful probes when half-open.
    count: u16,
    /// Probes without a report.
    probes: u8,
    episode: u8,
    since: Moment,
}

const COUNT_BITS: u32 = 12;
const PROBE_BITS: u32 = 6;
const EPISODE_BITS: u32 = 4;
const _: () = assert!(2 + COUNT_BITS + PROBE_BITS + EPISODE_BITS + MOMENT_BITS == 64);

impl Word {
    fn unpack(word: u64) -> Word {
        let field = |shift: u32, bits: u32| (word >> shift) & ((1 << bits) - 1);
        Word {
            state: match field(0, 2) {
                0 => BreakerState::Closed,
                1 => BreakerState::Open,
                _ => BreakerState::HalfOpen,
            },
            count: field(2, COUNT_BITS) as u16,
            probes: field(2 + COUNT_BITS, PROBE_BITS) as u8,
            episode: field(2 + COUNT_BITS + PROBE_BITS, EPISODE_BITS) as u8,
            since: Moment(word >> (64 - MOMENT_BITS)),
        }
    }

    fn pack(self) -> u64 {
        let count = u64::from(self.count.min((1 << COUNT_BITS) - 1));
        let probes = u64::from(self.probes.min((1 << PROBE_BITS) - 1));
        self.state as u64
            | count << 2
            | probes << (2 + COUNT_BITS)
            | u64::from(self.episode) << (2 + COUNT_BITS + PROBE_BITS)
            | self.since.packed() << (64 - MOMENT_BITS)
    }

    /// Lets the first probe of a half-open time through. Reports of earlier probes no longer count.
    fn first_probe(self, now: Moment) -> Word {
        let count = if self.state == BreakerState::HalfOpen { self.count } else { 0 };
        let episode = (self.episode + 1) % (1 << EPISODE_BITS);
        Word { state: BreakerState::HalfOpen, count, probes: 1, episode, since: now }
    }

    /// The word once a request was let through; none if it may not.
    fn admit(self, settings: &BreakerSettings, now: Moment) -> Option<Word> {
        let is_time = now.since(self.since) >= settings.open;
        match self.state {
            BreakerState::Closed => Some(self),
            BreakerState::Open => is_time.then(|| self.first_probe(now)),
            BreakerState::HalfOpen if self.probes < settings.probes => {
                Some(Word { probes: self.probes + 1, since: now, ..self })
            }
            // Probes that do not report, because their client went away or we are at fault, must not block
            // for ever.
            BreakerState::HalfOpen => is_time.then(|| self.first_probe(now)),
        }
    }
}

impl Breaker {
    /// Returns its present state.
    pub fn state(&self) -> BreakerState {
        Word::unpack(self.0.load(Relaxed)).state
    }

    /// Returns true if a request would be let through.
    pub fn admits(&self, settings: &BreakerSettings, now: Moment) -> bool {
        let word = self.0.load(Relaxed);
        word == 0 || Word::unpack(word).admit(settings, now).is_some()
    }

    /// Leave for one request, and the new state if this changed it.
    pub fn acquire(&self, settings: &BreakerSettings, now: Moment) -> Option<(Permit, Option<BreakerState>)> {
        let mut permit = None;
        let (before, after) = self.update(|word| {
            let after = word.admit(settings, now);
            permit = after.map(|after| Permit {
                episode: (after.state == BreakerState::HalfOpen).then_some(after.episode),
            });
            after
        });
        permit.map(|permit| (permit, (before != after).then_some(after)))
    }

    /// The request was answered. The new state, if this changed it.
    pub fn succeeded(&self, permit: Permit, settings: &BreakerSettings) -> Option<BreakerState> {
        let (before, after) = self.update(|word| match (word.state, permit.episode) {
            (BreakerState::Closed, _) if word.count > 0 => Some(Word { count: 0, ..word }),
            (BreakerState::HalfOpen, Some(episode)) if episode == word.episode => {
                let count = word.count + 1;
                Some(match count >= settings.successes {
                    true => Word { state: BreakerState::Closed, count: 0, probes: 0, ..word },
                    false => Word { count, probes: word.probes.saturating_sub(1), ..word },
                })
            }
            _ => None,
        });
        (before != after).then_some(after)
    }

    /// The endpoint failed the request. The new state, if this changed it.
    pub fn failed(&self, permit: Permit, settings: &BreakerSettings, now: Moment) -> Option<BreakerState> {
        let (before, after) = self.update(|word| {
            let open = Word { state: BreakerState::Open, count: 0, probes: 0, since: now, ..word };
            match (word.state, permit.episode) {
                (BreakerState::Closed, _) if word.count + 1 >= settings.failures => Some(open),
                (BreakerState::Closed, _) => Some(Word { count: word.count + 1, ..word }),
                (BreakerState::HalfOpen, Some(episode)) if episode == word.episode => Some(open),
                // Sent before it opened, or a probe given up as lost: says nothing of the present.
                _ => None,
            }
        });
        (before != after).then_some(after)
    }

    /// Nothing is known of the request's outcome, which was not the endpoint's fault: the next one may be the
    /// probe.
    pub fn cancelled(&self, permit: Permit) {
        if !permit.is_probe() {
            return;
        }
        self.update(|word| {
            let is_of_now = word.state == BreakerState::HalfOpen && permit.episode == Some(word.episode);
            is_of_now.then(|| Word { probes: word.probes.saturating_sub(1), ..word })
        });
    }

    /// Changes the word as `change` says, if it does; the state before and after.
    fn update(&self, mut change: impl FnMut(Word) -> Option<Word>) -> (BreakerState, BreakerState) {
        let mut known = self.0.load(Relaxed);
        loop {
            let word = Word::unpack(known);
            let Some(after) = change(word) else { return (word.state, word.state) };
            let packed = after.pack();
            if packed == known {
                return (word.state, after.state);
            }
            match self.0.compare_exchange_weak(known, packed, Relaxed, Relaxed) {
                Ok(_) => return (word.state, after.state),
                Err(other) => known = other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BreakerState::{Closed, HalfOpen, Open};

    const SETTINGS: BreakerSettings =
        BreakerSettings { failures: 3, successes: 2, open: Duration::from_secs(10), probes: 2 };

    fn at(seconds: u64) -> Moment {
        Moment(seconds * 1000)
    }

    /// A breaker that three failures opened at second 0.
    fn opened() -> Breaker {
        let breaker = Breaker::default();
        for expected in [None, None, Some(Open)] {
            let (permit, change) = breaker.acquire(&SETTINGS, at(0)).expect("closed");
            assert_eq!(change, None);
            assert_eq!(breaker.failed(permit, &SETTINGS, at(0)), expected);
        }
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_and_probes_close_it() {
        let breaker = opened();
        assert_eq!(breaker.acquire(&SETTINGS, at(9)), None);
        let (first, change) = breaker.acquire(&SETTINGS, at(10)).expect("a probe");
        assert_eq!((first.is_probe(), change), (true, Some(HalfOpen)));
        let (second, change) = breaker.acquire(&SETTINGS, at(10)).expect("a second probe");
        assert_eq!((second.is_probe(), change), (true, None));
        assert_eq!(breaker.acquire(&SETTINGS, at(10)), None, "not a third one");
        assert_eq!(breaker.succeeded(first, &SETTINGS), None);
        assert_eq!(breaker.succeeded(second, &SETTINGS), Some(Closed));
        assert!(!breaker.acquire(&SETTINGS, at(10)).expect("closed").0.is_probe());
    }

    #[test]
    fn a_success_ends_the_row_of_failures() {
        let breaker = Breaker::default();
        for _ in 0..10 {
            assert_eq!(breaker.failed(Permit::FREE, &SETTINGS, at(0)), None);
            assert_eq!(breaker.failed(Permit::FREE, &SETTINGS, at(0)), None);
            breaker.succeeded(Permit::FREE, &SETTINGS);
        }
        assert_eq!(breaker.state(), Closed);
    }

    #[test]
    fn a_failed_probe_opens_it_again_for_the_whole_time() {
        let breaker = opened();
        let (probe, _) = breaker.acquire(&SETTINGS, at(12)).expect("a probe");
        assert_eq!(breaker.failed(probe, &SETTINGS, at(13)), Some(Open));
        assert!(!breaker.admits(&SETTINGS, at(22)));
        assert!(breaker.admits(&SETTINGS, at(23)));
    }

    #[test]
    fn probes_that_never_report_do_not_wedge_it() {
        let breaker = opened();
        let (lost, _) = breaker.acquire(&SETTINGS, at(10)).expect("a probe");
        breaker.acquire(&SETTINGS, at(11)).expect("a second probe");
        assert_eq!(breaker.acquire(&SETTINGS, at(20)), None);
        let (probe, change) = breaker.acquire(&SETTINGS, at(21)).expect("another try");
        assert_eq!((probe.is_probe(), change), (true, None));
        assert_eq!(breaker.failed(lost, &SETTINGS, at(22)), None, "given up as lost");
        breaker.succeeded(probe, &SETTINGS);
        let (probe, _) = breaker.acquire(&SETTINGS, at(22)).expect("the next");
        assert_eq!(breaker.succeeded(probe, &SETTINGS), Some(Closed));
    }

    #[test]
    fn a_cancelled_probe_makes_room_for_the_next() {
        let breaker = opened();
        for _ in 0..100 {
            let (probe, _) = breaker.acquire(&SETTINGS, at(10)).expect("room for a probe");
            breaker.cancelled(probe);
        }
        assert_eq!(breaker.state(), HalfOpen);
    }

    #[test]
    fn requests_from_before_it_opened_do_not_count_as_probes() {
        let breaker = opened();
        assert_eq!(breaker.succeeded(Permit::FREE, &SETTINGS), None);
        breaker.acquire(&SETTINGS, at(10)).expect("a probe");
        for _ in 0..5 {
            assert_eq!(breaker.succeeded(Permit::FREE, &SETTINGS), None);
            assert_eq!(breaker.failed(Permit::FREE, &SETTINGS, at(10)), None);
        }
        assert_eq!(breaker.state(), HalfOpen);
    }

    #[test]
    fn each_change_has_one_author() {
        let breaker = Breaker::default();
        let opened: usize = std::thread::scope(|scope| {
            let fail =
                || (0..1000).filter(|_| breaker.failed(Permit::FREE, &SETTINGS, at(0)).is_some()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(fail)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!((opened, breaker.state()), (1, Open));
    }
}
