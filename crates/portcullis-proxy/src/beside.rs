//! Inspection of large bodies and heads beside the workers, on threads of its own: no request waits for the
//! inspection of another's body.
//!
//! ```text
//! worker ──inspection, what to do──> queue, lightest network first ──> thread "inspect-n" ──inspection, step──> worker
//! ```
//!
//! The queue is bounded and sorted: whose network has cost least lately comes first, and where there is no
//! room the request whose network has cost most is refused with `Retry-After`. One thread is left to what is
//! small and of a network that costs little, so that it does not wait for long work that has begun.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_exchange::Borrowed;
use portcullis_inspect::{Inspection, Step};
use portcullis_metrics::{Counter, Registry, catalogue};
use tokio::sync::oneshot;

use crate::network::{self, Member};
use crate::{allocator, clock};

/// Heads and bodies from this size on, decoded, are inspected beside the worker: what is smaller takes less
/// than 20 ms, whatever it is.
pub(crate) const LARGE_BYTES_MIN: u64 = 8 << 10;
/// Inspections that wait for each thread.
const QUEUE: usize = 32;
/// By how much these threads are nicer than workers.
const NICE: i32 = 5;
/// More bytes than this may take long.
const LONG_BYTES_MIN: u64 = 256 << 10;
/// So may whatever comes of a network that has taken more than this part of a core lately, in microseconds of
/// its account.
pub(crate) const HEAVY_ACCOUNT_MIN: u64 = 200_000;
/// The weight of one more inspection of the same network in the queue, in microseconds.
const QUEUED_US: u64 = 5_000;
/// Bytes that are looked at at one time, unless it is a single message that has more: each of them may take
/// several bytes of memory while it is taken apart and decoded.
const RUNNING_BYTES_MAX: u64 = 16 << 20;
/// Longer nothing waits in the queue.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A thread without work for so long gives memory back.
const REST: Duration = Duration::from_secs(1);

/// The work to be done with an inspection.
type Work = Box<dyn FnOnce(&mut Inspection) -> Step + Send>;

struct Job {
    inspection: Box<Inspection>,
    work: Work,
    reply: oneshot::Sender<Result<Borrowed, Busy>>,
    /// It may take long.
    is_long: bool,
    bytes: u64,
    since: Instant,
}

/// The properties of a job that decide its turn.
#[derive(Clone, Copy)]
pub(crate) struct Weight {
    /// Bytes that are looked at.
    pub(crate) bytes: u64,
    /// The account of its client network, in microseconds.
    pub(crate) account: u64,
}

/// The threads, as workers see them. Dropped, they end.
pub(crate) struct Beside {
    shared: Arc<Shared>,
    offloaded: Counter,
}

/// The request that has something inspected.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) pool: &'a Beside,
    pub(crate) member: &'a Member,
    /// The account of the client network.
    pub(crate) account: u64,
    /// Smaller messages are inspected on the worker.
    pub(crate) large_from: u64,
}

/// The client's network has too much in the queue; its inspection comes back.
pub(crate) struct Busy(pub(crate) Box<Inspection>);

struct Shared {
    threads: usize,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// By the account of the network, then by age.
    jobs: BTreeMap<(u64, u64), Job>,
    number: u64,
    /// Long ones that run.
    long: usize,
    /// Bytes of those that run.
    running: u64,
    ended: bool,
}

impl Beside {
    /// Starts two threads for each of `workers`.
    pub(crate) fn start(workers: usize, registry: &Registry) -> std::io::Result<Beside> {
        // One of them is not for long work.
        let threads = (workers * 2).max(2);
        let shared = Arc::new(Shared { threads, queue: Mutex::default(), changed: Condvar::new() });
        let offloaded = registry.counter(&catalogue::INSPECTIONS_OFFLOADED, &[]);
        let beside = Beside { shared: Arc::clone(&shared), offloaded };
        for number in 0..threads {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(format!("inspect-{number}")).spawn(move || {
                // Of this thread alone, on Linux. Without it workers wait longer, no more.
                let _ = rustix::process::nice(NICE);
                while let Some(job) = shared.next() {
                    let (is_long, bytes) = (job.is_long, job.bytes);
                    run(job);
                    shared.ended(is_long, bytes);
                }
            })?;
        }
        Ok(beside)
    }

