use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portcullis_fetch::NotTaken;
use portcullis_metrics::{Counter, EnumCounters, Gauge, Registry, catalogue};

use crate::collector::{Collector, Settings};
use crate::{Trace, otlp};

/// Traces that wait; more are dropped.
const QUEUE_MAX: usize = 8192;
/// Traces in one request to the collector.
const BATCH_MAX: usize = 512;
/// The time for which a batch waits for more.
const LINGER: Duration = Duration::from_secs(1);
/// Between tries of a batch that may be tried again.
const RESTS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// The interval at which an idle thread checks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// The reasons why spans are dropped, as the label `reason` has them.
const REASONS: &[&str] = &["queue", "export", "shutdown"];
const QUEUE: usize = 0;
const EXPORT: usize = 1;
const SHUTDOWN: usize = 2;

/// The workers' end of the queue of traces. Cheap to clone.
#[derive(Clone)]
pub struct Sender {
    /// Nothing wakes the thread, which looks whether it is to end.
    queue: SyncSender<Option<Trace>>,
    shared: Arc<Shared>,
}

struct Shared {
    stop: AtomicBool,
    queued: Gauge,
    exported: Counter,
    dropped: EnumCounters,
}

/// The thread that sends traces to a collector.
pub struct Exporter {
    sender: Sender,
    thread: JoinHandle<()>,
}

impl Sender {
    /// Leaves a trace, or drops and counts it. Never waits.
    pub fn submit(&self, trace: Trace) {
        let (shared, spans) = (&self.shared, trace.spans.len() as u64);
        shared.queued.add(1);
        let reason = match self.queue.try_send(Some(trace)) {
            Ok(()) => return,
            Err(TrySendError::Full(_)) => QUEUE,
            Err(TrySendError::Disconnected(_)) => SHUTDOWN,
        };
        shared.queued.add(-1);
        shared.dropped.add(reason, spans);
    }
}

impl Exporter {
    /// Returns the error that would prevent a start: authorities that cannot be read.
    pub fn check(settings: Settings) -> std::io::Result<()> {
        Collector::new(settings).map(drop)
    }

    /// Starts the thread. `say` takes a line for the operator. An error tells of authorities that cannot be
    /// read, too.
    pub fn start(
        settings: Settings,
        registry: &Registry,
        say: impl Fn(&str) + Send + 'static,
    ) -> std::io::Result<Exporter> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            queued: registry.gauge(&catalogue::TRACES_QUEUED, &[]),
            exported: registry.counter(&catalogue::SPANS_EXPORTED, &[]),
            dropped: registry.enum_counters(&catalogue::SPANS_DROPPED, &[], REASONS),
        });
        let (queue, traces) = sync_channel(QUEUE_MAX);
        let worker = Worker {
            collector: Collector::new(settings)?,
            traces,
            shared: Arc::clone(&shared),
            say: Box::new(say),
            was_well: true,
        };
        let thread = std::thread::Builder::new().name("traces".to_string()).spawn(move || worker.run())?;
        Ok(Exporter { sender: Sender { queue, shared }, thread })
    }

    /// A handle for workers.
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// Sends what waits and ends, but waits no longer than `deadline`. Returns how many traces were given up.
    pub fn shutdown(self, deadline: Duration) -> u64 {
        let Exporter { sender, thread } = self;
        let end = Instant::now() + deadline;
        sender.shared.stop.store(true, Relaxed);
        // A queue that is full needs no waking.
        let _ = sender.queue.try_send(None);
        while !thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        // One that hangs at a collector that is silent is left behind; the process ends.
        u64::try_from(sender.shared.queued.value()).unwrap_or(0)
    }
}

struct Worker {
    collector: Collector,
    traces: Receiver<Option<Trace>>,
    shared: Arc<Shared>,
    say: Box<dyn Fn(&str) + Send>,
    was_well: bool,
}

impl Worker {
    fn run(mut self) {
        while let Some(batch) = self.collect() {
            self.deliver(&batch);
            self.shared.queued.add(-(batch.len() as i64));
        }
    }

    /// The next batch; none at the end.
    fn collect(&self) -> Option<Vec<Trace>> {
        let mut batch = Vec::new();
        let mut end = Instant::now();
        loop {
            let stopping = self.shared.stop.load(Relaxed);
            let next = match (batch.is_empty(), stopping) {
                (_, true) => self.traces.try_recv().map_err(|_| RecvTimeoutError::Disconnected),
                (true, false) => self.traces.recv().map_err(|_| RecvTimeoutError::Disconnected),
                (false, false) => self.traces.recv_timeout(end.saturating_duration_since(Instant::now())),
            };
            match next {
                Ok(Some(trace)) => {
                    if batch.is_empty() {
                        end = Instant::now() + LINGER;
                    }
                    batch.push(trace);
                    if batch.len() >= BATCH_MAX {
                        return Some(batch);
                    }
                }
                Ok(None) => {}
                Err(RecvTimeoutError::Timeout) => return Some(batch),
                Err(RecvTimeoutError::Disconnected) => return (!batch.is_empty()).then_some(batch),
            }
        }
    }

    /// Sends a batch, more than once where that can help. The queue fills meanwhile, and then drops.
    fn deliver(&mut self, batch: &[Trace]) {
        let spans: u64 = batch.iter().map(|trace| trace.spans.len() as u64).sum();
        let settings = self.collector.settings();
        let body = otlp::body(&settings.service, settings.version, batch);
        let mut rests = RESTS.iter();
        loop {
            let why = match self.collector.send(&body) {
                Ok(rejected) => {
                    let rejected = rejected.min(spans);
                    self.shared.exported.add(spans - rejected);
                    self.shared.dropped.add(EXPORT, rejected);
                    if !std::mem::replace(&mut self.was_well, true) {
                        (self.say)("traces: the collector accepts spans again");
                    }
                    return;
                }
                Err(why) => why,
            };
            if std::mem::replace(&mut self.was_well, false) {
                (self.say)(&format!("traces: the collector does not accept spans: {why}"));
            }
            let rest = match why {
                NotTaken::ForNow { .. } => rests.next(),
                // It may have the spans already: a second time they would be there twice.
                NotTaken::Perhaps(_) | NotTaken::ForGood(_) => None,
            };
            let is_over = rest.is_none_or(|&rest| self.rest(rest));
            if is_over {
                let stopping = self.shared.stop.load(Relaxed);
                return self.shared.dropped.add(if stopping { SHUTDOWN } else { EXPORT }, spans);
            }
        }
    }

    /// Waits; true if all is to end.
    fn rest(&self, rest: Duration) -> bool {
        let end = Instant::now() + rest;
        while Instant::now() < end && !self.shared.stop.load(Relaxed) {
            std::thread::sleep(LOOK);
        }
        self.shared.stop.load(Relaxed)
    }
}
