//! The time to within some milliseconds, for deadlines and ages: reading it costs a fifth of what
//! [`Instant::now`] does, and an exchange asks ten times. What is measured and shown takes the exact time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use portcullis_event::Timestamp;
use portcullis_exchange::WorkClock;
use rustix::time::{ClockId, clock_gettime};

thread_local! {
    /// One moment on both clocks.
    static ANCHOR: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
    /// The processor time of this thread at some moment.
    static WORKED: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
    /// The second since 1970 that was written last, and its text.
    static DATE: RefCell<Option<(u64, Rc<str>)>> = const { RefCell::new(None) };
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

/// Work that takes less time on the clock is taken for processor time as it is; of longer work a part may be
/// the time of other programs.
const ASKED_FROM: Duration = Duration::from_micros(400);
/// For so long the processor time of the thread is not read again: asking the system costs as much as some
/// hundred instructions.
const KNOWN_FOR: Duration = Duration::from_micros(200);

/// Work begins at `start`, which is now: see [`work_since`].
fn begin_work(start: Instant) {
    let is_known = |(at, _): (Instant, Duration)| start.saturating_duration_since(at) < KNOWN_FOR;
    if !WORKED.get().is_some_and(is_known) {
        WORKED.set(Some((start, of_thread())));
    }
}

/// The processor time of work that began at `start`, as given to [`begin_work`], and ends `now`: exact to
/// [`KNOWN_FOR`] where it took longer than [`ASKED_FROM`], whatever else ran on the processor meanwhile.
fn work_since(start: Instant, now: Instant) -> Duration {
    let passed = now.saturating_duration_since(start);
    let Some((_, before)) = WORKED.get().filter(|_| passed >= ASKED_FROM) else { return passed };
    let worked = of_thread();
    WORKED.set(Some((now, worked)));
    passed.min(worked.saturating_sub(before))
}

/// Measures inspection.
pub(crate) const WORK: WorkClock = WorkClock { begin: begin_work, since: work_since };

/// `Date` of an answer that has none, written anew once a second.
pub(crate) fn http_date() -> Rc<str> {
    let second = duration(ClockId::RealtimeCoarse).as_secs();
    let known = DATE
        .with_borrow(|date| date.as_ref().filter(|(of, _)| *of == second).map(|(_, text)| Rc::clone(text)));
    known.unwrap_or_else(|| {
        let text: Rc<str> = Timestamp::from_epoch_millis(second * 1000).http_date().into();
        DATE.set(Some((second, Rc::clone(&text))));
        text
    })
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
    fn work_is_processor_time_and_waiting_is_not() {
        let start = Instant::now();
        begin_work(start);
        std::thread::sleep(Duration::from_millis(30));
        let waited = work_since(start, Instant::now());
        assert!(waited < Duration::from_millis(10), "{waited:?}");
        let (start, before) = (Instant::now(), of_thread());
        begin_work(start);
        while of_thread() - before < Duration::from_millis(20) {}
        let worked = work_since(start, Instant::now());
        let sum = of_thread() - before;
        assert!(worked >= Duration::from_millis(20) && worked <= sum + KNOWN_FOR, "{worked:?} of {sum:?}");
    }

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