    /// Does `work` on a thread of its own, when it is its turn.
    pub(crate) async fn run(
        &self,
        inspection: Box<Inspection>,
        member: &Member,
        weight: Weight,
        work: impl FnOnce(&mut Inspection) -> Step + Send + 'static,
    ) -> Result<Borrowed, Busy> {
        self.offloaded.inc();
        let part = member.begin_job();
        let (reply, done) = oneshot::channel();
        let is_long = weight.bytes >= LONG_BYTES_MIN || weight.account >= HEAVY_ACCOUNT_MIN;
        let (work, bytes, since) = (Box::new(work), weight.bytes, Instant::now());
        let job = Job { inspection, work, reply, is_long, bytes, since };
        self.shared.push(rank(&part, weight), job);
        match done.await {
            Ok(answer) => answer,
            Err(_) => Ok(Borrowed { ended: None, took: Duration::ZERO, worked: Duration::ZERO }),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
    }
}

/// The cost of a network, and that of its jobs to come.
fn rank(part: &network::Job, weight: Weight) -> u64 {
    weight.account.saturating_add(u64::from(part.count() - 1) * QUEUED_US)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a job into the queue; if there is no room the heaviest one goes.
    fn push(&self, rank: u64, job: Job) {
        let mut queue = self.lock();
        queue.number += 1;
        let key = (rank, queue.number);
        queue.jobs.insert(key, job);
        let one_too_many = queue.jobs.len() > self.threads * QUEUE;
        let dropped = one_too_many.then(|| queue.jobs.pop_last()).flatten();
        drop(queue);
        self.changed.notify_one();
        if let Some((_, job)) = dropped {
            job.give_back();
        }
    }

    /// The next job, when there is one; none at the end.
    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        let mut has_rested = false;
        loop {
            if queue.ended {
                return None;
            }
            // A request that is always overtaken is refused in the end, but not if it is its turn now.
            if queue.jobs.len() > 1
                && let Some(entry) = queue.jobs.last_entry()
                && entry.get().since.elapsed() > WAIT_MAX
            {
                let job = entry.remove();
                drop(queue);
                job.give_back();
                queue = self.lock();
                continue;
            }
            let first =
                queue.jobs.iter().find(|(_, job)| queue.has_room(job.is_long, job.bytes, self.threads));
            let first = first.map(|(key, _)| *key);
            if let Some(job) = first.and_then(|key| queue.jobs.remove(&key)) {
                queue.long += usize::from(job.is_long);
                queue.running += job.bytes;
                return Some(job);
            }
            if has_rested {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (again, timeout) =
                self.changed.wait_timeout(queue, REST).unwrap_or_else(PoisonError::into_inner);
            queue = again;
            if timeout.timed_out() {
                has_rested = true;
                drop(queue);
                allocator::touch();
                queue = self.lock();
            }
        }
    }

    /// A job has come to its end.
    fn ended(&self, is_long: bool, bytes: u64) {
        let mut queue = self.lock();
        queue.running -= bytes;
        if is_long {
            queue.long -= 1;
            drop(queue);
            // Those that waited for it may go.
            self.changed.notify_all();
        }
    }
}

impl Queue {
    /// True if such a job may run now.
    fn has_room(&self, is_long: bool, bytes: u64, threads: usize) -> bool {
        let is_one_too_long = is_long && self.long + 1 >= threads;
        !is_one_too_long && (self.running == 0 || self.running + bytes <= RUNNING_BYTES_MAX)
    }
}

impl Job {
    fn give_back(self) {
        let _ = self.reply.send(Err(Busy(self.inspection)));
    }
}

fn run(Job { mut inspection, work, reply, .. }: Job) {
    if reply.is_closed() {
        return;
    }
    let (began, before) = (Instant::now(), clock::of_thread());
    let step = catch_unwind(AssertUnwindSafe(|| work(&mut inspection)));
    let ended = match step {
        Ok(step) => Some((inspection, step)),
        Err(_) => {
            // Dropping what is left may panic again.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(inspection)));
            None
        }
    };
    let worked = clock::of_thread().saturating_sub(before);
    let _ = reply.send(Ok(Borrowed { ended, took: began.elapsed(), worked }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bodies_are_taken_apart_one_by_one() {
        let at = |long, running| Queue { long, running, ..Queue::default() };
        // Whatever its size, one may run; beside it those for which there is room.
        assert!(at(0, 0).has_room(true, u64::MAX, 4));
        assert!(at(1, 12 << 20).has_room(true, 4 << 20, 4));
        assert!(!at(1, 12 << 20).has_room(true, 5 << 20, 4));
        // One thread is left to those that are short.
        assert!(!at(3, 3 << 20).has_room(true, 1 << 20, 4) && at(3, 3 << 20).has_room(false, 100, 4));
    }
}
