//! The thread of a sink.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portcullis_event::Event;
use portcullis_log::Receiver;
use portcullis_query::Filter;

use crate::metrics::{Metrics, RETRY, SHUTDOWN};
use crate::output::{Failure, Outcome, Output};
use crate::sender::Say;

/// Between the first two tries.
const REST_FIRST: Duration = Duration::from_millis(200);
/// Between two tries, at most, unless the receiver asks for more.
const REST_MAX: Duration = Duration::from_secs(15);
/// Failed attempts in a row after which a sink that is to end gives up what is left, and the rest between
/// them.
const LAST_TRIES: u32 = 4;
const LAST_REST: Duration = Duration::from_millis(100);
/// The interval at which a resting thread checks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// Between two complaints about one sink.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(60);

pub(crate) struct WorkerSettings {
    pub(crate) name: String,
    /// What is not asked before an event is queued.
    pub(crate) filter: Option<Filter>,
    /// How long an event is tried again.
    pub(crate) retry: Duration,
}

/// State of a sink's thread, before it runs.
pub(crate) struct Worker {
    settings: WorkerSettings,
    queue: Receiver<Arc<Event>>,
    output: Box<dyn Output>,
    metrics: Metrics,
    say: Say,
    shared: Arc<Shared>,
    /// The receiver takes events, as far as is known.
    is_well: bool,
    /// Failed attempts in a row since it is to end.
    last_tries: u32,
    complained: Option<Instant>,
}

struct Shared {
    stop: AtomicBool,
    /// Events that are neither queued nor settled.
    in_hand: AtomicU64,
    /// Events that were given up because all is to end.
    lost: AtomicU64,
    /// The thread was left behind; it must not count what is counted as lost.
    abandoned: AtomicBool,
}

/// A running thread.
pub(crate) struct WorkerThread {
    queue: Receiver<Arc<Event>>,
    shared: Arc<Shared>,
    metrics: Metrics,
    thread: JoinHandle<()>,
}

impl WorkerThread {
    /// Lets it deliver what is queued, and end.
    pub(crate) fn stop(&self) {
        self.queue.close();
        self.shared.stop.store(true, Release);
        self.queue.wake();
    }

    /// Waits for its end until `deadline`. Returns how many events were lost.
    pub(crate) fn join(self, deadline: Instant) -> u64 {
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        // One that hangs at a silent receiver is left behind; the process ends.
        self.shared.abandoned.store(true, SeqCst);
        let in_hand = self.shared.in_hand.swap(0, SeqCst);
        self.metrics.dropped.add(SHUTDOWN, in_hand);
        self.queue.abandon() + in_hand + self.shared.lost.load(SeqCst)
    }
}

impl Worker {
    pub(crate) fn new(
        settings: WorkerSettings,
        queue: Receiver<Arc<Event>>,
        output: Box<dyn Output>,
        metrics: Metrics,
        say: Say,
    ) -> Worker {
        let shared = Shared {
            stop: AtomicBool::new(false),
            in_hand: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
        };
        let (shared, complained) = (Arc::new(shared), None);
        metrics.up.set(1);
        Worker { settings, queue, output, metrics, say, shared, is_well: true, last_tries: 0, complained }
    }

    pub(crate) fn start(self) -> io::Result<WorkerThread> {
        let (queue, shared, metrics) = (self.queue.clone(), Arc::clone(&self.shared), self.metrics.clone());
        // The system shows 15 characters.
        let name = format!("sink {}", self.settings.name);
        let thread = std::thread::Builder::new().name(name).spawn(move || self.run())?;
        Ok(WorkerThread { queue, shared, metrics, thread })
    }

    fn run(mut self) {
        self.queue.attach();
        loop {
            let stops = self.shared.stop.load(Acquire);
            let batch = self.collect();
            if !batch.is_empty() {
                self.deliver(batch);
                continue;
            }
            let is_due = self.output.next_tick().is_some_and(|at| at <= Instant::now());
            if is_due || stops {
                let outcome = self.output.tick(stops);
                self.settle(&outcome);
                if let Some(failure) = &outcome.failure {
                    self.complain(&failure.why);
                }
            }
            if stops {
                return;
            }
            let longest = self.output.next_tick().map(|at| at.saturating_duration_since(Instant::now()));
            let shared = &self.shared;
            self.queue.wait(longest, || !shared.stop.load(Acquire));
        }
    }

