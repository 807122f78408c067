//! One timer for each connection, cheap to re-arm.
//!
//! A connection changes its deadline several times for each request, and almost none of them expires. So
//! arming is a store to a cell; a single task of the worker looks at all cells every [`TICK`] and wakes what
//! has expired. A timeout is late by up to one tick, which no setting cares about.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::clock;
use crate::network::NetworkKey;

/// The time between two looks at deadlines.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// All timers of a worker.
#[derive(Default)]
pub(crate) struct Timers {
    live: RefCell<Vec<Weak<Slot>>>,
}

#[derive(Default)]
struct Slot {
    deadline: Cell<Option<Instant>>,
    /// The connection waits for its next request.
    idle: Cell<bool>,
    /// There is no request on the connection that would be lost with it, and since when that is so.
    spare: Cell<Option<Instant>>,
    /// The connection is to end at once: others need its place.
    evicted: Cell<bool>,
    /// The client network of the connection, unless it is a trusted proxy's.
    network: Cell<Option<NetworkKey>>,
    waker: RefCell<Option<Waker>>,
}

/// The timer of one connection.
pub(crate) struct Timer {
    slot: Rc<Slot>,
}

/// The time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elapsed;

impl Timers {
    /// A timer that is not armed.
    pub(crate) fn timer(&self) -> Timer {
        let slot = Rc::new(Slot::default());
        self.live.borrow_mut().push(Rc::downgrade(&slot));
        Timer { slot }
    }

    /// The same for a connection of a client network.
    pub(crate) fn timer_of(&self, network: Option<NetworkKey>) -> Timer {
        let timer = self.timer();
        timer.slot.network.set(network);
        timer
    }

    /// Ends up to `most` connections that carry no request, those that have waited longest first, of one
    /// client network: `network`, or that for which `weight` gives most. Tells how many.
    pub(crate) fn evict(
        &self,
        network: Option<NetworkKey>,
        weight: impl Fn(NetworkKey) -> usize,
        most: usize,
    ) -> usize {
        let live = self.live.borrow();
        let spare = || {
            let live = live.iter().filter_map(Weak::upgrade);
            live.filter_map(|slot| {
                let (since, key) = (slot.spare.get()?, slot.network.get()?);
                (!slot.evicted.get()).then_some((since, key, slot))
            })
        };
        let chosen = network.or_else(|| spare().map(|(_, key, _)| key).max_by_key(|key| weight(*key)));
        let Some(chosen) = chosen else { return 0 };
        let mut found: Vec<(Instant, Rc<Slot>)> =
            spare().filter(|(_, key, _)| *key == chosen).map(|(since, _, slot)| (since, slot)).collect();
        found.sort_unstable_by_key(|(since, _)| *since);
        found.truncate(most);
        for (_, slot) in &found {
            slot.evicted.set(true);
            slot.deadline.set(Some(clock::coarse()));
            if let Some(waker) = slot.waker.borrow_mut().take() {
                waker.wake();
            }
        }
        found.len()
    }

    /// Wakes every task whose deadline has passed, and forgets timers that are gone.
    pub(crate) fn expire(&self, now: Instant) {
        self.live.borrow_mut().retain(|slot| {
            let Some(slot) = slot.upgrade() else { return false };
            if slot.deadline.get().is_some_and(|deadline| deadline <= now)
                && let Some(waker) = slot.waker.borrow_mut().take()
            {
                waker.wake();
            }
            true
        });
    }

    /// Ends the wait of every connection that has no request in flight.
    pub(crate) fn expire_idle(&self) {
        let now = clock::coarse();
        for slot in self.live.borrow().iter().filter_map(Weak::upgrade) {
            if slot.idle.get() {
                slot.deadline.set(Some(now));
            }
        }
        self.expire(now);
    }
}

impl Timer {
    /// The deadline is `after` from now, whatever it was.
    pub(crate) fn arm(&self, after: Duration) {
        self.slot.idle.set(false);
        self.slot.spare.set(None);
        self.slot.deadline.set(Some(clock::coarse() + after));
    }

    /// As [`arm`](Timer::arm), for a wait that draining cuts short.
    pub(crate) fn arm_idle(&self, after: Duration) {
        self.arm(after);
        self.slot.idle.set(true);
    }

    /// The connection may be closed where others need its place: it has no whole request.
    pub(crate) fn spare(&self) {
        self.slot.spare.set(Some(clock::coarse()));
    }

    /// There is a request on the connection.
    pub(crate) fn busy(&self) {
        self.slot.spare.set(None);
    }

    /// The connection is to end at once.
    pub(crate) fn is_evicted(&self) -> bool {
        self.slot.evicted.get()
    }

    /// The connection turned out to be of another network.
    pub(crate) fn set_network(&self, network: Option<NetworkKey>) {
        self.slot.network.set(network);
    }

    /// The deadline is `after` from now, or `limit` if that is earlier.
    pub(crate) fn arm_within(&self, after: Duration, limit: Instant) {
        self.slot.idle.set(false);
        self.slot.spare.set(None);
        self.slot.deadline.set(Some((clock::coarse() + after).min(limit)));
    }

    /// Runs `work` until it is done or the deadline passes. `work` may re-arm the timer.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Elapsed> {
        Timed { timer: self, work: pin!(work) }.await
    }
}

struct Timed<'a, F> {
    timer: &'a Timer,
    work: Pin<&'a mut F>,
}

impl<T, F: Future<Output = T>> Future for Timed<'_, F> {
    type Output = Result<T, Elapsed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(done) = self.work.as_mut().poll(context) {
            return Poll::Ready(Ok(done));
        }
        let slot = &self.timer.slot;
        if slot.deadline.get().is_some_and(|deadline| deadline <= clock::coarse()) {
            return Poll::Ready(Err(Elapsed));
        }
        let mut waker = slot.waker.borrow_mut();
        match &mut *waker {
            Some(known) if known.will_wake(context.waker()) => {}
            other => *other = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}
