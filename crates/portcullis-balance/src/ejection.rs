//! Passive ejection (outlier detection): an endpoint that fails several requests in a row is left out for a
//! while, longer each time. Which endpoints may be ejected at all is decided by the [set](crate::Endpoints),
//! which never gives up all endpoints.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::Moment;
use crate::moment::MOMENT_BITS;

/// The conditions and durations of ejections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EjectionSettings {
    /// Failures in a row; at least 1.
    pub failures: u16,
    /// Duration of the first ejection; doubled each time that the endpoint is ejected again soon.
    pub time: Duration,
    /// The longest time.
    pub time_max: Duration,
    /// Endpoints ejected at one time, in percent of all; one may always be, the last one never.
    pub share_max_percent: u8,
}

impl Default for EjectionSettings {
    fn default() -> Self {
        EjectionSettings {
            failures: 3,
            time: Duration::from_secs(5),
            time_max: Duration::from_secs(300),
            share_max_percent: 50,
        }
    }
}

impl EjectionSettings {
    /// Returns the number of endpoints that may be ejected, out of `count`.
    pub(crate) fn ejected_max(&self, count: usize) -> usize {
        (count * usize::from(self.share_max_percent) / 100).max(1).min(count.saturating_sub(1))
    }

    fn time_of(&self, times: u8) -> Duration {
        self.time.saturating_mul(1 << times.saturating_sub(1).min(20)).min(self.time_max)
    }
}

/// The state of one endpoint: one word, so that threads share it without a lock.
#[derive(Debug, Default)]
pub(crate) struct Ejection(AtomicU64);

#[derive(Clone, Copy)]
struct Word {
    /// In a row.
    failures: u16,
    /// Ejections without a good time between them.
    times: u8,
    ejected: bool,
    /// The end of the present or last ejection.
    until: Moment,
}

const TIMES_BITS: u32 = 7;
const _: () = assert!(16 + TIMES_BITS + 1 + MOMENT_BITS == 64);

impl Word {
    fn unpack(word: u64) -> Word {
        Word {
            failures: word as u16,
            times: (word >> 16) as u8 & ((1 << TIMES_BITS) - 1),
            ejected: word >> (16 + TIMES_BITS) & 1 == 1,
            until: Moment(word >> (64 - MOMENT_BITS)),
        }
    }

    fn pack(self) -> u64 {
        u64::from(self.failures)
            | u64::from(self.times.min((1 << TIMES_BITS) - 1)) << 16
            | u64::from(self.ejected) << (16 + TIMES_BITS)
            | self.until.packed() << (64 - MOMENT_BITS)
    }
}

impl Ejection {
    pub(crate) fn is_ejected(&self) -> bool {
        let word = self.0.load(Relaxed);
        word != 0 && Word::unpack(word).ejected
    }

    pub(crate) fn succeeded(&self) {
        if self.0.load(Relaxed) as u16 != 0 {
            self.update(|word| (word.failures > 0).then_some(Word { failures: 0, ..word }));
        }
    }

    /// Counts a failure; true if there are enough of them to eject.
    pub(crate) fn failed(&self, settings: &EjectionSettings) -> bool {
        let after = self.update(|word| Some(Word { failures: word.failures.saturating_add(1), ..word }));
        after.is_some_and(|word| !word.ejected && word.failures >= settings.failures)
    }

    /// Ejects, for the time returned; none if it is ejected already.
    pub(crate) fn eject(&self, settings: &EjectionSettings, now: Moment) -> Option<Duration> {
        let mut time = Duration::ZERO;
        self.update(|word| {
            let good_since = now.since(word.until);
            let times = match good_since > settings.time_of(word.times) {
                true => 1,
                false => word.times.saturating_add(1),
            };
            time = settings.time_of(times);
            let ejected = Word { failures: 0, times, ejected: true, until: now.after(time) };
            (!word.ejected).then_some(ejected)
        })
        .map(|_| time)
    }

    /// Takes it back in if its time is up; true for the one caller that did.
    pub(crate) fn end(&self, now: Moment) -> bool {
        let end = |word: Word| Word { ejected: false, failures: 0, ..word };
        self.update(|word| (word.ejected && word.until <= now).then(|| end(word))).is_some()
    }

    /// The word after `change`, if it changed anything.
    fn update(&self, mut change: impl FnMut(Word) -> Option<Word>) -> Option<Word> {
        let changed = |known| change(Word::unpack(known)).map(Word::pack);
        let before = self.0.fetch_update(Relaxed, Relaxed, changed).ok()?;
        change(Word::unpack(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_doubles_while_it_keeps_failing_and_starts_anew_after_a_good_time() {
        let settings = EjectionSettings { time_max: Duration::from_secs(30), ..EjectionSettings::default() };
        let ejection = Ejection::default();
        let mut now = Moment(1_000_000);
        for seconds in [5, 10, 20, 30, 30] {
            assert_eq!([0; 3].map(|_| ejection.failed(&settings)), [false, false, true]);
            assert_eq!(ejection.eject(&settings, now), Some(Duration::from_secs(seconds)));
            assert_eq!(ejection.eject(&settings, now), None, "it is ejected already");
            let end = now.after(Duration::from_secs(seconds));
            assert!(!ejection.end(Moment(end.0 - 1)) && ejection.is_ejected());
            assert!(ejection.end(end) && !ejection.end(end) && !ejection.is_ejected());
            now = end.after(Duration::from_secs(1));
        }
        now = now.after(Duration::from_secs(60));
        assert_eq!(ejection.eject(&settings, now), Some(Duration::from_secs(5)));
    }

    #[test]
    fn only_failures_in_a_row_count() {
        let (settings, ejection) = (EjectionSettings::default(), Ejection::default());
        for _ in 0..10 {
            assert!(!ejection.failed(&settings) && !ejection.failed(&settings));
            ejection.succeeded();
        }
    }

    #[test]
    fn the_last_endpoint_is_never_ejected() {
        let share = |percent| EjectionSettings { share_max_percent: percent, ..EjectionSettings::default() };
        for (percent, count, expected) in
            [(50, 1, 0), (50, 2, 1), (10, 2, 1), (100, 2, 1), (100, 10, 9), (50, 10, 5), (50, 0, 0)]
        {
            assert_eq!(share(percent).ejected_max(count), expected, "{percent} % of {count}");
        }
    }
}
