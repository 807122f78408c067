use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::thread::Thread;

use crossbeam_queue::ArrayQueue;
use portcullis_event::Event;
use portcullis_metrics::{EnumCounters, Gauge, Registry, catalogue};

use crate::DropReason;

/// Limits on the entries that wait for the writer. Entries beyond them are dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Events; default 8,192. At least 1.
    pub events_max: usize,
    /// Bytes of all events together, as [`Event::size_estimate`] sees them; default 64 MiB. A single event
    /// may be larger than that when the queue is empty.
    pub bytes_max: usize,
}

impl Default for QueueLimits {
    fn default() -> QueueLimits {
        QueueLimits { events_max: 8192, bytes_max: 64 << 20 }
    }
}

/// The workers' end of a queue. Cheap to clone.
#[derive(Debug)]
pub struct Sender<T>(Option<Arc<Queue<T>>>);

/// The workers' end of the event queue.
pub type EventSender = Sender<Event>;

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender(self.0.clone())
    }
}

impl<T: Weigh> Sender<T> {
    /// A sender without a log: entries vanish, uncounted. For runs without a log.
    pub fn disabled() -> Sender<T> {
        Sender(None)
    }

    pub(crate) fn new(queue: Arc<Queue<T>>) -> Sender<T> {
        Sender(Some(queue))
    }

    /// False if entries vanish; building one is then a waste.
    pub fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Hands `entry` to the writer, or drops and counts it. Never waits.
    pub fn submit(&self, entry: T) {
        if let Some(queue) = &self.0 {
            queue.push(entry);
        }
    }
}

/// An item of a bounded queue.
pub trait Weigh {
    /// Bytes in memory, roughly; always the same for the same item.
    fn weight(&self) -> usize;
}

impl Weigh for Event {
    fn weight(&self) -> usize {
        self.size_estimate()
    }
}

#[derive(Debug)]
pub struct Queue<T> {
    events: ArrayQueue<Box<T>>,
    bytes: AtomicUsize,
    bytes_max: usize,
    /// The writer waits until it is woken.
    asleep: AtomicBool,
    closed: AtomicBool,
    writer: std::sync::OnceLock<Thread>,
    queued: Gauge,
    dropped: EnumCounters,
}

impl Queue<Event> {
    pub(crate) fn of_events(limits: QueueLimits, registry: &Registry) -> Queue<Event> {
        let queued = registry.gauge(&catalogue::EVENTS_QUEUED, &[]);
        let dropped = registry.enum_counters(&catalogue::EVENTS_DROPPED, &["queue"], DropReason::NAMES);
        Queue::new(limits, queued, dropped)
    }
}

impl<T: Weigh> Queue<T> {
    pub(crate) fn new(limits: QueueLimits, queued: Gauge, dropped: EnumCounters) -> Queue<T> {
        Queue {
            events: ArrayQueue::new(limits.events_max.max(1)),
            bytes: AtomicUsize::new(0),
            bytes_max: limits.bytes_max,
            asleep: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            writer: std::sync::OnceLock::new(),
            queued,
            dropped,
        }
    }

    pub(crate) fn set_writer(&self, writer: Thread) {
        let _ = self.writer.set(writer);
    }

    pub(crate) fn push(&self, event: T) {
        if self.closed.load(Acquire) {
            return self.drop_events(DropReason::Shutdown, 1);
        }
        let size = event.weight();
        let before = self.bytes.fetch_add(size, AcqRel);
        if before > 0 && before.saturating_add(size) > self.bytes_max {
            self.bytes.fetch_sub(size, AcqRel);
            return self.drop_events(DropReason::QueueBytes, 1);
        }
        // Counted before the writer can take it out, so that the gauge never shows less than nothing.
        self.queued.add(1);
        if self.events.push(Box::new(event)).is_err() {
            self.queued.add(-1);
            self.bytes.fetch_sub(size, AcqRel);
            return self.drop_events(DropReason::QueueFull, 1);
        }
        // Pairs with the fence in `wait`: either we see that it sleeps, or it sees our event.
        std::sync::atomic::fence(SeqCst);
        if self.asleep.load(Relaxed) {
            self.wake();
        }
    }

    pub(crate) fn pop(&self) -> Option<Box<T>> {
        let event = self.events.pop()?;
        self.bytes.fetch_sub(event.weight(), AcqRel);
        self.queued.add(-1);
        Some(event)
    }

    /// Called by the writer: returns when there may be something to do.
    pub(crate) fn wait(&self, is_idle: impl Fn() -> bool) {
        self.asleep.store(true, Relaxed);
        std::sync::atomic::fence(SeqCst);
        if self.events.is_empty() && is_idle() {
            std::thread::park();
        }
        self.asleep.store(false, Relaxed);
    }

    /// Wakes the writer, whether it sleeps or lingers.
    pub(crate) fn wake(&self) {
        // Of many submitters only one pays for the system call.
        self.asleep.store(false, Relaxed);
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// From now on what is submitted is dropped.
    pub(crate) fn close(&self) {
        self.closed.store(true, Release);
    }

    /// Drops and counts what is left. Returns how many that were.
    pub(crate) fn abandon(&self) -> u64 {
        let mut n = 0;
        while self.pop().is_some() {
            n += 1;
        }
        self.drop_events(DropReason::Shutdown, n);
        n
    }

    fn drop_events(&self, reason: DropReason, n: u64) {
        self.dropped.add(reason as usize, n);
    }
}
