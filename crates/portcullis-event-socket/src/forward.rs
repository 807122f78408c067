//! The end that sends events.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver as Done, RecvTimeoutError, channel};
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow};
use portcullis_event::{Event, limits};
use portcullis_log::{EventSender, QueueLimits, Receiver, queue};
use portcullis_metrics::Registry;

use crate::Say;
use crate::connection::{Connection, Failed};
use crate::line::{LINE_BYTES_MAX, Report};
use crate::metrics::{LOST, SHUTDOWN, Sent, TOO_LONG, UNCONFIRMED};

/// Bytes that are sent before their confirmation is waited for.
const BATCH_BYTES: usize = 64 << 10;
/// After a first failed attempt to connect, and at most between two.
const REST_FIRST: Duration = Duration::from_millis(100);
const REST_MAX: Duration = Duration::from_secs(5);
/// Losses that were not reported yet are reported this long after the last event, if no other event comes.
const REPORT_AFTER: Duration = Duration::from_secs(1);
/// Memory of the thread: it serialises events and calls nothing deep.
const STACK_BYTES: usize = 512 << 10;

/// A queue of events and the thread that sends them to a listener. Nothing here makes one wait who submits.
#[derive(Debug)]
pub struct Forward {
    sender: EventSender,
    queue: Receiver<Arc<Event>>,
    shared: Arc<Shared>,
    metrics: Sent,
    done: Done<()>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Events that are neither queued nor settled.
    in_hand: AtomicU64,
}

impl Forward {
    /// Starts the thread. It gets no signals: those are for the threads of the process that loads us.
    pub fn start(
        path: PathBuf,
        limits: QueueLimits,
        registry: &Registry,
        say: Say,
    ) -> std::io::Result<Forward> {
        let metrics = Sent::new(registry);
        let (sender, queue) = queue(limits, metrics.queued.clone(), metrics.lost.clone());
        let (shared, (finished, done)) = (Arc::<Shared>::default(), channel());
        let mut work = Work {
            connection: Connection::new(path),
            queue: queue.clone(),
            shared: Arc::clone(&shared),
            metrics: metrics.clone(),
            say,
            lines: Vec::new(),
            told: [0; LOST.len()],
            is_well: true,
        };
        let body = move || {
            work.run();
            let _ = finished.send(());
        };
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
        let thread =
            std::thread::Builder::new().name("events".to_owned()).stack_size(STACK_BYTES).spawn(body);
        before.thread_set_mask()?;
        thread?;
        Ok(Forward { sender, queue, shared, metrics, done })
    }

    /// Takes events.
    pub fn sender(&self) -> EventSender {
        self.sender.clone()
    }

    /// Sends what is queued and ends, but waits no longer than `deadline`, and not at all where nobody
    /// listens. Returns how many events were lost by that.
    pub fn shutdown(self, deadline: Duration) -> u64 {
        let losses = || (0..LOST.len()).map(|reason| self.metrics.lost.value(reason)).sum::<u64>();
        let before = losses();
        self.queue.close();
        self.shared.stop.store(true, Ordering::Release);
        self.queue.wake();
        if self.done.recv_timeout(deadline) == Err(RecvTimeoutError::Timeout) {
            let in_hand = self.shared.in_hand.swap(0, Ordering::AcqRel);
            self.metrics.lost.add(SHUTDOWN, in_hand);
        }
        self.queue.abandon();
        losses().saturating_sub(before)
    }
}

struct Work {
    connection: Connection,
    queue: Receiver<Arc<Event>>,
    shared: Arc<Shared>,
    metrics: Sent,
    say: Say,
    /// What is sent next.
    lines: Vec<u8>,
    /// Losses by reason, as reported to the listener.
    told: [u64; LOST.len()],
    /// The last attempt went well.
    is_well: bool,
}

impl Work {
    fn run(&mut self) {
        self.queue.attach();
        loop {
            // Read before the queue is emptied: what was submitted before the stop is then sent.
            let stops = self.stops();
            match self.gather() {
                0 if stops => return self.report(),
                0 => self.rest(),
                events => self.deliver(events),
            }
        }
    }