    /// The next batch; empty if no event waits.
    fn collect(&mut self) -> Vec<Arc<Event>> {
        let batches = self.output.batches();
        let mut batch = Vec::new();
        let mut end = None;
        while batch.len() < batches.events_max {
            // Read before the queue: what was submitted before the stop is then delivered.
            let stops = self.shared.stop.load(Acquire);
            if let Some(event) = self.queue.take() {
                if self.settings.filter.as_ref().is_none_or(|filter| filter.matches(&event)) {
                    batch.push(event);
                    self.shared.in_hand.fetch_add(1, SeqCst);
                }
                continue;
            }
            if stops || batch.is_empty() {
                break;
            }
            let end = *end.get_or_insert_with(|| Instant::now() + batches.time);
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let shared = &self.shared;
            self.queue.wait(Some(left), || !shared.stop.load(Acquire));
        }
        batch
    }

    /// Delivers a batch, with more than one try where that can help. The queue fills meanwhile, and then
    /// drops.
    fn deliver(&mut self, mut batch: Vec<Arc<Event>>) {
        let begin = Instant::now();
        let mut rest = REST_FIRST;
        while !batch.is_empty() {
            let outcome = self.output.deliver(&batch);
            self.settle(&outcome);
            batch.drain(..outcome.settled.min(batch.len()));
            if outcome.settled > 0 {
                (rest, self.last_tries) = (REST_FIRST, 0);
            }
            let Some(failure) = outcome.failure else {
                debug_assert!(outcome.settled > 0, "an output settles something, or says why not");
                if outcome.settled == 0 {
                    return self.give_up(&batch, RETRY);
                }
                self.recover();
                continue;
            };
            self.complain(&failure.why);
            let Failure { after, .. } = failure;
            if self.shared.stop.load(Acquire) {
                self.last_tries += 1;
                if self.last_tries >= LAST_TRIES {
                    return self.give_up(&batch, SHUTDOWN);
                }
                std::thread::sleep(LAST_REST);
                continue;
            }
            if begin.elapsed() >= self.settings.retry {
                return self.give_up(&batch, RETRY);
            }
            self.rest(after.unwrap_or(rest).min(self.settings.retry));
            rest = (rest * 2).min(REST_MAX);
        }
    }

    /// Counts what an output settled.
    fn settle(&mut self, outcome: &Outcome) {
        if let Some(complaint) = self.output.complaint() {
            self.tell(&complaint);
        }
        let taken = self.take_in_hand(outcome.settled as u64);
        // All of it was counted as lost at the end of the process, with the thread left behind.
        if self.shared.abandoned.load(SeqCst) && taken < outcome.settled as u64 {
            return;
        }
        self.metrics.sent.add(outcome.sent);
        for (reason, count) in &outcome.dropped {
            self.metrics.dropped.add(*reason, *count);
            if *reason == SHUTDOWN {
                self.shared.lost.fetch_add(*count, SeqCst);
            }
        }
    }

    /// Takes so many events, or all that there are, out of the number of those in hand.
    fn take_in_hand(&self, count: u64) -> u64 {
        let mut taken = 0;
        let _ = self.shared.in_hand.fetch_update(SeqCst, SeqCst, |in_hand| {
            taken = count.min(in_hand);
            Some(in_hand - taken)
        });
        taken
    }

    fn give_up(&mut self, batch: &[Arc<Event>], reason: usize) {
        self.settle(&Outcome::none(batch.len(), reason));
    }

    fn complain(&mut self, why: &str) {
        self.metrics.failures.inc();
        self.metrics.up.set(0);
        self.is_well = false;
        self.tell(&format!("{why}; events wait, what is lost is counted"));
    }

    fn tell(&mut self, what: &str) {
        if self.complained.is_none_or(|at| at.elapsed() >= COMPLAINT_PAUSE) {
            self.complained = Some(Instant::now());
            (self.say)(&format!("sink {}: {}", self.settings.name, printable(what)));
        }
    }

    fn recover(&mut self) {
        if !std::mem::replace(&mut self.is_well, true) {
            self.metrics.up.set(1);
            (self.say)(&format!("sink {}: events are taken again", self.settings.name));
            self.complained = None;
        }
    }

    /// Waits, unless all is to end.
    fn rest(&self, rest: Duration) {
        let end = Instant::now() + rest;
        while Instant::now() < end && !self.shared.stop.load(Acquire) {
            std::thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
        }
    }
}

/// A receiver says part of it: one line, without what a terminal would act upon.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(300).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
