use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::thread::Thread;
use std::time::Duration;

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

/// The workers' end of the event queue. Events are shared: several queues may hold the same one.
pub type EventSender = Sender<Arc<Event>>;

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

    /// True if half of the queue is in use, by entries or by bytes.
    pub fn is_half_full(&self) -> bool {
        self.0.as_ref().is_some_and(|queue| queue.is_half_full())
    }

    /// Hands `entry` to the writer, or drops and counts it. Never waits.
    pub fn submit(&self, entry: impl Into<T>) {
        if let Some(queue) = &self.0 {
            queue.push(entry.into());
        }
    }
}

/// A bounded queue with its two ends, for a thread of the caller's own. Entries that do not fit are counted
/// in `dropped` at the index of their [`DropReason`]: its label values begin with those of
/// [`DropReason::NAMES`] as far as `shutdown`.
pub fn queue<T: Weigh>(
    limits: QueueLimits,
    queued: Gauge,
    dropped: EnumCounters,
) -> (Sender<T>, Receiver<T>) {
    let queue = Arc::new(Queue::new(limits, queued, dropped));
    (Sender::new(Arc::clone(&queue)), Receiver(queue))
}

/// The other end of a [`queue()`]: one thread takes entries out, another may [wake](Receiver::wake) it and
/// [close](Receiver::close) the queue.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Queue<T>>);

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Receiver(Arc::clone(&self.0))
    }
}

impl<T: Weigh> Receiver<T> {
    /// From now on the calling thread is the one that is woken. To be called once.
    pub fn attach(&self) {
        self.0.set_writer(std::thread::current());
    }

    /// The oldest entry, if there is one.
    pub fn take(&self) -> Option<T> {
        self.0.pop().map(|entry| *entry)
    }

    /// Returns when there may be something to do: an entry came, another thread called
    /// [`wake`](Receiver::wake), `longest` has passed, or for no reason. Returns at once unless `is_idle`.
    pub fn wait(&self, longest: Option<Duration>, is_idle: impl Fn() -> bool) {
        self.0.wait_for(longest, is_idle);
    }

    /// Wakes the thread that takes entries out.
    pub fn wake(&self) {
        self.0.wake();
    }

    /// From now on what is submitted is dropped and counted.
    pub fn close(&self) {
        self.0.close();
    }

    /// Drops and counts what is left. Returns how many entries that were.
    pub fn abandon(&self) -> u64 {
        self.0.abandon()
    }
}

/// An item of a bounded queue.
pub trait Weigh {
    /// Bytes in memory, roughly; always the same for the same item.
    fn weight(&self) -> usize;
}

/// An event may be in several queues. Each counts all of it, so that none holds more than its limit.
impl Weigh for Arc<Event> {
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

impl Queue<Arc<Event>> {
    pub(crate) fn of_events(limits: QueueLimits, registry: &Registry) -> Queue<Arc<Event>> {
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

    fn is_half_full(&self) -> bool {
        self.bytes.load(Relaxed) > self.bytes_max / 2 || self.events.len() > self.events.capacity() / 2
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
        self.wait_for(None, is_idle);
    }

    fn wait_for(&self, longest: Option<Duration>, is_idle: impl Fn() -> bool) {
        self.asleep.store(true, Relaxed);
        std::sync::atomic::fence(SeqCst);
        if self.events.is_empty() && is_idle() {
            match longest {
                Some(longest) => std::thread::park_timeout(longest),
                None => std::thread::park(),
            }
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