    fn stops(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    /// Until there is an event, or there are losses to report.
    fn rest(&mut self) {
        let shared = Arc::clone(&self.shared);
        let is_idle = move || !shared.stop.load(Ordering::Acquire);
        if self.losses() == self.told {
            self.queue.wait(None, is_idle);
        } else {
            self.queue.wait(Some(REPORT_AFTER), is_idle);
            self.report();
        }
    }

    /// Takes events out of the queue and writes them as lines. Returns how many.
    fn gather(&mut self) -> u64 {
        self.lines.clear();
        let mut events = 0;
        while self.lines.len() < BATCH_BYTES {
            let Some(event) = self.queue.take() else { break };
            let begin = self.lines.len();
            event.write_json_line(&mut self.lines);
            if self.lines.len() - begin > LINE_BYTES_MAX {
                self.lines.truncate(begin);
                event.brief(limits::VALUE_BYTES_MAX).write_json_line(&mut self.lines);
            }
            if self.lines.len() - begin > LINE_BYTES_MAX {
                self.lines.truncate(begin);
                self.metrics.lost.inc(TOO_LONG);
                continue;
            }
            events += 1;
        }
        events
    }

    /// Sends the lines until they are taken or lost.
    fn deliver(&mut self, events: u64) {
        self.shared.in_hand.store(events, Ordering::Release);
        let lines = std::mem::take(&mut self.lines);
        let mut rest = REST_FIRST;
        let (reason, lost) = loop {
            match self.send(&lines, events) {
                Ok(()) => break (UNCONFIRMED, 0),
                Err(Failed::Midway(left)) => break (UNCONFIRMED, left.min(events)),
                Err(Failed::Before) if self.stops() => break (SHUTDOWN, events),
                Err(Failed::Before) => {
                    // Woken by each event that comes, and by the end.
                    let shared = Arc::clone(&self.shared);
                    std::thread::park_timeout(rest);
                    if !shared.stop.load(Ordering::Acquire) {
                        rest = (rest * 2).min(REST_MAX);
                    }
                }
            }
        };
        self.lines = lines;
        // Zero if they were counted at a deadline.
        let in_hand = self.shared.in_hand.swap(0, Ordering::AcqRel);
        if in_hand > 0 {
            self.metrics.lost.add(reason, lost);
            self.metrics.forwarded.add(events - lost);
        }
    }

    /// Sends the lines of so many events once, a report of losses before them if there are any.
    fn send(&mut self, lines: &[u8], events: u64) -> Result<(), Failed> {
        let (losses, mut report) = (self.losses(), Vec::new());
        let counts = LOST.iter().zip(losses.iter().zip(&self.told));
        let new = counts.map(|(reason, (now, told))| ((*reason).to_owned(), now.saturating_sub(*told)));
        let lost: std::collections::BTreeMap<_, _> = new.filter(|(_, count)| *count > 0).collect();
        if !lost.is_empty() {
            Report { lost }.write(&mut report);
        }
        let reports = u64::from(!report.is_empty());
        let sent = self.connection.send(&[&report, lines], reports + events);
        if sent.is_ok() {
            self.told = losses;
        }
        self.metrics.connected.set(self.connection.is_open().into());
        self.tell();
        sent
    }

    /// Tells the listener what was lost, if there is anything new, once.
    fn report(&mut self) {
        if self.losses() != self.told {
            let _ = self.send(&[], 0);
        }
    }

    fn losses(&self) -> [u64; LOST.len()] {
        std::array::from_fn(|reason| self.metrics.lost.value(reason))
    }

    /// Tells the operator when the listener goes and when it comes.
    fn tell(&mut self) {
        let is_well = self.connection.is_open();
        if is_well != std::mem::replace(&mut self.is_well, is_well) {
            let path = self.connection.path().display();
            match self.connection.error() {
                Some(error) => (self.say)(&format!("events cannot be sent to {path}: {error}; they wait")),
                None => (self.say)(&format!("events are sent to {path} again")),
            }
        }
    }
}
