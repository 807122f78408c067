//! Active health checks: how many results in a row change the mind about an endpoint, and when to look next.

use std::time::Duration;

use crate::Random;

/// Results in a row that change the state; each at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Good ones, until an unhealthy endpoint is healthy.
    pub healthy: u32,
    /// Bad ones, until a healthy endpoint is unhealthy.
    pub unhealthy: u32,
}

/// The results of checks of one endpoint so far. It begins as healthy, and the first result decides alone: an
/// endpoint that is down when the proxy starts is known as such after one check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    unhealthy: bool,
    /// Results in a row that speak against the present state; none before the first result.
    against: Option<u32>,
}

impl Checks {
    /// Checks of an endpoint about which something is known already, from before a reload.
    pub fn known(healthy: bool) -> Checks {
        Checks { unhealthy: !healthy, against: Some(0) }
    }

    /// Takes a result in. The new state (true: healthy) if this changed it.
    pub fn record(&mut self, good: bool, thresholds: Thresholds) -> Option<bool> {
        let first = self.against.is_none();
        if good != self.unhealthy {
            self.against = Some(0);
            return None;
        }
        let against = self.against.unwrap_or(0).saturating_add(1);
        let needed = if good { thresholds.healthy } else { thresholds.unhealthy };
        if against < needed && !first {
            self.against = Some(against);
            return None;
        }
        *self = Checks::known(good);
        Some(good)
    }
}

/// Returns the time until the next check: after `interval`, a tenth more or less, so that many checkers do
/// not keep step.
pub fn next_check(interval: Duration, random: &mut Random) -> Duration {
    let tenth = u64::try_from(interval.as_micros() / 10).unwrap_or(u64::MAX / 4);
    let jitter = random.below(tenth.saturating_mul(2).saturating_add(1));
    interval.saturating_sub(Duration::from_micros(tenth)) + Duration::from_micros(jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLDS: Thresholds = Thresholds { healthy: 2, unhealthy: 3 };

    #[test]
    fn it_takes_several_results_in_a_row() {
        let mut checks = Checks::default();
        let results = [true, false, false, true, false, false, false, true, false, true, true, true];
        let changes: Vec<_> = results.iter().map(|good| checks.record(*good, THRESHOLDS)).collect();
        let mut expected = [None; 12];
        (expected[6], expected[10]) = (Some(false), Some(true));
        assert_eq!(changes, expected);
    }

    #[test]
    fn the_first_result_decides_alone() {
        let mut checks = Checks::default();
        assert_eq!(checks.record(false, THRESHOLDS), Some(false));
        assert_eq!(checks.record(true, THRESHOLDS), None);
        assert_eq!(checks.record(true, THRESHOLDS), Some(true));
        assert_eq!(Checks::known(true).record(false, THRESHOLDS), None);
    }

    #[test]
    fn checks_are_spread_around_the_interval() {
        let mut random = Random::new(7);
        let times: Vec<_> =
            (0..1000).map(|_| next_check(Duration::from_secs(10), &mut random).as_millis()).collect();
        assert!(times.iter().all(|time| (9_000..=11_000).contains(time)));
        assert!(times.iter().any(|time| *time < 9_200) && times.iter().any(|time| *time > 10_800));
    }
}
