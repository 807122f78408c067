//! The retry budget of a group: retries are a share of the requests, so that they cannot multiply the load of
//! endpoints that are overloaded already.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Moment;
use crate::moment::MOMENT_BITS;

/// Limits on retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetSettings {
    /// Retries for each hundred requests.
    pub percent: u16,
    /// And this many each second, so that a quiet group has some, too.
    pub per_second: u16,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        BudgetSettings { percent: 20, per_second: 10 }
    }
}

/// Hundredths of a retry.
const RETRY: u64 = 100;
/// Seconds of `per_second` that can be saved up; and the retries that requests can save up.
const SAVED_SECONDS: u64 = 10;
const SAVED_RETRIES: u64 = 100;
const CREDIT_BITS: u32 = 64 - MOMENT_BITS;

impl BudgetSettings {
    /// Hundredths that can be saved up.
    fn credit_max(&self) -> u64 {
        let saved = if self.percent > 0 { SAVED_RETRIES } else { 0 };
        ((u64::from(self.per_second) * SAVED_SECONDS).max(saved) * RETRY).min((1 << CREDIT_BITS) - 1)
    }
}

/// The state of a budget: one word, credit and the time up to which `per_second` is in it. Inverted (it holds
/// what was spent), so that a new one is full.
#[derive(Debug, Default)]
pub struct Budget(AtomicU64);

impl Budget {
    /// A request (not a retry) was sent.
    pub fn earn(&self, settings: &BudgetSettings) {
        // Almost always nothing has been spent, and nothing is written.
        if self.0.load(Relaxed) & ((1 << CREDIT_BITS) - 1) == 0 {
            return;
        }
        let earn = |word: u64| {
            let spent = word & ((1 << CREDIT_BITS) - 1);
            (spent > 0).then(|| word - spent.min(u64::from(settings.percent)))
        };
        let _ = self.0.fetch_update(Relaxed, Relaxed, earn);
    }

    /// Takes one retry out; false if there is none.
    pub fn spend(&self, settings: &BudgetSettings, now: Moment) -> bool {
        let spend = |word: u64| {
            let (spent, until) = (word & ((1 << CREDIT_BITS) - 1), Moment(word >> CREDIT_BITS));
            let milliseconds = u64::try_from(now.since(until).as_millis()).unwrap_or(u64::MAX);
            let earned = milliseconds.saturating_mul(u64::from(settings.per_second) * RETRY) / 1000;
            // A fraction too small to count is kept in the time.
            let (spent, until) = match earned {
                0 => (spent, until),
                _ => (spent.saturating_sub(earned), Moment(until.0.max(now.0))),
            };
            let spent = spent + RETRY;
            (spent <= settings.credit_max()).then(|| until.packed() << CREDIT_BITS | spent)
        };
        self.0.fetch_update(Relaxed, Relaxed, spend).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn it_is_never_exceeded() {
        // Whatever comes when: retries are at most what could be saved, the share of the requests and the
        // rate.
        for seed in 1..100 {
            let mut random = Random::new(seed);
            let settings =
                BudgetSettings { percent: random.below(60) as u16, per_second: random.below(20) as u16 };
            let budget = Budget::default();
            let start = 1_000_000;
            let (mut now, mut requests, mut retries) = (start, 0, 0);
            for _ in 0..5_000 {
                now += random.below(20);
                for _ in 0..random.below(4) {
                    budget.earn(&settings);
                    requests += 1;
                }
                retries += u64::from(budget.spend(&settings, Moment(now)));
                let rate = (now - start) * u64::from(settings.per_second) / 10;
                let allowed = settings.credit_max() + requests * u64::from(settings.percent) + rate;
                assert!(
                    retries * RETRY <= allowed + RETRY,
                    "seed {seed}: {retries} retries, {requests} requests"
                );
            }
            let enough = settings.percent > 0 || settings.per_second > 0;
            assert_eq!(retries > 0, enough, "seed {seed}");
        }
    }

    #[test]
    fn a_quiet_group_gets_its_rate() {
        let settings = BudgetSettings { percent: 0, per_second: 2 };
        let budget = Budget::default();
        let mut now = Moment(5_000_000);
        assert_eq!((0..100).filter(|_| budget.spend(&settings, now)).count(), 20, "ten seconds' worth");
        let mut retries = 0;
        for _ in 0..1000 {
            now = Moment(now.0 + 10);
            retries += u64::from(budget.spend(&settings, now));
        }
        assert_eq!(retries, 20, "ten seconds of small steps");
    }

    #[test]
    fn nothing_is_nothing() {
        let settings = BudgetSettings { percent: 0, per_second: 0 };
        assert!(!Budget::default().spend(&settings, Moment(1)));
    }
}
