//! The schedule of requests: when each is due, and which connection takes the next.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::timer::Timer;

/// A request that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Counts from 0.
    pub(crate) index: u64,
    /// The time at which it was due. Latency counts from here.
    pub(crate) due: Instant,
    /// A connection was free when it was due: what it is late by now is the generator's doing.
    pub(crate) is_free: bool,
}

/// The arrivals of one measurement. Connections that are free wait in line; the ticker wakes as many as
/// requests are due.
pub(crate) struct Schedule {
    begin: Instant,
    end: Instant,
    /// The time at which requests that are due and not sent are given up.
    give_up: Instant,
    /// Nanoseconds between two; 0: each connection sends as soon as it is free (closed loop).
    interval: f64,
    /// Requests in all.
    total: u64,
    next: Cell<u64>,
    waiting: RefCell<VecDeque<Waker>>,
    changed: Notify,
}

impl Schedule {
    /// Each connection sends as soon as it is free.
    pub(crate) fn closed(begin: Instant, duration: Duration) -> Schedule {
        Schedule::new(begin, duration, 0.0, u64::MAX)
    }

    /// So many a second, evenly.
    pub(crate) fn open(begin: Instant, duration: Duration, per_second: f64) -> Schedule {
        let total = (duration.as_secs_f64() * per_second).floor().max(1.0);
        Schedule::new(begin, duration, 1e9 / per_second, total as u64)
    }

    fn new(begin: Instant, duration: Duration, interval: f64, total: u64) -> Schedule {
        Schedule {
            begin,
            end: begin + duration,
            give_up: begin + duration + duration / 2,
            interval,
            total,
            next: Cell::new(0),
            waiting: RefCell::new(VecDeque::new()),
            changed: Notify::new(),
        }
    }

    /// The next request, when it is due; nothing once there are no more.
    pub(crate) async fn next(&self) -> Option<Slot> {
        let mut waited = false;
        poll_fn(|context| {
            let now = Instant::now();
            match self.take(now, waited) {
                Taken::Slot(slot) => Poll::Ready(Some(slot)),
                Taken::Over => Poll::Ready(None),
                Taken::Early => {
                    waited = true;
                    self.waiting.borrow_mut().push_back(context.waker().clone());
                    self.changed.notify_one();
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn take(&self, now: Instant, is_free: bool) -> Taken {
        let index = self.next.get();
        if self.interval == 0.0 {
            if now >= self.end {
                return Taken::Over;
            }
            self.next.set(index + 1);
            return Taken::Slot(Slot { index, due: now, is_free });
        }
        if index >= self.total || now >= self.give_up {
            return Taken::Over;
        }
        let due = self.due(index);
        if due > now {
            return Taken::Early;
        }
        self.next.set(index + 1);
        self.changed.notify_one();
        Taken::Slot(Slot { index, due, is_free })
    }

    fn due(&self, index: u64) -> Instant {
        self.begin + Duration::from_nanos((index as f64 * self.interval) as u64)
    }

    /// Requests that were due and could not be sent in time.
    pub(crate) fn unsent(&self) -> u64 {
        if self.interval == 0.0 { 0 } else { self.total - self.next.get().min(self.total) }
    }

    /// Wakes connections in time, until all requests are taken.
    pub(crate) async fn tick(&self, timer: &mut Timer) -> io::Result<()> {
        while self.interval > 0.0 && self.next.get() < self.total {
            let now = Instant::now();
            let due = self.due(self.next.get());
            if due > now {
                timer.sleep(due - now).await?;
                continue;
            }
            let late = (now - self.begin).as_nanos() as f64 / self.interval;
            let count = (late as u64 + 1).min(self.total).saturating_sub(self.next.get());
            for _ in 0..count {
                let Some(waker) = self.waiting.borrow_mut().pop_front() else { break };
                waker.wake();
            }
            // The next who takes one, or who is free, calls.
            self.changed.notified().await;
        }
        self.waiting.borrow_mut().drain(..).for_each(Waker::wake);
        Ok(())
    }
}

enum Taken {
    Slot(Slot),
    Early,
    Over,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(taken: Taken) -> Option<(u64, Duration)> {
        match taken {
            Taken::Slot(slot) => Some((slot.index, Duration::from_nanos(slot.index))),
            _ => None,
        }
    }

    #[test]
    fn requests_are_due_at_their_time_however_late_they_are_sent() {
        let begin = Instant::now();
        let schedule = Schedule::open(begin, Duration::from_secs(1), 1000.0);
        assert_eq!(schedule.unsent(), 1000);
        assert!(slot(schedule.take(begin, true)).is_some());
        assert!(matches!(schedule.take(begin + Duration::from_micros(999), true), Taken::Early));
        // A stall of 100 ms: all that came due meanwhile are due at their own times.
        let late = begin + Duration::from_millis(100);
        for index in 1..=100 {
            let Taken::Slot(slot) = schedule.take(late, false) else { panic!("{index} is due") };
            assert_eq!(slot.index, index);
            assert_eq!(slot.due - begin, Duration::from_millis(index));
            assert!(!slot.is_free);
        }
        assert!(matches!(schedule.take(late, false), Taken::Early));
        assert_eq!(schedule.unsent(), 1000 - 101);
    }

    #[test]
    fn what_cannot_be_sent_is_given_up_and_counted() {
        let begin = Instant::now();
        let schedule = Schedule::open(begin, Duration::from_secs(1), 10.0);
        let after = begin + Duration::from_millis(1499);
        assert!(matches!(schedule.take(after, false), Taken::Slot(_)));
        assert!(matches!(schedule.take(after + Duration::from_millis(1), false), Taken::Over));
        assert_eq!(schedule.unsent(), 9);
    }

    #[test]
    fn a_closed_loop_ends_with_its_time() {
        let begin = Instant::now();
        let schedule = Schedule::closed(begin, Duration::from_secs(1));
        assert!(matches!(schedule.take(begin, false), Taken::Slot(_)));
        assert!(matches!(schedule.take(begin + Duration::from_millis(999), false), Taken::Slot(_)));
        assert!(matches!(schedule.take(begin + Duration::from_secs(1), false), Taken::Over));
        assert_eq!(schedule.unsent(), 0);
    }
}
