//! Inspection of large bodies and heads beside the workers, on threads of its own: no request waits for the inspection of another's body.
//!
//! ```text
//! worker ──inspection, what to do──> bounded queue ──> thread "inspect-n" ──inspection, step──> worker
//! ```
//!
//! The queue is shared fairly: where many wait, a client network that has more in it than its part is told to come again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use portcullis_inspect::{Inspection, Step};
use tokio::sync::{mpsc, oneshot};

use crate::network::Member;

/// Heads and bodies from this size on, decoded, are inspected beside the worker: what is smaller takes less than 20 ms, whatever it is.
pub(crate) const LARGE_BYTES_MIN: u64 = 8 << 10;
/// Inspections that wait for each thread.
const QUEUE: usize = 32;
/// By how much these threads are nicer than workers.
const NICE: i32 = 5;

/// What is to be done with an inspection.
type Work = Box<dyn FnOnce(&mut Inspection) -> Step + Send>;

struct Job {
    inspection: Box<Inspection>,
    work: Work,
    reply: oneshot::Sender<Done>,
}

/// What came of it.
pub(crate) struct Done {
    /// None if a bug was caught.
    pub(crate) ended: Option<(Box<Inspection>, Step)>,
    pub(crate) took: Duration,
}

/// The threads, as workers see them. Dropped, they end.
pub(crate) struct Beside {
    jobs: mpsc::Sender<Job>,
    threads: usize,
}

/// The client's network has too much in the queue; its inspection comes back.
pub(crate) struct Busy(pub(crate) Box<Inspection>);

impl Beside {
    /// Starts as many threads.
    pub(crate) fn start(threads: usize) -> std::io::Result<Beside> {
        let (jobs, queue) = mpsc::channel::<Job>(threads * QUEUE);
        let queue = Arc::new(Mutex::new(queue));
        for number in 0..threads {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new().name(format!("inspect-{number}")).spawn(move || {
                // Of this thread alone, on Linux. Without it workers wait longer, no more.
                let _ = rustix::process::nice(NICE);
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
                    let Some(job) = job else { return };
                    run(job);
                }
            })?;
        }
        Ok(Beside { jobs, threads })
    }

    /// Does `work` on a thread of its own, when it is its turn.
    pub(crate) async fn run(
        &self,
        inspection: Box<Inspection>,
        member: &Member,
        work: impl FnOnce(&mut Inspection) -> Step + Send + 'static,
    ) -> Result<Done, Busy> {
        let waits = self.jobs.max_capacity() - self.jobs.capacity();
        let part = member.begin_job();
        // As long as a few wait, nobody has to be sent away.
        if waits >= self.threads * QUEUE / 4 && part.count() > self.threads as u32 * 2 {
            return Err(Busy(inspection));
        }
        let (reply, done) = oneshot::channel();
        let gone = || Done { ended: None, took: Duration::ZERO };
        if self.jobs.send(Job { inspection, work: Box::new(work), reply }).await.is_err() {
            return Ok(gone());
        }
        Ok(done.await.unwrap_or_else(|_| gone()))
    }
}

fn run(Job { mut inspection, work, reply }: Job) {
    if reply.is_closed() {
        return;
    }
    let began = Instant::now();
    let step = catch_unwind(AssertUnwindSafe(|| work(&mut inspection)));
    let ended = match step {
        Ok(step) => Some((inspection, step)),
        Err(_) => {
            // Dropping what is left may panic again.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(inspection)));
            None
        }
    };
    let _ = reply.send(Done { ended, took: began.elapsed() });
}
