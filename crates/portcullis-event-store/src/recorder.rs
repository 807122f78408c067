//! The recorder: a queue that no request waits for, and the thread that writes what comes out of it.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{self, Relaxed},
};
use std::sync::mpsc::{Receiver as Done, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_event::{AccessRecord, Coverage, Event, KeptRequest};
use portcullis_log::{DropReason, QueueLimits, Receiver, Sender};
use portcullis_metrics::{Counter, EnumCounters, Gauge, Registry, catalogue};
use portcullis_types::Outage;

use crate::coalesce::{Coalescer, Fate};
use crate::followups::FollowUps;
use crate::recorded::Recorded;
use crate::rollup::Tallies;
use crate::segment::SegmentError;
use crate::writer::{Committed, Notice, Writer};

/// After a batch that was small the writer waits this long, so that the next one is larger.
const LINGER: Duration = Duration::from_millis(10);
/// A batch that is not small.
const BATCH: usize = 256;
/// Events taken out before anything else is looked after.
const ROUND: usize = 4096;

/// Takes a line for the operator.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// A running writer: owns its thread.
#[derive(Debug)]
pub struct Recorder {
    handle: RecorderHandle,
    receiver: Receiver<Recorded>,
    stop: Arc<AtomicBool>,
    done: Done<()>,
    thread: Option<JoinHandle<()>>,
}

/// Handle with which workers record events. Cheap to clone; nothing here waits.
#[derive(Clone, Debug)]
pub struct RecorderHandle {
    sender: Sender<Recorded>,
    tallies: Arc<Tallies>,
    not_kept: Counter,
    /// The last commit failed.
    fails: Arc<AtomicBool>,
}

/// Handle with which workers record requests of the sample. Cheap to clone; nothing here waits.
#[derive(Clone, Debug)]
pub struct SampleHandle {
    sample: RecorderHandle,
    /// Events come first.
    events: RecorderHandle,
}

impl SampleHandle {
    /// Queues a request to be stored, with an event that says where it went; gives it up while the store of
    /// events is pressed.
    pub fn request(&self, event: Arc<Event>, request: Option<Box<KeptRequest>>) {
        if self.events.sender.is_half_full() || self.events.fails.load(Relaxed) {
            self.sample.not_kept.inc();
            return;
        }
        self.sample.sender.submit(Recorded { event, request: request.map(Arc::from) });
    }
}

impl RecorderHandle {
    /// True if half of the queue of events is in use.
    pub fn is_half_full(&self) -> bool {
        self.sender.is_half_full()
    }

    /// Counts a request in the roll-ups, with the time of its inspection if it was inspected.
    pub fn request(&self, record: &AccessRecord<'_>, coverage: &Coverage, inspection: Option<Duration>) {
        self.tallies.own().request(record, coverage, inspection);
    }

    /// Counts an event in the roll-ups and queues it to be stored, with the request that is kept of it. While
    /// half of the queue is in use events go without.
    pub fn event(&self, event: Arc<Event>, request: Option<Box<KeptRequest>>) {
        self.tallies.own().event(&event);
        let request = match request {
            Some(_) if self.sender.is_half_full() => {
                self.not_kept.inc();
                None
            }
            request => request.map(Arc::from),
        };
        self.sender.submit(Recorded { event, request });
    }
}

impl Recorder {
    /// Starts the thread of a writer. Of more than `coalesce_above` events of one kind a second the further
    /// ones become one; 0: all are stored.
    pub fn start(
        writer: Writer,
        coalesce_above: u32,
        limits: QueueLimits,
        registry: &Registry,
        say: Say,
    ) -> std::io::Result<Recorder> {
        Recorder::start_roll(Roll::Events, writer, coalesce_above, limits, registry, say)
    }

    /// Starts the thread of a writer of the sample of requests that passed, a store of its own.
    pub fn start_sample(
        writer: Writer,
        limits: QueueLimits,
        registry: &Registry,
        say: Say,
    ) -> std::io::Result<Recorder> {
        Recorder::start_roll(Roll::Sample, writer, 0, limits, registry, say)
    }

    fn start_roll(
        roll: Roll,
        writer: Writer,
        coalesce_above: u32,
        limits: QueueLimits,
        registry: &Registry,
        say: Say,
    ) -> std::io::Result<Recorder> {
        let metrics = Metrics::new(roll, registry);
        let (sender, receiver) =
            portcullis_log::queue(limits, metrics.queued.clone(), metrics.dropped.clone());
        let (not_kept, fails) = (metrics.not_kept.clone(), Arc::default());
        let handle = RecorderHandle { sender, tallies: Arc::default(), not_kept, fails };
        let stop = Arc::new(AtomicBool::new(false));
        let (finished, done) = channel();
        let mut work = Work {
            writer,
            followups: FollowUps::default(),
            coalescer: Coalescer::new(coalesce_above),
            receiver: receiver.clone(),
            tallies: Arc::clone(&handle.tallies),
            stop: Arc::clone(&stop),
            metrics,
            say,
            last_commit: Instant::now(),
            roll,
            outage: Outage::default(),
            fails: Arc::clone(&handle.fails),
        };
        let body = move || {
            work.run();
            // The folder is free before the end is reported.
            drop(work);
            let _ = finished.send(());
        };
        let thread = std::thread::Builder::new().name("event-store".to_owned()).spawn(body)?;
        Ok(Recorder { handle, receiver, stop, done, thread: Some(thread) })
    }

    /// A handle for workers.
    pub fn handle(&self) -> RecorderHandle {
        self.handle.clone()
    }

    /// A handle for requests of this sample, which are dropped first where these events need space.
    pub fn sample_of(&self, events: RecorderHandle) -> SampleHandle {
        SampleHandle { sample: self.handle.clone(), events }
    }

    /// Writes what is queued and ends, but waits no longer than `deadline`. Returns how many events were
    /// lost.
    pub fn shutdown(mut self, deadline: Duration) -> u64 {
        self.receiver.close();
        self.stop.store(true, Ordering::Release);
        self.receiver.wake();
        match self.done.recv_timeout(deadline) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                if let Some(thread) = self.thread.take() {
                    let _ = thread.join();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        self.receiver.abandon()
    }
}

/// Contents of a store.
#[derive(Clone, Copy, Debug)]
enum Roll {
    Events,
    /// Requests that passed.
    Sample,
}

impl Roll {
    fn name(self) -> &'static str {
        match self {
            Roll::Events => "event store",
            Roll::Sample => "sample of requests",
        }
    }
}

struct Metrics {
    queued: Gauge,
    written: Counter,
    /// Of events only.
    coalesced: Option<Counter>,
    not_kept: Counter,
    dropped: EnumCounters,
    bytes: Gauge,
    segments_dropped: EnumCounters,
}

impl Metrics {
    fn new(roll: Roll, registry: &Registry) -> Metrics {
        let segments = &["retention", "damaged"];
        match roll {
            Roll::Events => Metrics {
                queued: registry.gauge(&catalogue::EVENT_STORE_QUEUED, &[]),
                written: registry.counter(&catalogue::EVENT_STORE_WRITTEN, &[]),
                coalesced: Some(registry.counter(&catalogue::EVENT_STORE_COALESCED, &[])),
                not_kept: registry.counter(&catalogue::EVENT_STORE_REQUESTS_NOT_KEPT, &[]),
                dropped: registry.enum_counters(&catalogue::EVENT_STORE_DROPPED, &[], DropReason::NAMES),
                bytes: registry.gauge(&catalogue::EVENT_STORE_BYTES, &[]),
                segments_dropped: registry.enum_counters(
                    &catalogue::EVENT_STORE_SEGMENTS_DROPPED,
                    &[],
                    segments,
                ),
            },
            Roll::Sample => Metrics {
                queued: registry.gauge(&catalogue::CAPTURE_QUEUED, &[]),
                written: registry.counter(&catalogue::CAPTURE_WRITTEN, &[]),
                coalesced: None,
                not_kept: registry.counter(&catalogue::CAPTURE_GIVEN_UP, &[]),
                dropped: registry.enum_counters(&catalogue::CAPTURE_DROPPED, &[], DropReason::NAMES),
                bytes: registry.gauge(&catalogue::CAPTURE_BYTES, &[]),
                segments_dropped: registry.enum_counters(&catalogue::CAPTURE_SEGMENTS_DROPPED, &[], segments),
            },
        }
    }
}

struct Work {
    writer: Writer,
    followups: FollowUps,
    coalescer: Coalescer,
    receiver: Receiver<Recorded>,
    tallies: Arc<Tallies>,
    stop: Arc<AtomicBool>,
    metrics: Metrics,
    say: Say,
    last_commit: Instant,
    roll: Roll,
    /// The last commit failed, and this was reported.
    outage: Outage,
    fails: Arc<AtomicBool>,
}

impl Work {
    fn run(&mut self) {
        self.receiver.attach();
        loop {
            // Read before the queue is drained: what was submitted before the stop is then written.
            let stop = self.stop.load(Ordering::Acquire);
            let taken = self.drain();
            if stop {
                // The queue is closed: it has an end.
                while self.drain() == ROUND {}
                self.followups.flush().iter().for_each(|recorded| self.store(recorded));
                self.coalescer.flush().iter().for_each(|recorded| self.store(recorded));
                self.commit();
                return;
            }
            self.followups.due(now()).into_iter().for_each(|recorded| self.coalesce(recorded));
            self.coalescer.due(now()).iter().for_each(|recorded| self.store(recorded));
            if self.last_commit.elapsed() >= Writer::COMMIT_AFTER {
                self.commit();
            }
            match taken {
                0 => {
                    let stop = Arc::clone(&self.stop);
                    self.receiver.wait(Some(Writer::COMMIT_AFTER), move || !stop.load(Ordering::Acquire));
                }
                1..BATCH => std::thread::sleep(LINGER),
                _ => {}
            }
        }
    }

    /// Takes events out of the queue, some thousands at most.
    fn drain(&mut self) -> usize {
        let now = now();
        for taken in 0..ROUND {
            let Some(recorded) = self.receiver.take() else { return taken };
            match self.followups.look_at(recorded, now) {
                Fate::Held => {}
                Fate::Counted => self.metrics.coalesced.iter().for_each(Counter::inc),
                Fate::Stays(recorded) => self.coalesce(recorded),
            }
        }
        ROUND
    }

    /// Stores an event, unless it is counted in another of its kind.
    fn coalesce(&mut self, recorded: Recorded) {
        match self.coalescer.look_at(recorded) {
            Fate::Held => {}
            Fate::Counted => self.metrics.coalesced.iter().for_each(Counter::inc),
            Fate::Stays(recorded) => self.store(&recorded),
        }
    }

    fn store(&mut self, recorded: &Recorded) {
        if self.writer.add(&recorded.event, recorded.request.as_deref()) {
            self.commit();
        }
    }

    fn commit(&mut self) {
        self.last_commit = Instant::now();
        self.writer.count(self.tallies.take());
        let pending = self.writer.pending();
        match self.writer.commit(now()) {
            Ok(committed) => self.tell(committed),
            Err(error) => {
                let reason = match matches!(error, SegmentError::Full) {
                    true => DropReason::DiskFull,
                    false => DropReason::WriteError,
                };
                self.metrics.dropped.add(reason as usize, pending);
                self.fails.store(true, Relaxed);
                if self.outage.failed() {
                    let name = self.roll.name();
                    (self.say)(&format!("{name}: {error}; what comes is lost until it can be written to"));
                }
            }
        }
    }

    fn tell(&mut self, committed: Committed) {
        let name = self.roll.name();
        if committed.written > 0 {
            self.fails.store(false, Relaxed);
        }
        // Commits without events, and those for which old segments had to go, do not show that it works.
        if committed.written > 0 && self.outage.worked(now()) {
            (self.say)(&format!("{name}: it is written to again"));
        }
        self.metrics.written.add(committed.written);
        self.metrics.segments_dropped.add(0, committed.segments_dropped);
        if let Some(bytes) = committed.bytes {
            self.metrics.bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        for notice in committed.notices {
            let text = match notice {
                Notice::Damaged(text) => {
                    self.metrics.segments_dropped.inc(1);
                    format!("{name}: a segment is damaged and was set aside: {text}")
                }
                Notice::NotDeleted(text) => format!("{name}: an old segment cannot be deleted: {text}"),
                Notice::RollupsLost(text) => {
                    format!("{name}: the statistics of a segment that was deleted are lost: {text}")
                }
            };
            (self.say)(&text);
        }
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
