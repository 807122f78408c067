use std::time::Duration;

/// The longest time that a bucket takes to fill, in nanoseconds: ten years. Longer ones are cut, so that sums
/// of times fit.
const FILL_MAX: u64 = 10 * 366 * 24 * 3600 * 1_000_000_000;

/// A rate with a burst, as the generic cell rate algorithm (GCRA) has it: a leaky bucket that is one number,
/// the theoretical arrival time (TAT). Each request moves it on by the interval; a request that would move it
/// more than a burst ahead of the clock comes too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    interval: u64,
    burst: u64,
}

impl Rate {
    /// `requests` in the time `per`; `burst` of them may come at once. Each is taken as 1 if it is 0.
    pub fn new(requests: u64, per: Duration, burst: u64) -> Rate {
        let per = u64::try_from(per.as_nanos()).unwrap_or(u64::MAX).min(FILL_MAX);
        let interval = (per / requests.max(1)).max(1);
        Rate { interval, burst: burst.clamp(1, (FILL_MAX / interval).max(1)) }
    }

    /// Requests that may come at once.
    pub fn burst(self) -> u64 {
        self.burst
    }

    /// The bucket's next TAT if a request at `now` conforms, or how many nanoseconds it comes too early.
    pub fn admit(self, tat: u64, now: u64) -> Result<u64, u64> {
        let ahead = tat.saturating_sub(now);
        let tolerance = self.interval * (self.burst - 1);
        match ahead > tolerance {
            true => Err(ahead - tolerance),
            false => Ok(now + ahead + self.interval),
        }
    }

    /// Requests that could follow at `now`.
    pub fn remaining(self, tat: u64, now: u64) -> u64 {
        self.burst.saturating_sub(tat.saturating_sub(now).div_ceil(self.interval))
    }

    /// The TAT after `requests` more, admitted elsewhere; it goes no further ahead than an empty bucket's.
    pub fn charge(self, tat: u64, now: u64, requests: u64) -> u64 {
        let empty = now + self.interval * self.burst;
        tat.max(now).saturating_add(self.interval.saturating_mul(requests)).min(empty.max(tat))
    }

    /// Nanoseconds that one request is worth.
    pub fn interval(self) -> u64 {
        self.interval
    }
}
