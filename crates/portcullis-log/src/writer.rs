use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use portcullis_event::Event;
use portcullis_metrics::Registry;

use crate::queue::{Queue, QueueLimits, Sender, Weigh};
use crate::sink::{Sink, SinkConfig, StartError};

/// After a batch the writer waits this long before it looks again: the next batch is larger, and workers pay
/// for a wake-up at most this often.
const LINGER: Duration = Duration::from_millis(5);
/// Events written before the writer looks whether it should reopen its files.
const ROUND_EVENTS_MAX: usize = 4096;
/// The longest time for which dropping a [`Log`] waits for its entries.
const DROP_DEADLINE: Duration = Duration::from_secs(1);

/// An entry of a log.
pub trait Entry: Weigh + Send + 'static {
    /// Adds it to the batch of the sink with this number. True if the batch should go out now.
    fn add_to(&self, number: usize, sink: &mut Sink) -> bool;
}

/// A pipeline from workers to files: owns the writer thread. [`Log::sender`] gives out handles.
#[derive(Debug)]
pub struct Log<T: Entry>(Option<Running<T>>);

/// The event pipeline.
pub type EventLog = Log<Arc<Event>>;

#[derive(Debug)]
struct Running<T> {
    shared: Arc<Shared<T>>,
    done: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<T> {
    queue: Arc<Queue<T>>,
    reopen: AtomicBool,
    stop: AtomicBool,
}

impl Entry for Arc<Event> {
    fn add_to(&self, _: usize, sink: &mut Sink) -> bool {
        sink.add(self)
    }
}

impl EventLog {
    /// Opens the sinks and starts the writer. Without sinks there is no thread, and senders are
    /// [disabled](Sender::disabled).
    pub fn new(
        sinks: Vec<SinkConfig>,
        limits: QueueLimits,
        registry: &Registry,
    ) -> Result<EventLog, StartError> {
        if sinks.is_empty() {
            return Ok(Log(None));
        }
        let sinks = sinks.into_iter().map(|config| Sink::of_events(config, registry));
        let sinks = sinks.collect::<Result<Vec<_>, _>>()?;
        Log::start("events", sinks, Queue::of_events(limits, registry))
    }
}

impl<T: Entry> Log<T> {
    /// A log without sinks.
    pub(crate) fn disabled() -> Log<T> {
        Log(None)
    }

    pub(crate) fn start(name: &str, sinks: Vec<Sink>, queue: Queue<T>) -> Result<Log<T>, StartError> {
        let queue = Arc::new(queue);
        let shared = Arc::new(Shared { queue, reopen: AtomicBool::new(false), stop: AtomicBool::new(false) });
        let (finished, done) = channel();
        let writer = Writer { shared: shared.clone(), sinks };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || writer.run(&finished))
            .map_err(StartError::Thread)?;
        shared.queue.set_writer(thread.thread().clone());
        Ok(Log(Some(Running { shared, done, thread: Some(thread) })))
    }

    /// A handle for a worker.
    pub fn sender(&self) -> Sender<T> {
        match &self.0 {
            Some(running) => Sender::new(running.shared.queue.clone()),
            None => Sender::disabled(),
        }
    }

    /// Asks the writer to open its files again at their paths, as after `logrotate` and a SIGHUP. Returns at
    /// once; a file that cannot be opened stays as it is.
    pub fn reopen(&self) {
        if let Some(running) = &self.0 {
            running.shared.reopen.store(true, Release);
            running.shared.queue.wake();
        }
    }

    /// Writes what is queued and ends, but waits no longer than `deadline`. Returns how many queued events
    /// were lost, which are counted under `shutdown`, as is what is submitted from now on.
    pub fn shutdown(mut self, deadline: Duration) -> u64 {
        self.stop(deadline)
    }

    fn stop(&mut self, deadline: Duration) -> u64 {
        let Some(mut running) = self.0.take() else { return 0 };
        let shared = &running.shared;
        shared.queue.close();
        shared.stop.store(true, Release);
        shared.queue.wake();
        match running.done.recv_timeout(deadline) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                if let Some(thread) = running.thread.take() {
                    let _ = thread.join();
                }
            }
            // A sink blocks: the thread is left behind and finds the queue empty should it ever return.
            Err(RecvTimeoutError::Timeout) => {}
        }
        // Empty after an orderly end, but for events of senders that looked before the queue was closed.
        shared.queue.abandon()
    }
}

impl<T: Entry> Drop for Log<T> {
    fn drop(&mut self) {
        self.stop(DROP_DEADLINE);
    }
}

struct Writer<T> {
    shared: Arc<Shared<T>>,
    sinks: Vec<Sink>,
}

impl<T: Entry> Writer<T> {
    fn run(mut self, finished: &mpsc::Sender<()>) {
        loop {
            if self.shared.reopen.swap(false, AcqRel) {
                self.sinks.iter_mut().for_each(Sink::reopen);
            }
            // Read before the queue is drained: what was submitted before the stop is then written.
            let stop = self.shared.stop.load(Acquire);
            let shared = self.shared.clone();
            match self.drain() {
                // At an end, the queue is drained to the last event.
                0 if stop => break,
                0 => shared.queue.wait(|| !shared.stop.load(Acquire) && !shared.reopen.load(Acquire)),
                n if n < ROUND_EVENTS_MAX && !stop => std::thread::park_timeout(LINGER),
                _ => {}
            }
        }
        let _ = finished.send(());
    }

    /// Writes what is queued, up to [`ROUND_EVENTS_MAX`] events. Returns how many there were.
    fn drain(&mut self) -> usize {
        let mut n = 0;
        while n < ROUND_EVENTS_MAX
            && let Some(event) = self.shared.queue.pop()
        {
            n += 1;
            for (number, sink) in self.sinks.iter_mut().enumerate() {
                if event.add_to(number, sink) {
                    sink.flush();
                }
            }
        }
        self.sinks.iter_mut().for_each(Sink::flush);
        n
    }
}
