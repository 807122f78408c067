//! The time to within some milliseconds, for deadlines and ages: reading it costs a fifth of what
//! [`Instant::now`] does, and an exchange asks ten times. What is measured and shown takes the exact time.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

thread_local! {
    /// One moment on both clocks.
    static ANCHOR: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// The time of the last tick of the system's clock, give or take one tick (1 to 10 ms).
pub(crate) fn coarse() -> Instant {
    let ticks = ticks();
    let (instant, anchor) = ANCHOR.get().unwrap_or_else(|| {
        let both = (Instant::now(), ticks);
        ANCHOR.set(Some(both));
        both
    });
    instant + ticks.saturating_sub(anchor)
}

/// The time of the processor that this thread has had.
pub(crate) fn of_thread() -> Duration {
    duration(ClockId::ThreadCPUTime)
}

fn ticks() -> Duration {
    duration(ClockId::MonotonicCoarse)
}

fn duration(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    // Neither is negative.
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coarse_time_goes_with_the_exact_one() {
        let near = Duration::from_secs(2);
        let start = coarse();
        loop {
            let (before, now, after) = (Instant::now(), coarse(), Instant::now());
            assert!(now + near >= before && now <= after + near);
            if now >= start + Duration::from_millis(50) {
                break;
            }
        }
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}
