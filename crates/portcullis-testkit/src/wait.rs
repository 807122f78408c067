//! Waiting for what happens elsewhere: in another thread, in another process, behind an answer.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// The longest wait of a test for an event. It passes as soon as the event has happened, so that only a
/// failure takes so long.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until something is so.
#[track_caller]
pub fn until(condition: impl FnMut() -> bool) {
    becomes(true, condition);
}

/// Waits until `read` says `value`. A request, for one, is counted when its answer is out already.
#[track_caller]
pub fn becomes<T: PartialEq + Debug>(value: T, mut read: impl FnMut() -> T) {
    let start = Instant::now();
    loop {
        let now = read();
        if now == value {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "waited too long: {now:?}, not {value:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
